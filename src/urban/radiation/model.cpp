#include "urban/radiation/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "device/stages/phase_clock.hpp"
#include "lockstep/error.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/kernels.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/radiation/step/step_plans.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/sky/sky.hpp"
#include "urban/sun/shadows.hpp"

namespace lockstep::urban {
namespace {

constexpr int kOutPlanes = 8;  // the sunlit share is a plane of the ground view
constexpr int kDelayPlanes = 5;
constexpr char kWhere[] = "radiation";
/// A pixel that ends the view of the ground as the raster's edge does.
constexpr float kOutside = -1;

/// The core and what its view of the ground reaches, as a tile of its own.
Tile ground_tile(const City& city, const Tile& tile, int far) {
  Tile ground = tile;
  ground.row = std::max<int64_t>(0, tile.row - far);
  ground.col = std::max<int64_t>(0, tile.col - far);
  ground.rows = std::min(city.rows, tile.row + tile.rows + far) - ground.row;
  ground.cols = std::min(city.cols, tile.col + tile.cols + far) - ground.col;
  ground.room_rows = ground.room_cols = 0;
  return ground;
}

/// The part of a whole grid under a tile's core.
template <class To, class Values>
std::vector<To> crop(const Values& whole, const City& city, const Tile& tile) {
  std::vector<To> part;
  part.reserve(static_cast<size_t>(tile.core_pixels()));
  for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
    for (int64_t col = tile.col; col < tile.col + tile.cols; ++col)
      part.push_back(static_cast<To>(whole[static_cast<size_t>(row * city.cols + col)]));
  return part;
}

template <class E>
Buffer upload_plane(const Device& device, const Stream& stream, const std::vector<E>& data,
                    const Tile& tile) {
  return upload_on(device, stream, data).reshape({tile.rows, tile.cols});
}

/// Of a tile: 1 = ground, 0 = building.
std::vector<float> ground_of(const RadiationScene& scene, const Tile& tile) {
  const City& city = *scene.city;
  if (!city.dem.empty()) {
    const std::vector<uint8_t> mask = ground_mask(city, tile.row, tile.col, tile.rows, tile.cols);
    return {mask.begin(), mask.end()};
  }
  if (!scene.land_cover || scene.land_cover->empty())
    throw InputError("neither a DEM nor a land cover", kWhere,
                     "one of them, to distinguish buildings from ground");
  const std::vector<int32_t> codes = crop<int32_t>(*scene.land_cover, city, tile);
  const std::vector<float> heights = crop<float>(city.dsm.as<float>(), city, tile);
  std::vector<float> ground;
  for (size_t p = 0; p < codes.size(); ++p)
    ground.push_back(heights[p] != kNoHeight && codes[p] != kBuildingCode && codes[p] < 100);
  return ground;
}

/// Rows of the table from codes.
std::vector<int32_t> cover_rows(const std::vector<int32_t>& codes, const std::vector<SurfaceRow>& table,
                                const City& city, const Tile& tile) {
  std::vector<int32_t> rows = crop<int32_t>(codes, city, tile);
  for (size_t p = 0; p < rows.size(); ++p) {
    const int64_t row = tile.row + static_cast<int64_t>(p) / tile.cols,
                  col = tile.col + static_cast<int64_t>(p) % tile.cols;
    const int32_t code = rows[p] >= 100 ? kBuildingCode : rows[p];
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const SurfaceRow& r) { return r.code == code; });
    if (found != table.end())
      rows[p] = static_cast<int32_t>(found - table.begin());
    else if (city.is_missing(row * city.cols + col))
      rows[p] = 0;
    else
      throw InputError(fmt::format("land cover {} at row {}, column {}", code, row, col), kWhere,
                       "a code of the table of surfaces");
  }
  return rows;
}

