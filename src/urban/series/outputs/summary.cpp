#include "urban/series/outputs/summary.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "urban/comfort/comfort.hpp"
#include "urban/options/hours.hpp"
#include "urban/series/outputs/writer.hpp"

namespace lockstep::urban {

std::vector<double> thresholds_of(SeriesOutput output) {
  if (output == SeriesOutput::tmrt) return {55, 60};
  if (output != SeriesOutput::utci && output != SeriesOutput::pet) return {};
  const bool utci = output == SeriesOutput::utci;
  std::vector<double> bounds;
  for (const StressClass& stress : stress_classes(utci ? ComfortIndex::utci : ComfortIndex::pet))
    if (std::isfinite(stress.upper_c) && stress.upper_c >= (utci ? 26 : 23)) bounds.push_back(stress.upper_c);
  return bounds;
}

namespace {

/// How a bound is named in a grid and in its title; the longer of two with the same begin first.
struct BoundForm {
  bool above, equal;
  std::string_view name, text;
};
constexpr BoundForm kBoundForms[] = {{true, false, "_hours_above_", "above"},
                                     {false, false, "_hours_below_", "below"},
                                     {true, true, "_hours_at_least_", "of at least"},
                                     {false, true, "_hours_at_most_", "of at most"}};

std::string shown_unit(std::string_view unit) {
  return unit == "degC" ? " °C" : unit == "W m-2" ? " W/m²" : "";
}

std::string grid_of(const Threshold& t) {
  for (const BoundForm& form : kBoundForms)
    if (form.above == t.above && form.equal == t.equal)
      return fmt::format("{}{}{:g}", t.output, form.name, t.bound);
  return {};
}

}  // namespace

std::vector<Threshold> bounds_of(SeriesOutput output, const std::vector<Threshold>& own) {
  std::vector<Threshold> bounds;
  const std::string output_name(name(output));
  for (const double bound : thresholds_of(output))
    bounds.push_back({"", output_name, true, false, static_cast<float>(bound)});
  for (const Threshold& t : own)
    if (t.output == output_name && std::ranges::find(bounds, grid_of(t), grid_of) == bounds.end())
      bounds.push_back(t);
  return bounds;
}

std::vector<Threshold> own_bounds(const SeriesOptions& options) {
  std::vector<Threshold> own;
  for (const std::string& text : options.thresholds) {
    own.push_back(parse_threshold(text));
    if (std::ranges::find(options.outputs, own.back().output,
                          [](SeriesOutput o) { return std::string(name(o)); }) != options.outputs.end())
      continue;
    std::string outputs;
    for (const SeriesOutput output : options.outputs)
      outputs += fmt::format("{}{}", outputs.empty() ? "" : ", ", name(output));
    throw schema_of<SeriesOptions>().error({OptionError::Kind::invalid, "threshold",
                                            fmt::format("no output '{}' in the run", own.back().output),
                                            "one of " + outputs + ", or more {outputs}", ""});
  }
  return own;
}

void check_summary(const SeriesOptions& options, const SeriesInputs& inputs) {
  own_bounds(options);
  const int64_t step_min = inputs.weather.step_min;
  const auto counts = [&](const WeatherStep& step) { return options.hours->holds(step.time, step_min); };
  if (options.hours && std::ranges::none_of(inputs.steps, counts))
    throw no_step_error(*options.hours, step_min);
}

std::string summary_title(std::string_view grid) {
  if (grid == "sun_hours") return "Hours of sunshine, beam of 120 W/m² or more";
  for (const Choice<SeriesOutput>& output : choices(SeriesOutput{})) {
    if (!grid.starts_with(output.name)) continue;
    const std::string_view rest = grid.substr(output.name.size());
    const std::string text = text_of(output.value).long_name;
    if (rest.empty()) return text;
    if (rest == "_mean") return text + ", mean";
    if (rest == "_max") return text + ", highest";
    if (rest == "_hours_outside_fit") return text + ", hours outside of the polynomial's fit";
    for (const BoundForm& form : kBoundForms)
      if (rest.starts_with(form.name))
        return fmt::format("{}, hours {} {}{}", text, form.text, rest.substr(form.name.size()),
                           shown_unit(text_of(output.value).unit));
  }
  return std::string(grid);
}

SeriesSummary::SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours, int parts,
                             const std::vector<Threshold>& own)
    : outputs_(std::move(outputs)),
      pixels_(pixels),
      step_hours_(step_hours),
      parts_(static_cast<float>(parts)),
      sums_(outputs_.size()) {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    Sums& s = sums_[o];
    s.sum = std::make_unique_for_overwrite<double[]>(pixels_);
    s.highest = std::make_unique_for_overwrite<float[]>(pixels_);
    s.bounds = bounds_of(outputs_[o], own);
    for (size_t b = 0; b < s.bounds.size(); ++b)
      s.beyond.push_back(std::make_unique_for_overwrite<int32_t[]>(pixels_));
    if (outputs_[o] == SeriesOutput::utci) s.outside = std::make_unique_for_overwrite<int32_t[]>(pixels_);
  }
}

