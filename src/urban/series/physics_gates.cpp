#include "urban/series/physics_gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "urban/angles.hpp"
#include "urban/city/random_city.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/step/scalars.hpp"
#include "urban/series/whole_series.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {
namespace {

constexpr SkyPatches kSkies[] = {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305, SkyPatches::p609};

Gate gate(const std::string& name, double value, double limit, const char* unit, const std::string& note) {
  return {name, value, limit, value <= limit, unit, note, {}};
}

struct Place {
  City city;
  Walls walls;

  Place(Context& context, const CityInput& input) : city(prepare_city(input)) {
    if (city.dem.empty()) city.dem = Raster(city.rows, city.cols, city.lowest).values;
    walls = compute_walls(context, input, {.minimum_height_m = 1.0});
  }
  RadiationModel model(const Device& device, const RadiationOptions& options) const {
    RadiationScene scene;
    scene.city = &city;
    scene.walls = &walls;
    scene.tile = whole_tile(city);
    return {device, scene, options};
  }
};

RadiationOptions options_of(SkyPatches patches, SkyModel sky = SkyModel::anisotropic) {
  RadiationOptions options;
  options.sky = sky;
  options.view.patches = patches;
  return options;
}

/// Noon under a sun in the west, with an even sky of `diffuse`.
StepForcing noon(double beam, double diffuse) {
  StepForcing f;
  f.sun_altitude_deg = 40;
  f.sun_azimuth_deg = 250;
  f.day_max_altitude_deg = 50;
  f.day_fraction = 0.5;
  f.beam_w_m2 = beam;
  f.diffuse_w_m2 = diffuse;
  f.global_w_m2 = diffuse + beam * std::sin(40 * kRadian);
  f.clear_beam_w_m2 = 800;
  f.clear_diffuse_w_m2 = 90;
  f.clear_correction = 1;
  return f;
}

std::vector<float> plane(const Device& device, const RadiationModel& model, RadiationOutput output) {
  return device.download<f32>(model.output(output));
}

/// Night under a sky as warm as the air: the body sees one temperature, for any surface emission and reflection.
double enclosure_error(Context& context) {
  const Device& device = context.device();
  const Place place(context, random_city(20, 20, 3, {true, 1.0, 0.0}));
  double worst = 0;
  for (const SkyPatches patches : kSkies)
    for (int kind = 0; kind < 16; ++kind) {
      RadiationOptions options = options_of(patches, kind & 1 ? SkyModel::isotropic : SkyModel::anisotropic);
      options.body = kind & 2 ? Body::box : Body::cylinder;
      options.posture = kind & 4 ? Posture::sitting : Posture::standing;
      if (!(kind & 8)) options.bare.emissivity = options.wall.emissivity = 1;
      StepForcing f;
      f.sun_altitude_deg = -10;
      f.sky_emissivity = f.clearness = 1;
      RadiationModel model = place.model(device, options);
      model.step(f);
      for (const float t : plane(device, model, RadiationOutput::tmrt))
        worst = std::max(worst, std::abs(static_cast<double>(t) - f.air_c));
    }
  return worst;
}

/// East over west on vertical planes in the middle of a canyon that runs north.
double canyon_asymmetry(Context& context) {
  CityInput input;
  input.dsm = Raster(121, 41, 0.0f);
  for (int r = 0; r < 121; ++r)
    for (int c = 0; c < 41; ++c)
      if (c < 8 || c > 32) input.dsm.at(r, c) = 15;
  const Place place(context, input);
  RadiationModel model = place.model(context.device(), options_of(SkyPatches::p145));
  model.find_all_sides();
  model.step(noon(0, 9.5));
  const auto sides = context.device().download<f32>(model.sides());
  const size_t pixels = sides.size() / 8, middle = pixels / 2;
  return std::abs(static_cast<double>(sides[middle]) / static_cast<double>(sides[2 * pixels + middle]) - 1);
}

double longwave_error(Context& context) {
  CityInput input;
  input.dsm = Raster(9, 9, 3.0f);
  const Place place(context, input);
  double worst = 0;
  for (const SkyPatches patches : kSkies)
    for (const SkyModel sky : {SkyModel::anisotropic, SkyModel::isotropic}) {
      StepForcing f = noon(500, 100);
      f.ldown_w_m2 = 350;
      RadiationModel model = place.model(context.device(), options_of(patches, sky));
      model.step(f);
      const double found = plane(context.device(), model, RadiationOutput::ldown)[40];
      worst = std::max(worst, std::abs(found / 350 - 1));
    }
  return worst;
}

/// Largest share of what falls on a wall that it reflects, over its albedo.
double reflected_share() {
  double worst = 0;
  for (const double beam : {0.0, 400.0, 900.0}) {
    const StepForcing f = noon(beam, 150);
    const StepScalars s = step_scalars(f, {});
    const double received = beam * std::cos(40 * kRadian) + 150 / 2.0;
    worst = std::max(worst, s.wall_lit_shortwave * kPi / received / s.wall_albedo);
  }
  return worst;
}

/// Seen from the centres of round basins whose rims are between two bands of every sky.
double basin_error(Context& context) {
  double worst = 0;
  for (const SkyPatches patches : kSkies)
    for (const double rim : {12.0, 36.0, 60.0}) {
      CityInput input;
      input.dsm = Raster(71, 71, 0.0f);
      for (int r = 0; r < 71; ++r)
        for (int c = 0; c < 71; ++c)
          if (std::hypot(r - 35, c - 35) >= 30)
            input.dsm.at(r, c) = static_cast<float>(30 * std::tan(rim * kRadian));
      SkyOptions options;
      options.patches = patches;
      const SkyViewFactors sky = compute_sky_view_factors(context, input, options, {}, nullptr);
      const double theory = std::pow(std::cos(rim * kRadian), 2);
      worst = std::max(worst, std::abs(static_cast<double>(sky["svf"].at(35, 35)) - theory));
    }
  return worst;
}

int64_t differing(std::span<const float> a, std::span<const float> b) {
  int64_t count = 0;
  for (size_t k = 0; k < a.size(); ++k) count += std::memcmp(&a[k], &b[k], sizeof(float)) != 0;
  return count;
}

/// Ground that ends at the raster's edge against the same ground in a larger raster whose rest is missing.
int64_t hole_against_edge(Context& context) {
  constexpr int64_t side = 31, rim = 10, wide = side + 2 * rim;
  CityInput small, large;
  small.dsm = Raster(side, side, 0.0f);
  large.dsm = Raster(wide, wide, std::numeric_limits<float>::quiet_NaN());
  for (int64_t r = 0; r < side; ++r)
    for (int64_t c = 0; c < side; ++c)
      small.dsm.at(r, c) = large.dsm.at(r + rim, c + rim) = r > 12 && r < 18 && c > 5 && c < 10 ? 9.0f : 0.0f;
  std::vector<float> found[2];
  for (const CityInput* input : {&small, &large}) {
    RadiationModel model = Place(context, *input).model(context.device(), options_of(SkyPatches::p153));
    model.step(noon(700, 120));
    const std::vector<float> all = plane(context.device(), model, RadiationOutput::tmrt);
    const bool within = input == &large;
    for (int64_t r = 0; r < side; ++r) {
      const auto row = all.begin() + (within ? (r + rim) * wide + rim : r * side);
      found[within].insert(found[within].end(), row, row + side);
    }
  }
  return differing(found[0], found[1]);
}

/// The last hour of a run against the same hour in runs that begin later.
int64_t hours_that_begin_later(Context& context) {
  const ScratchFolder scratch;
  SeriesOptions options = sample_series(
      {}, scratch.path, {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, {48, 48});
  options.patches = SkyPatches::p145;
  options.pictures = options.video = false;
  int64_t count = 0;
  for (const auto& [from, to] : {std::pair{"14:00", "15:00"}, {"23:00", "23:00"}}) {
    std::vector<float> last[2];
    for (const bool later : {false, true}) {
      options.from = later ? fmt::format("2015-06-21T{}", from) : "";
      options.to = fmt::format("2015-06-21T{}", to);
      const SeriesInputs inputs = read_series_inputs(options);
      const Walls walls = walls_of_series(context, inputs, options.walls);
      const auto values = compute_series(context, inputs, walls, {SeriesOutput::tmrt}, {}).values;
      last[later].assign(values.end() - inputs.city.pixels(), values.end());
    }
    count += differing(last[0], last[1]);
  }
  return count;
}

/// Beam over that of a clear sky, of weather that is too bright for a low sun.
double low_beam() {
  double worst = 0;
  const Site site{57.7, 11.97, 0, 1};
  io::WeatherTable t;
  t.where = "gate";
  t.step_min = 10;
  for (int k = 1; k <= 144; ++k) {
    io::WeatherRow row;
    row.time = io::civil_minutes({2015, 6, 21, 0, 0}) + 10 * k;
    row[io::Weather::air_temperature] = 18;
    row[io::Weather::relative_humidity] = 60;
    const double altitude = sun_of_interval(site, row.time, 10).altitude_deg;
    row[io::Weather::global] = altitude > 0 ? 1100 * std::sin(altitude * kRadian) : 0;
    t.rows.push_back(row);
  }
  const WeatherRules rules = weather_rules(Preset::corrected, {});
  for (const WeatherStep& step : make_forcing(t, t, site, 0, rules)) {
    const StepForcing& f = step.forcing;
    if (!f.day()) continue;
    const ClearSky clear = clear_sky(90 - f.sun_altitude_deg, f.day_of_year, f.air_c, f.humidity_percent,
                                     f.pressure_kpa * 10, site.latitude_deg, rules.bands);
    worst = std::max(worst, f.beam_w_m2 / clear.beam);
  }
  return worst;
}

/// Change of the ground's excess within two minutes around midnight where the sun does not set.
double polar_midnight() {
  StepForcing f = noon(300, 60);
  f.sunrise_h = sunrise_hour(172, 75);
  const auto at = [&](double hour) {
    f.day_fraction = hour / 24;
    return ground_excess(f, {}, false)[0];
  };
  return std::abs(at(24 - 1.0 / 60) - at(1.0 / 60));
}

}  // namespace

std::vector<Gate> physics_gates(Context& context) {
  const std::string skies = "145, 153, 305 and 609 patches";
  return {
      gate("enclosure of one temperature", enclosure_error(context), 0.05, "K of Tmrt",
           skies + ", both skies, bodies and postures, emissivities 1 and 0.95, 0.90"),
      gate("canyon, east over west", canyon_asymmetry(context), 1e-3, "share", "overcast, 145 patches"),
      gate("measured Ldown returns", longwave_error(context), 1e-3, "share", skies),
      gate("reflected by walls", reflected_share(), 1 + 1e-12, "of albedo times received", "3 beams"),
      gate("sky view of round basins", basin_error(context), 0.005, "of theory", skies),
      gate("hole = edge", static_cast<double>(hole_against_edge(context)), 0, "differing values", "31 x 31"),
      gate("hours of runs that begin later", static_cast<double>(hours_that_begin_later(context)), 0,
           "differing values", "15:00 from 14:00, 23:00 alone"),
      gate("beam of a low sun", low_beam(), 1 + 1e-12, "of a clear sky's", "a day of 10 minutes"),
      gate("midnight of a polar day", polar_midnight(), 0.1, "K of the ground", "75 degrees north"),
  };
}

}  // namespace lockstep::urban
