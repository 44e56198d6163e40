#include "urban/tiles/tile_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "lockstep/error.hpp"
#include "urban/rays/ray_table.hpp"

namespace lockstep::urban {

namespace {

bool is_gpu(const Device& device) {
  return device.info().kind == DeviceKind::cuda || device.info().kind == DeviceKind::webgpu;
}

TilePlan plan_on(const Device& device, const City& city, const Reach& reach, const TileCost& cost,
                 const TileOptions& options, int64_t side_hint) {
  const Limits& limits = device.info().limits;
  constexpr uint64_t index_limit = uint64_t{1} << 33;  // kernels index padded windows of f32 with i32

  TileBudget budget;
  budget.free_bytes = static_cast<uint64_t>(std::max<int64_t>(0, device.memory().free_bytes));
  budget.max_buffer_bytes = std::min<uint64_t>(
      {index_limit, static_cast<uint64_t>(limits.buffer_bytes), static_cast<uint64_t>(limits.binding_bytes)});
  budget.window_bytes = cost.window_bytes;
  budget.core_bytes = cost.core_bytes;
  budget.widest_window_bytes = sizeof(float);
  budget.widest_core_bytes = cost.widest_core_bytes;
  budget.pad = kPad;
  budget.in_flight = options.workers > 0 ? options.workers : is_gpu(device) ? 2 : 1;

  TilePlan plan;
  plan.side = tile_side(city.rows, city.cols, reach, budget, options.side != 0 ? options.side : side_hint);
  plan.tiles = make_tiles(city.rows, city.cols, plan.side, reach);
  plan.workers = static_cast<int>(std::min<size_t>(static_cast<size_t>(budget.in_flight), plan.tiles.size()));
  plan.predicted_bytes =
      tile_bytes(plan.side, city.rows, city.cols, reach, budget) * static_cast<uint64_t>(plan.workers);
  return plan;
}

}  // namespace

TilePlan plan_tiles(Context& context, std::string_view stage, const City& city, const Reach& reach,
                    const TileCost& cost, const TileOptions& options, int64_t side_hint) {
  if (options.workers < 0)
    throw InputError(fmt::format("{} tile workers", options.workers), "tiles", "none or a positive number");
  const Device& device = context.device();
  const auto plan = [&](const Device& on) { return plan_on(on, city, reach, cost, options, side_hint); };
  try {
    return plan(device);
  } catch (const UnsupportedError&) {
    if (!is_gpu(device)) throw;
  }
  return context.stage(stage, plan);
}

void for_each_tile(const std::vector<size_t>& numbers, int workers, const std::function<void(size_t)>& run,
                   TileReport& report) {
  std::atomic<size_t> next{0};
  std::atomic<int> in_flight{0}, peak{0};
  std::mutex failing;
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t k = next++; k < numbers.size(); k = next++) {
      const int now = ++in_flight;
      for (int seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {}
      try {
        run(numbers[k]);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
        next = numbers.size();
      }
      --in_flight;
    }
  };
  report.workers = workers;
  if (workers <= 1) {
    work();
  } else {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w) threads.emplace_back(work);
  }
  report.queue_depth_peak = peak;
  if (failure) std::rethrow_exception(failure);
}

void stitch(const Tile& tile, const float* core, Raster& whole) {
  for (int64_t row = 0; row < tile.rows; ++row)
    std::copy(core + row * tile.cols, core + (row + 1) * tile.cols, &whole.at(tile.row + row, tile.col));
}

}  // namespace lockstep::urban
