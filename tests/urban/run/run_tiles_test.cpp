// Tiles in flight: several workers share one context, one store and one sink. Small enough for ThreadSanitizer, with the
// interpreter as the device.
#include "urban/tiles/run_tiles.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "core/temporary_folder.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep::urban {
namespace {

constexpr int64_t kRows = 150, kCols = 200;

City flat_city() {
  City city;
  city.rows = kRows;
  city.cols = kCols;
  city.dsm = Raster(kRows, kCols, 1.0f).values;
  city.dsm.mutate<float>()[777] = kNoHeight;
  city.missing = 1;
  return city;
}

const Kernel& number_pixels() {
  static const Kernel k = kernel("test.tile", [](At<2> at, Out<f32, 2> out, Param<i32> row, Param<i32> col) {
    out[at] = cast<f32>((row + at.y) * int(kCols) + col + at.x);
  });
  return k;
}

/// Every pixel gets its number.
TileJob numbering(std::atomic<int>& computed) {
  TileJob job;
  job.stage = "test.tiles";
  job.field_prefix = "test_";
  job.cost = {8, 8, 4, 8};
  job.planes = 1;
  job.parts = 2;
  job.compute = [&](const Device& device, const Stream& stream, const City&, const Tile& tile,
                    const TileResult& result, const Advance& advance) {
    const Buffer out = device.allocate<f32>({tile.rows, tile.cols});
    device.launch_on(stream, number_pixels(), {tile.rows, tile.cols}, out, tile.row, tile.col);
    advance(1);
    device.read(out, result.plane(0), out.bytes(), stream);
    advance(1);
    ++computed;
  };
  return job;
}

struct Outcome {
  TileReport report;
  Raster whole;
  int64_t last_progress = 0;
};
Outcome run(Context& context, const TileJob& job, const std::filesystem::path& folder) {
  const City city = flat_city();
  Outcome out;
  out.whole = Raster(kRows, kCols, -1);
  TileOptions options;
  options.side = 64;
  options.workers = 4;
  options.resume_folder = folder;
  std::atomic<int64_t> last{0};
  options.on_progress = [&](int64_t done, int64_t) {
    for (int64_t seen = last; seen < done && !last.compare_exchange_weak(seen, done);) {}
  };
  out.report = run_tiles(context, city, job, options,
                         [&](const Tile& tile, const TileResult& r) { stitch(tile, r.plane(0), out.whole); });
  out.last_progress = last;
  return out;
}

void expect_numbers(const Raster& whole) {
  for (int64_t k = 0; k < kRows * kCols; ++k) {
    if (k == 777)
      EXPECT_TRUE(std::isnan(whole.pixels()[777]));
    else
      ASSERT_EQ(whole.pixels()[size_t(k)], float(k));
  }
}

TEST(RunTiles, FourWorkersCoverTheCityAndResumeWhatIsThere) {
  const test::TemporaryFolder folder;
  Context context(ContextOptions{.device = "interp"});
  std::atomic<int> computed{0};
  const TileJob job = numbering(computed);
  const Outcome first = run(context, job, folder.path());
  expect_numbers(first.whole);
  EXPECT_EQ(first.report.tiles, 12);
  EXPECT_EQ(computed, 12);
  EXPECT_EQ(first.report.tile_seconds.size(), 12u);
  EXPECT_LE(first.report.queue_depth_peak, 4);
  EXPECT_EQ(first.last_progress, 24);
  EXPECT_EQ(context.stages().at(0).runs, 12);
  EXPECT_EQ(context.stages().at(0).launches, 12);

  int removed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file() && entry.path().extension() == ".tile" && removed < 3) {
      std::filesystem::remove(entry.path());
      ++removed;
    }
  const Outcome second = run(context, job, folder.path());
  expect_numbers(second.whole);
  EXPECT_EQ(second.report.resumed, 12 - removed);
  EXPECT_EQ(computed, 12 + removed);
}

// A tile that is computed sooner than it is written, and one that is not.
TEST(RunTiles, LargeTilesAreKeptWhereThatIsSoonerThanComputingThem) {
  City city;
  city.rows = city.cols = 2112;
  city.dsm = Raster(city.rows, city.cols, 1.0f).values;
  TileOptions options;
  for (const bool slow : {false, true}) {
    const test::TemporaryFolder folder;
    options.resume_folder = folder.path();
    Context context(ContextOptions{.device = "interp"});
    double seconds = 0;
    TileJob job;
    job.stage = "test.tiles";
    job.cost = {0, 0, 0, 4};
    job.planes = 1;
    job.compute = [&](const Device&, const Stream&, const City&, const Tile&, const TileResult&,
                      const Advance&) {
      if (slow) seconds += 0.04;
    };
    job.clock = [&] { return seconds; };
    run_tiles(context, city, job, options, [](const Tile&, const TileResult&) {});
    EXPECT_EQ(std::filesystem::exists(folder.path() / "0_0.tile"), slow);
  }
}

TEST(RunTiles, OneTileThatFailsStopsAll) {
  Context context(ContextOptions{.device = "interp"});
  std::atomic<int> computed{0};
  TileJob job = numbering(computed);
  const auto compute = job.compute;
  job.compute = [&](const Device& device, const Stream& stream, const City& city, const Tile& tile,
                    const TileResult& result, const Advance& advance) {
    if (tile.row == 64 && tile.col == 64) throw std::runtime_error("planned");
    compute(device, stream, city, tile, result, advance);
  };
  EXPECT_THROW(run(context, job, {}), std::runtime_error);
  EXPECT_LT(computed, 12);
}

}  // namespace
}  // namespace lockstep::urban