void check(const RadiationScene& scene, const RadiationOptions& options) {
  if (!scene.city || !scene.walls) throw InputError("no city or no walls", kWhere, "both");
  const City& city = *scene.city;
  for (const Raster* grid : {&scene.walls->height, &scene.walls->aspect})
    if (grid->values.shape() != city.dsm.shape())
      throw InputError(fmt::format("wall grid of {}", to_string(grid->values.shape())), kWhere,
                       fmt::format("{} x {} as the DSM", city.rows, city.cols));
  if (scene.land_cover && !scene.land_cover->empty() &&
      static_cast<int64_t>(scene.land_cover->size()) != city.pixels())
    throw InputError(fmt::format("land cover of {} pixels", scene.land_cover->size()), kWhere,
                     fmt::format("{} x {} as the DSM", city.rows, city.cols));
  if (options.land_cover.empty() || options.land_cover.size() > kernels::kMostCovers)
    throw InputError(fmt::format("{} kinds of surface", options.land_cover.size()), kWhere,
                     fmt::format("1 to {}", kernels::kMostCovers));
  const Tile& t = scene.tile;
  if (t.rows < 1 || t.cols < 1 || t.row < 0 || t.col < 0 || t.row + t.rows > city.rows ||
      t.col + t.cols > city.cols)
    throw InputError("a tile outside the city", kWhere, "one of make_tiles");
  if (scene.sky && (scene.sky->rows != t.rows || scene.sky->cols != t.cols))
    throw InputError(fmt::format("view factors of {} x {}", scene.sky->rows, scene.sky->cols), kWhere,
                     fmt::format("{} x {} as the tile", t.rows, t.cols));
  if (scene.sky && has_patches(options.sky) && !scene.sky->states)
    throw InputError("view factors without states of the sky", kWhere,
                     "the packed states, for an anisotropic sky");
}

}  // namespace

std::string_view name(RadiationOutput output) {
  static constexpr std::string_view names[] = {"tmrt", "kdown", "kup",    "kside", "ldown",
                                               "lup",  "lside", "shadow", "gvf"};
  return names[static_cast<size_t>(output)];
}

std::string_view unit(RadiationOutput output) {
  if (output == RadiationOutput::tmrt) return "degC";
  return output == RadiationOutput::shadow || output == RadiationOutput::gvf ? "1" : "W m-2";
}

Reach radiation_reach(const City& city, const RadiationOptions& options) {
  const auto pixels =
      static_cast<int64_t>(std::min(std::ceil(longest_ray_m(city, options) / city.pixel_size_m), 1e15)) + 2 +
      ground_reach(options, city.pixel_size_m).far;
  const int64_t rows = std::min(pixels, city.rows), cols = std::min(pixels, city.cols);
  return {rows, rows, cols, cols};
}

RadiationCost radiation_cost(const City& city, const RadiationOptions& options) {
  const bool plants = city.has_vegetation();
  const uint64_t shadow = plants ? 5 : 2, lit_walls = 4, ground = 4;  // light, longwave, albedo, cover
  const uint64_t words = static_cast<uint64_t>((patch_count(options.view.patches) + 15) / 16);
  const uint64_t view = plants ? kSkyViewGrids : kSectors;
  const uint64_t planes = kernels::kGroundWords + kernels::kGroundPlanes + kDelayPlanes +
                          kernels::kAlbedoPlanes + kOutPlanes +
                          (options.substeps > 1 ? kernels::kMeanPlanes : 0);
  return {scene_bytes(plants) + 4 * (shadow + lit_walls + ground), 4 * (planes + view + words),
          4 * std::max<uint64_t>({view, words, kernels::kGroundPlanes})};
}

