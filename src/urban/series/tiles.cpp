#include "urban/series/tiles.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/hash.hpp"
#include "device/capabilities.hpp"
#include "device/pool.hpp"
#include "urban/city/scene.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/series/tile_fields.hpp"
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

void SeriesClock::add(const Device& device, const device::PhaseSeconds& seconds) {
  const std::lock_guard lock(mutex);
  for (const auto& [phase, s] : seconds) {
    stages[phase] += s;
    if (!capabilities_of(device).host_memory) gpu_stages[phase] += s;
  }
}

/// Inputs of comfort at each step.
struct ComfortSteps {
  std::vector<double> wind_10m, wind_1m1;
  bool utci_wanted = false, pet_wanted = false;
  std::vector<UtciStep> utci;  // empty if not requested, and if the wind differs from pixel to pixel
  std::vector<PetStep> pet;
};

namespace {

std::shared_ptr<const ComfortSteps> comfort_of(const SeriesInputs& inputs,
                                               const std::vector<WeatherStep>& steps,
                                               const std::vector<SeriesOutput>& outputs) {
  const auto wanted = [&](SeriesOutput o) {
    return std::find(outputs.begin(), outputs.end(), o) != outputs.end();
  };
  auto comfort = std::make_shared<ComfortSteps>();
  ComfortWind wind = comfort_wind(inputs);
  comfort->wind_10m = std::move(wind.utci);
  comfort->wind_1m1 = std::move(wind.pet);
  comfort->utci_wanted = wanted(SeriesOutput::utci);
  comfort->pet_wanted = wanted(SeriesOutput::pet);
  if (!inputs.wind_field.empty()) return comfort;
  if (comfort->utci_wanted)
    for (size_t k = 0; k < steps.size(); ++k) {
      const StepForcing& f = steps[k].forcing;
      comfort->utci.emplace_back(f.air_c, f.humidity_percent, comfort->wind_10m[k]);
    }
  if (comfort->pet_wanted) {
    std::vector<std::optional<PetStep>> tables(steps.size());
    tbb::parallel_for(size_t{0}, tables.size(), [&](size_t k) {
      const StepForcing& f = steps[k].forcing;
      tables[k].emplace(f.air_c, f.humidity_percent, comfort->wind_1m1[k], inputs.parameters.person);
    });
    for (auto& table : tables) comfort->pet.push_back(std::move(*table));
  }
  return comfort;
}

}  // namespace

SeriesTiles::SeriesTiles(const SeriesInputs& inputs, const Walls& walls, std::vector<SeriesOutput> outputs)
    : inputs_(inputs),
      walls_(walls),
      outputs_(std::move(outputs)),
      plan_(plan_sky(inputs.city, inputs.radiation.view)),
      planner_(inputs.city, inputs.radiation, !inputs.land_cover.empty()) {
  const bool sides = !inputs.points.empty() ||
                     std::ranges::any_of(outputs_, [](SeriesOutput o) { return side_of(o).has_value(); });
  const auto add = [&](int kelvin, const std::vector<WeatherStep>& warm_up,
                       const std::vector<WeatherStep>& steps) {
    airs_.push_back({kelvin, &warm_up, &steps, comfort_of(inputs, steps, outputs_),
                     std::make_shared<StepPlans>(planner_, warm_up, sides),
                     std::make_shared<StepPlans>(planner_, steps, sides)});
  };
  if (inputs.warmer.empty()) add(0, inputs.warm_up, inputs.steps);
  for (const auto& [kelvin, series] : inputs.warmer) add(kelvin, series.warm_up, series.steps);
}

Stream TileStream::on(const Device& device) {
  if (!(device_.valid() && device_.same_as(device))) {
    device_ = device;
    stream_ = device.stream();
  }
  return stream_;
}

