// Runs a computation over the tiles of a city, a bounded number at a time, each as one run of a stage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

/// A tile's core on the host, as it is stored: f32 planes, then u32 planes. Not initialised, for it is written
/// whole.
class TileResult {
 public:
  TileResult(const Tile& tile, int planes, int words)
      : pixels_(static_cast<size_t>(tile.core_pixels())),
        planes_(static_cast<size_t>(planes)),
        words_(static_cast<size_t>(words)),
        data_(allocate(count())) {}

  size_t planes() const { return planes_; }
  float* plane(size_t k) const { return reinterpret_cast<float*>(data_.get()) + k * pixels_; }
  /// Null where the computation keeps none.
  uint32_t* words() const { return words_ ? data_.get() + planes_ * pixels_ : nullptr; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span(data_.get(), count())); }

 private:
  struct Free {
    void operator()(uint32_t* data) const { std::free(data); }
  };
  using Data = std::unique_ptr<uint32_t[], Free>;
  static Data allocate(size_t count);
  size_t count() const { return pixels_ * (planes_ + words_); }
  size_t pixels_, planes_, words_;
  Data data_;
};

/// Counts finished parts of a tile.
using Advance = std::function<void(int parts)>;

/// One computation.
struct TileJob {
  std::string_view stage;
  std::string_view field_prefix;  ///< of telemetry: "svf_"
  Reach reach;
  TileCost cost;
  uint64_t host_bytes = 0;    ///< on the host in addition to the tiles, for any number in flight
  TileCost taken_over;        ///< what a tile of the whole raster takes over of an earlier stage's buffers
  int planes = 0, words = 0;  ///< f32 and u32 core grids of the result
  int parts = 1;              ///< of progress, a tile
  int patches = 0;            ///< patches of the sky in a tile, for telemetry
  std::string options;  ///< names every option and input except the city: part of the key of stored tiles
  /// Fills in the planes of a tile; those of missing pixels are masked afterwards. The stream is the tile's own
  /// where several are in flight. Of a city that is not held the tile is cut out of the window that was read of it.
  std::function<void(const Device&, const Stream&, const City&, const Tile&, const TileResult&,
                     const Advance&)>
      compute;
  /// Seconds that never decrease, which decide whether a tile is kept; empty: the system's steady clock.
  std::function<double()> clock = {};
};

/// The tiles of a raster and how many may be in flight.
struct TilePlan {
  int64_t side = 0;
  int workers = 1;
  std::vector<Tile> tiles;
  uint64_t device_bytes = 0, host_bytes = 0;  ///< predicted, of all tiles in flight
};

/// Host memory that a computation may still take.
uint64_t free_host_bytes(const TileOptions& options);

/// Chooses the tiles by the rule of docs/urban.md; a stored side is kept where it fits. Where not one tile fits a
/// GPU, that is a failure of the stage, and the CPU's memory counts.
TilePlan plan_tiles(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                    int64_t kept_side);

/// Key of a job's stored tiles: city, options, versions, numerics, family of the device.
/// Of the prepared grids: ground with buildings, canopy, trunks.
std::array<std::string, 3> content_hashes(const City& city);
std::string tile_key(const Context& context, const City& city, const TileJob& job);

/// Calls `run(number)` for every number that `next` gives until it gives none, at most `workers` at a time; the first
/// exception stops the rest and is thrown on. Returns how many were in flight at most.
int for_each_tile(const std::function<std::optional<size_t>()>& next, int workers,
                  const std::function<void(size_t)>& run);
int for_each_tile(const std::vector<size_t>& numbers, int workers, const std::function<void(size_t)>& run);

/// Receives finished tiles, one call at a time, in any order.
using TileSink = std::function<void(const Tile&, const TileResult&)>;

/// Chooses the tiles by the rule of docs/urban.md, takes over stored ones, computes the others, and masks
/// missing pixels (NaN in all f32 planes). Where not one tile fits a GPU, that is a failure of the stage, and
/// the CPU's memory counts. Writes the line "<stage>.tiles" of telemetry.
TileReport run_tiles(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                     const TileSink& sink);

/// Cores copied into whole grids; not a pixel is written twice.
void stitch(const Tile& tile, const float* core, Raster& whole);
/// The same into a grid of rows of `cols` pixels.
void stitch(const Tile& tile, const float* core, float* whole, int64_t cols);

}  // namespace lockstep::urban
