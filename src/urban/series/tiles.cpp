#include "urban/series/tiles.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/hash.hpp"
#include "device/capabilities.hpp"
#include "urban/city/scene.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/sky/sky.hpp"

namespace lockstep::urban {

/// A tile's part of a stored sky, as the model takes it.
struct SkyPart {
  std::array<std::vector<float>, kSkyViewGrids> grids;
  std::vector<uint32_t> states;
};

namespace {

using StepClock = std::chrono::steady_clock;
constexpr float kMissingValue = std::numeric_limits<float>::quiet_NaN();

double seconds_from(StepClock::time_point start) {
  return std::chrono::duration<double>(StepClock::now() - start).count();
}

/// Flux planes by their number in PointValue and the outputs of a run.
constexpr std::array<std::pair<PointValue, RadiationOutput>, 9> kPointPlanes = {{
    {PointValue::kdown, RadiationOutput::kdown},
    {PointValue::kup, RadiationOutput::kup},
    {PointValue::kside, RadiationOutput::kside},
    {PointValue::ldown, RadiationOutput::ldown},
    {PointValue::lup, RadiationOutput::lup},
    {PointValue::lside, RadiationOutput::lside},
    {PointValue::tmrt, RadiationOutput::tmrt},
    {PointValue::shadow, RadiationOutput::shadow},
    {PointValue::gvf, RadiationOutput::gvf},
}};

std::optional<RadiationOutput> radiation_output(SeriesOutput output) {
  switch (output) {
    case SeriesOutput::tmrt: return RadiationOutput::tmrt;
    case SeriesOutput::shadow: return RadiationOutput::shadow;
    case SeriesOutput::kdown: return RadiationOutput::kdown;
    case SeriesOutput::kup: return RadiationOutput::kup;
    case SeriesOutput::kside: return RadiationOutput::kside;
    case SeriesOutput::ldown: return RadiationOutput::ldown;
    case SeriesOutput::lup: return RadiationOutput::lup;
    case SeriesOutput::lside: return RadiationOutput::lside;
    case SeriesOutput::gvf: return RadiationOutput::gvf;
    default: return {};
  }
}

/// The plane of the sides, 0 … 7.
std::optional<int64_t> side_of(SeriesOutput output) {
  const auto side = static_cast<int64_t>(output) - static_cast<int64_t>(SeriesOutput::kside_east);
  return side >= 0 ? std::optional(side) : std::nullopt;
}

template <class Values>
std::string hash_of(const Values& values) {
  return to_hex(hash128(std::as_bytes(std::span(values))));
}

SkyPart cut_sky(const StoredSky& sky, const City& city, const Tile& tile) {
  SkyPart part;
  const size_t pixels = static_cast<size_t>(tile.core_pixels());
  for (size_t g = 0; g < kSkyViewGrids; ++g) {
    part.grids[g].reserve(pixels);
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      const float* const from = &sky.grids[g].pixels()[static_cast<size_t>(row * city.cols + tile.col)];
      part.grids[g].insert(part.grids[g].end(), from, from + tile.cols);
    }
  }
  for (int64_t word = 0; word < sky.words; ++word)
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      const uint32_t* const from =
          &sky.states[static_cast<size_t>((word * city.rows + row) * city.cols + tile.col)];
      part.states.insert(part.states.end(), from, from + tile.cols);
    }
  return part;
}

}  // namespace

std::string_view name(PointValue value) {
  static constexpr std::string_view names[kPointValues] = {
      "Kdown", "Kup",     "Kside", "Ldown", "Lup", "Lside", "Tmrt", "UTCI", "PET", "shadow", "gvf",
      "svf",   "svf_veg", "Ke",    "Ks",    "Kw",  "Kn",    "Le",   "Ls",   "Lw",  "Ln"};
  return names[static_cast<size_t>(value)];
}

void SeriesClock::add(const Device& device, const device::PhaseSeconds& seconds) {
  const std::lock_guard lock(mutex);
  for (const auto& [phase, s] : seconds) {
    stages[phase] += s;
    if (!capabilities_of(device).host_memory) gpu_stages[phase] += s;
  }
}

