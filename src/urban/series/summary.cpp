#include "urban/series/summary.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "urban/comfort/comfort.hpp"
#include "urban/series/writer.hpp"

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

SeriesSummary::SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours)
    : outputs_(std::move(outputs)), pixels_(pixels), step_hours_(step_hours) {
  clear();
}

void SeriesSummary::clear() {
  steps_ = 0;
  sums_.assign(outputs_.size(), {});
  for (size_t o = 0; o < outputs_.size(); ++o) {
    sums_[o].sum.assign(pixels_, 0.0);
    sums_[o].highest.assign(pixels_, -std::numeric_limits<float>::infinity());
    sums_[o].above.assign(thresholds_of(outputs_[o]).size(), std::vector<int32_t>(pixels_, 0));
  }
}

void SeriesSummary::add(const std::vector<std::vector<float>>& planes) {
  ++steps_;
  constexpr size_t block = size_t{1} << 16;
  const size_t blocks = (pixels_ + block - 1) / block;
  tbb::parallel_for(size_t{0}, blocks * outputs_.size(), [&](size_t part) {
    const size_t o = part / blocks, first = part % blocks * block, last = std::min(first + block, pixels_);
    Sums& s = sums_[o];
    const std::vector<double> bounds = thresholds_of(outputs_[o]);
    const std::vector<float>& plane = planes[o];
    const bool shade = outputs_[o] == SeriesOutput::shadow;
    for (size_t p = first; p < last; ++p) {
      const float value = plane[p];
      // Sun through the leaves of a plant is no hour of sun.
      s.sum[p] += shade && value < 1 ? 0.0 : static_cast<double>(value);
      s.highest[p] = std::isnan(value) ? value : std::max(s.highest[p], value);
    }
    for (size_t b = 0; b < bounds.size(); ++b) {
      const float bound = static_cast<float>(bounds[b]);
      for (size_t p = first; p < last; ++p) s.above[b][p] += plane[p] > bound;
    }
  });
}

std::vector<SummaryGrid> SeriesSummary::grids() const {
  std::vector<SummaryGrid> grids;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const OutputText text = text_of(outputs_[o]);
    const std::string output(name(outputs_[o]));
    const Sums& s = sums_[o];
    const auto add_grid = [&](const std::string& grid, const std::string& title, const std::string& unit,
                              auto value) {
      SummaryGrid made{grid, title, unit, std::vector<float>(pixels_)};
      for (size_t p = 0; p < pixels_; ++p)
        made.values[p] = std::isnan(s.highest[p]) ? s.highest[p] : static_cast<float>(value(p));
      grids.push_back(std::move(made));
    };
    if (outputs_[o] == SeriesOutput::shadow) {
      add_grid("sun_hours", "Hours of sun", "h", [&](size_t p) { return s.sum[p] * step_hours_; });
      continue;
    }
    add_grid(output + "_mean", text.long_name + ", mean", text.unit,
             [&](size_t p) { return s.sum[p] / static_cast<double>(steps_); });
    add_grid(output + "_max", text.long_name + ", highest", text.unit,
             [&](size_t p) { return s.highest[p]; });
    const std::vector<double> bounds = thresholds_of(outputs_[o]);
    for (size_t b = 0; b < bounds.size(); ++b)
      add_grid(fmt::format("{}_hours_above_{:g}", output, bounds[b]),
               fmt::format("{}, hours above {:g} °C", text.long_name, bounds[b]), "h",
               [&](size_t p) { return s.above[b][p] * step_hours_; });
  }
  return grids;
}

}  // namespace lockstep::urban