struct RadiationModel::State : StepPlanner {
  Device device;
  Stream stream;
  Tile tile;
  Scene scene;  // of the ground around the tile
  ShadowBuffers shadow;
  int32_t runs = 0;  // of patches
  Buffer walls, aspect, cover, lit;
  Buffer light, lup, albedo;  // padded ground grids of a step
  Buffer geometry, offsets, all_albedo;
  Buffer view, states;
  Buffer planes, out, table;
  struct History {
    WaveDelay clock;
    Buffer delay;
  };
  std::vector<History> histories;
  size_t history = 0;  // in use
  const Buffer& delay() const { return histories[history].delay; }
  Buffer mean, mean_sides;                                         // of the parts of a step
  bool in_parts = false;                                           // the last step came in parts
  std::optional<std::vector<std::array<int64_t, 2>>> side_pixels;  // empty: everywhere
  Buffer sides, side_table;                                        // where they are found

  bool anisotropic() const { return patches() != nullptr; }
  int64_t row() const { return tile.row - scene.tile.row; }
  int64_t col() const { return tile.col - scene.tile.col; }
  /// Shape of the padded grids.
  Shape padded() const { return {tile.rows + 2 * reach.far, (tile.cols + 2 * reach.far + 15) / 16 * 16}; }
  int64_t pitch() const { return padded()[1]; }
  bool keep_edge() const { return options.constants.edge == RasterEdge::keep; }
  Shape core() const { return {tile.rows, tile.cols}; }
  Buffer flat(const Buffer& grid) const { return grid.reshape({grid.elements()}); }
  Buffer core_of(const Buffer& ground) const { return ground.window({row(), col()}, {tile.rows, tile.cols}); }
  /// The window of a padded grid with the ground around the tile.
  Buffer ground_of_padded(const Buffer& grid) const {
    return grid.window({reach.far - row(), reach.far - col()}, {scene.tile.rows, scene.tile.cols});
  }
  template <class E>
  std::vector<float> pad(const std::vector<E>& ground, float around) const;

  void upload_ground(const RadiationScene& from);
  void find_sky(const RadiationScene& from);
  void shine(const Ray& sun, const std::function<void(const char*)>& mark);
  void rest();
  void face_sides(const std::vector<float>& values);
  void add_part(size_t number, size_t count);
};

/// A ground grid with room for every ray.
template <class E>
std::vector<float> RadiationModel::State::pad(const std::vector<E>& ground, float around) const {
  std::vector<float> grid(static_cast<size_t>(padded().elements()), around);
  for (int64_t r = 0; r < scene.tile.rows; ++r) {
    const auto from = ground.begin() + r * scene.tile.cols;
    std::copy(from, from + scene.tile.cols,
              grid.begin() + (r + reach.far - row()) * pitch() + (reach.far - col()));
  }
  return grid;
}

