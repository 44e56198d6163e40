// Physics that the preset `corrected` obeys regardless of formulas: enclosures of one temperature, symmetry, closure.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/context.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/model.hpp"
#include "urban/radiation/perez.hpp"
#include "urban/radiation/step/scalars.hpp"
#include "urban/radiation/walled_city.hpp"
#include "urban/sky/svf_weights.hpp"
#include "urban/weather/solar.hpp"

namespace lockstep::urban {
namespace {

constexpr double kPi = std::numbers::pi, kDegree = kPi / 180;
constexpr SkyPatches kSkies[] = {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305, SkyPatches::p609};

std::vector<float> plane(const RadiationModel& model, RadiationOutput output) {
  return cpu().download<f32>(model.output(output));
}

/// Ground 41 pixels across between walls `height` high, open to north and south.
CityInput canyon(float height) {
  CityInput city;
  city.dsm = Raster(161, 61, 0.0f);
  city.dem = Raster(161, 61, 0.0f);
  for (int r = 0; r < 161; ++r)
    for (int c = 0; c < 61; ++c)
      if (c < 10 || c > 50) city.dsm.at(r, c) = height;
  return city;
}
constexpr size_t kMiddle = 80 * 61 + 30;

/// Light of an overcast noon, from which the sun's direction cannot be inferred.
StepForcing overcast(double azimuth) {
  StepForcing f;
  f.sun_altitude_deg = 40;
  f.sun_azimuth_deg = azimuth;
  f.day_max_altitude_deg = 50;
  f.day_fraction = 0.5;
  f.global_w_m2 = f.diffuse_w_m2 = 9.5;  // an even sky
  f.clear_beam_w_m2 = 800;
  f.clear_diffuse_w_m2 = 90;
  f.clear_correction = 1;
  return f;
}

TEST(Physics, AnEnclosureOfOneTemperatureGivesThatTemperature) {
  for (const double emissivity : {1.0, 0.9, 0.6}) {
    WalledCity site(random_city(24, 24, 3, {true, 1.0, 0.02}));
    for (size_t p = 0; p < static_cast<size_t>(site.city.pixels()); ++p) site.codes.push_back(p % 2 ? 7 : 0);
    for (const SkyModel sky : {SkyModel::anisotropic, SkyModel::isotropic})
      for (const Body body : {Body::cylinder, Body::box})
        for (const Posture posture : {Posture::standing, Posture::sitting})
          for (const SkyPatches patches : kSkies) {
            RadiationOptions options;
            options.sky = sky;
            options.body = body;
            options.posture = posture;
            options.view.patches = patches;
            options.view.edges = AnnulusEdges::centred;
            options.wall.emissivity = emissivity;
            for (SurfaceRow& row : options.land_cover) row.emissivity = emissivity;
            RadiationModel model(cpu(), site.scene(), options);
            model.find_all_sides();
            for (const bool day : {false, true}) {
              StepForcing f = overcast(110);
              f.global_w_m2 = f.diffuse_w_m2 = 0;  // surfaces as warm as the air
              if (!day) f.sun_altitude_deg = -10;
              f.air_c = f.water_c = 20;
              f.sky_emissivity = f.clearness = 1;
              model.step(f);
              const auto tmrt = plane(model, RadiationOutput::tmrt);
              const auto sides = cpu().download<f32>(model.sides());
              const size_t pixels = tmrt.size();
              double worst = 0, uneven = 0;
              const double black = options.constants.sigma * std::pow(293.15, 4);
              for (size_t p = 0; p < pixels; ++p) {
                if (site.city.is_missing(static_cast<int64_t>(p))) continue;
                worst = std::max(worst, std::abs(static_cast<double>(tmrt[p]) - 20));
                for (size_t d = 4; d < 8; ++d)
                  uneven = std::max(uneven, std::abs(sides[d * pixels + p] / black - 1));
              }
              EXPECT_LE(worst, 0.05) << emissivity << " sky " << int(sky) << " body " << int(body)
                                     << " posture " << int(posture) << " " << patch_count(patches);
              EXPECT_LE(uneven, 1e-5) << "longwave of east, south, west and north";
            }
          }
  }
}

TEST(Physics, BodiesClose) {
  for (const Posture posture : {Posture::standing, Posture::sitting}) {
    const BodyFactors f = body_factors(posture, {});
    EXPECT_NEAR(2 * f.up + 2 * f.side + kPi / 2 * f.curved, 1, 3e-4);
    EXPECT_NEAR(2 * f.up + 4 * f.side, 1, 1e-5);
  }
}

TEST(Physics, CosinesOfPatchesClose) {
  for (const SkyPatches kind : kSkies) {
    double down = 0, side = 0, faces[4] = {};
    for (const PatchCosines& c : patch_cosines(sky_division(kind, AnnulusEdges::centred), true)) {
      down += c.down;
      side += c.side;
      for (size_t d = 0; d < 4; ++d) faces[d] += c.faces[d];
    }
    EXPECT_NEAR(down, kPi, 1e-12);
    EXPECT_NEAR(side, kPi * kPi / 2, 1e-12);
    for (const double face : faces) EXPECT_NEAR(face, kPi / 2, 1e-12);
  }
}

TEST(Physics, SidesAreEvenOnFlatGroundUnderAnIsotropicSky) {
  CityInput input;
  input.dsm = Raster(9, 9, 3.0f);
  for (const SkyPatches patches : kSkies) {
    const WalledCity site(input);
    RadiationOptions options;
    options.sky = SkyModel::isotropic;
    options.view.patches = patches;
    RadiationModel model(cpu(), site.scene(), options);
    model.find_all_sides();
    StepForcing f = overcast(200);
    f.diffuse_w_m2 = f.global_w_m2 = 300;
    model.step(f);
    const auto sides = cpu().download<f32>(model.sides());
    for (size_t d = 1; d < 4; ++d)
      for (const size_t flux : {size_t{0}, size_t{4}})
        EXPECT_NEAR(sides[(flux + d) * 81 + 40] / sides[flux * 81 + 40], 1, 1e-5) << patch_count(patches);
  }
}

TEST(Physics, SkyViewOfBasinsAndCanyons) {
  ContextOptions open;
  open.device = "cpu";
  Context context(open);
  for (const SkyPatches patches : kSkies) {
    SkyOptions options;
    options.patches = patches;
    // A round basin whose rim is between two bands of every sky, seen from its centre.
    for (const double rim : {12.0, 24.0, 36.0, 48.0, 60.0}) {
      constexpr int side = 91, centre = 45;
      CityInput input;
      input.dsm = Raster(side, side, 0.0f);
      for (int r = 0; r < side; ++r)
        for (int c = 0; c < side; ++c)
          if (std::hypot(r - centre, c - centre) >= 40)
            input.dsm.at(r, c) = static_cast<float>(40 * std::tan(rim * kDegree));
      const SkyViewFactors sky = compute_sky_view_factors(context, input, options, {}, nullptr);
      const double svf = sky["svf"].at(centre, centre);
      EXPECT_NEAR(svf, std::pow(std::cos(rim * kDegree), 2), 0.005) << patch_count(patches) << " " << rim;
    }
    // Long canyons with walls up to 5° … 80°: a patch is sky or wall, so that single ones err by up to the weight of
    // some patches; their mean does not.
    const SkyDivision sky = sky_division(patches, options.edges);
    const std::vector<PatchWeight> weights = patch_weights(sky);
    double error = 0;
    constexpr int count = 200;
    for (int k = 0; k < count; ++k) {
      const double wall = (5 + 75 * (k + 0.5) / count) * kDegree;
      double svf = 0;
      for (size_t p = 0; p < sky.patches.size(); ++p) {
        const double across = std::tan(wall) * std::abs(std::sin(sky.patches[p].azimuth_deg * kDegree));
        if (sky.patches[p].altitude_deg >= 90 || std::tan(sky.patches[p].altitude_deg * kDegree) > across)
          svf += weights[static_cast<size_t>(sky.band_of_patch[p])].whole;
      }
      error += (svf - std::cos(wall)) / count;
    }
    EXPECT_NEAR(error, 0, 0.005) << patch_count(patches);
  }
}

TEST(Physics, ASymmetricCanyonGetsAsMuchFromBothSides) {
  const WalledCity site(canyon(20));
  for (const SkyPatches patches : {SkyPatches::p145, SkyPatches::p305, SkyPatches::p609}) {
    RadiationOptions options;
    options.view.patches = patches;
    options.view.edges = AnnulusEdges::centred;
    RadiationModel model(cpu(), site.scene(), options);
    model.find_all_sides();
    for (const double azimuth : {100.0, 150.0, 250.0}) {
      model.step(overcast(azimuth));
      const auto sides = cpu().download<f32>(model.sides());
      const size_t pixels = static_cast<size_t>(site.city.pixels());
      EXPECT_NEAR(sides[kMiddle] / sides[2 * pixels + kMiddle], 1, 1e-3)
          << patch_count(patches) << " " << azimuth;
    }
  }
}

TEST(Physics, WallsReflectNoMoreThanTheyReceive) {
  RadiationOptions options;
  for (const double albedo : {0.0, 0.2, 0.7, 1.0})
    for (const double beam : {0.0, 300.0, 900.0})
      for (const double altitude : {1.0, 30.0, 80.0}) {
        options.wall.albedo = albedo;
        StepForcing f = overcast(200);
        f.sun_altitude_deg = altitude;
        f.beam_w_m2 = beam;
        f.diffuse_w_m2 = 150;
        const StepScalars s = step_scalars(f, options);
        const double received = beam * std::cos(altitude * kDegree) + 150 / 2.0;
        EXPECT_LE(s.wall_lit_shortwave * kPi, albedo * received + 1e-9);
        EXPECT_LE(s.wall_shaded_shortwave * kPi, albedo * received + 1e-9);
        if (beam == 0) { EXPECT_DOUBLE_EQ(s.wall_lit_shortwave, s.wall_shaded_shortwave); }
      }
}

TEST(Physics, MeasuredLongwaveReturns) {
  CityInput input;
  input.dsm = Raster(9, 9, 3.0f);
  const WalledCity site(input);
  for (const SkyModel sky : {SkyModel::anisotropic, SkyModel::isotropic})
    for (const SkyPatches patches : kSkies)
      for (const double ldown : {230.0, 350.0, 430.0}) {  // the last from warmer air above
        RadiationOptions options;
        options.sky = sky;
        options.view.patches = patches;
        StepForcing f = overcast(180);
        f.ldown_w_m2 = ldown;
        RadiationModel model(cpu(), site.scene(), options);
        model.step(f);
        EXPECT_NEAR(plane(model, RadiationOutput::ldown)[40] / ldown, 1, 1e-3) << patch_count(patches);
      }
}

TEST(Physics, WaterKeepsItsTemperature) {
  const RadiationOptions options;
  StepForcing f = overcast(180);
  f.water_c = 17;
  for (const double air : {10.0, 17.0, 30.0})
    for (const double altitude : {-20.0, 20.0}) {
      f.air_c = air;
      f.sun_altitude_deg = altitude;
      EXPECT_NEAR(air + ground_excess(f, options, true).back(), 17, 1e-12);
    }
  // In sun and shade, day and night: what water sends does not change with the air.
  WalledCity site(canyon(20));
  site.codes.assign(static_cast<size_t>(site.city.pixels()), 7);
  RadiationOptions dark;
  dark.land_cover.back().emissivity = 1;
  for (const double altitude : {-20.0, 40.0}) {
    RadiationModel model(cpu(), site.scene(), dark);
    f.air_c = 25;
    f.sun_altitude_deg = altitude;
    f.beam_w_m2 = 0;
    model.step(f);
    const auto lup = plane(model, RadiationOutput::lup);
    const double water = dark.constants.sigma * std::pow(17 + 273.15, 4);
    if (altitude < 0) { EXPECT_NEAR(lup[kMiddle] / water, 1, 1e-5); }
    EXPECT_LT(lup[kMiddle], dark.constants.sigma * std::pow(23 + 273.15, 4));
  }
}

TEST(Physics, PolarDayHasNoStepAtMidnight) {
  const RadiationOptions options;
  StepForcing f;
  f.sun_altitude_deg = 8;
  f.day_max_altitude_deg = 35;
  f.sunrise_h = sunrise_hour(172, 75);
  f.global_w_m2 = 200;
  f.clear_beam_w_m2 = 700;
  f.clear_diffuse_w_m2 = 60;
  f.clear_correction = 0.8;
  ASSERT_EQ(f.sunrise_h, 0);
  const auto at = [&](double hour) {
    f.day_fraction = hour / 24;
    return ground_excess(f, options, false)[0];
  };
  double largest = 0;
  for (int k = 1; k < 24 * 60; ++k) largest = std::max(largest, std::abs(at(k / 60.0) - at((k - 1) / 60.0)));
  EXPECT_LE(std::abs(at(24 - 1.0 / 120) - at(1.0 / 120)), largest);
  EXPECT_LT(largest, 0.1);
  RadiationOptions published;
  published.constants = constants_of(Preset::umep);
  f.day_fraction = 0.999;
  EXPECT_GT(ground_excess(f, published, false)[0], 1);
}

StepForcing sunny() {
  StepForcing f = overcast(160);
  f.beam_w_m2 = 700;
  f.diffuse_w_m2 = 120;
  f.global_w_m2 = 120 + 700 * std::sin(f.sun_altitude_deg * kDegree);
  f.air_c = 22;
  return f;
}

TEST(Physics, AHoleIsAnEdge) {
  // Flat ground that ends at the raster's edge, and the same ground with the rest of a larger raster missing.
  CityInput small, large;
  small.dsm = Raster(31, 31, 0.0f);
  large.dsm = Raster(51, 51, std::numeric_limits<float>::quiet_NaN());
  for (int r = 0; r < 31; ++r)
    for (int c = 0; c < 31; ++c)
      small.dsm.at(r, c) = large.dsm.at(r + 10, c + 10) = r > 12 && r < 18 && c > 5 && c < 10 ? 9.0f : 0.0f;
  small.dem = Raster(31, 31, 0.0f);
  large.dem = Raster(51, 51, 0.0f);
  const WalledCity a(small), b(large);
  for (const SkyModel sky : {SkyModel::anisotropic, SkyModel::isotropic}) {
    RadiationOptions options;
    options.sky = sky;
    RadiationModel alone(cpu(), a.scene(), options), within(cpu(), b.scene(), options);
    alone.step(sunny());
    within.step(sunny());
    for (const RadiationOutput output : {RadiationOutput::tmrt, RadiationOutput::lup, RadiationOutput::kup}) {
      const auto x = plane(alone, output), y = plane(within, output);
      for (int r = 0; r < 31; ++r)
        for (int c = 0; c < 31; ++c)
          EXPECT_EQ(x[static_cast<size_t>(r * 31 + c)], y[static_cast<size_t>((r + 10) * 51 + c + 10)])
              << name(output) << " " << r << " " << c;
    }
  }
}

TEST(Physics, AMissingPixelDisturbsLittle) {
  CityInput whole;
  whole.dsm = Raster(61, 61, 0.0f);
  whole.dem = Raster(61, 61, 0.0f);
  CityInput holed = whole;
  holed.dsm.at(30, 30) = std::numeric_limits<float>::quiet_NaN();
  const WalledCity a(whole), b(holed);
  const RadiationOptions options;
  RadiationModel full(cpu(), a.scene(), options), gap(cpu(), b.scene(), options);
  full.step(sunny());
  gap.step(sunny());
  const auto x = plane(full, RadiationOutput::tmrt), y = plane(gap, RadiationOutput::tmrt);
  for (size_t p = 0; p < x.size(); ++p)
    if (p != 30 * 61 + 30) { EXPECT_NEAR(x[p], y[p], 1e-3) << p; }
}

TEST(Physics, AStepInPartsIsTheirMean) {
  const WalledCity site(random_city(24, 21, 5, {true, 1.0, 0.02}));
  for (const SkyModel sky : {SkyModel::anisotropic, SkyModel::isotropic}) {
    RadiationOptions options;
    options.sky = sky;
    options.substeps = 3;
    std::vector<StepForcing> parts(3, sunny());
    for (size_t k = 0; k < 3; ++k) {
      parts[k].sun_azimuth_deg = 120 + 25.0 * static_cast<double>(k);
      parts[k].step_days /= 3;
    }
    parts[2].sun_altitude_deg = -3;
    RadiationModel model(cpu(), site.scene(), options), single(cpu(), site.scene(), options);
    model.find_all_sides();
    single.find_all_sides();
    model.step(parts);
    std::vector<double> tmrt, kdown, gvf, east;
    for (const StepForcing& part : parts) {
      single.step(part);
      const auto add = [&](std::vector<double>& sum, const std::vector<float>& x, bool fourth) {
        sum.resize(x.size());
        for (size_t p = 0; p < x.size(); ++p)
          sum[p] += (fourth ? std::pow(x[p] + 273.15, 4) : static_cast<double>(x[p])) / 3;
      };
      add(tmrt, plane(single, RadiationOutput::tmrt), true);
      add(kdown, plane(single, RadiationOutput::kdown), false);
      add(gvf, plane(single, RadiationOutput::gvf), false);
      add(east, cpu().download<f32>(single.sides()), false);
    }
    const auto t = plane(model, RadiationOutput::tmrt), k = plane(model, RadiationOutput::kdown),
               g = plane(model, RadiationOutput::gvf), e = cpu().download<f32>(model.sides());
    for (size_t p = 0; p < t.size(); ++p) {
      if (site.city.is_missing(static_cast<int64_t>(p))) continue;
      EXPECT_NEAR(t[p], std::pow(tmrt[p], 0.25) - 273.15, 1e-4);
      EXPECT_NEAR(k[p], kdown[p], 1e-3);
      EXPECT_NEAR(g[p], gvf[p], 1e-6);
      EXPECT_NEAR(e[p], east[p], 1e-3);
    }
  }
}

}  // namespace
}  // namespace lockstep::urban
