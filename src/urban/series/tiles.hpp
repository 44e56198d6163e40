// The whole time series of one tile: stages "urban.svf" and "urban.step".
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "device/stages/phase_clock.hpp"
#include "lockstep/context.hpp"
#include "urban/radiation/step/step_plans.hpp"
#include "urban/series/inputs/inputs.hpp"
#include "urban/series/step_store.hpp"
#include "urban/sky/sky_plan.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

inline constexpr char kStepStage[] = "urban.step";

/// Quantities at a point at each step, in addition to the weather.
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
  air,  ///< where fields are given: air temperature and wind at the point, which take the place of the weather's
  wind,
  sides  ///< the first of eight: short- and longwave on planes that face east, south, west, north
};
inline constexpr size_t kPointValues = 23, kSideValues = 8;
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
  StepMemory memory(float* step) const {
    StepMemory memory{{}, point(step, 0)};
    for (size_t o = 0; o < outputs_; ++o) memory.planes.push_back(plane(step, o));
    return memory;
  }
  /// Places in the list of all points.
  const std::vector<size_t>& points() const { return points_; }

 private:
  size_t pixels_, outputs_;
  std::vector<size_t> points_;
};

/// Gives memory for a step of a tile, and takes it back filled. Steps come in order of time; after a fallback they
/// begin again, where one that has begun may not have ended.
struct StepSink {
  std::function<StepMemory(size_t step)> begin;
  std::function<void(size_t step)> end;
  /// Whether the state after a finished step is requested, and its receiver. Not called after a fallback.
  std::function<bool(size_t step)> keeps = {};
  std::function<void(size_t step, std::vector<std::byte> state)> keep = {};
  /// Asked before a step: the next one that is not there already, and if that is a later one, the state before it.
  std::function<size_t(size_t step, std::vector<std::byte>& state)> take_over = {};
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
/// A series of weather over the tile: the run's, or of warmer air.
struct AirSteps {
  int kelvin = 0;
  const std::vector<WeatherStep>*warm_up = nullptr, *steps = nullptr;
  std::shared_ptr<const ComfortSteps> comfort;
  std::shared_ptr<StepPlans> warm_up_plans, plans;
};

/// The stream of a thread that computes tiles while others do: one from tile to tile, as long as the device is the same.
class TileStream {
 public:
  Stream on(const Device& device);

 private:
  Device device_;
  Stream stream_;
};

class SeriesTiles {
 public:
  SeriesTiles(const SeriesInputs& inputs, const Walls& walls, std::vector<SeriesOutput> outputs);

  /// For plan_tiles; `compute` and `options` are not set.
  TileJob job() const;
  /// Parts of a tile's progress: its steps, and the words of its sky where that is computed.
  int parts() const;
  /// All that the bits of a tile depend on in addition to the city, by names for messages. Reads every grid.
  RunKey key() const;
  /// The same as the job's options, for tile_key.
  std::string key_text() const;
  StepLayout layout(const Tile& tile) const { return {tile, outputs_.size(), inputs_.points}; }
  /// `own`: null for the device's default stream. `clock`: null where nobody requests times.
  void compute(Context& context, const Tile& tile, TileStream* own, const StepSink& sink,
               const std::function<void(int parts)>& advance, SeriesClock* clock) const;

 private:
  struct SkyOfTile;
  void find_sky(Context& context, const Tile& tile, TileStream* own,
                const std::function<void(int parts)>& advance, SeriesClock* clock, SkyOfTile& sky) const;
  const SeriesInputs& inputs_;
  const Walls& walls_;
  const std::vector<SeriesOutput> outputs_;
  SkyPlan plan_;
  StepPlanner planner_;
  /// Those that the pixels of a tile lie between.
  std::vector<AirSteps> airs_of(const Tile& tile) const;
  std::vector<AirSteps> airs_;
};

}  // namespace lockstep::urban
