// Radiation of a tile on the device against the plain model, closed forms and itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/model.hpp"
#include "urban/radiation/step/reference_step.hpp"
#include "urban/radiation/step/step_plans.hpp"
#include "urban/radiation/walled_city.hpp"

namespace lockstep::urban {
namespace {

using Planes = std::vector<std::vector<float>>;
constexpr auto kTmrt = static_cast<size_t>(RadiationOutput::tmrt);

StepForcing hour(int h) {
  StepForcing f;
  f.day_fraction = (h - 0.5) / 24;
  f.sun_altitude_deg = 50 * std::sin((f.day_fraction * 24 - 6) / 12 * std::numbers::pi);
  f.sun_azimuth_deg = 15 * (h - 0.5);
  f.day_max_altitude_deg = 50;
  f.sunrise_h = 5.5;
  f.day_of_year = 150;
  f.air_c = 18 + 6 * std::sin((h - 9) / 12.0 * std::numbers::pi);
  const double sine = std::max(0.0, std::sin(f.sun_altitude_deg * std::numbers::pi / 180));
  f.beam_w_m2 = sine > 0 ? 700 : 0;
  f.diffuse_w_m2 = 150 * sine;
  f.global_w_m2 = f.beam_w_m2 * sine + f.diffuse_w_m2;
  f.clear_beam_w_m2 = 850;
  f.clear_diffuse_w_m2 = 100 * sine;
  f.clear_correction = 0.9;
  f.clearness = 0.9;
  f.sky_emissivity = 0.75;
  f.water_c = 19;
  return f;
}

Planes planes_of(const RadiationModel& model) {
  Planes planes;
  for (int k = 0; k < kRadiationOutputs; ++k)
    planes.push_back(cpu().download<f32>(model.output(static_cast<RadiationOutput>(k))));
  return planes;
}

/// East, south, west, north: shortwave, then longwave.
Planes sides_of(const RadiationModel& model) {
  const auto all = cpu().download<f32>(model.sides());
  const int64_t pixels = static_cast<int64_t>(all.size()) / 8;
  Planes planes;
  for (auto at = all.begin(); at != all.end(); at += pixels) planes.emplace_back(at, at + pixels);
  return planes;
}

/// Largest difference over pixels that are not missing.
double apart(const Planes& got, const reference::StepPlanes& expected, const City& city, size_t plane) {
  double worst = 0;
  for (size_t p = 0; p < static_cast<size_t>(city.pixels()); ++p)
    if (city.dsm.as<float>()[p] != kNoHeight) {
      const double difference = std::abs(static_cast<double>(got[plane][p]) - expected[plane][p]);
      worst = std::max(worst, std::isnan(difference) ? 1e30 : difference);
    }
  return worst;
}

void follows_reference(const WalledCity& site, const RadiationOptions& options, const std::string& what) {
  RadiationModel model(cpu(), site.scene(), options);
  model.find_all_sides();
  reference::StepState state;
  for (int h : {4, 7, 8, 12, 17, 22, 8}) {
    const StepForcing f = hour(h);
    model.step(f);
    const auto grids = reference::step_grids(site.city, site.walls, site.codes, options, f);
    const auto expected = reference::step(grids, f, options, state);
    Planes got = planes_of(model);
    for (const auto& side : sides_of(model)) got.push_back(side);
    for (size_t k = kRadiationOutputs; k < got.size(); ++k)
      EXPECT_LE(apart(got, expected, site.city, k), 2e-3) << what << " hour " << h << " plane " << k;
    for (int k = 0; k < kRadiationOutputs; ++k) {
      const auto output = static_cast<RadiationOutput>(k);
      const double bound = unit(output) == "1" ? 2e-6 : unit(output) == "degC" ? 2e-4 : 2e-3;
      EXPECT_LE(apart(got, expected, site.city, static_cast<size_t>(k)), bound)
          << what << " hour " << h << " " << name(output);
    }
  }
}

TEST(RadiationModel, FollowsTheReferenceThroughADay) {
  for (Preset preset : {Preset::umep, Preset::solweig, Preset::corrected}) {
    WalledCity site(random_city(33, 30, 5, {preset != Preset::solweig, 1.0, 0.01}));
    RadiationOptions options;
    options.constants = constants_of(preset);
    if (preset == Preset::umep) options.sky = SkyModel::isotropic;
    if (preset == Preset::umep) options.body = Body::box;
    if (preset == Preset::corrected) site.cover();
    if (preset == Preset::corrected) options.posture = Posture::sitting;
    options.view.patches = SkyPatches::p145;
    follows_reference(site, options, std::string(name(preset)));
  }
}

TEST(RadiationModel, PixelsOfEverySizeAndMeasuredSky) {
  for (double px : {0.5, 2.0, 2.5}) {
    const WalledCity site(random_city(24, 26, 7, {true, px, 0.0}));
    RadiationOptions options;
    options.view.patches = SkyPatches::p145;
    RadiationModel model(cpu(), site.scene(), options);
    reference::StepState state;
    StepForcing f = hour(10);
    f.ldown_w_m2 = 340;
    model.step(f);
    const auto expected = reference::step(
        reference::step_grids(site.city, site.walls, site.codes, options, f), f, options, state);
    EXPECT_LE(apart(planes_of(model), expected, site.city, kTmrt), 2e-4) << px;
  }
}

CityInput flat(int64_t side, float height = 3) {
  CityInput city;
  city.dsm = Raster(side, side, height);
  city.dem = Raster(side, side, height);
  return city;
}

TEST(RadiationModel, IsothermalEnclosureHasTheAirsTemperature) {
  // Night under a sky as warm as the air, black surfaces: the body sees one temperature everywhere.
  WalledCity site(random_city(20, 20, 3, {true, 1.0, 0.0}));
  RadiationOptions options;
  options.bare.emissivity = options.wall.emissivity = 1;
  StepForcing f = hour(2);
  f.sky_emissivity = f.clearness = 1;
  for (SkyPatches patches : {SkyPatches::p153, SkyPatches::p609}) {
    options.view.patches = patches;
    RadiationModel model(cpu(), site.scene(), options);
    model.step(f);
    // The patches' solid angles close to 1.005478 π downwards (1.001387 π of 609), and to π² / 2 sideways.
    const Planes planes = planes_of(model);
    for (float t : planes[kTmrt]) EXPECT_NEAR(t, f.air_c, 0.25) << patch_count(patches);
  }
}

TEST(RadiationModel, OpenGroundUnderTheWholeSky) {
  const WalledCity site(flat(25));
  RadiationOptions options;
  RadiationModel model(cpu(), site.scene(), options);
  const StepForcing f = hour(12);
  model.step(f);
  const Planes planes = planes_of(model);
  const size_t middle = 12 * 25 + 12;
  const StepScalars s = step_scalars(f, options);
  const double global = f.beam_w_m2 * s.sin_altitude + f.diffuse_w_m2;
  const auto value = [&](RadiationOutput o) { return planes[static_cast<size_t>(o)][middle]; };
  EXPECT_NEAR(value(RadiationOutput::kdown), global, 1e-3);
  EXPECT_NEAR(value(RadiationOutput::kup), options.bare.albedo * global, 1e-3);
  EXPECT_NEAR(value(RadiationOutput::gvf), 1, 1e-6);
  EXPECT_EQ(value(RadiationOutput::shadow), 1);
  const double ground = ground_excess(f, options, false)[0] + s.air_k;
  double down = 0;
  for (const PatchStep& p : patch_steps(step_sky(options), f, s, options)) down += p.longwave * p.down;
  EXPECT_NEAR(value(RadiationOutput::ldown), down, 2e-3);
  EXPECT_NEAR(value(RadiationOutput::lup), options.constants.sigma * 0.95 * std::pow(ground, 4) + 0.05 * down,
              2e-3);
  EXPECT_GT(value(RadiationOutput::tmrt), f.air_c + 15);
}

TEST(RadiationModel, SidesOfABoxAddUpToWhatItReceives) {
  const WalledCity site(random_city(21, 24, 13, {true, 1.0, 0.0}));
  for (SkyModel sky : {SkyModel::isotropic, SkyModel::anisotropic}) {
    RadiationOptions options;
    options.sky = sky;
    options.body = Body::box;
    options.view.patches = SkyPatches::p145;
    RadiationModel everywhere(cpu(), site.scene(), options), places(cpu(), site.scene(), options);
    everywhere.find_all_sides();
    const std::vector<std::array<int64_t, 2>> pixels = {{3, 5}, {20, 23}, {0, 0}};
    places.find_sides(pixels);
    for (int h : {8, 9, 16, 22}) {
      everywhere.step(hour(h));
      places.step(hour(h));
      const Planes body = planes_of(everywhere), sides = sides_of(everywhere), few = sides_of(places);
      EXPECT_EQ(planes_of(places), body);
      for (size_t p = 0; p < static_cast<size_t>(site.city.pixels()); ++p)
        for (size_t kind : {0u, 4u}) {
          const float sum = sides[kind][p] + sides[kind + 1][p] + sides[kind + 2][p] + sides[kind + 3][p];
          const auto mean = kind == 0 ? RadiationOutput::kside : RadiationOutput::lside;
          EXPECT_NEAR(sum / 4, body[static_cast<size_t>(mean)][p], 1e-3) << "hour " << h << " pixel " << p;
        }
      for (size_t side = 0; side < 8; ++side)
        for (size_t k = 0; k < pixels.size(); ++k)
          EXPECT_EQ(few[side][k], sides[side][static_cast<size_t>(pixels[k][0] * 24 + pixels[k][1])]);
    }
  }
}

TEST(RadiationModel, VerticalPlanesOnOpenGround) {
  // An even sky gives a vertical plane half of what it gives the ground, the beam its cosine, the ground half of
  // what it sends up. Patches' solid angles close to half a percent.
  const WalledCity site(flat(9));
  RadiationOptions options;
  options.bare.emissivity = 1;
  StepForcing f = hour(9);
  f.sun_altitude_deg = 2.5;  // below 3 degrees the sky is even
  f.sun_azimuth_deg = 120;
  f.beam_w_m2 = 200;
  f.diffuse_w_m2 = 40;
  f.global_w_m2 = 0;  // the ground is as warm as the air
  f.sky_emissivity = f.clearness = f.clear_correction = 1;
  RadiationModel model(cpu(), site.scene(), options);
  model.find_sides({{4, 4}});
  model.step(f);
  const Planes sides = sides_of(model);
  const double degree = std::numbers::pi / 180, air = step_scalars(f, options).sigma_t4;
  const double kup = planes_of(model)[static_cast<size_t>(RadiationOutput::kup)][40];
  for (size_t side = 0; side < 4; ++side) {
    const double facing = std::cos((120 - 90.0 - 90.0 * static_cast<double>(side)) * degree);
    const double beam = 200 * std::cos(2.5 * degree) * std::max(0.0, facing);
    EXPECT_NEAR(sides[side][0], beam + 0.5 * (40 + kup), 0.3) << side;
    EXPECT_NEAR(sides[4 + side][0], air, 0.01 * air) << side;
  }
}

TEST(RadiationModel, NothingIsNegativeAndNightIsDark) {
  for (SkyModel sky : {SkyModel::isotropic, SkyModel::anisotropic}) {
    const WalledCity site(random_city(30, 28, 11, {true, 1.0, 0.05}));
    RadiationOptions options;
    options.sky = sky;
    RadiationModel model(cpu(), site.scene(), options);
    for (int h : {7, 13, 23}) {
      model.step(hour(h));
      const Planes planes = planes_of(model);
      for (size_t p = 0; p < static_cast<size_t>(site.city.pixels()); ++p) {
        if (site.city.dsm.as<float>()[p] == kNoHeight) continue;
        for (int k = 1; k < kRadiationOutputs; ++k) {
          EXPECT_GE(planes[static_cast<size_t>(k)][p], 0) << name(static_cast<RadiationOutput>(k));
          const bool dark = h == 23 && (k <= 3 || k >= 7);
          EXPECT_LE(planes[static_cast<size_t>(k)][p], dark ? 0.0f : 2000.0f);
        }
        EXPECT_GT(planes[kTmrt][p], -20);
        EXPECT_LT(planes[kTmrt][p], 90);
      }
    }
  }
}

TEST(RadiationModel, OnePixel) {
  const WalledCity site(flat(1));
  RadiationModel model(cpu(), site.scene(), {});
  model.step(hour(12));
  EXPECT_TRUE(std::isfinite(planes_of(model)[kTmrt][0]));
}

TEST(RadiationModel, TilesGiveTheBitsOfTheWhole) {
  const WalledCity site(random_city(70, 61, 9, {true, 1.0, 0.01}));
  RadiationOptions options;
  options.view.patches = SkyPatches::p145;
  options.view.rays.max_reach_m = 12;
  RadiationModel whole(cpu(), site.scene(), options);
  std::vector<RadiationModel> parts;
  const auto tiles = make_tiles(site.city.rows, site.city.cols, 16, radiation_reach(site.city, options));
  ASSERT_LT(tiles[0].window_rows, site.city.rows);
  for (const Tile& tile : tiles) parts.emplace_back(cpu(), site.scene(tile), options);
  for (int h : {9, 10, 16}) {
    whole.step(hour(h));
    const Planes expected = planes_of(whole);
    for (size_t t = 0; t < tiles.size(); ++t) {
      parts[t].step(hour(h));
      const Planes got = planes_of(parts[t]);
      int64_t differing = 0;
      for (size_t k = 0; k < got.size(); ++k)
        for (int64_t r = 0; r < tiles[t].rows; ++r)
          for (int64_t c = 0; c < tiles[t].cols; ++c)
            differing +=
                got[k][static_cast<size_t>(r * tiles[t].cols + c)] !=
                expected[k][static_cast<size_t>((tiles[t].row + r) * site.city.cols + tiles[t].col + c)];
      EXPECT_EQ(differing, 0) << "tile " << t << " hour " << h;
    }
  }
}

// Two series of air in turn: the delay belongs to the history, not to the plan.
TEST(RadiationModel, PlansMadeBeforeGiveTheSameBits) {
  WalledCity site(random_city(26, 31, 4, {true, 1.0, 0.02}));
  site.cover();
  RadiationOptions options;
  options.substeps = 2;
  const StepPlanner planner(site.city, options, true);
  RadiationModel plain(cpu(), site.scene(), options), planned(cpu(), site.scene(), options);
  plain.find_all_sides();
  planned.find_all_sides();
  for (const int h : {4, 7, 8, 12, 17, 22, 8})
    for (const size_t history : {0, 1}) {
      std::vector<StepForcing> parts{hour(h), hour(h)};
      parts[1].sun_azimuth_deg += 7;
      for (StepForcing& part : parts) part.air_c += static_cast<double>(history);
      plain.use_history(history);
      planned.use_history(history);
      plain.step(parts);
      planned.step(parts, std::vector<StepPlan>{planner.plan(parts[0], true), planner.plan(parts[1], true)},
                   nullptr);
      EXPECT_EQ(planes_of(plain), planes_of(planned)) << h;
      EXPECT_EQ(sides_of(plain), sides_of(planned)) << h;
    }
}

TEST(RadiationModel, GivenSkyAndRestoredStateGiveTheSameBits) {
  const WalledCity site(random_city(26, 31, 4, {true, 1.0, 0.02}));
  const RadiationOptions options;
  RadiationModel model(cpu(), site.scene(), options);
  model.step(hour(8));
  model.step(hour(9));
  const auto saved = model.save();
  model.step(hour(10));
  const Planes expected = planes_of(model);

  const SkyDivision sky = sky_division(SkyPatches::p153, AnnulusEdges::umep);
  const PackedSky states = reference::sky_states<float>(site.city, sky, {});
  const auto grids = reference::sky_view<float>(site.city, sky, states);
  SkyTile given{0, 0, 26, 31, {}, states.words.data()};
  for (size_t k = 0; k < grids.size(); ++k) given.grids[k] = grids[k].data();
  RadiationScene scene = site.scene();
  scene.sky = &given;
  RadiationModel again(cpu(), scene, options);
  again.restore(saved);
  again.step(hour(10));
  const Planes got = planes_of(again);
  int64_t differing = 0;
  for (size_t k = 0; k < got.size(); ++k)
    for (size_t p = 0; p < got[k].size(); ++p)
      differing += site.city.dsm.as<float>()[p] != kNoHeight && got[k][p] != expected[k][p];
  EXPECT_EQ(differing, 0);

  RadiationModel other(cpu(), WalledCity(flat(3)).scene(), {});
  EXPECT_THROW(other.restore(saved), InputError);
}

TEST(RadiationModel, TakesNoMoreMemoryThanForeseen) {
  WalledCity site(random_city(150, 160, 6, {true, 1.0, 0.0}));
  site.cover();
  const RadiationOptions options;
  const Device device = Device::open("cpu,interp");
  RadiationModel model(device, site.scene(), options);
  model.step(hour(12));
  const RadiationCost cost = radiation_cost(site.city, options);
  const PaddedShape window(site.city.rows, site.city.cols);
  const double foreseen = static_cast<double>(cost.window_bytes) * static_cast<double>(window.elements()) +
                          static_cast<double>(cost.core_bytes) * static_cast<double>(site.city.pixels());
  EXPECT_LE(static_cast<double>(device.counters().peak_bytes), foreseen * 1.125 + (1 << 20));
  EXPECT_GE(static_cast<double>(device.counters().peak_bytes), foreseen * 0.5);
}

TEST(RadiationModel, RefusesWhatDoesNotFit) {
  WalledCity site(flat(4));
  RadiationScene scene = site.scene();
  scene.walls = nullptr;
  EXPECT_THROW(RadiationModel(cpu(), scene, {}), InputError);
  site.codes.assign(16, 3);  // no such class
  EXPECT_THROW(RadiationModel(cpu(), site.scene(), {}), InputError);
  site.codes.assign(15, 1);
  EXPECT_THROW(RadiationModel(cpu(), site.scene(), {}), InputError);
  site.codes.clear();
  site.city.dem = {};
  EXPECT_THROW(RadiationModel(cpu(), site.scene(), {}), InputError);
}

}  // namespace
}  // namespace lockstep::urban