void RadiationModel::State::upload_ground(const RadiationScene& from) {
  const City& whole = *from.city;
  const Tile& ground = scene.tile;
  std::vector<float> heights = crop<float>(from.walls->height.pixels(), whole, ground),
                     aspects = crop<float>(from.walls->aspect.pixels(), whole, ground);
  std::vector<float> on_ground = ground_of(from, ground);
  for (size_t p = 0; p < heights.size(); ++p) {
    // A wall pixel is the ground next to a building; one on a building does not count.
    if (!std::isfinite(heights[p]) || !on_ground[p]) heights[p] = 0;
    if (!std::isfinite(aspects[p])) aspects[p] = 0;
    const int64_t row = ground.row + static_cast<int64_t>(p) / ground.cols,
                  col = ground.col + static_cast<int64_t>(p) % ground.cols;
    if (options.constants.holes_are_edges && whole.is_missing(row * whole.cols + col))
      on_ground[p] = kOutside;
  }
  walls = upload_plane(device, stream, heights, ground);
  aspect = upload_plane(device, stream, aspects, ground);
  if (covers)
    cover =
        upload_plane(device, stream, cover_rows(*from.land_cover, options.land_cover, whole, ground), ground);
  lit = device.allocate<f32>({2, ground.rows, ground.cols});
  const auto padded_grid = [&](Buffer grid) {
    device.clear(grid, stream);
    return grid;
  };
  light = padded_grid(device.allocate<u32>(padded()));
  if (covers) {
    lup = padded_grid(device.allocate<f32>(padded()));
    albedo = padded_grid(device.allocate<f32>(padded()));
  }

  // Geometry, once.
  const GroundSteps steps = ground_steps(reach, pitch());
  geometry = device.allocate<u32>({kernels::kGroundWords, tile.rows, tile.cols});
  offsets = upload_on(device, stream, steps.offsets);
  device.launch_on(stream, kernels::ground_geometry(), core(),
                   upload_on(device, stream, pad(on_ground, kOutside)), core_of(walls), core_of(aspect),
                   offsets, upload_on(device, stream, steps.sides), geometry, reach.near, reach.far, pitch());

  // Albedo of everything in the sun and what the pixel's ground reflects of longwave, once.
  std::vector<float> albedos(heights.size(), static_cast<float>(options.bare.albedo));
  if (covers) {
    const std::vector<int32_t> rows = cover_rows(*from.land_cover, options.land_cover, whole, ground);
    for (size_t p = 0; p < rows.size(); ++p)
      albedos[p] = static_cast<float>(options.land_cover[static_cast<size_t>(rows[p])].albedo);
  }
  const std::vector<float> slots =
      step_table(step_values({}, options, nullptr), {}, options, covers, nullptr, reach);
  all_albedo = device.allocate<f32>({kernels::kAlbedoPlanes, tile.rows, tile.cols});
  std::vector<float> reflects(static_cast<size_t>(tile.core_pixels()),
                              static_cast<float>(1 - options.bare.emissivity));
  if (covers) {
    const std::vector<int32_t> rows = cover_rows(*from.land_cover, options.land_cover, whole, tile);
    for (size_t p = 0; p < rows.size(); ++p)
      reflects[p] = static_cast<float>(1 - options.land_cover[static_cast<size_t>(rows[p])].emissivity);
  }
  const Buffer reflected = all_albedo.rows(kernels::kReflectsPlane, 1);
  device.write(reflected, reflects.data(), reflected.bytes(), stream);
  device.launch_on(stream, kernels::ground_albedo(), core(), geometry,
                   upload_on(device, stream, pad(albedos, 0)), offsets, upload_on(device, stream, slots),
                   all_albedo, reach.near, reach.far, pitch(), int(keep_edge()));
  device.synchronize(stream);  // what was uploaded for this alone goes out of scope
}

void RadiationModel::State::find_sky(const RadiationScene& from) {
  const int64_t words = static_cast<int64_t>((sky.division.patches.size() + 15) / 16);
  const int64_t grids = scene.plants ? kSkyViewGrids : kSectors;
  if (from.sky_grids) {
    view = from.sky_grids;
    if (anisotropic()) states = from.sky_states;
    return;
  }
  if (!from.sky) {
    const SkyPlan plan = plan_sky(*from.city, options.view);
    Scene around = scene;
    around.tile = tile;
    const SkyBuffers buffers = allocate_sky(device, stream, plan, around);
    cast_sky(device, stream, plan, around, buffers, 0, plan.words());
    view_sky(device, stream, plan, around, buffers);
    view = buffers.grids;
    if (anisotropic()) states = buffers.states;
    device.synchronize(stream);
    return;
  }
  view = device.allocate<f32>({grids, tile.rows, tile.cols});
  std::vector<float> values;
  for (int64_t g = 0; g < grids; ++g) {
    const float* const grid = from.sky->grids[static_cast<size_t>(g)];
    values.insert(values.end(), grid, grid + tile.core_pixels());
  }
  for (float& v : values)
    if (!std::isfinite(v)) v = 1;  // missing pixels
  device.write(view, values.data(), view.bytes(), stream);
  if (!anisotropic()) return;
  states = device.allocate<u32>({words, tile.rows, tile.cols});
  device.write(states, from.sky->states, states.bytes(), stream);
}