StepLayout::StepLayout(const Tile& tile, size_t outputs, const std::vector<SeriesPoint>& points)
    : pixels_(static_cast<size_t>(tile.core_pixels())), outputs_(outputs) {
  for (size_t k = 0; k < points.size(); ++k) {
    const SeriesPoint& p = points[k];
    if (p.row >= tile.row && p.row < tile.row + tile.rows && p.col >= tile.col &&
        p.col < tile.col + tile.cols)
      points_.push_back(k);
  }
}

StepMemory StepLayout::memory(float* step) const {
  StepMemory memory{{}, point(step, 0)};
  for (size_t o = 0; o < outputs_; ++o) memory.planes.push_back(plane(step, o));
  return memory;
}

/// Inputs of comfort at each step.
struct ComfortSteps {
  std::vector<double> wind_10m, wind_1m1;
  std::vector<UtciStep> utci;  // empty where not wanted
  std::vector<PetStep> pet;
};

SeriesTiles::SeriesTiles(const SeriesInputs& inputs, const Walls& walls, std::vector<SeriesOutput> outputs)
    : inputs_(inputs),
      walls_(walls),
      outputs_(std::move(outputs)),
      plan_(plan_sky(inputs.city, inputs.radiation.view)) {
  const auto wanted = [&](SeriesOutput o) {
    return std::find(outputs_.begin(), outputs_.end(), o) != outputs_.end();
  };
  auto comfort = std::make_shared<ComfortSteps>();
  ComfortWind wind = comfort_wind(inputs);
  comfort->wind_10m = std::move(wind.utci);
  comfort->wind_1m1 = std::move(wind.pet);
  if (wanted(SeriesOutput::utci))
    for (size_t k = 0; k < inputs.steps.size(); ++k) {
      const StepForcing& f = inputs.steps[k].forcing;
      comfort->utci.emplace_back(f.air_c, f.humidity_percent, comfort->wind_10m[k]);
    }
  if (wanted(SeriesOutput::pet)) {
    std::vector<std::optional<PetStep>> tables(inputs.steps.size());
    tbb::parallel_for(size_t{0}, tables.size(), [&](size_t k) {
      const StepForcing& f = inputs.steps[k].forcing;
      tables[k].emplace(f.air_c, f.humidity_percent, comfort->wind_1m1[k], inputs.parameters.person);
    });
    for (auto& table : tables) comfort->pet.push_back(std::move(*table));
  }
  comfort_ = std::move(comfort);
}

TileJob SeriesTiles::job() const {
  const RadiationOptions& r = inputs_.radiation;
  const RadiationCost cost = radiation_cost(inputs_.city, r);
  TileJob job;
  job.stage = kStepStage;
  job.field_prefix = "step_";
  job.reach = radiation_reach(inputs_.city, r);
  job.reach.include(plan_.reach);
  const uint64_t comfort_planes = 2, sky_words = kSkyViewGrids + static_cast<uint64_t>(plan_.words());
  job.cost.window_bytes = cost.window_bytes;
  job.cost.core_bytes = cost.core_bytes + 4 * comfort_planes;
  job.cost.widest_core_bytes = cost.widest_core_bytes;
  // A stored sky on its way to the model, and steps on their way to the files.
  job.cost.host_core_bytes = 4 * ((inputs_.sky ? 2 * sky_words : 0) + 2 * outputs_.size());
  job.planes = static_cast<int>(outputs_.size());
  job.parts = parts();
  return job;
}

int SeriesTiles::parts() const {
  return static_cast<int>(inputs_.steps.size()) + (inputs_.sky ? 0 : plan_.words());
}

