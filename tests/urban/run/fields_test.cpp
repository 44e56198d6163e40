// Wind and air temperature of each pixel: uniform fields are the weather's, halves are two runs, and what is refused.
#include "urban/series/inputs/fields.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/refusal.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npy.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/run/series_case.hpp"
#include "urban/series/arrays.hpp"

namespace lockstep::urban {
namespace {

using FieldOutput = SeriesOutput;
using Pixel = std::function<float(int64_t row, int64_t col)>;
constexpr int64_t kFieldSide = testing::kCaseSide;
constexpr size_t kFieldPixels = size_t(kFieldSide * kFieldSide);
constexpr int kFieldHours = 4;

/// Air, humidity and wind are sums of powers of two, which shares and whole kelvins change without rounding.
std::string weather_of(double warmer, double share, double direction = 90) {
  std::string text = "time,Ta,RH,wind,Kglobal,wind_direction\n";
  for (int k = 0; k < kFieldHours; ++k)
    text += fmt::format("2015-06-21T{}:00,{},50,{},{},{}\n", 19 + k, 20 + 0.5 * k + warmer,
                        (2 + 0.5 * k) * share, k < 3 ? 300 - 100 * k : 0, direction);
  return text;
}

std::vector<float> grid_of(const Pixel& pixel) {
  std::vector<float> values;
  for (int64_t row = 0; row < kFieldSide; ++row)
    for (int64_t col = 0; col < kFieldSide; ++col) values.push_back(pixel(row, col));
  return values;
}

Pixel everywhere(float value) {
  return [=](int64_t, int64_t) { return value; };
}
Pixel halves(float west, float east) {
  return [=](int64_t, int64_t col) { return col < kFieldSide / 2 ? west : east; };
}

struct FieldCase : testing::SeriesCase {
  FieldCase() {
    options.outputs = {FieldOutput::tmrt,       FieldOutput::utci,       FieldOutput::pet,   FieldOutput::lup,
                       FieldOutput::kside_east, FieldOutput::lside_west, FieldOutput::shadow};
    write_file(options.weather, weather_of(0, 1));
  }
  std::filesystem::path npy(const std::string& name, const Pixel& pixel) const {
    io::write_npy(folder / name, Array::of(grid_of(pixel), {kFieldSide, kFieldSide}));
    return folder / name;
  }
  /// At the height of its reference, so that a share of 1 is the weather's wind.
  void set_wind(const Pixel& pixel) {
    options.wind_field.file = npy("wind.npy", pixel);
    options.wind_field.height_m = options.wind_field.reference_height_m = 10;
  }
  void set_air(const Pixel& pixel) { options.air_field.file = npy("air.npy", pixel); }
  std::vector<float> values() const {
    Context context(ContextOptions{.device = "cpu,interp"});
    return urban::compute(context, options, {}).values;
  }
};

void expect_same(
    const std::vector<float>& got, const std::vector<float>& expected,
    const std::function<bool(int64_t col)>& where = [](int64_t) { return true; }) {
  ASSERT_EQ(got.size(), expected.size());
  size_t different = 0, compared = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    if (!where(static_cast<int64_t>(k) % kFieldSide)) continue;
    ++compared;
    different += std::bit_cast<uint32_t>(got[k]) != std::bit_cast<uint32_t>(expected[k]);
  }
  EXPECT_EQ(different, 0u);
  EXPECT_GT(compared, kFieldPixels);
}

double mean_change(const std::vector<float>& a, const std::vector<float>& b, size_t output, size_t outputs) {
  double sum = 0;
  for (size_t step = 0; step < size_t(kFieldHours); ++step)
    for (size_t p = 0; p < kFieldPixels; ++p) {
      const size_t k = (step * outputs + output) * kFieldPixels + p;
      sum += static_cast<double>(b[k] - a[k]);
    }
  return sum / static_cast<double>(kFieldHours * kFieldPixels);
}

TEST(WindField, OfOneShareIsTheWeatherOfThatWind) {
  FieldCase c;
  const std::vector<float> weather = c.values();
  c.set_wind(everywhere(1));
  expect_same(c.values(), weather);
  c.set_wind(everywhere(0.25f));
  const std::vector<float> quarter = c.values();
  c.options.wind_field = {};
  write_file(c.options.weather, weather_of(0, 0.25));
  expect_same(quarter, c.values());
  EXPECT_GT(mean_change(weather, quarter, 2, c.options.outputs.size()), 0.5) << "less wind is warmer";
}

TEST(WindField, OfHalvesIsTwoRuns) {
  FieldCase c;
  c.options.outputs = {FieldOutput::utci, FieldOutput::pet};
  c.set_wind(halves(0.31f, 1.7f));
  const std::vector<float> both = c.values();
  c.options.tiles.side = 32;
  expect_same(c.values(), both);
  c.options.tiles.side = 0;
  c.set_wind(everywhere(0.31f));
  expect_same(both, c.values(), [](int64_t col) { return col < kFieldSide / 2; });
  c.set_wind(everywhere(1.7f));
  expect_same(both, c.values(), [](int64_t col) { return col >= kFieldSide / 2; });
}

/// A wind at 1.5 m that is a tenth of that at 10 m: carried over by the power law on both sides.
TEST(WindField, HeightsCount) {
  FieldCase c;
  c.options.outputs = {FieldOutput::tmrt, FieldOutput::utci};
  c.set_wind(everywhere(0.5f));
  c.options.wind_field.height_m = 1.5;
  c.options.wind_field.reference_height_m = 20;
  const std::vector<float> values = c.values();
  for (const size_t p : {size_t{5}, kFieldPixels / 3}) {
    const double at_20m = 2 * std::pow(20.0 / 10, 0.2), at_10m = 0.5 * at_20m * std::pow(10 / 1.5, 0.2);
    EXPECT_NEAR(static_cast<double>(values[kFieldPixels + p]),
                utci(20, 50, at_10m, static_cast<double>(values[p])), 0.02);
  }
}

TEST(AirField, OfWholeKelvinsIsTheWeatherOfThatAir) {
  FieldCase c;
  const std::vector<float> weather = c.values();
  c.set_air(everywhere(0));
  expect_same(c.values(), weather);
  c.set_air(everywhere(-1));
  const std::vector<float> colder = c.values();
  c.options.air_field = {};
  write_file(c.options.weather, weather_of(-1, 1));
  expect_same(colder, c.values());
  EXPECT_LT(mean_change(weather, colder, 0, c.options.outputs.size()), -0.5);
}

TEST(AirField, OfHalvesIsTwoRuns) {
  FieldCase c;
  c.set_air(halves(-1.25f, 2));
  const std::vector<float> both = c.values();
  c.options.tiles.side = 32;
  expect_same(c.values(), both);
  c.options.tiles.side = 0;
  c.set_air(everywhere(-1.25f));
  const std::vector<float> west = c.values();
  expect_same(both, west, [](int64_t col) { return col < kFieldSide / 2; });
  c.set_air(everywhere(2));
  expect_same(both, c.values(), [](int64_t col) { return col >= kFieldSide / 2; });
  // Between whole kelvins results are those of the weather itself, but for the bend of a kelvin.
  c.options.air_field = {};
  write_file(c.options.weather, weather_of(-1.25, 1));
  const std::vector<float> exact = c.values();
  // The bends: of T⁴ in fluxes, and where PET's body begins to sweat.
  const float bounds[] = {0.02f, 0.02f, 0.1f, 0.2f, 0.2f, 0.2f, 0};
  float furthest[std::size(bounds)] = {};
  for (size_t k = 0; k < exact.size(); ++k)
    if (float& most = furthest[k / kFieldPixels % std::size(bounds)]; std::isfinite(exact[k]))
      most = std::max(most, std::abs(west[k] - exact[k]));
  for (size_t o = 0; o < std::size(bounds); ++o)
    EXPECT_LE(furthest[o], bounds[o]) << name(c.options.outputs[o]);
  EXPECT_GT(furthest[0], 0.0f);
}

TEST(AirField, OfDegreesAndPoints) {
  FieldCase c;
  c.options.outputs = {FieldOutput::tmrt, FieldOutput::utci};
  write_file(c.folder / "points.csv", "id,x,y\np,10.5,40.5\n");
  c.options.points = c.folder / "points.csv";
  c.options.formats = {SeriesFormat::npy};
  c.set_air(everywhere(21.25f));
  c.options.air_field.absolute = true;
  c.set_wind(everywhere(0.5f));
  const SeriesResult result = c.compute();
  for (size_t k = 0; k < size_t(kFieldHours); ++k) {
    EXPECT_NEAR(result.point_values.at("Ta")[k], 21.25, 1e-5);
    EXPECT_NEAR(result.point_values.at("wind")[k], 0.5 * (2 + 0.5 * static_cast<double>(k)), 1e-6);
    EXPECT_NEAR(result.point_values.at("UTCI")[k],
                utci(21.25, 50, 0.5 * (2 + 0.5 * static_cast<double>(k)), result.point_values.at("Tmrt")[k]),
                0.01);
  }
}

TEST(WindField, DirectionsAreACircle) {
  WindField field;
  field.directions_deg = {10, 100, 200, 350};
  field.factors = {{1}, {2}, {3}, {4}};
  const auto share = [&](double direction) {
    const BetweenPlanes b = field.at(direction);
    return b.at(field.factors[b.first][0], field.factors[b.second][0]);
  };
  EXPECT_EQ(share(10), 1);
  EXPECT_EQ(share(55), 1.5);
  EXPECT_EQ(share(350), 4);
  EXPECT_EQ(share(0), 2.5);
  EXPECT_EQ(share(360), 2.5);
  EXPECT_EQ(share(355), 3.25);
  EXPECT_EQ(share(275), 3.5);
}

/// (direction, y, x) as xarray writes it.
void write_directions(const std::filesystem::path& path, const std::vector<double>& directions,
                      const std::function<float(size_t, int64_t)>& value) {
  std::vector<double> axis;
  for (int64_t k = 0; k < kFieldSide; ++k) axis.push_back(static_cast<double>(k) + 0.5);
  std::vector<float> values;
  for (size_t d = 0; d < directions.size(); ++d)
    for (int64_t row = 0; row < kFieldSide; ++row)
      for (int64_t col = 0; col < kFieldSide; ++col) values.push_back(value(d, row));
  const int64_t count = static_cast<int64_t>(directions.size());
  // y runs to the north here, as in most NetCDF files: the first row is the south.
  io::write_netcdf(
      path,
      {{"direction", {"direction"}, Array::of(directions, {count}), {{"units", "degree"}}},
       {"y",
        {"y"},
        Array::of(axis, {kFieldSide}),
        {{"units", "m"}, {"standard_name", "projection_y_coordinate"}}},
       {"x",
        {"x"},
        Array::of(axis, {kFieldSide}),
        {{"units", "m"}, {"standard_name", "projection_x_coordinate"}}},
       {"wind_factor", {"direction", "y", "x"}, Array::of(values, {count, kFieldSide, kFieldSide}), {}}},
      {{"Conventions", "CF-1.8"}});
}

TEST(WindField, OfNetcdfByDirection) {
  if (!io::netcdf_missing().empty() || !io::gdal_unavailable_reason().empty())
    GTEST_SKIP() << "no netCDF or GDAL";
  FieldCase c;
  c.options.outputs = {FieldOutput::utci};
  const auto path = c.folder / "wind.nc";
  write_directions(path, {270, 0, 90, 180}, [](size_t d, int64_t y) {
    return y < kFieldSide / 2 ? 0.25f : d == 2 ? 0.5f : d == 3 ? 1.5f : 4.0f;
  });
  c.options.wind_field.file = path;
  c.options.wind_field.height_m = c.options.wind_field.reference_height_m = 10;
  write_file(c.options.weather, weather_of(0, 1, 135));
  const std::vector<float> got = c.values();
  c.set_wind([](int64_t row, int64_t) { return row >= kFieldSide / 2 ? 0.25f : 1.0f; });
  expect_same(got, c.values());
}

// A field of times with an offset from universal time is the one of the weather's clock, an hour ahead here.
TEST(AirField, TimesWithAnOffsetAreBroughtToTheClockOfTheWeather) {
  if (!io::netcdf_missing().empty() || !io::gdal_unavailable_reason().empty())
    GTEST_SKIP() << "no netCDF or GDAL";
  FieldCase c;
  c.options.outputs = {FieldOutput::tmrt};
  c.options.air_field.file = c.folder / "air.nc";
  const auto values_of = [&](const std::string& unit, double first) {
    std::vector<double> axis, times;
    std::vector<float> values;
    for (int64_t k = 0; k < kFieldSide; ++k) axis.push_back(double(k) + 0.5);
    for (int k = 0; k < kFieldHours; ++k) {
      times.push_back(first + k);
      values.insert(values.end(), kFieldPixels, float(k));
    }
    io::write_netcdf(
        c.options.air_field.file,
        {{"time", {"time"}, Array::of(times, {kFieldHours}), {{"units", unit}, {"standard_name", "time"}}},
         {"y", {"y"}, Array::of(axis, {kFieldSide}), {{"standard_name", "projection_y_coordinate"}}},
         {"x", {"x"}, Array::of(axis, {kFieldSide}), {{"standard_name", "projection_x_coordinate"}}},
         {"air", {"time", "y", "x"}, Array::of(values, {kFieldHours, kFieldSide, kFieldSide}), {}}},
        {{"Conventions", "CF-1.8"}});
    return c.values();
  };
  const std::vector<float> local = values_of("hours since 2015-06-21 00:00", 19);
  expect_same(values_of("hours since 2015-06-21 00:00 +00:00", 18), local);
  EXPECT_NE(test::refusal([&] { values_of("hours since 2015-06-21 00:00 +00:00", 19); }).find("times from"),
            std::string::npos);
}

TEST(Fields, AreRefusedByFileBandAndPixel) {
  FieldCase c;
  c.options.outputs = {FieldOutput::utci};
  const auto refused = [&](const std::vector<std::string>& parts) {
    const std::string text = test::refusal([&] { c.values(); });
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
  const auto hole = [&](float value) {
    return [=](int64_t row, int64_t col) { return row == 0 && col == 3 ? value : 1.0f; };
  };
  c.set_wind(hole(kGap));
  refused({"no value", "wind.npy, band 1, row 0, column 3", "on all ground that people can use"});
  c.set_wind(hole(25));
  refused({"25", "row 0, column 3", "0 to 10"});
  io::write_npy(c.folder / "wind.npy", Array::of(std::vector<float>(40, 1.0f), {4, 10}));
  refused({"4 x 10 cells", "wind.npy", "48 x 48 as in"});
  c.options.wind_field = {};
  c.set_air(everywhere(25));
  refused({"25", "air.npy, band 1, row 0, column 0", "-20 to 20"});
  c.set_air(everywhere(55));
  c.options.air_field.absolute = true;
  refused({"air from", "air.npy", "within 20 K"});
}

TEST(Fields, OfDirectionsNeedThoseOfTheWind) {
  if (!io::netcdf_missing().empty() || !io::gdal_unavailable_reason().empty())
    GTEST_SKIP() << "no netCDF or GDAL";
  FieldCase c;
  c.options.outputs = {FieldOutput::utci};
  c.options.wind_field.file = c.folder / "wind.nc";
  write_directions(c.options.wind_field.file, {0, 180}, [](size_t, int64_t) { return 1.0f; });
  write_file(c.options.weather, "time,Ta,RH,wind,Kglobal\n2015-06-21T12:00,20,50,2,700\n");
  const std::string text = test::refusal([&] { c.values(); });
  EXPECT_NE(text.find("no direction of the wind at 2015-06-21T12:00"), std::string::npos) << text;
  io::write_netcdf(c.options.wind_field.file,
                   {{"share",
                     {"direction", "y", "x"},
                     Array::of(std::vector<float>(kFieldPixels, 1.0f), {1, kFieldSide, kFieldSide}),
                     {}}},
                   {});
  EXPECT_NE(test::refusal([&] { c.values(); }).find("no georeference"), std::string::npos);
  write_directions(c.options.wind_field.file, {0, 180}, [](size_t, int64_t) { return 1.0f; });
  c.options.wind_field.directions_deg = {0, 90, 180};
  EXPECT_NE(test::refusal([&] { c.values(); }).find("2 bands"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::urban
