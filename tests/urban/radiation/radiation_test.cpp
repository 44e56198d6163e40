// Scalars, luminances and stages of the radiation against closed forms and published arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lockstep/error.hpp"
#include "urban/published/athens.hpp"
#include "urban/radiation/perez.hpp"
#include "urban/radiation/reference.hpp"
#include "urban/stages/run_stage.hpp"

namespace lockstep::urban {
namespace {

TEST(Perez, ClearnessAsPrintedAndAsUmepEvaluatesIt) {
  const PerezInput input{15, 180, 80, 100, 100};
  EXPECT_NEAR(perez_sky(input, PerezFormula::perez93).clearness, 1.375, 0.001);
  EXPECT_NEAR(perez_sky(input, PerezFormula::umep_compat).clearness, 0.6555, 0.001);
  EXPECT_EQ(perez_sky(input, PerezFormula::perez93).bin, 2);
  EXPECT_EQ(perez_sky(input, PerezFormula::umep_compat).bin, 0);
}

TEST(Perez, LuminancesAddUpAndPointToTheSun) {
  for (SkyPatches kind : {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305, SkyPatches::p609}) {
    const SkyDivision sky = sky_division(kind, AnnulusEdges::umep);
    const auto share = perez_luminance(sky.patches, {42, 180, 90, 750, 172}, PerezFormula::perez93, true);
    EXPECT_NEAR(std::accumulate(share.begin(), share.end(), 0.0), 1, 1e-12);
    const auto best = std::max_element(share.begin(), share.end()) - share.begin();
    const Direction& bright = sky.patches[static_cast<size_t>(best)];
    EXPECT_LE(std::abs(bright.azimuth_deg - 180), 12) << patch_count(kind);
    EXPECT_LE(std::abs(bright.altitude_deg - 42), 6) << patch_count(kind);
    EXPECT_GT(*std::min_element(share.begin(), share.end()), 0);
    const auto even = perez_luminance(sky.patches, {2, 180, 90, 750, 172}, PerezFormula::perez93, true);
    EXPECT_EQ(even.front(), even.back());
  }
}

TEST(Sky, SolidAnglesOfPatches) {
  for (const auto& [kind, closure] : {std::pair{SkyPatches::p145, 1.005478},
                                      {SkyPatches::p153, 1.005478},
                                      {SkyPatches::p305, 1.005478},
                                      {SkyPatches::p609, 1.001387}}) {
    const SkyDivision sky = sky_division(kind, AnnulusEdges::umep);
    const std::vector<double> angles = band_solid_angles(sky);
    double all = 0, down = 0;
    for (size_t k = 0; k < angles.size(); ++k) {
      all += angles[k] * sky.bands[k].count;
      down += angles[k] * sky.bands[k].count * std::sin(sky.bands[k].altitude_deg * std::numbers::pi / 180);
    }
    EXPECT_NEAR(all, 2 * std::numbers::pi, 1e-12);
    EXPECT_NEAR(down / std::numbers::pi, closure, 1e-6);
  }
}

StepForcing afternoon() {
  StepForcing f;
  f.sun_altitude_deg = 45;
  f.sun_azimuth_deg = 200;
  f.day_max_altitude_deg = 50;
  f.sunrise_h = 5;
  f.day_fraction = 15.0 / 24;
  f.global_w_m2 = 600;
  f.beam_w_m2 = 600;
  f.diffuse_w_m2 = 180;
  f.clear_beam_w_m2 = 700;
  f.clear_diffuse_w_m2 = 100;
  f.clear_correction = 0.9;
  return f;
}

TEST(Warmth, GroundAndWalls) {
  StepForcing f = afternoon();
  const RadiationOptions options;
  const double clear = 700 * std::sin(std::numbers::pi / 4) + 100, share = 600 / clear + 0.1;
  // At the hour of the maximum the sine is 1.
  EXPECT_NEAR(ground_excess(f, options, false)[0], (0.37 * 50 - 3.41) * std::min(1.0, share), 1e-12);
  EXPECT_NEAR(wall_excess(f, options), (0.37 * 50 - 3.41) * std::min(1.0, share), 1e-12);
  f.global_w_m2 = 100;
  EXPECT_NEAR(ground_excess(f, options, false)[0], (0.37 * 50 - 3.41) * (100 / clear + 0.1), 1e-12);
  f.day_fraction = 10.0 / 24;
  EXPECT_NEAR(ground_excess(f, options, false)[0],
              (0.37 * 50 - 3.41) * (100 / clear + 0.1) * std::sin(0.5 * std::numbers::pi / 2), 1e-12);
  f.day_fraction = 4.0 / 24;  // before sunrise
  EXPECT_EQ(ground_excess(f, options, false)[0], 0);
  RadiationOptions umep;
  umep.constants = constants_of(Preset::umep);
  EXPECT_LT(ground_excess(f, umep, false)[0], 0);
  EXPECT_EQ(wall_excess(f, umep), 0);
  f.sun_altitude_deg = -1;
  EXPECT_EQ(ground_excess(f, umep, false)[0], 0);
  // Water keeps to the day's mean.
  f = afternoon();
  f.air_c = 24;
  f.water_c = 21;
  EXPECT_EQ(ground_excess(f, options, true).back(), -3);
  EXPECT_EQ(ground_excess(f, umep, true).back(), 0);
}

TEST(Warmth, DelayOfOneHourAndOfHalfHours) {
  WaveDelay clock;
  const double hour = 1.0 / 24, w = std::exp(-33.27 * hour);
  EXPECT_TRUE(advance(clock, hour).first);
  for (int k = 0; k < 3; ++k) {
    const DelayStep step = advance(clock, hour);
    EXPECT_FALSE(step.first);
    EXPECT_TRUE(step.keep);
    EXPECT_NEAR(step.weight, w, 1e-12);
  }
  clock = {};
  const double half = hour / 2;
  EXPECT_FALSE(advance(clock, half).keep);
  EXPECT_FALSE(advance(clock, half).keep);
  const DelayStep third = advance(clock, half);
  EXPECT_TRUE(third.keep);
  EXPECT_NEAR(third.weight, w, 1e-12);
  EXPECT_EQ(clock.time_added_days, 0);
}

TEST(GroundReach, PixelsOfEverySize) {
  RadiationOptions options;
  const auto at = [&](double px) {
    const GroundReach r = ground_reach(options, px);
    return std::pair(r.near, r.far);
  };
  EXPECT_EQ(at(0.5), std::pair(2, 44));
  EXPECT_EQ(at(1), std::pair(1, 22));
  EXPECT_EQ(at(2), std::pair(1, 11));
  EXPECT_EQ(at(2.5), std::pair(1, 9));
  EXPECT_EQ(at(1e-12), std::pair(1'000'000'000, 1'000'000'000));
  options.constants = constants_of(Preset::solweig);
  EXPECT_EQ(at(2), std::pair(4, 70));
  options = {};
  options.posture = Posture::sitting;
  EXPECT_EQ(at(1), std::pair(1, 15));
}

// ---- Published arrays of Athens, through the stages ----

using Arrays = io::NpzArrays;

void add(Arrays& arrays, const std::string& name, double value) {
  arrays.emplace_back(name, Array::of(std::vector<double>{value}, Sizes(std::vector<int64_t>{})));
}
void add(Arrays& arrays, const std::string& name, const std::vector<double>& grid, int64_t side = 400) {
  arrays.emplace_back(name, Array::of(grid, Sizes{side, side}));
}
std::vector<double> athens(const std::string& name) { return *testing::read_athens(name); }

double worst(const Arrays& results, const std::string& name, const std::string& golden) {
  const auto values = io::find_array(results, name, "test").as<double>();
  const std::vector<double> expected = athens(golden);
  double apart = values.size() == expected.size() ? 0 : INFINITY;
  for (size_t p = 0; p < values.size() && std::isfinite(apart); ++p)
    apart = std::max(apart, std::abs(values[p] - expected[p]));
  return apart;
}

TEST(AthensRadiation, GroundView) {
  if (!testing::read_athens("gvf_lup")) GTEST_SKIP() << "no test data under " << testing::data_folder();
  const std::vector<double> walls = athens("input_wall_ht"), buildings_sun = athens("shadow_noon_bldg_sh"),
                            plants_sun = athens("shadow_noon_veg_sh");
  std::vector<double> shadow(walls.size()), buildings(walls.size()), along(walls.size());
  // Buildings are what lies within 26 pixels of a wall.
  const auto near_wall = [&](const std::vector<double>& from, std::vector<double>& to, bool rows) {
    for (int64_t row = 0; row < 400; ++row)
      for (int64_t col = 0; col < 400; ++col) {
        const int64_t at = rows ? col : row, low = std::max<int64_t>(0, at - 26),
                      high = std::min<int64_t>(399, at + 26);
        double most = 0;
        for (int64_t k = low; k <= high; ++k)
          most = std::max(most, from[static_cast<size_t>(rows ? row * 400 + k : k * 400 + col)]);
        to[static_cast<size_t>(row * 400 + col)] = most;
      }
  };
  near_wall(walls, along, true);
  near_wall(along, buildings, false);
  for (size_t p = 0; p < walls.size(); ++p) {
    shadow[p] = buildings_sun[p] * plants_sun[p];
    buildings[p] = buildings[p] > 0 ? 0 : 1;
  }
  Arrays in;
  add(in, "shadow", shadow);
  add(in, "ground_temperature_excess", athens("gvf_input_tg"));
  add(in, "wall_sun", 0.0);
  add(in, "wall_height", walls);
  add(in, "wall_aspect", athens("input_wall_asp"));
  add(in, "buildings", buildings);
  for (const auto& [name, value] : {std::pair{"Ta", 25.0},
                                    {"emissivity", 0.95},
                                    {"albedo", 0.15},
                                    {"wall_emissivity", 0.9},
                                    {"wall_albedo", 0.2},
                                    {"wall_temperature_excess", 2.0},
                                    {"first", 2.0},
                                    {"second", 36.0},
                                    {"pixel_size", 1.0}})
    add(in, name, value);
  const Arrays out = run_urban_stage("gvf", in);
  EXPECT_LE(worst(out, "lup", "gvf_lup"), 1e-4);
  EXPECT_EQ(out.size(), 16u);
}

TEST(AthensRadiation, Sides) {
  if (!testing::read_athens("radiation_kside_e"))
    GTEST_SKIP() << "no test data under " << testing::data_folder();
  Arrays in;
  const double sigma = 5.67e-8, air = std::pow(25 + 273.15, 4);
  for (const char* side : {"east", "south", "west", "north"}) {
    const std::string end = std::string("_") + side;
    add(in, "svf" + end, athens("svf_east"));
    add(in, "svf_veg" + end, athens("svf_veg"));
    add(in, "svf_aveg" + end, athens("svf_veg"));
    add(in, "kup" + end, 50.0);
    add(in, "lup" + end, 0.95 * sigma * air);
  }
  for (const auto& [name, value] : {std::pair{"radI", 600.0},
                                    {"radD", 200.0},
                                    {"radG", 800.0},
                                    {"azimuth", 180.0},
                                    {"altitude", 60.0},
                                    {"transmissivity", 0.5},
                                    {"esky", 0.75},
                                    {"CI", 0.85},
                                    {"Ta", 25.0},
                                    {"F_sh", 0.5},
                                    {"ldown", 0.75 * sigma * air},
                                    {"wall_temperature_excess", 2.0},
                                    {"wall_albedo", 0.2},
                                    {"wall_emissivity", 0.9}})
    add(in, name, value);
  EXPECT_LE(worst(run_urban_stage("kside", in), "east", "radiation_kside_e"), 1e-4);
  EXPECT_LE(worst(run_urban_stage("lside", in), "east", "radiation_lside_e"), 1e-3);
}

TEST(AthensRadiation, MeanRadiantTemperatureAndDelay) {
  if (!testing::read_athens("tmrt_output_iso"))
    GTEST_SKIP() << "no test data under " << testing::data_folder();
  Arrays in;
  for (const char* name : {"kdown", "kup", "kside_total", "ldown", "lup", "lside_total"})
    add(in, name, athens(std::string("tmrt_input_") + name), 30);
  for (const char* side : {"east", "south", "west", "north"})
    for (const char* flux : {"kside_", "lside_"})
      add(in, std::string(flux) + side, athens(std::string("tmrt_input_") + flux + side[0]), 30);
  for (const auto& [name, value] : {std::pair{"abs_k", 0.7},
                                    {"abs_l", 0.97},
                                    {"f_up", 0.06},
                                    {"f_side", 0.22},
                                    {"f_cyl", 0.28},
                                    {"sky", 0.0},
                                    {"sigma", 5.67e-8}})
    add(in, name, value);
  EXPECT_LE(worst(run_urban_stage("tmrt", in), "tmrt", "tmrt_output_iso"), 1e-4);

  Arrays delay;
  add(delay, "x", athens("ground_temp_input_gvflup"), 20);
  add(delay, "previous", athens("ground_temp_input_tgmap1"), 20);
  for (const auto& [name, value] :
       {std::pair{"first_daytime", 1.0}, {"timeadd", 0.0}, {"timestep_days", 0.5 / 24}})
    add(delay, name, value);
  const Arrays out = run_urban_stage("wave_delay", delay);
  EXPECT_LE(worst(out, "out", "ground_temp_input_gvflup"), 1e-10);  // the first step of a day
  EXPECT_EQ(io::find_array(out, "timeadd", "test").as<double>()[0], 0.5 / 24);
}

TEST(Stages, SidesOfAnOpenPlaceAndOfAYard) {
  // The published weights give 1 to a side that sees the sky alone and 0 to one that sees a wall alone.
  const double sigma = 5.67e-8, air = sigma * std::pow(20 + 273.15, 4), ew = 0.9, warm = 6, ldown = 350;
  const double mix = 700 * 0.7 + 150 * 0.3;
  for (const double sun : {30., 120., 210., 300.})
    for (const bool open : {true, false}) {
      Arrays in;
      size_t number = 0;
      for (const char* side : {"east", "south", "west", "north"}) {
        const std::string end = std::string("_") + side;
        add(in, "svf" + end, open ? 1.0 : 0.0);
        add(in, "svf_veg" + end, 1.0);
        add(in, "svf_aveg" + end, 1.0);
        add(in, "kup" + end, 40.0 + static_cast<double>(number));
        add(in, "lup" + end, 410.0 + static_cast<double>(number++));
      }
      for (const auto& [name, value] : {std::pair{"radI", 650.0},
                                        {"radD", 150.0},
                                        {"radG", 700.0},
                                        {"azimuth", sun},
                                        {"altitude", 40.0},
                                        {"transmissivity", 0.03},
                                        {"esky", 0.8},
                                        {"CI", 0.6},
                                        {"Ta", 20.0},
                                        {"F_sh", 0.3},
                                        {"ldown", ldown},
                                        {"wall_temperature_excess", warm},
                                        {"wall_albedo", 0.2},
                                        {"wall_emissivity", ew}})
        add(in, name, value);
      const Arrays k = run_urban_stage("kside", in), l = run_urban_stage("lside", in);
      number = 0;
      for (const char* side : {"east", "south", "west", "north"}) {
        const double kup = 40.0 + static_cast<double>(number), lup = 410.0 + static_cast<double>(number);
        // The wall that is seen there faces away from the sun's side.
        const double over =
            std::sin((sun - 180 - 90.0 * static_cast<double>(number++)) * std::numbers::pi / 180);
        double walls = air * ew;
        if (over > 0) {
          // 2 F − 1 = −0.4 of α = 90°
          const double a = std::atan(std::numbers::pi / 2), b = -0.4 * std::numbers::pi / 2;
          walls = sigma * ew * std::pow(20 + 273.15 + warm * over, 4) * 1.4 * std::cos((a - b) / 2 + b) -
                  0.4 * air * ew;
        }
        const double sky_k = open ? 150.0 : 0.2 * mix, sky_l = air * (0.8 * 0.6 + 0.4);
        EXPECT_NEAR(io::find_array(k, side, "test").as<double>()[0], 0.5 * (sky_k + kup), 1e-9)
            << sun << side;
        const double expected = open ? 0.5 * (sky_l + lup) : 0.5 * (walls + lup + (ldown + lup) * (1 - ew));
        EXPECT_NEAR(io::find_array(l, side, "test").as<double>()[0], expected, 1e-9) << sun << side;
      }
    }
}

TEST(Stages, DelayWithinAndAtTheEndOfItsWindow) {
  // 59 minutes of warmth: within them the state stays, behind them it moves on.
  const double minute = 1.0 / 1440;
  for (const auto& [timeadd, step, weighs, stays, next] :
       {std::tuple{20 * minute, 30 * minute, 50 * minute, true, 50 * minute},
        {60 * minute, 30 * minute, 60 * minute, false, 0.0},
        {60 * minute, 60 * minute, 60 * minute, false, 60 * minute}}) {
    Arrays in;
    add(in, "x", std::vector<double>{400, 420, 430, 450}, 2);
    add(in, "previous", std::vector<double>{390, 425, 430, 400}, 2);
    add(in, "first_daytime", 0.0);
    add(in, "timeadd", timeadd);
    add(in, "timestep_days", step);
    const Arrays out = run_urban_stage("wave_delay", in);
    const double w = std::exp(-33.27 * weighs);
    const auto delayed = io::find_array(out, "out", "test").as<double>(),
               kept = io::find_array(out, "previous", "test").as<double>();
    EXPECT_NEAR(delayed[0], 400 * (1 - w) + 390 * w, 1e-12);
    EXPECT_NEAR(delayed[3], 450 * (1 - w) + 400 * w, 1e-12);
    EXPECT_EQ(kept[0], stays ? 390 : delayed[0]);
    EXPECT_NEAR(io::find_array(out, "timeadd", "test").as<double>()[0], next, 1e-15);
  }
}

TEST(Stages, SayWhatIsWrong) {
  EXPECT_THROW(run_urban_stage("nothing", Arrays{}), InputError);
  EXPECT_THROW(run_urban_stage("tmrt", Arrays{}), InputError);
  Arrays in;
  for (const auto& [name, value] : {std::pair{"year", 2003.0},
                                    {"month", 10.0},
                                    {"day", 17.0},
                                    {"hour", 12.0},
                                    {"minute", 30.0},
                                    {"second", 30.0},
                                    {"utc_offset", -7.0},
                                    {"lat", 39.742476},
                                    {"lon", -105.1786},
                                    {"elevation", 1830.14}})
    add(in, name, value);
  const Arrays sun = run_urban_stage("sun", in);
  EXPECT_NEAR(io::find_array(sun, "azimuth", "test").as<double>()[0], 194.34, 0.01);
  EXPECT_NEAR(io::find_array(sun, "altitude", "test").as<double>()[0], 90 - 50.11, 0.01);
}

}  // namespace
}  // namespace lockstep::urban