RadiationModel::RadiationModel(const Device& device, const RadiationScene& scene,
                               const RadiationOptions& options, const Stream& stream)
    : state_(std::make_unique<State>()) {
  check(scene, options);
  State& s = *state_;
  static_cast<StepPlanner&>(s) =
      scene.planner ? *scene.planner
                    : StepPlanner(*scene.city, options, scene.land_cover && !scene.land_cover->empty());
  s.device = device;
  s.stream = stream;
  if (s.reach.far > kernels::kStopMask)
    throw InputError(fmt::format("a view of the ground over {} pixels", s.reach.far), kWhere,
                     fmt::format("at most {}", kernels::kStopMask));
  s.tile = scene.tile;
  s.scene = upload_scene(device, stream, *scene.city, ground_tile(*scene.city, scene.tile, s.reach.far));
  build_maxima(device, stream, s.scene);
  s.upload_ground(scene);
  s.find_sky(scene);
  const int64_t rows = s.tile.rows, cols = s.tile.cols;
  s.planes = device.allocate<f32>({kernels::kGroundPlanes, rows, cols});
  s.out = device.allocate<f32>({kOutPlanes, rows, cols});
  s.shadow.heights = true;
  s.shadow.planes = allocate_shadow_planes(device, s.scene, true);
  s.runs = step_table_runs(s.sky.division, options.body);
  s.table =
      device.allocate<f32>({step_table_size(s.anisotropic() ? &s.sky.division : nullptr, options.body)});
  if (options.substeps > 1) {
    s.mean = device.allocate<f32>({kernels::kMeanPlanes, rows, cols});
    device.clear(s.mean, stream);
  }
  use_history(0);
}

void RadiationModel::use_history(size_t number) {
  State& s = *state_;
  s.history = number;
  while (s.histories.size() <= number) {
    s.histories.push_back({{}, s.device.allocate<f32>({kDelayPlanes, s.tile.rows, s.tile.cols})});
    s.device.clear(s.histories.back().delay, s.stream);
  }
}

RadiationModel::~RadiationModel() = default;
RadiationModel::RadiationModel(RadiationModel&&) noexcept = default;
RadiationModel& RadiationModel::operator=(RadiationModel&&) noexcept = default;

/// Sunlight on the ground around the tile, and what the ground gives back.
void RadiationModel::State::shine(const Ray& sun, const std::function<void(const char*)>& mark) {
  aim_shadow(device, stream, sun, city, scene, shadow);
  cast_shadow(device, stream, scene, shadow);
  shade_walls(device, stream, scene, shadow, walls, aspect, sun_side(sun.direction.azimuth_deg), lit);
  mark("shadow");
  const Kernel& surface = kernels::ground_surface(scene.plants, covers);
  const Shape around{scene.tile.rows, scene.tile.cols};
  const int near = reach.near, far = reach.far, keep = keep_edge();
  const Buffer lights = ground_of_padded(light);
  if (covers) {
    device.launch_on(stream, surface, around, shadow.planes, lit, walls, cover, table, lights,
                     ground_of_padded(lup), ground_of_padded(albedo));
    device.launch_on(stream, kernels::ground_view(true), core(), geometry, flat(light), flat(lup),
                     flat(albedo), core_of(cover), offsets, table, planes, near, far, pitch(), keep);
  } else {
    device.launch_on(stream, surface, around, shadow.planes, lit, walls, table, lights);
    device.launch_on(stream, kernels::ground_view(false), core(), geometry, flat(light), offsets, table,
                     planes, near, far, pitch(), keep);
  }
}

/// Night.
void RadiationModel::State::rest() {
  device.clear(light, stream);
  if (covers)
    device.launch_on(stream, kernels::ground_night(true), core(), core_of(cover), table, planes);
  else
    device.launch_on(stream, kernels::ground_night(false), core(), table, planes);
}

