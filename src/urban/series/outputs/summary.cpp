#include "urban/series/outputs/summary.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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

SeriesSummary::SeriesSummary(std::vector<SeriesOutput> outputs, size_t pixels, double step_hours)
    : outputs_(std::move(outputs)), pixels_(pixels), step_hours_(step_hours), sums_(outputs_.size()) {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    Sums& s = sums_[o];
    s.sum = std::make_unique_for_overwrite<double[]>(pixels_);
    s.highest = std::make_unique_for_overwrite<float[]>(pixels_);
    s.bounds = thresholds_of(outputs_[o]);
    for (size_t b = 0; b < s.bounds.size(); ++b)
      s.above.push_back(std::make_unique_for_overwrite<int32_t[]>(pixels_));
  }
}

uint64_t SeriesSummary::bytes_of_pixel(const std::vector<SeriesOutput>& outputs) {
  uint64_t bytes = 0;
  for (const SeriesOutput output : outputs)
    bytes += sizeof(double) + sizeof(float) + sizeof(int32_t) * thresholds_of(output).size();
  return bytes;
}

void SeriesSummary::clear() { steps_ = 0; }

void SeriesSummary::add_block(size_t output, const float* values, size_t first, size_t last) {
  Sums& s = sums_[output];
  const bool shade = outputs_[output] == SeriesOutput::shadow;
  const auto start = [&](auto* grid, auto value) {
    if (steps_ == 0) std::fill(grid + first, grid + last, value);
  };
  start(s.sum.get(), 0.0);
  start(s.highest.get(), -std::numeric_limits<float>::infinity());
  for (size_t p = first; p < last; ++p) {
    const float value = values[p];
    // Sun through the leaves of a plant is no hour of sun.
    s.sum[p] += shade && value < 1 ? 0.0 : static_cast<double>(value);
    s.highest[p] = std::isnan(value) ? value : std::max(s.highest[p], value);
  }
  for (size_t b = 0; b < s.bounds.size(); ++b) {
    const float bound = static_cast<float>(s.bounds[b]);
    int32_t* const above = s.above[b].get();
    start(above, 0);
    for (size_t p = first; p < last; ++p) above[p] += values[p] > bound;
  }
}

void SeriesSummary::add(const std::vector<std::vector<float>>& planes) {
  constexpr size_t block = size_t{1} << 16;
  const size_t blocks = (pixels_ + block - 1) / block;
  tbb::parallel_for(size_t{0}, blocks * outputs_.size(), [&](size_t part) {
    const size_t output = part / blocks, first = part % blocks * block;
    add_block(output, planes[output].data(), first, std::min(first + block, pixels_));
  });
  ++steps_;
}

std::vector<SummaryGrid> SeriesSummary::grids() const {
  std::vector<SummaryGrid> grids;
  std::vector<std::function<void(std::vector<float>&)>> fill;  // a grid
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const OutputText text = text_of(outputs_[o]);
    const std::string output(name(outputs_[o]));
    const Sums& s = sums_[o];
    const auto add_grid = [&](const std::string& grid, const std::string& title, const std::string& unit,
                              auto value) {
      grids.push_back({grid, title, unit, {}});
      fill.push_back([this, &s, value](std::vector<float>& values) {
        values.resize(pixels_);
        for (size_t p = 0; p < pixels_; ++p)
          values[p] = std::isnan(s.highest[p]) ? s.highest[p] : static_cast<float>(value(p));
      });
    };
    if (outputs_[o] == SeriesOutput::shadow) {
      add_grid("sun_hours", "Hours of sun", "h", [this, &s](size_t p) { return s.sum[p] * step_hours_; });
      continue;
    }
    add_grid(output + "_mean", text.long_name + ", mean", text.unit,
             [this, &s](size_t p) { return s.sum[p] / static_cast<double>(steps_); });
    add_grid(output + "_max", text.long_name + ", highest", text.unit,
             [&s](size_t p) { return s.highest[p]; });
    for (size_t b = 0; b < s.bounds.size(); ++b)
      add_grid(fmt::format("{}_hours_above_{:g}", output, s.bounds[b]),
               fmt::format("{}, hours above {:g} °C", text.long_name, s.bounds[b]), "h",
               [this, above = s.above[b].get()](size_t p) { return above[p] * step_hours_; });
  }
  tbb::parallel_for(size_t{0}, grids.size(), [&](size_t k) { fill[k](grids[k].values); });
  return grids;
}

}  // namespace lockstep::urban
