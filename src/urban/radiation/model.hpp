// Radiation of one tile of a city, hour by hour. Geometry is found once; between steps the state stays on the
// device, and a step uploads scalars alone. Results are bit-identical for all tile sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/radiation/step/forcing.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::device {
class PhaseClock;
}

namespace lockstep::urban {

struct StepPlan;
struct StepPlanner;

struct RadiationOptions {
  SkyModel sky = SkyModel::anisotropic;
  Body body = Body::cylinder;
  Posture posture = Posture::standing;
  /// The sky that view factors and luminances are taken of. `rays` also holds for the sun's shadows; the reach
  /// of all is cut at min(relief / tan 3°, rays.max_reach_m), with and without tiles.
  SkyOptions view;
  Constants constants;
  WallSurface wall;
  SurfaceRow bare;  ///< ground without a land-cover grid; its tstart_k is Constants::bare_tstart_k
  std::vector<SurfaceRow> land_cover = standard_land_cover();
  int substeps = 1;  ///< most parts that a step comes in
};

/// The inputs of one tile, on the host. The grids have the shape of the whole city and must outlive the
/// constructor of RadiationModel alone.
struct RadiationScene {
  const City* city = nullptr;    ///< with a DEM or a land cover, to distinguish buildings from ground
  const Walls* walls = nullptr;  ///< heights (m, 0 = none) and aspects (degrees)
  /// Codes of SurfaceRow, row by row; empty: bare ground. Codes from 100 on count as roofs; unknown ones are
  /// refused.
  const std::vector<int32_t>* land_cover = nullptr;
  Tile tile;  ///< as make_tiles(rows, cols, side, radiation_reach(…)) gives it, or whole_tile(city)
  /// View factors of the tile's core, and with an anisotropic sky its states; null: computed.
  const SkyTile* sky = nullptr;
  /// The same on the model's device, as SkyBuffers has them; they win.
  Buffer sky_grids, sky_states;
  const StepPlanner* planner = nullptr;  ///< of this city, the options and land cover; null: made
};

/// Planes of a step over the tile's core, f32 (rows, cols). Missing pixels hold no meaning.
enum class RadiationOutput {
  tmrt,   ///< mean radiant temperature, °C
  kdown,  ///< shortwave from above, W/m²
  kup,    ///< from below
  kside,  ///< mean over the body's sides, with what its curved surface receives
  ldown,  ///< longwave, the same
  lup,
  lside,
  shadow,  ///< 1 = sun, 0 = shade of a building, ψ = shade of a plant; 0 at night
  gvf      ///< share of sunlit surface that a person sees, 0 … 1
};
inline constexpr int kRadiationOutputs = 9;
std::string_view name(RadiationOutput output);  ///< "tmrt"
std::string_view unit(RadiationOutput output);  ///< "degC", "W m-2", "1"

/// Pixels around a core that its radiation depends on.
Reach radiation_reach(const City& city, const RadiationOptions& options);

/// Device bytes that a model takes, for TileCost; the planes of outputs included.
struct RadiationCost {
  uint64_t window_bytes = 0;       ///< a padded pixel of the window
  uint64_t core_bytes = 0;         ///< a pixel of the core
  uint64_t widest_core_bytes = 0;  ///< of the widest buffer
};
RadiationCost radiation_cost(const City& city, const RadiationOptions& options);

class RadiationModel {
 public:
  /// Uploads the tile, casts its sky if that is not given, and finds the ground's geometry. Throws InputError
  /// for grids that do not fit each other and options that contradict.
  RadiationModel(const Device& device, const RadiationScene& scene, const RadiationOptions& options,
                 const Stream& stream = {});
  ~RadiationModel();
  RadiationModel(RadiationModel&&) noexcept;
  RadiationModel& operator=(RadiationModel&&) noexcept;

  /// Steps must be in order of time, because the warmth of surfaces lags behind. The clock receives the phases
  /// "shadow", "gvf" and "radiation".
  void step(const StepForcing& forcing, device::PhaseClock* clock = nullptr);
  /// A step in parts of equal length, at most RadiationOptions::substeps; results are means over them, of the temperature the
  /// mean of its fourth power.
  void step(std::span<const StepForcing> parts, device::PhaseClock* clock = nullptr);
  /// With what the planner made of the parts, with sides where find_sides() or find_all_sides() requested them.
  void step(std::span<const StepForcing> parts, std::span<const StepPlan> plans, device::PhaseClock* clock);
  /// Output of the last step; valid until the next.
  Buffer output(RadiationOutput which) const;
  /// From the next step on fluxes on vertical planes are found at these pixels (row, column) of the core, or everywhere.
  void find_sides(const std::vector<std::array<int64_t, 2>>& pixels);
  void find_all_sides();
  /// W/m² of the last step on planes that face east, south, west, north: shortwave, then longwave. (8, rows, cols), or
  /// (8, pixels, 1).
  Buffer sides() const;
  /// The 15 view factors (15, rows, cols; 5 without plants).
  Buffer sky_view() const;

  /// Warmth of surfaces is remembered by number: what steps of other weather under the same sun have is kept apart. 0 until
  /// this is called.
  void use_history(size_t number);

  /// The state carried from step to step by the history in use, for checkpoints and for a restart on another device.
  std::vector<std::byte> save() const;
  /// Throws InputError for the state of another shape.
  void restore(const std::vector<std::byte>& state);

 private:
  void find_all_sides(int64_t rows, int64_t cols);
  void part(const StepForcing& forcing, const StepPlan& plan, device::PhaseClock* clock);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::urban