/// Fluxes on vertical planes, before the delay of this step is taken over.
void RadiationModel::State::face_sides(const std::vector<float>& values) {
  device.write(side_table, values.data(), side_table.bytes(), stream);
  const Kernel& kernel = kernels::sides(anisotropic(), scene.plants);
  const auto face = [&](const Shape& from, const Shape& size, const Buffer& result) {
    const auto plane = [&](const Buffer& grid) { return grid.window(from, size); };
    const auto planes_of = [&](const Buffer& grids) {
      return grids.window({0, from[0], from[1]}, {grids.shape()[0], size[0], size[1]});
    };
    const Buffer here = plane(light.window({reach.far, reach.far}, {tile.rows, tile.cols}));
    if (anisotropic())
      device.launch_on(stream, kernel, size, here, planes_of(planes), planes_of(all_albedo), planes_of(view),
                       planes_of(states), table, side_table, planes_of(delay()), result,
                       static_cast<int32_t>(sky.division.patches.size()));
    else
      device.launch_on(stream, kernel, size, here, planes_of(planes), planes_of(all_albedo), planes_of(view),
                       table, side_table, planes_of(delay()), result);
  };
  if (side_pixels->empty()) return face({0, 0}, {tile.rows, tile.cols}, sides);
  for (size_t k = 0; k < side_pixels->size(); ++k) {
    const auto& [row, col] = (*side_pixels)[k];
    face({row, col}, {1, 1}, sides.window({0, static_cast<int64_t>(k), 0}, {kernels::kSideFluxes, 1, 1}));
  }
}

void RadiationModel::find_sides(const std::vector<std::array<int64_t, 2>>& pixels) {
  State& s = *state_;
  s.side_pixels.reset();
  if (pixels.empty()) return;
  find_all_sides(static_cast<int64_t>(pixels.size()), 1);
  s.side_pixels = pixels;
}

void RadiationModel::find_all_sides() { find_all_sides(state_->tile.rows, state_->tile.cols); }

void RadiationModel::find_all_sides(int64_t rows, int64_t cols) {
  State& s = *state_;
  const int64_t patches = s.anisotropic() ? static_cast<int64_t>(s.sky.division.patches.size()) : 0;
  s.side_pixels.emplace();
  s.sides = s.device.allocate<f32>({kernels::kSideFluxes, rows, cols});
  if (s.options.substeps > 1) {
    s.mean_sides = s.device.allocate<f32>({kernels::kSideFluxes, rows, cols});
    s.device.clear(s.mean_sides, s.stream);
  }
  s.side_table = s.device.allocate<f32>({kernels::kSideHead + kernels::kSideRow * patches});
}

Buffer RadiationModel::sides() const { return state_->in_parts ? state_->mean_sides : state_->sides; }

/// Adds the part that was computed last to the means.
void RadiationModel::State::add_part(size_t number, size_t count) {
  const int first = number == 0, last = number + 1 == count;
  const float share = static_cast<float>(1.0 / static_cast<double>(count)),
              kelvin = static_cast<float>(options.constants.kelvin_tmrt);
  device.launch_on(stream, kernels::mean_of_step(), core(), out, planes, mean, first, last, share, kelvin);
  if (!side_pixels) return;
  const Shape extent{sides.shape()[1], sides.shape()[2]};
  device.launch_on(stream, kernels::mean_of_sides(), extent, sides, mean_sides, first, share);
}

void RadiationModel::step(const StepForcing& forcing, device::PhaseClock* clock) {
  step({&forcing, 1}, clock);
}

void RadiationModel::step(std::span<const StepForcing> parts, device::PhaseClock* clock) {
  std::vector<StepPlan> plans;
  for (const StepForcing& part : parts) plans.push_back(state_->plan(part, state_->side_pixels.has_value()));
  step(parts, plans, clock);
}