std::string SeriesTiles::key_text() const {
  const RadiationOptions& r = inputs_.radiation;
  std::string text;
  for (const SeriesOutput o : outputs_) text += fmt::format("{} ", name(o));
  text += fmt::format(
      "preset {} sky {} body {} posture {} patches {} reach {} walls {} {} ground {} cover {}",
      name(inputs_.preset), static_cast<int>(r.sky), static_cast<int>(r.body), static_cast<int>(r.posture),
      patch_count(r.view.patches), r.view.rays.max_reach_m, hash_of(walls_.height.pixels()),
      hash_of(walls_.aspect.pixels()), hash_of(inputs_.city.dem.as<float>()), hash_of(inputs_.land_cover));
  const Constants& c = r.constants;
  text += fmt::format(" body {} {} leaves {} {} {} wall {} {} {} {} {}", c.absorption_short,
                      c.absorption_long, c.leaf_on, c.leaf_first_day, c.leaf_last_day, r.wall.albedo,
                      r.wall.emissivity, r.wall.tgk, r.wall.tstart_k, r.wall.tmax_h);
  for (const SurfaceRow& s : r.land_cover)
    text += fmt::format(" {}:{},{},{},{},{}", s.code, s.albedo, s.emissivity, s.tgk, s.tstart_k, s.tmax_h);
  const Person& p = inputs_.parameters.person;
  text +=
      fmt::format(" person {} {} {} {} {} {} wind at {}", p.mass_kg, p.age_years, p.height_m, p.activity_w,
                  p.clothing_clo, static_cast<int>(p.sex), inputs_.parameters.wind_height_m);
  text += fmt::format(" parts {} after {}", r.substeps, inputs_.warm_up.size());
  std::vector<const WeatherStep*> steps;
  for (const auto* part : {&inputs_.warm_up, &inputs_.steps})
    for (const WeatherStep& s : *part) steps.push_back(&s);
  for (const WeatherStep* step : steps) {
    const WeatherStep& s = *step;
    const StepForcing& f = s.forcing;
    text +=
        fmt::format(" {}:{},{},{},{},{},{},{},{},{},{},{},{}", s.time, f.sun_altitude_deg, f.sun_azimuth_deg,
                    f.day_fraction, f.air_c, f.humidity_percent, f.wind_m_s, f.global_w_m2, f.beam_w_m2,
                    f.diffuse_w_m2, f.clearness, f.ldown_w_m2, f.canopy_transmissivity);
  }
  if (inputs_.sky) {
    text += " sky given";
    for (const Raster& grid : inputs_.sky->grids) text += " " + hash_of(grid.pixels());
    text += " " + hash_of(inputs_.sky->states);
  }
  for (const SeriesPoint& point : inputs_.points) text += fmt::format(" {},{}", point.row, point.col);
  return text;
}

namespace {

/// One run of the stage over one tile, on one device.
class TileRun {
 public:
  TileRun(const SeriesInputs& inputs, const Device& device, const Stream& stream, RadiationModel& model,
          const Tile& tile, const StepLayout& layout)
      : inputs_(inputs), device_(device), stream_(stream), model_(model), tile_(tile), layout_(layout) {
    row_.resize(static_cast<size_t>(tile.cols));
  }

  /// Sides are found everywhere where they are outputs, else at the points alone.
  void find_sides(const std::vector<SeriesOutput>& outputs) {
    all_sides_ = std::any_of(outputs.begin(), outputs.end(), [](SeriesOutput o) { return side_of(o); });
    if (all_sides_) return model_.find_all_sides();
    std::vector<std::array<int64_t, 2>> pixels;
    for (const size_t number : layout_.points())
      pixels.push_back({inputs_.points[number].row - tile_.row, inputs_.points[number].col - tile_.col});
    model_.find_sides(pixels);
    sides_.resize(pixels.size() * kSideValues);
  }
  Buffer plane_of_side(int64_t side) const {
    return model_.sides().rows(side, 1).reshape({tile_.rows, tile_.cols});
  }

  void read_plane(const Buffer& buffer, float* plane) const {
    device_.read(buffer, plane, buffer.bytes(), stream_);
    const City& city = inputs_.city;
    if (city.missing == 0) return;
    const std::span<const float> heights = city.dsm.as<float>();
    for (int64_t row = 0; row < tile_.rows; ++row)
      for (int64_t col = 0; col < tile_.cols; ++col)
        if (heights[static_cast<size_t>((tile_.row + row) * city.cols + tile_.col + col)] == kNoHeight)
          plane[row * tile_.cols + col] = kMissingValue;
  }

