#include "urban/plant/evaluation.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "device/capabilities.hpp"

namespace lockstep::urban {
namespace {

constexpr int kGpuPlantWorkers = 8;

Tile tile_around(const PixelRect& rect, const City& city, const Reach& reach) {
  Tile t;
  t.row = rect.row;
  t.col = rect.col;
  t.rows = t.room_rows = rect.rows;
  t.cols = t.room_cols = rect.cols;
  t.window_row = std::max<int64_t>(0, rect.row - reach.north);
  t.window_col = std::max<int64_t>(0, rect.col - reach.west);
  t.window_rows = t.room_window_rows = std::min(city.rows, rect.row + rect.rows + reach.south) - t.window_row;
  t.window_cols = t.room_window_cols = std::min(city.cols, rect.col + rect.cols + reach.east) - t.window_col;
  return t;
}

}  // namespace

/// A city with the trees that are planted, and the computation on it.
struct PlantEvaluation::Worker {
  SeriesInputs inputs;
  SeriesTiles tiles;
  Reach reach;
  TileStream stream;
  std::vector<std::pair<float, float>> before;  ///< heights under the crown that is tried

  Worker(SeriesInputs own, const Walls& walls)
      : inputs(std::move(own)), tiles(inputs, walls, {SeriesOutput::utci}), reach(tiles.job().reach) {}