uint64_t SeriesSummary::bytes_of_pixel(const SeriesOptions& options) {
  const std::vector<Threshold> own = own_bounds(options);
  uint64_t bytes = 0;
  for (const SeriesOutput output : options.outputs)
    bytes += sizeof(double) + sizeof(float) +
             sizeof(int32_t) * (bounds_of(output, own).size() + (output == SeriesOutput::utci));
  return bytes;
}

void SeriesSummary::clear() { steps_ = 0; }

void SeriesSummary::add_block(size_t output, const std::vector<std::vector<float>>& planes,
                              const SummaryStep& step, size_t first, size_t last) {
  Sums& s = sums_[output];
  const float* const values = planes[output].data();
  const bool shade = outputs_[output] == SeriesOutput::shadow;
  const auto start = [&](auto* grid, auto value) {
    if (steps_ == 0) std::fill(grid + first, grid + last, value);
  };
  start(s.sum.get(), 0.0);
  start(s.highest.get(), -std::numeric_limits<float>::infinity());
  for (size_t p = first; p < last; ++p) {
    const float value = values[p];
    // Sun through the leaves of a plant or through clouds is no hour of sun; neither is what several parts of a step have of
    // it, less than one whole part.
    const float sunny = step.sunshine ? std::floor(value * parts_ + 1e-3f) / parts_ : 0 * value;
    s.sum[p] += static_cast<double>(shade ? sunny : value);
    s.highest[p] = std::isnan(value) ? value : std::max(s.highest[p], value);
  }
  for (size_t b = 0; b < s.bounds.size(); ++b) {
    int32_t* const beyond = s.beyond[b].get();
    start(beyond, 0);
    for (size_t p = first; p < last; ++p) beyond[p] += s.bounds[b].holds(values[p]);
  }
  if (!s.outside) return;
  start(s.outside.get(), 0);
  const auto tmrt = std::find(outputs_.begin(), outputs_.end(), SeriesOutput::tmrt);
  const float* const radiant =
      tmrt == outputs_.end() ? nullptr : planes[size_t(tmrt - outputs_.begin())].data();
  const bool none = step.fitted_from_c > step.fitted_to_c;
  const auto from = static_cast<float>(step.fitted_from_c), to = static_cast<float>(step.fitted_to_c);
  for (size_t p = first; p < last; ++p)
    s.outside[p] += none || (radiant && !(radiant[p] >= from && radiant[p] <= to));
}

void SeriesSummary::add(const std::vector<std::vector<float>>& planes, const SummaryStep& step) {
  constexpr size_t block = size_t{1} << 16;
  const size_t blocks = (pixels_ + block - 1) / block;
  tbb::parallel_for(size_t{0}, blocks * outputs_.size(), [&](size_t part) {
    const size_t output = part / blocks, first = part % blocks * block;
    add_block(output, planes, step, first, std::min(first + block, pixels_));
  });
  ++steps_;
}

std::vector<SummaryStep> summary_steps(const SeriesInputs& inputs) {
  const ComfortWind wind = comfort_wind(inputs);
  std::vector<SummaryStep> steps;
  for (size_t k = 0; k < inputs.steps.size(); ++k) {
    const StepForcing& f = inputs.steps[k].forcing;
    SummaryStep step{f.beam_w_m2 >= kSunshine, f.air_c + kUtciLeastExcess, f.air_c + kUtciMostExcess};
    if (!utci_is_fitted(f.air_c, f.humidity_percent, wind.utci[k], f.air_c))
      std::swap(step.fitted_from_c, step.fitted_to_c);
    steps.push_back(step);
  }
  return steps;
}

std::vector<SummaryGrid> SeriesSummary::grids() const {
  std::vector<SummaryGrid> grids;
  std::vector<std::function<void(std::vector<float>&)>> fill;  // a grid
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const OutputText text = text_of(outputs_[o]);
    const std::string output(name(outputs_[o]));
    const Sums& s = sums_[o];
    const auto add_grid = [&](const std::string& grid, const std::string& unit, auto value) {
      grids.push_back({grid, summary_title(grid), unit, {}});
      fill.push_back([this, &s, value](std::vector<float>& values) {
        values.resize(pixels_);
        for (size_t p = 0; p < pixels_; ++p)
          values[p] = std::isnan(s.highest[p]) ? s.highest[p] : static_cast<float>(value(p));
      });
    };
    if (outputs_[o] == SeriesOutput::shadow) {
      add_grid("sun_hours", "h", [this, &s](size_t p) { return s.sum[p] * step_hours_; });
    } else {
      add_grid(output + "_mean", text.unit,
               [this, &s](size_t p) { return s.sum[p] / static_cast<double>(steps_); });
      add_grid(output + "_max", text.unit, [&s](size_t p) { return s.highest[p]; });
    }
    for (size_t b = 0; b < s.bounds.size(); ++b)
      add_grid(grid_of(s.bounds[b]), "h",
               [this, beyond = s.beyond[b].get()](size_t p) { return beyond[p] * step_hours_; });
    if (s.outside)
      add_grid("utci_hours_outside_fit", "h", [this, &s](size_t p) { return s.outside[p] * step_hours_; });
  }
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) { fill[k](grids[k].values); });
  return grids;
}

}  // namespace lockstep::urban