  /// The pixel of point number k in a plane (rows, cols).
  float at_point(const Buffer& plane, size_t k) {
    const SeriesPoint& point = inputs_.points[k];
    const Buffer row = plane.rows(point.row - tile_.row, 1);
    device_.read(row, row_.data(), row.bytes(), stream_);
    return row_[static_cast<size_t>(point.col - tile_.col)];
  }

  /// Planes for the comfort indices that are asked for.
  void allocate_comfort(const ComfortSteps& comfort) {
    const auto plane = [&] {
      return allocate_core<f32>(device_, 1, tile_).reshape({tile_.rows, tile_.cols});
    };
    if (!comfort.utci.empty()) utci_ = plane();
    if (!comfort.pet.empty()) pet_ = plane();
  }

  /// Computes a step and hands its outputs to the sink. Returns the seconds of the copies.
  double step(size_t k, const ComfortSteps& comfort, const std::vector<SeriesOutput>& outputs,
              const StepSink& sink, device::PhaseClock& phases) {
    const StepForcing& forcing = inputs_.steps[k].forcing;
    model_.step(inputs_.steps[k].parts(), &phases);
    const Buffer tmrt = model_.output(RadiationOutput::tmrt);
    if (utci_) utci_grid(device_, stream_, comfort.utci[k], tmrt, utci_);
    if (pet_) pet_grid(device_, stream_, comfort.pet[k], tmrt, pet_);
    if (utci_ || pet_) phases.mark("comfort");
    const StepMemory step = sink.begin(k);
    const auto copying = StepClock::now();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const auto plane = radiation_output(outputs[o]);
      const auto side = side_of(outputs[o]);
      read_plane(plane                              ? model_.output(*plane)
                 : side                             ? plane_of_side(*side)
                 : outputs[o] == SeriesOutput::utci ? utci_
                                                    : pet_,
                 step.planes[o]);
    }
    read_points(step.points, forcing, comfort.wind_10m[k], comfort.wind_1m1[k]);
    const double copied = seconds_from(copying);
    sink.end(k);
    return copied;
  }

 private:
  void read_points(float* points, const StepForcing& f, double wind_10m, double wind_1m1) {
    if (!sides_.empty()) device_.read(model_.sides(), sides_.data(), model_.sides().bytes(), stream_);
    for (size_t k = 0; k < layout_.points().size(); ++k) {
      const size_t number = layout_.points()[k];
      float* const values = points + k * kPointValues;
      for (const auto& [value, output] : kPointPlanes)
        values[static_cast<size_t>(value)] = at_point(model_.output(output), number);
      const double tmrt = values[static_cast<size_t>(PointValue::tmrt)];
      const auto set = [&](PointValue value, double v) {
        values[static_cast<size_t>(value)] = static_cast<float>(v);
      };
      set(PointValue::utci, utci(f.air_c, f.humidity_percent, wind_10m, tmrt));
      set(PointValue::pet, pet(f.air_c, f.humidity_percent, tmrt, wind_1m1, inputs_.parameters.person));
      if (k >= views_.size()) find_view(number);
      for (size_t side = 0; side < kSideValues; ++side)
        values[static_cast<size_t>(PointValue::sides) + side] =
            all_sides_ ? at_point(plane_of_side(static_cast<int64_t>(side)), number)
                       : sides_[side * layout_.points().size() + k];
      set(PointValue::svf, views_[k].first);
      set(PointValue::svf_veg, views_[k].second);
      const SeriesPoint& point = inputs_.points[number];
      if (inputs_.city.is_missing(point.row * inputs_.city.cols + point.col))
        std::fill_n(values, kPointValues, kMissingValue);
    }
  }

  void find_view(size_t number) {
    const Buffer grids = model_.sky_view();
    const bool plants = inputs_.city.has_vegetation();
    const auto plane = [&](int64_t k) { return grids.rows(k, 1).reshape({tile_.rows, tile_.cols}); };
    const float all = at_point(plane(0), number), plant = plants ? at_point(plane(5), number) : 1.0f;
    views_.push_back({all, plant});
  }