  void put(const std::vector<CrownPixel>& crown, const PlantSite& site, CanopyHeights convention) {
    City& city = inputs.city;
    const auto canopy = city.canopy.mutate<float>(), trunk = city.trunk.mutate<float>();
    const auto ground = std::as_const(city.dsm).as<float>();
    const TreeHeights heights{convention, city.shift};
    before.clear();
    for (const CrownPixel& c : crown) {
      const auto p = static_cast<size_t>((site.row + c.row) * city.cols + site.col + c.col);
      before.emplace_back(canopy[p], trunk[p]);
      canopy[p] = heights.in_city(c.top_m, ground[p]);
      trunk[p] = std::min(heights.in_city(c.trunk_m, ground[p]), canopy[p]);
    }
  }
  void take_back(const std::vector<CrownPixel>& crown, const PlantSite& site) {
    City& city = inputs.city;
    const auto canopy = city.canopy.mutate<float>(), trunk = city.trunk.mutate<float>();
    for (size_t k = 0; k < crown.size(); ++k) {
      const auto p = static_cast<size_t>((site.row + crown[k].row) * city.cols + site.col + crown[k].col);
      std::tie(canopy[p], trunk[p]) = before[k];
    }
  }
};

struct PlantEvaluation::Lease {
  PlantEvaluation& of;
  Worker* worker;
  explicit Lease(PlantEvaluation& evaluation) : of(evaluation) {
    const std::lock_guard lock(of.mutex_);
    worker = of.idle_.back();
    of.idle_.pop_back();
  }
  ~Lease() {
    const std::lock_guard lock(of.mutex_);
    of.idle_.push_back(worker);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
};

PlantEvaluation::PlantEvaluation(Context& context, const SeriesInputs& inputs, const Walls& walls,
                                 const PlantObjective& objective, std::vector<CrownPixel> crown,
                                 std::vector<PlantSite> sites, const PlantOptions& options)
    : context_(context),
      inputs_(inputs),
      objective_(objective),
      crown_(std::move(crown)),
      sites_(std::move(sites)),
      convention_(options.city.canopy_heights),
      on_progress_(options.tiles.on_progress) {
  SeriesInputs own = inputs;
  own.points.clear();
  const TreeHeights heights{convention_, own.city.shift};
  const auto ground = std::as_const(own.city.dsm).as<float>();
  for (const PlantSite& site : sites_)
    for (const CrownPixel& c : crown_)
      own.city.highest = std::max(
          own.city.highest,
          heights.in_city(
              c.top_m, ground[static_cast<size_t>((site.row + c.row) * own.city.cols + site.col + c.col)]));
  const bool host = capabilities_of(context.device()).host_memory;
  const int count = options.tiles.workers > 0 ? options.tiles.workers : host ? 1 : kGpuPlantWorkers;
  for (int k = 0; k < count; ++k) workers_.push_back(std::make_unique<Worker>(own, walls));
  for (const auto& worker : workers_) idle_.push_back(worker.get());
  const TreeReaches reaches(workers_[0]->inputs, crown_, convention_, options.least_altitude_deg);
  reaches_.resize(sites_.size());
  tbb::parallel_for(size_t{0}, sites_.size(), [&](size_t k) { reaches_[k] = reaches.reach_of(sites_[k]); });
  const TilePlan plan = plan_tiles(context, own.city, workers_[0]->tiles.job(), options.tiles, 0);
  side_ = plan.side;
  values_ = score(*workers_[0], {0, 0, own.city.rows, own.city.cols});
  with_.resize(sites_.size());
  for (const TreeReach& reach : reaches_) stale_.push_back(reach.box);
}
PlantEvaluation::~PlantEvaluation() = default;

std::vector<float> PlantEvaluation::cut(const std::vector<float>& grid, const PixelRect& rect) const {
  std::vector<float> part;
  part.reserve(static_cast<size_t>(rect.pixels()));
  for (int64_t row = rect.row; row < rect.row + rect.rows; ++row) {
    const auto from = grid.begin() + row * inputs_.city.cols + rect.col;
    part.insert(part.end(), from, from + rect.cols);
  }
  return part;
}

std::vector<float> PlantEvaluation::score(Worker& worker, const PixelRect& rect) {
  std::vector<float> values(static_cast<size_t>(rect.pixels()));
  const double step_h = static_cast<double>(inputs_.weather.step_min) / 60;
  for (int64_t row = 0; row < rect.rows; row += side_)
    for (int64_t col = 0; col < rect.cols; col += side_) {
      const PixelRect part{rect.row + row, rect.col + col, std::min(side_, rect.rows - row),
                           std::min(side_, rect.cols - col)};
      PlantScore score(objective_, step_h, static_cast<size_t>(part.pixels()));
      std::vector<float> utci(static_cast<size_t>(part.pixels()));
      StepSink sink;
      sink.begin = [&](size_t step) {
        if (step == 0) score.clear();  // a fallback begins again
        return StepMemory{{utci.data()}, nullptr};
      };
      sink.end = [&](size_t) { score.add(utci); };
      const Tile tile = tile_around(part, worker.inputs.city, worker.reach);
      worker.tiles.compute(
          context_, tile, workers_.size() > 1 ? &worker.stream : nullptr, sink, [](int) {}, nullptr);
      const std::vector<float> found = score.values();
      for (int64_t r = 0; r < part.rows; ++r)
        std::copy_n(found.begin() + r * part.cols, part.cols, values.begin() + (row + r) * rect.cols + col);
    }
  return values;
}

double PlantEvaluation::evaluate(Worker& worker, size_t site) {
  const PixelRect &window = reaches_[site].box, stale = stale_[site];
  worker.put(crown_, sites_[site], convention_);
  const std::vector<float> fresh = score(worker, stale);
  worker.take_back(crown_, sites_[site]);
  std::vector<float>& with = with_[site];
  with.resize(static_cast<size_t>(window.pixels()));
  for (int64_t row = 0; row < stale.rows; ++row)
    std::copy_n(fresh.begin() + row * stale.cols, stale.cols,
                with.begin() + (stale.row - window.row + row) * window.cols + stale.col - window.col);
  stale_[site] = {};
  const std::lock_guard lock(mutex_);
  pixels_ += stale.pixels();
  return objective_.gain(cut(objective_.weights, window), cut(values_, window), with);
}

std::vector<double> PlantEvaluation::evaluate(std::span<const size_t> candidates) {
  std::vector<double> gains(candidates.size());
  std::vector<size_t> numbers(candidates.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  std::atomic<int64_t> done{0};
  for_each_tile(numbers, static_cast<int>(workers_.size()), [&](size_t k) {
    const Lease lease(*this);
    gains[k] = evaluate(*lease.worker, candidates[k]);
    if (on_progress_) on_progress_(++done, static_cast<int64_t>(candidates.size()));
  });
  return gains;
}

void PlantEvaluation::plant(size_t site) {
  for (const auto& worker : workers_) worker->put(crown_, sites_[site], convention_);
  const PixelRect& window = reaches_[site].box;
  for (int64_t row = 0; row < window.rows; ++row)
    std::copy_n(with_[site].begin() + row * window.cols, window.cols,
                values_.begin() + (window.row + row) * inputs_.city.cols + window.col);
  for (size_t other = 0; other < sites_.size(); ++other)
    stale_[other] = hull(stale_[other], common_box(reaches_[site], reaches_[other]));
}

bool PlantEvaluation::excludes(size_t site, size_t other) const {
  const int64_t rows = sites_[other].row - sites_[site].row, cols = sites_[other].col - sites_[site].col;
  return std::ranges::any_of(crown_, [&](const CrownPixel& a) {
    return std::ranges::any_of(
        crown_, [&](const CrownPixel& b) { return a.row == rows + b.row && a.col == cols + b.col; });
  });
}

}  // namespace lockstep::urban
