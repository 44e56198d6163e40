#include "urban/compare/changes.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/urban/series.hpp"
#include "urban/results/percentiles.hpp"
#include "urban/series/outputs/writer.hpp"

namespace lockstep::urban {
namespace {

constexpr size_t kMostClasses = 10;
constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

std::optional<ComfortIndex> index_of(const std::string& output) {
  if (output == "utci") return ComfortIndex::utci;
  if (output == "pet") return ComfortIndex::pet;
  return {};
}

/// A change and its pixel; of equal ones the first pixel of the first step counts.
struct Extreme {
  float change = 0, before = 0, after = 0;
  int64_t pixel = -1;
  size_t step = 0;
};

/// A step of an output in a band of rows.
struct BandStep {
  double before = 0, after = 0;
  int64_t count = 0;
  Extreme lowest, highest;
  std::array<int64_t, kMostClasses> before_classes{}, after_classes{};
};

void take_extremes(Extreme& lowest, Extreme& highest, const Extreme& here) {
  if (lowest.pixel < 0 || here.change < lowest.change) lowest = here;
  if (highest.pixel < 0 || here.change > highest.change) highest = here;
}

BandStep compare_band(std::span<const float> before, std::span<const float> after,
                      std::span<const uint8_t> counted, int64_t first_pixel, size_t step,
                      std::optional<ComfortIndex> index) {
  BandStep band;
  std::vector<float> bounds;
  if (index)
    for (const StressClass& c : stress_classes(*index)) bounds.push_back(static_cast<float>(c.upper_c));
  const auto class_of = [&](float v) {
    size_t k = 0;
    while (k + 1 < bounds.size() && v > bounds[k]) ++k;
    return k;
  };
  for (size_t p = 0; p < before.size(); ++p) {
    const float a = before[p], b = after[p];
    if (counted[p] == 0 || std::isnan(a) || std::isnan(b)) continue;
    band.before += static_cast<double>(a);
    band.after += static_cast<double>(b);
    ++band.count;
    take_extremes(band.lowest, band.highest, {b - a, a, b, first_pixel + static_cast<int64_t>(p), step});
    if (!index) continue;
    ++band.before_classes[class_of(a)];
    ++band.after_classes[class_of(b)];
  }
  return band;
}

ChangePlace change_place(const io::RasterGrid& grid, const Extreme& e,
                         const std::vector<io::CivilMinutes>& times) {
  ChangePlace place;
  if (e.pixel < 0) return place;
  place.row = e.pixel / grid.cols;
  place.col = e.pixel % grid.cols;
  place.x = grid.transform[0] + (static_cast<double>(place.col) + 0.5) * grid.transform[1];
  place.y = grid.transform[3] + (static_cast<double>(place.row) + 0.5) * grid.transform[5];
  if (!times.empty()) place.time = io::civil_text(times[e.step]);
  place.before = static_cast<double>(e.before);
  place.after = static_cast<double>(e.after);
  return place;
}

Distribution distribution_of(std::span<const float> values) {
  const std::vector<double> found = percentiles(values, kShares);
  Distribution out{};
  std::copy(found.begin(), found.end(), out.begin());
  return out;
}

/// Bands of a step in their order.
OutputChange output_change(const std::string& name, const RunFolder& run, std::span<const BandStep> bands,
                           size_t band_count) {
  OutputChange change;
  change.name = name;
  std::tie(change.title, change.unit) = output_text(name);
  Extreme lowest, highest;
  for (size_t step = 0; step < run.times().size(); ++step) {
    double before = 0, after = 0;
    int64_t count = 0;
    for (const BandStep& b : bands.subspan(step * band_count, band_count)) {
      before += b.before;
      after += b.after;
      count += b.count;
      if (b.lowest.pixel >= 0) take_extremes(lowest, highest, b.lowest);
      if (b.highest.pixel >= 0) take_extremes(lowest, highest, b.highest);
    }
    change.before_mean.push_back(count ? before / static_cast<double>(count) : kNoMean);
    change.after_mean.push_back(count ? after / static_cast<double>(count) : kNoMean);
  }
  change.lowest = change_place(run.grid(), lowest, run.times());
  change.highest = change_place(run.grid(), highest, run.times());
  return change;
}

StressChange stress_change(ComfortIndex index, const RunFolder& run, std::span<const BandStep> bands,
                           size_t band_count, const std::vector<double>& before_mean) {
  StressChange stress;
  stress.index = index;
  const double pixel_m2 = run.pixel_m2();
  const size_t steps = run.times().size();
  size_t hottest = 0;
  for (size_t k = 0; k < steps; ++k)
    if (before_mean[k] > before_mean[hottest] || std::isnan(before_mean[hottest])) hottest = k;
  stress.hottest = io::civil_text(run.times()[hottest]);
  const auto classes = stress_classes(index);
  double all = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    ClassChange change;
    change.name = classes[c].name;
    change.upper_c = classes[c].upper_c;
    for (size_t k = 0; k < bands.size(); ++k) {
      const double before = static_cast<double>(bands[k].before_classes[c]) * pixel_m2,
                   after = static_cast<double>(bands[k].after_classes[c]) * pixel_m2;
      change.before_m2 += before / static_cast<double>(steps);
      change.after_m2 += after / static_cast<double>(steps);
      if (k / band_count != hottest) continue;
      change.hottest_before_m2 += before;
      change.hottest_after_m2 += after;
    }
    all += change.before_m2;
    stress.classes.push_back(change);
  }
  for (ClassChange& c : stress.classes) {
    c.before_percent = all > 0 ? 100 * c.before_m2 / all : 0;
    c.after_percent = all > 0 ? 100 * c.after_m2 / all : 0;
  }
  return stress;
}

}  // namespace