  const SeriesInputs& inputs_;
  const Device& device_;
  const Stream& stream_;
  RadiationModel& model_;
  const Tile& tile_;
  const StepLayout& layout_;
  std::vector<float> row_, sides_;
  Buffer utci_, pet_;
  bool all_sides_ = false;
  std::vector<std::pair<float, float>> views_;
};

}  // namespace

/// A tile's sky: a stored one, or what was made on a device and stays there; a stage that falls back behind it makes its
/// own.
struct SeriesTiles::SkyOfTile {
  SkyPart stored;
  SkyTile given;
  Device device;
  SkyBuffers made;
};

void SeriesTiles::find_sky(Context& context, const Tile& tile,
                           const std::function<Stream(const Device&)>& stream_of,
                           const std::function<void(int parts)>& advance, SeriesClock& clock,
                           SkyOfTile& sky) const {
  if (inputs_.sky) {
    sky.stored = cut_sky(*inputs_.sky, inputs_.city, tile);
    for (size_t g = 0; g < kSkyViewGrids; ++g) sky.given.grids[g] = sky.stored.grids[g].data();
    sky.given.states = sky.stored.states.empty() ? nullptr : sky.stored.states.data();
    return;
  }
  int cast = 0;
  context.run_stage(kSkyStage, [&](const Device& device) {
    const auto begin = StepClock::now();
    advance(-std::exchange(cast, 0));  // a fallback starts it again
    const Stream stream = stream_of(device);
    sky.made = make_sky_tile(device, stream, inputs_.city, plan_, tile, [&](int words) {
      cast += words;
      advance(words);
    });
    sky.device = device;
    device.synchronize(stream);
    clock.add(device, {{"sky", seconds_from(begin)}});
  });
}

void SeriesTiles::compute(Context& context, const Tile& tile, bool own_stream, const StepSink& sink,
                          const std::function<void(int parts)>& advance, SeriesClock& clock) const {
  const StepLayout step_layout = layout(tile);
  Device streaming;
  Stream own;
  const auto stream_of = [&](const Device& device) {
    if (own_stream && !(streaming.valid() && streaming.same_as(device))) {
      streaming = device;
      own = device.stream();
    }
    return own;
  };
  SkyOfTile sky{{}, {tile.row, tile.col, tile.rows, tile.cols, {}, nullptr}, {}, {}};
  find_sky(context, tile, stream_of, advance, clock, sky);

  int counted = 0;
  context.run_stage(kStepStage, [&](const Device& device) {
    advance(-counted);  // a fallback starts the tile again
    counted = 0;
    const Stream stream = stream_of(device);
    RadiationScene scene{&inputs_.city,
                         &walls_,
                         inputs_.land_cover.empty() ? nullptr : &inputs_.land_cover,
                         tile,
                         inputs_.sky ? &sky.given : nullptr,
                         {},
                         {}};
    if (sky.device.valid() && device.same_as(sky.device)) {
      scene.sky_grids = sky.made.grids;
      scene.sky_states = sky.made.states;
    }
    RadiationModel model(device, scene, inputs_.radiation, stream);
    TileRun run(inputs_, device, stream, model, tile, step_layout);
    run.find_sides(outputs_);
    run.allocate_comfort(*comfort_);
    device::PhaseClock phases(device, stream);
    for (const WeatherStep& step : inputs_.warm_up) model.step(step.parts());
    for (size_t k = 0; k < inputs_.steps.size(); ++k) {
      const auto begin = StepClock::now();
      phases.begin();
      const double copied = run.step(k, *comfort_, outputs_, sink, phases);
      ++counted;
      advance(1);
      device::PhaseSeconds taken;
      phases.add_to(taken);
      clock.add(device, taken);
      const std::lock_guard lock(clock.mutex);
      clock.step_seconds.push_back(seconds_from(begin));
      clock.copy_seconds += copied;
    }
  });
}

}  // namespace lockstep::urban
