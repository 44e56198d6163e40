#include "urban/areas/area_table.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "lockstep/urban/comfort.hpp"
#include "urban/compare/changes.hpp"

namespace lockstep::urban {
namespace {

constexpr double kNoStatistic = std::numeric_limits<double>::quiet_NaN();

/// A row and its place in the table.
struct PlacedRow {
  size_t zone = 0, group = 0, output = 0;
  int period = 0;  // hours before days before the whole
  AreaRow row;
};

/// Sums over a day or the whole period: the grid, and by zone the weight that has a value, that of the threshold and of the classes.
struct Sums {
  std::vector<double> grid;
  std::vector<std::vector<double>> known;    // one, zone
  std::vector<std::vector<double>> held;     // threshold, zone
  std::vector<std::vector<double>> classes;  // class, zone
  size_t steps = 0;
};

class AreaTable {
 public:
  explicit AreaTable(const AreaPlan& plan)
      : plan_(plan),
        step_h_(static_cast<double>(plan.run->step_min()) / 60),
        pixel_m2_(plan.run->pixel_m2()) {}

  std::vector<AreaRow> rows() {
    for (size_t o = 0; o < plan_.outputs.size(); ++o) take_output(o);
    for (size_t k = 0; k < plan_.summaries.size(); ++k) {
      const std::vector<float> grid = plan_.run->read_summary(plan_.summaries[k]);
      add_rows(grid, plan_.outputs.size() + k, 2, "all", nullptr);
    }
    std::ranges::stable_sort(rows_, [](const PlacedRow& a, const PlacedRow& b) {
      return std::tie(a.zone, a.group, a.output, a.period, a.row.time) <
             std::tie(b.zone, b.group, b.output, b.period, b.row.time);
    });
    std::vector<AreaRow> rows;
    for (PlacedRow& placed : rows_) rows.push_back(std::move(placed.row));
    return rows;
  }

 private:
  bool wants(AreaPeriod period) const {
    return std::ranges::find(plan_.periods, period) != plan_.periods.end();
  }
  std::span<const StressClass> classes_of(size_t output) const {
    if (!plan_.by_stress) return {};
    return stress_classes(plan_.outputs[output] == "pet" ? ComfortIndex::pet : ComfortIndex::utci);
  }

  void take_output(size_t o) {
    const RunFolder& run = *plan_.run;
    const int64_t rows = run.grid().rows;
    const auto bands = static_cast<size_t>((rows + RunFolder::kBandRows - 1) / RunFolder::kBandRows);
    std::vector<float> grid(run.cells());
    Sums day, all;
    for (size_t k = 0; k < plan_.steps.size(); ++k) {
      const size_t step = plan_.steps[k];
      tbb::parallel_for(size_t{0}, bands, [&](size_t band) {
        const int64_t row = static_cast<int64_t>(band) * RunFolder::kBandRows;
        run.read_step(plan_.outputs[o], step, row, std::min(RunFolder::kBandRows, rows - row),
                      &grid[static_cast<size_t>(row * run.grid().cols)]);
      });
      Sums hour;
      weigh(grid, o, hour);
      if (wants(AreaPeriod::hour)) add_rows(grid, o, 0, io::civil_text(run.times()[step]), &hour);
      if (wants(AreaPeriod::day)) {
        add_up(day, hour, grid);
        const bool last = k + 1 == plan_.steps.size() || day_of(run, plan_.steps[k + 1]) != day_of(run, step);
        if (last) add_mean_rows(std::exchange(day, Sums{}), o, 1, day_of(run, step));
      }
      if (wants(AreaPeriod::period)) add_up(all, hour, grid);
    }
    if (wants(AreaPeriod::period)) add_mean_rows(all, o, 2, "all");
  }

  /// By zone the weight where thresholds of the output hold, and of its classes.
  void weigh(std::span<const float> grid, size_t o, Sums& sums) const {
    const auto classes = classes_of(o);
    sums.steps = 1;
    sums.known.assign(1, std::vector<double>(plan_.zones.size()));
    sums.held.assign(plan_.thresholds.size(), std::vector<double>(plan_.zones.size()));
    sums.classes.assign(classes.size(), std::vector<double>(plan_.zones.size()));
    tbb::parallel_for(size_t{0}, plan_.zones.size(), [&](size_t z) {
      const Zone& zone = plan_.zones[z];
      for (size_t k = 0; k < zone.pixels.size(); ++k)
        if (!std::isnan(grid[zone.pixels[k]])) sums.known[0][z] += zone.shares[k];
      for (size_t t = 0; t < plan_.thresholds.size(); ++t) {
        const Threshold& threshold = plan_.thresholds[t];
        if (threshold.output != plan_.outputs[o]) continue;
        for (size_t k = 0; k < zone.pixels.size(); ++k)  // missing values are on neither side
          if (threshold.holds(grid[zone.pixels[k]])) sums.held[t][z] += zone.shares[k];
      }
      if (classes.empty()) return;
      for (size_t k = 0; k < zone.pixels.size(); ++k)
        if (const int c = stress_class(index_of_output(o), static_cast<double>(grid[zone.pixels[k]])); c >= 0)
          sums.classes[static_cast<size_t>(c)][z] += zone.shares[k];
    });
  }
  ComfortIndex index_of_output(size_t o) const {
    return plan_.outputs[o] == "pet" ? ComfortIndex::pet : ComfortIndex::utci;
  }