std::vector<float> difference_of(std::span<const float> before, std::span<const float> after) {
  std::vector<float> out(before.size());
  for (size_t p = 0; p < out.size(); ++p) out[p] = after[p] - before[p];
  return out;
}

std::pair<std::string, std::string> output_text(const std::string& name) {
  for (const auto& output : choices(SeriesOutput{}))
    if (output.name == name) {
      const OutputText text = text_of(output.value);
      return {text.long_name, text.unit};
    }
  return {name, ""};
}

std::pair<std::string, std::string> summary_text(const std::string& name) {
  if (name == "sun_hours") return {"Hours of sunshine", "h"};
  for (const auto& output : choices(SeriesOutput{})) {
    const std::string prefix = std::string(output.name) + "_";
    if (!name.starts_with(prefix)) continue;
    const OutputText text = text_of(output.value);
    const std::string kind = name.substr(prefix.size());
    constexpr std::string_view kAbove = "hours_above_";
    if (kind == "mean") return {text.long_name + ", mean", text.unit};
    if (kind == "max") return {text.long_name + ", highest", text.unit};
    if (kind == "hours_outside_fit") return {text.long_name + ", hours outside of the polynomial's fit", "h"};
    if (kind.starts_with(kAbove))
      return {fmt::format("{}, hours above {} °C", text.long_name, kind.substr(kAbove.size())), "h"};
  }
  return {name, ""};
}

SummaryChange summary_change(const std::string& name, const io::RasterGrid& grid,
                             std::span<const float> before, std::span<const float> after,
                             std::span<const uint8_t> counted) {
  SummaryChange change;
  change.name = name;
  std::tie(change.title, change.unit) = summary_text(name);
  std::vector<float> a, b, d;
  Extreme lowest, highest;
  double before_sum = 0, after_sum = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    if (counted[p] == 0 || std::isnan(before[p]) || std::isnan(after[p])) continue;
    a.push_back(before[p]);
    b.push_back(after[p]);
    d.push_back(after[p] - before[p]);
    before_sum += static_cast<double>(before[p]);
    after_sum += static_cast<double>(after[p]);
    take_extremes(lowest, highest, {d.back(), before[p], after[p], static_cast<int64_t>(p), 0});
  }
  change.pixels = static_cast<int64_t>(a.size());
  const auto n = static_cast<double>(a.size());
  change.before_mean = a.empty() ? kNoMean : before_sum / n;
  change.after_mean = a.empty() ? kNoMean : after_sum / n;
  change.mean_change = change.after_mean - change.before_mean;
  change.before = distribution_of(a);
  change.after = distribution_of(b);
  change.change = distribution_of(d);
  change.lowest = change_place(grid, lowest, {});
  change.highest = change_place(grid, highest, {});
  return change;
}

SteppedChanges stepped_changes(const RunFolder& before, const RunFolder& after,
                               std::span<const uint8_t> counted) {
  const int64_t rows = before.grid().rows, cols = before.grid().cols;
  const size_t steps = before.times().size();
  const auto band_count = static_cast<size_t>((rows + RunFolder::kBandRows - 1) / RunFolder::kBandRows);
  std::vector<std::string> names;
  for (const std::string& output : before.outputs())
    if (std::ranges::find(after.outputs(), output) != after.outputs().end()) names.push_back(output);
  std::vector<BandStep> bands(names.size() * steps * band_count);
  tbb::parallel_for(size_t{0}, bands.size(), [&](size_t k) {
    const std::string& name = names[k / (steps * band_count)];
    const size_t step = k / band_count % steps, band = k % band_count;
    const int64_t row = static_cast<int64_t>(band) * RunFolder::kBandRows,
                  count = std::min(RunFolder::kBandRows, rows - row);
    const auto cells = static_cast<size_t>(count * cols);
    std::vector<float> a(cells), b(cells);
    before.read_step(name, step, row, count, a.data());
    after.read_step(name, step, row, count, b.data());
    bands[k] = compare_band(a, b, counted.subspan(static_cast<size_t>(row * cols), cells), row * cols, step,
                            index_of(name));
  });
  SteppedChanges changes;
  for (size_t k = 0; k < names.size(); ++k) {
    const auto part = std::span<const BandStep>(bands).subspan(k * steps * band_count, steps * band_count);
    changes.outputs.push_back(output_change(names[k], before, part, band_count));
    if (const auto index = index_of(names[k]))
      changes.stress.push_back(
          stress_change(*index, before, part, band_count, changes.outputs.back().before_mean));
  }
  return changes;
}

}  // namespace lockstep::urban
