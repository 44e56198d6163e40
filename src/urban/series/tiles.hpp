// The whole time series of one tile: stages "urban.svf" and "urban.step".
#pragma once

#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "device/stages/phase_clock.hpp"
#include "lockstep/context.hpp"
#include "urban/series/inputs/inputs.hpp"
#include "urban/sky/sky_plan.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

inline constexpr char kStepStage[] = "urban.step";

/// Quantities at a point at each step, beside the weather.
enum class PointValue {
  kdown,
  kup,
  kside,
  ldown,
  lup,
  lside,
  tmrt,
  utci,
  pet,
  shadow,
  gvf,
  svf,
  svf_veg,
  sides  ///< the first of eight: short- and longwave on planes that face east, south, west, north
};
inline constexpr size_t kPointValues = 21, kSideValues = 8;
std::string_view name(PointValue value);  ///< as in poi.csv: "Kdown"

/// Memory of a step of a tile: a plane of the core an output, kPointValues for each point.
struct StepMemory {
  std::vector<float*> planes;
  float* points;
};

/// A step of a tile: a plane of the core an output, then kPointValues for each point in the core.
class StepLayout {
 public:
  StepLayout(const Tile& tile, size_t outputs, const std::vector<SeriesPoint>& points);
  size_t pixels() const { return pixels_; }
  size_t floats() const { return outputs_ * pixels_ + points_.size() * kPointValues; }
  float* plane(float* step, size_t output) const { return step + output * pixels_; }
  float* point(float* step, size_t k) const { return step + outputs_ * pixels_ + k * kPointValues; }
  StepMemory memory(float* step) const;
  /// Places in the list of all points.
  const std::vector<size_t>& points() const { return points_; }

 private:
  size_t pixels_, outputs_;
  std::vector<size_t> points_;
};

/// Gives memory for a step of a tile, and takes it back filled. Steps come in order of time; after a fallback they
/// begin anew, where one that has begun may not have ended.
struct StepSink {
  std::function<StepMemory(size_t step)> begin;
  std::function<void(size_t step)> end;
};

/// Times measured over all tiles.
struct SeriesClock {
  std::mutex mutex;
  std::vector<double> step_seconds;
  double copy_seconds = 0;
  device::PhaseSeconds stages, gpu_stages;  // all, and of them those on a GPU

  void add(const Device& device, const device::PhaseSeconds& seconds);
};

struct ComfortSteps;  // what the comfort indices take of each step

class SeriesTiles {
 public:
  SeriesTiles(const SeriesInputs& inputs, const Walls& walls, std::vector<SeriesOutput> outputs);

  /// For plan_tiles; `compute` and `options` are not set.
  TileJob job() const;
  /// Parts of a tile's progress: its steps, and the words of its sky where that is computed.
  int parts() const;
  /// The job's options, for tile_key: all that the bits of a tile depend on. Reads every grid.
  std::string key_text() const;
  StepLayout layout(const Tile& tile) const { return {tile, outputs_.size(), inputs_.points}; }
  void compute(Context& context, const Tile& tile, bool own_stream, const StepSink& sink,
               const std::function<void(int parts)>& advance, SeriesClock& clock) const;

 private:
  struct SkyOfTile;
  void find_sky(Context& context, const Tile& tile, const std::function<Stream(const Device&)>& stream_of,
                const std::function<void(int parts)>& advance, SeriesClock& clock, SkyOfTile& sky) const;
  const SeriesInputs& inputs_;
  const Walls& walls_;
  const std::vector<SeriesOutput> outputs_;
  SkyPlan plan_;
  std::shared_ptr<const ComfortSteps> comfort_;
};

}  // namespace lockstep::urban