  static void add_up(Sums& to, const Sums& from, std::span<const float> grid) {
    to.grid.resize(grid.size());
    tbb::parallel_for(tbb::blocked_range<size_t>(0, grid.size()), [&](const auto& part) {
      for (size_t p = part.begin(); p < part.end(); ++p) to.grid[p] += static_cast<double>(grid[p]);
    });
    for (auto lists : {&Sums::known, &Sums::held, &Sums::classes}) {
      (to.*lists).resize((from.*lists).size());
      for (size_t t = 0; t < (from.*lists).size(); ++t) {
        (to.*lists)[t].resize((from.*lists)[t].size());
        for (size_t z = 0; z < (from.*lists)[t].size(); ++z) (to.*lists)[t][z] += (from.*lists)[t][z];
      }
    }
    to.steps += from.steps;
  }

  void add_mean_rows(const Sums& sums, size_t o, int period, const std::string& time) {
    std::vector<float> mean(sums.grid.size());
    for (size_t p = 0; p < mean.size(); ++p)
      mean[p] = static_cast<float>(sums.grid[p] / static_cast<double>(sums.steps));
    add_rows(mean, o, period, time, &sums);
  }

  /// `sums`: of thresholds and classes; none for summaries.
  void add_rows(std::span<const float> grid, size_t output, int period, const std::string& time,
                const Sums* sums) {
    const auto classes = sums ? classes_of(output) : std::span<const StressClass>();
    std::vector<std::vector<PlacedRow>> found(plan_.zones.size());
    tbb::parallel_for(size_t{0}, plan_.zones.size(), [&](size_t z) {
      ZoneValues values;
      values.take(plan_.zones[z], grid);
      if (classes.empty()) {
        found[z].push_back(row_of(z, 0, output, period, time));
        fill(found[z].back().row, values.statistics(plan_.percentiles));
        if (sums) fill_thresholds(found[z].back().row, *sums, z);
        return;
      }
      for (size_t c = 0; c < classes.size(); ++c) {
        const double weight = sums->classes[c][z] / static_cast<double>(sums->steps);
        if (weight == 0) continue;
        found[z].push_back(row_of(z, c, output, period, time));
        AreaRow& row = found[z].back().row;
        row.group = classes[c].name;
        ZonalStatistics statistics = ZoneValues{}.statistics(plan_.percentiles);
        if (period == 0)
          statistics = in_class(values, output, static_cast<int>(c)).statistics(plan_.percentiles);
        fill(row, statistics);
        row.m2 = weight * pixel_m2_;
      }
    });
    for (auto& list : found)
      for (PlacedRow& row : list) rows_.push_back(std::move(row));
  }
  ZoneValues in_class(const ZoneValues& values, size_t output, int wanted) const {
    ZoneValues inside;
    for (size_t k = 0; k < values.values.size(); ++k) {
      if (stress_class(index_of_output(output), static_cast<double>(values.values[k])) != wanted) continue;
      inside.values.push_back(values.values[k]);
      inside.weights.push_back(values.weights[k]);
    }
    return inside;
  }

  PlacedRow row_of(size_t z, size_t group, size_t output, int period, const std::string& time) const {
    PlacedRow placed{z, group, output, period, {}};
    const bool stepped = output < plan_.outputs.size();
    placed.row.area = plan_.names[plan_.zones[z].area];
    placed.row.group = plan_.zones[z].group;
    placed.row.output = stepped ? plan_.outputs[output] : plan_.summaries[output - plan_.outputs.size()];
    placed.row.unit =
        stepped ? output_text(placed.row.output).second : summary_text(placed.row.output).second;
    placed.row.time = time;
    placed.row.threshold_m2.assign(plan_.thresholds.size(), kNoStatistic);
    placed.row.threshold_hours = placed.row.threshold_m2;
    return placed;
  }
  void fill(AreaRow& row, const ZonalStatistics& s) const {
    row.m2 = s.weight * pixel_m2_;
    row.mean = s.mean;
    row.deviation = s.deviation;
    row.minimum = s.minimum;
    row.maximum = s.maximum;
    row.percentiles = s.percentiles;
  }
  void fill_thresholds(AreaRow& row, const Sums& sums, size_t z) const {
    for (size_t t = 0; t < plan_.thresholds.size(); ++t) {
      // Values may be missing at single steps, such as a PET beyond its table.
      if (plan_.thresholds[t].output != row.output || sums.known[0][z] == 0) continue;
      const double steps = static_cast<double>(sums.steps);
      row.threshold_m2[t] = sums.held[t][z] / steps * pixel_m2_;
      row.threshold_hours[t] = sums.held[t][z] / sums.known[0][z] * steps * step_h_;
    }
  }

  const AreaPlan& plan_;
  const double step_h_, pixel_m2_;
  std::vector<PlacedRow> rows_;
};

}  // namespace

std::string day_of(const RunFolder& run, size_t step) {
  return io::civil_text(run.times()[step] - run.step_min()).substr(0, 10);
}

std::vector<AreaRow> area_rows(const AreaPlan& plan) { return AreaTable(plan).rows(); }

}  // namespace lockstep::urban