void RadiationModel::step(std::span<const StepForcing> parts, std::span<const StepPlan> plans,
                          device::PhaseClock* clock) {
  State& s = *state_;
  s.in_parts = parts.size() > 1;
  if (s.in_parts && !s.mean.elements())
    throw InternalError(fmt::format("a step in {} parts", parts.size()), kWhere, "one");
  for (size_t k = 0; k < parts.size(); ++k) {
    part(parts[k], plans[k], clock);
    if (s.in_parts) s.add_part(k, parts.size());
  }
}

void RadiationModel::part(const StepForcing& forcing, const StepPlan& plan, device::PhaseClock* clock) {
  State& s = *state_;
  const auto mark = [&](const char* phase) {
    if (clock) clock->mark(phase);
  };
  DelayStep delay{};
  if (forcing.day())
    delay = advance(s.histories[s.history].clock, forcing.step_days, s.options.constants.delay_in_windows);
  else
    s.histories[s.history].clock = {};
  std::vector<float> table = plan.table;
  set_delay(table, delay);
  s.device.write(s.table, table.data(), s.table.bytes(), s.stream);
  if (forcing.day())
    s.shine(plan.sun, mark);
  else
    s.rest();
  mark("gvf");
  if (s.side_pixels) s.face_sides(plan.sides);
  const Kernel& kernel = kernels::radiation(s.anisotropic(), s.scene.plants);
  const Buffer light = s.light.window({s.reach.far, s.reach.far}, {s.tile.rows, s.tile.cols});
  if (s.anisotropic())
    s.device.launch_on(s.stream, kernel, s.core(), light, s.planes, s.all_albedo, s.view, s.states, s.table,
                       s.delay(), s.out, s.states.shape()[0], s.runs);
  else
    s.device.launch_on(s.stream, kernel, s.core(), light, s.planes, s.all_albedo, s.view, s.table, s.delay(),
                       s.out);
  mark("radiation");
}

Buffer RadiationModel::output(RadiationOutput which) const {
  const State& s = *state_;
  const Shape shape{s.tile.rows, s.tile.cols};
  if (s.in_parts) return s.mean.rows(static_cast<int64_t>(which), 1).reshape(shape);
  if (which == RadiationOutput::gvf) return s.planes.rows(kernels::kNormPlane, 1).reshape(shape);
  return s.out.rows(static_cast<int64_t>(which), 1).reshape(shape);
}

Buffer RadiationModel::sky_view() const { return state_->view; }

namespace {
/// The head of a saved state.
struct Saved {
  int64_t rows, cols;
  double time_added_days;
  int64_t first;
};
}  // namespace

std::vector<std::byte> RadiationModel::save() const {
  const State& s = *state_;
  const auto& [clock, delay] = s.histories[s.history];
  const Saved head{s.tile.rows, s.tile.cols, clock.time_added_days, clock.first};
  std::vector<std::byte> bytes(sizeof head + static_cast<size_t>(delay.bytes()));
  std::memcpy(bytes.data(), &head, sizeof head);
  s.device.read(delay, bytes.data() + sizeof head, delay.bytes(), s.stream);
  return bytes;
}

void RadiationModel::restore(const std::vector<std::byte>& bytes) {
  State& s = *state_;
  auto& [clock, delay] = s.histories[s.history];
  Saved head{};
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  if (bytes.size() != sizeof head + static_cast<size_t>(delay.bytes()) || head.rows != s.tile.rows ||
      head.cols != s.tile.cols)
    throw InputError(fmt::format("a state of {} bytes for {} x {}", bytes.size(), head.rows, head.cols),
                     kWhere, fmt::format("one of {} x {}", s.tile.rows, s.tile.cols));
  clock = {head.first != 0, head.time_added_days};
  s.device.write(delay, bytes.data() + sizeof head, delay.bytes(), s.stream);
}

}  // namespace lockstep::urban
