#include "urban/series/outputs/summary.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "urban/comfort/comfort.hpp"
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

std::string summary_title(std::string_view grid) {
  if (grid == "sun_hours") return "Hours of sunshine, beam of 120 W/m² or more";
  for (const Choice<SeriesOutput>& output : choices(SeriesOutput{})) {
    if (!grid.starts_with(output.name)) continue;
    const std::string_view rest = grid.substr(output.name.size());
    const std::string text = text_of(output.value).long_name;
    if (rest == "_mean") return text + ", mean";
    if (rest == "_max") return text + ", highest";
    if (rest == "_hours_outside_fit") return text + ", hours outside of the polynomial's fit";
    constexpr std::string_view kAbove = "_hours_above_";
    if (rest.starts_with(kAbove))
      return fmt::format("{}, hours above {} °C", text, rest.substr(kAbove.size()));
  }
  return std::string(grid);
}

SeriesSummary::SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours, int parts)
    : outputs_(std::move(outputs)),
      pixels_(pixels),
      step_hours_(step_hours),
      parts_(static_cast<float>(parts)),
      sums_(outputs_.size()) {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    Sums& s = sums_[o];
    s.sum = std::make_unique_for_overwrite<double[]>(pixels_);
    s.highest = std::make_unique_for_overwrite<float[]>(pixels_);
    s.bounds = thresholds_of(outputs_[o]);
    for (size_t b = 0; b < s.bounds.size(); ++b)
      s.above.push_back(std::make_unique_for_overwrite<int32_t[]>(pixels_));
    if (outputs_[o] == SeriesOutput::utci) s.outside = std::make_unique_for_overwrite<int32_t[]>(pixels_);
  }
}

uint64_t SeriesSummary::bytes_of_pixel(const std::vector<SeriesOutput>& outputs) {
  uint64_t bytes = 0;
  for (const SeriesOutput output : outputs)
    bytes += sizeof(double) + sizeof(float) +
             sizeof(int32_t) * (thresholds_of(output).size() + (output == SeriesOutput::utci));
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
    const float bound = static_cast<float>(s.bounds[b]);
    int32_t* const above = s.above[b].get();
    start(above, 0);
    for (size_t p = first; p < last; ++p) above[p] += values[p] > bound;
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
      continue;
    }
    add_grid(output + "_mean", text.unit,
             [this, &s](size_t p) { return s.sum[p] / static_cast<double>(steps_); });
    add_grid(output + "_max", text.unit, [&s](size_t p) { return s.highest[p]; });
    for (size_t b = 0; b < s.bounds.size(); ++b)
      add_grid(fmt::format("{}_hours_above_{:g}", output, s.bounds[b]), "h",
               [this, above = s.above[b].get()](size_t p) { return above[p] * step_hours_; });
    if (s.outside)
      add_grid("utci_hours_outside_fit", "h", [this, &s](size_t p) { return s.outside[p] * step_hours_; });
  }
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) { fill[k](grids[k].values); });
  return grids;
}

}  // namespace lockstep::urban
