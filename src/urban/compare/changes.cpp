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
#include "urban/series/outputs/summary.hpp"
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

/// Values by class of stress: the first class whose bound is not exceeded, else the last.
std::array<int64_t, kMostClasses> count_classes(std::span<const float> values, ComfortIndex index) {
  std::array<int64_t, kMostClasses> counts{};
  const auto classes = stress_classes(index);
  auto left = static_cast<int64_t>(values.size());
  for (size_t k = 0; k + 1 < classes.size(); ++k) {
    const auto bound = static_cast<float>(classes[k].upper_c);
    int32_t above = 0;  // a band has fewer pixels
    for (const float v : values) above += v > bound;
    counts[k] = left - above;
    left = above;
  }
  counts[classes.size() - 1] = left;
  return counts;
}

/// Pixels of two grids that count: not masked out, with a value in both.
struct CountedPairs {
  std::vector<float> before, after;
  double before_sum = 0, after_sum = 0;
  Extreme lowest, highest;

  CountedPairs(std::span<const float> a, std::span<const float> b, std::span<const uint8_t> counted,
               int64_t first_pixel, size_t step)
      : before(a.size()), after(a.size()) {
    size_t count = 0, low_at = 0, high_at = 0;
    float low = 0, high = 0;
    for (size_t p = 0; p < a.size(); ++p) {
      if (counted[p] == 0 || std::isnan(a[p]) || std::isnan(b[p])) continue;
      const float change = b[p] - a[p];
      if (count == 0 || change < low) low = change, low_at = p;
      if (count == 0 || change > high) high = change, high_at = p;
      before_sum += static_cast<double>(a[p]);
      after_sum += static_cast<double>(b[p]);
      before[count] = a[p];
      after[count++] = b[p];
    }
    before.resize(count);
    after.resize(count);
    if (count == 0) return;
    const auto extreme = [&](float change, size_t p) {
      return Extreme{change, a[p], b[p], first_pixel + static_cast<int64_t>(p), step};
    };
    lowest = extreme(low, low_at);
    highest = extreme(high, high_at);
  }
};

BandStep compare_band(std::span<const float> before, std::span<const float> after,
                      std::span<const uint8_t> counted, int64_t first_pixel, size_t step,
                      std::optional<ComfortIndex> index) {
  const CountedPairs pairs(before, after, counted, first_pixel, step);
  BandStep band{.before = pairs.before_sum,
                .after = pairs.after_sum,
                .count = static_cast<int64_t>(pairs.before.size()),
                .lowest = pairs.lowest,
                .highest = pairs.highest};
  if (!index || band.count == 0) return band;
  band.before_classes = count_classes(pairs.before, *index);
  band.after_classes = count_classes(pairs.after, *index);
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

std::vector<const ChangePlace*> OutputChange::places() const {
  std::vector<const ChangePlace*> found;
  if (lowest.after < lowest.before) found.push_back(&lowest);
  if (highest.after > highest.before) found.push_back(&highest);
  return found;
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
  std::string unit = name.find("hours") != name.npos ? "h" : "";
  for (const auto& output : choices(SeriesOutput{}))
    if (const std::string own(output.name); name == own + "_mean" || name == own + "_max")
      unit = text_of(output.value).unit;
  return {summary_title(name), unit};
}

SummaryChange summary_change(const std::string& name, const io::RasterGrid& grid,
                             std::span<const float> before, std::span<const float> after,
                             std::span<const uint8_t> counted) {
  SummaryChange change;
  change.name = name;
  std::tie(change.title, change.unit) = summary_text(name);
  const CountedPairs pairs(before, after, counted, 0, 0);
  const bool none = pairs.before.empty();
  change.pixels = static_cast<int64_t>(pairs.before.size());
  const auto n = static_cast<double>(change.pixels);
  change.before_mean = none ? kNoMean : pairs.before_sum / n;
  change.after_mean = none ? kNoMean : pairs.after_sum / n;
  change.mean_change = change.after_mean - change.before_mean;
  change.before = distribution_of(pairs.before);
  change.after = distribution_of(pairs.after);
  change.change = distribution_of(difference_of(pairs.before, pairs.after));
  change.lowest = change_place(grid, pairs.lowest, {});
  change.highest = change_place(grid, pairs.highest, {});
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