std::vector<AirSteps> SeriesTiles::airs_of(const Tile& tile) const {
  if (inputs_.air_field.empty()) return airs_;
  const auto [low, high] = offset_range(inputs_.air_field, tile, inputs_.city.cols, inputs_.weather);
  std::vector<AirSteps> airs;
  for (const AirSteps& air : airs_)
    if (static_cast<float>(air.kelvin) > low - 1 && static_cast<float>(air.kelvin) < high + 1)
      airs.push_back(air);
  return airs;
}

TileJob SeriesTiles::job() const {
  const RadiationOptions& r = inputs_.radiation;
  const RadiationCost cost = radiation_cost(inputs_.city, r);
  TileJob job;
  job.stage = kStepStage;
  job.field_prefix = "step_";
  job.reach = radiation_reach(inputs_.city, r);
  job.reach.include(plan_.reach);
  // With fields also K above the air, results so far, shares of the wind; and the warmth of each air's surfaces.
  const uint64_t field_planes = inputs_.warmer.empty() && inputs_.wind_field.empty()
                                    ? 0
                                    : 6 + outputs_.size() + 5 * inputs_.warmer.size();
  const uint64_t comfort_planes = 2 + field_planes,
                 sky_words = kSkyViewGrids + static_cast<uint64_t>(plan_.words());
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

RunKey SeriesTiles::key() const {
  const RadiationOptions& r = inputs_.radiation;
  RunKey key;
  std::string text;
  const auto add = [&](const char* name) { key.emplace_back(name, std::exchange(text, {})); };
  for (const SeriesOutput o : outputs_) text += fmt::format("{} ", name(o));
  add("outputs");
  text = fmt::format("preset {} sky {} body {} posture {} patches {} reach {} parts {} after {}",
                     name(inputs_.preset), static_cast<int>(r.sky), static_cast<int>(r.body),
                     static_cast<int>(r.posture), patch_count(r.view.patches), r.view.rays.max_reach_m,
                     r.substeps, inputs_.warm_up.size());
  add("the model (preset, sky, body, posture, patches, reach, substeps)");
  text = fmt::format("walls {} {} ground {} cover {}", hash_of(walls_.height.pixels()),
                     hash_of(walls_.aspect.pixels()), hash_of(inputs_.city.dem.as<float>()),
                     hash_of(inputs_.land_cover));
  add("ground, land cover or walls");
  const Constants& c = r.constants;
  text = fmt::format("body {} {} leaves {} {} {} wall {} {} {} {} {}", c.absorption_short, c.absorption_long,
                     c.leaf_on, c.leaf_first_day, c.leaf_last_day, r.wall.albedo, r.wall.emissivity,
                     r.wall.tgk, r.wall.tstart_k, r.wall.tmax_h);
  for (const SurfaceRow& s : r.land_cover)
    text += fmt::format(" {}:{},{},{},{},{}", s.code, s.albedo, s.emissivity, s.tgk, s.tstart_k, s.tmax_h);
  const Person& p = inputs_.parameters.person;
  text +=
      fmt::format(" person {} {} {} {} {} {} wind at {}", p.mass_kg, p.age_years, p.height_m, p.activity_w,
                  p.clothing_clo, static_cast<int>(p.sex), inputs_.parameters.wind_height_m);
  add("parameters or the height of the wind");
  for (const auto* part : {&inputs_.warm_up, &inputs_.steps})
    for (const WeatherStep& s : *part) {
      const StepForcing& f = s.forcing;
      text += fmt::format(" {}:{},{},{},{},{},{},{},{},{},{},{},{},{},{}", s.time, f.sun_altitude_deg,
                          f.sun_azimuth_deg, f.day_fraction, f.air_c, f.humidity_percent, f.wind_m_s,
                          f.global_w_m2, f.beam_w_m2, f.diffuse_w_m2, f.clearness, f.ldown_w_m2,
                          f.canopy_transmissivity, f.pressure_kpa, f.water_c);
    }
  add("weather, period, place or leaves");
  if (inputs_.sky) {
    text = "sky given";
    for (const Raster& grid : inputs_.sky->grids) text += " " + hash_of(grid.pixels());
    text += " " + hash_of(inputs_.sky->states);
  }
  add("sky view factors");
  for (const SeriesPoint& point : inputs_.points) text += fmt::format(" {},{}", point.row, point.col);
  add("points");
  const WindField& wind = inputs_.wind_field;
  text = fmt::format("shares of wind at {} of {}", wind.height_m, wind.reference_height_m);
  for (size_t k = 0; k < wind.factors.size(); ++k)
    text += fmt::format(" {}:{}", wind.directions_deg.empty() ? 0.0 : wind.directions_deg[k],
                        hash_of(wind.factors[k]));
  for (const io::WeatherRow& row : inputs_.weather.rows)
    if (wind.factors.size() > 1) text += fmt::format(" {}", row[io::Weather::wind_direction]);
  const AirField& air = inputs_.air_field;
  text += air.absolute ? " air" : " air above";
  for (const io::CivilMinutes time : air.times) text += fmt::format(" {}", time);
  for (const FieldPlane& plane : air.planes) text += " " + hash_of(plane);
  add("fields of wind or air");
  return key;
}

std::string SeriesTiles::key_text() const {
  std::string all;
  for (const auto& [name, text] : key()) all += text + " ";
  return all;
}

namespace {

/// One run of the stage over one tile, on one device.
class TileRun {
 public:
  TileRun(const SeriesInputs& inputs, const std::vector<SeriesOutput>& outputs, std::vector<AirSteps> airs,
          const Device& device, const Stream& stream, RadiationModel& model, const Tile& tile,
          const StepLayout& layout)
      : inputs_(inputs),
        outputs_(outputs),
        airs_(std::move(airs)),
        device_(device),
        stream_(stream),
        model_(model),
        tile_(tile),
        layout_(layout),
        fields_(device, stream, inputs, tile) {
    row_.resize(static_cast<size_t>(tile.cols));
    if (airs_.front().comfort->utci_wanted) utci_ = plane();
    if (airs_.front().comfort->pet_wanted) pet_ = plane();
    if (airs_.size() > 1)
      for (size_t o = 0; o < outputs_.size(); ++o) {
        mixed_.push_back(plane());
        device_.clear(mixed_.back(), stream_);
      }
    find_sides();
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

  void warm_up() {
    for (size_t n = 0; n < airs_.size(); ++n) {
      model_.use_history(n);
      const AirSteps& air = airs_[n];
      for (size_t k = 0; k < air.warm_up->size(); ++k)
        model_.step((*air.warm_up)[k].parts(), *air.warm_up_plans->of(k), nullptr);
    }
  }

  /// The warmth of surfaces, of all airs.
  std::vector<std::byte> save() {
    std::vector<std::byte> all;
    for (size_t n = 0; n < airs_.size(); ++n) {
      model_.use_history(n);
      const std::vector<std::byte> state = model_.save();
      all.reserve(airs_.size() * state.size());
      all.insert(all.end(), state.begin(), state.end());
    }
    return all;
  }
  void restore(const std::vector<std::byte>& all) {
    const size_t each = all.size() / airs_.size();
    for (size_t n = 0; n < airs_.size(); ++n) {
      model_.use_history(n);
      const auto begin = all.begin() + static_cast<ptrdiff_t>(n * each);
      model_.restore({begin, begin + static_cast<ptrdiff_t>(each)});
    }
  }

  /// Computes a step and hands its outputs to the sink. Returns the seconds of the copies.
  double step(size_t k, const StepSink& sink, device::PhaseClock* phases) {
    fields_.take_step(k);
    std::vector<std::vector<float>> at_points;
    for (size_t n = 0; n < airs_.size(); ++n) {
      model_.use_history(n);
      model_.step((*airs_[n].steps)[k].parts(), *airs_[n].plans->of(k), phases);
      find_comfort(airs_[n], k);
      if (phases && (utci_ || pet_)) phases->mark("comfort");
      for (size_t o = 0; o < mixed_.size(); ++o)
        between_airs(device_, stream_, airs_[n].kelvin, fields_.offset(), plane_of(outputs_[o]), mixed_[o]);
      at_points.emplace_back(layout_.points().size() * kPointValues);
      read_points(at_points.back().data(), airs_[n], k);
    }
    const StepMemory step = sink.begin(k);
    const auto copying = StepClock::now();
    for (size_t o = 0; o < outputs_.size(); ++o)
      read_plane(mixed_.empty() ? plane_of(outputs_[o]) : mixed_[o], step.planes[o]);
    mix_points(at_points, step.points);
    const double copied = seconds_from(copying);
    sink.end(k);
    return copied;
  }

 private:
  Buffer plane() const { return allocate_core<f32>(device_, 1, tile_).reshape({tile_.rows, tile_.cols}); }

  /// Sides are found everywhere where they are outputs, else at the points alone.
  void find_sides() {
    all_sides_ = std::any_of(outputs_.begin(), outputs_.end(), [](SeriesOutput o) { return side_of(o); });
    if (all_sides_) return model_.find_all_sides();
    std::vector<std::array<int64_t, 2>> pixels;
    for (const size_t number : layout_.points())
      pixels.push_back({inputs_.points[number].row - tile_.row, inputs_.points[number].col - tile_.col});
    model_.find_sides(pixels);
    sides_.resize(pixels.size() * kSideValues);
  }

  Buffer plane_of(SeriesOutput output) const {
    if (const auto plane = radiation_output(output)) return model_.output(*plane);
    if (const auto side = side_of(output)) return plane_of_side(*side);
    return output == SeriesOutput::utci ? utci_ : pet_;
  }

  void find_comfort(const AirSteps& air, size_t k) {
    const ComfortSteps& comfort = *air.comfort;
    const StepForcing& f = (*air.steps)[k].forcing;
    const Buffer tmrt = model_.output(RadiationOutput::tmrt);
    const WindField& field = inputs_.wind_field;
    if (field.empty()) {
      if (utci_) utci_grid(device_, stream_, comfort.utci[k], tmrt, utci_);
      if (pet_) pet_grid(device_, stream_, comfort.pet[k], tmrt, pet_);
      return;
    }
    const auto wind = [&](double factor) { return field_wind(inputs_, f.wind_m_s, factor); };
    if (utci_) {
      const auto rows =
          utci_rows(f.air_c, f.humidity_percent, field.most, [&](double x) { return wind(x).utci; });
      utci_grid(device_, stream_, f.air_c, upload_on(device_, stream_, rows), fields_.wind(), tmrt, utci_);
    }
    if (pet_) {
      const PetRows rows = pet_rows(f.air_c, f.humidity_percent, field.most, inputs_.parameters.person,
                                    [&](double x) { return wind(x).pet; });
      pet_grid(device_, stream_, rows.first_c, upload_on(device_, stream_, rows.values).reshape(rows.shape()),
               fields_.wind(), tmrt, pet_);
    }
  }

  /// Values at the points between those of the airs around theirs.
  void mix_points(const std::vector<std::vector<float>>& airs, float* points) const {
    for (size_t k = 0; k < layout_.points().size(); ++k) {
      const float offset = fields_.offset_at(inputs_.points[layout_.points()[k]]), below = std::floor(offset),
                  above = offset - below;
      const size_t n =
          airs_.size() == 1 ? 0 : static_cast<size_t>(static_cast<int>(below) - airs_.front().kelvin);
      for (size_t v = k * kPointValues; v < (k + 1) * kPointValues; ++v)
        points[v] = above == 0 || airs_.size() == 1
                        ? airs[n][v]
                        : std::fma(above, airs[n + 1][v] - airs[n][v], airs[n][v]);
    }
  }

  void read_points(float* points, const AirSteps& air, size_t step) {
    const StepForcing& f = (*air.steps)[step].forcing;
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
      FieldWind wind{air.comfort->wind_10m[step], air.comfort->wind_1m1[step]};
      double measured = f.wind_m_s;
      if (!inputs_.wind_field.empty()) {
        const double factor = fields_.factor_at(inputs_.points[number]);
        wind = field_wind(inputs_, f.wind_m_s, factor);
        measured = factor * inputs_.wind_field.reference(f.wind_m_s, inputs_.parameters.wind_height_m);
      }
      set(PointValue::air, f.air_c);
      set(PointValue::wind, measured);
      set(PointValue::utci, utci(f.air_c, f.humidity_percent, wind.utci, tmrt));
      set(PointValue::pet, pet(f.air_c, f.humidity_percent, tmrt, wind.pet, inputs_.parameters.person));
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
  const std::vector<SeriesOutput>& outputs_;
  const std::vector<AirSteps> airs_;
  const Device& device_;
  const Stream& stream_;
  RadiationModel& model_;
  const Tile& tile_;
  const StepLayout& layout_;
  TileFields fields_;
  std::vector<float> row_, sides_;
  Buffer utci_, pet_;
  std::vector<Buffer> mixed_;  // outputs between those of the airs; none with one air
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

void SeriesTiles::find_sky(Context& context, const Tile& tile, TileStream* own,
                           const std::function<void(int parts)>& advance, SeriesClock* clock,
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
    const Stream stream = own ? own->on(device) : Stream();
    const device::OneStreamMemory memory(device, stream);
    sky.made = make_sky_tile(device, stream, inputs_.city, plan_, tile, [&](int words) {
      cast += words;
      advance(words);
    });
    sky.device = device;
    device.synchronize(stream);
    if (clock) clock->add(device, {{"sky", seconds_from(begin)}});
  });
}

void SeriesTiles::compute(Context& context, const Tile& tile, TileStream* own, const StepSink& sink,
                          const std::function<void(int parts)>& advance, SeriesClock* clock) const {
  const StepLayout step_layout = layout(tile);
  SkyOfTile sky{{}, {tile.row, tile.col, tile.rows, tile.cols, {}, nullptr}, {}, {}};
  find_sky(context, tile, own, advance, clock, sky);

  const std::vector<AirSteps> airs = airs_of(tile);
  int counted = 0;
  bool begun = false;
  context.run_stage(kStepStage, [&](const Device& device) {
    advance(-std::exchange(counted, 0));  // a fallback starts the tile again
    const bool first_time = !std::exchange(begun, true);
    const Stream stream = own ? own->on(device) : Stream();
    const device::OneStreamMemory memory(device, stream);
    RadiationScene scene{&inputs_.city,
                         &walls_,
                         inputs_.land_cover.empty() ? nullptr : &inputs_.land_cover,
                         tile,
                         inputs_.sky ? &sky.given : nullptr,
                         {},
                         {},
                         &planner_};
    if (sky.device.valid() && device.same_as(sky.device)) {
      scene.sky_grids = sky.made.grids;
      scene.sky_states = sky.made.states;
    }
    RadiationModel model(device, scene, inputs_.radiation, stream);
    TileRun run(inputs_, outputs_, airs, device, stream, model, tile, step_layout);
    device::PhaseClock phases(device, stream);
    const auto done = [&](size_t steps) {
      counted += static_cast<int>(steps);
      advance(static_cast<int>(steps));
    };
    for (size_t k = 0; k < inputs_.steps.size(); ++k) {
      if (std::vector<std::byte> state; sink.take_over) {
        const size_t next = sink.take_over(k, state);
        if (next > k) {
          run.restore(state);
          done(next - k);
          k = next;
          if (k == inputs_.steps.size()) break;
        }
      }
      if (k == 0) run.warm_up();
      const auto begin = StepClock::now();
      if (clock) phases.begin();
      const double copied = run.step(k, sink, clock ? &phases : nullptr);
      if (first_time && sink.keeps && sink.keeps(k)) sink.keep(k, run.save());
      done(1);
      if (!clock) continue;
      device::PhaseSeconds taken;
      phases.add_to(taken);
      clock->add(device, taken);
      const std::lock_guard lock(clock->mutex);
      clock->step_seconds.push_back(seconds_from(begin));
      clock->copy_seconds += copied;
    }
  });
}

}  // namespace lockstep::urban
