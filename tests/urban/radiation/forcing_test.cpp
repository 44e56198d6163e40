// The weather of a step and the body of PET against formulas and tables that are written down here once more.
#include "urban/weather/forcing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"
#include "urban/comfort/memi.hpp"
#include "urban/run/files/city_files.hpp"

namespace lockstep::urban {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

io::WeatherTable one_row(const io::CivilTime& time, double pressure_hpa) {
  io::WeatherTable table;
  table.where = "w";
  io::WeatherRow row;
  row.time = io::civil_minutes(time);
  row[io::Weather::air_temperature] = 20;
  row[io::Weather::relative_humidity] = 50;
  row[io::Weather::wind_speed] = 2;
  row[io::Weather::global] = 300;
  row[io::Weather::pressure] = pressure_hpa;
  table.rows.push_back(row);
  return table;
}

StepForcing step_of(const io::WeatherTable& table, const Site& site, double convergence_deg = 0) {
  return make_forcing(table, table, site, convergence_deg, weather_rules(Preset::corrected, {}))[0].forcing;
}

/// Gases let through 1.021 - 0.084 √(m (0.000949 p + 0.051)), p in hPa.
TEST(Forcing, PressureThinsTheAir) {
  const Site site{50, 15, 0, 1};
  const io::CivilTime noon{2015, 6, 21, 12, 30};
  const StepForcing low = step_of(one_row(noon, 800), site), sea = step_of(one_row(noon, 1013), site);
  EXPECT_NEAR(low.pressure_kpa, 80, 1e-12);
  const double s = std::sin(low.sun_altitude_deg * kDegree), mass = 35 * s / std::sqrt(1224 * s * s + 1);
  const auto gases = [&](double hpa) { return 1.021 - 0.084 * std::sqrt(mass * (0.000949 * hpa + 0.051)); };
  EXPECT_NEAR(low.clear_w_m2 / sea.clear_w_m2, gases(800) / gases(1013), 1e-12);
}

/// The clear sky solved for G of the water vapour: Smith (1966), table 1, by decades of latitude and seasons.
TEST(Forcing, WaterVapourOfSmith) {
  constexpr double kSmith[9][4] = {
      {3.37, 2.85, 2.80, 2.64}, {2.99, 3.02, 2.70, 2.93}, {3.60, 3.00, 2.98, 2.93},
      {3.04, 3.11, 2.92, 2.94}, {2.70, 2.95, 2.77, 2.71}, {2.52, 3.07, 2.67, 2.93},
      {1.76, 2.69, 2.61, 2.61}, {1.60, 1.67, 2.24, 2.63}, {1.11, 1.44, 1.94, 2.02}};
  const double ta = 20, rh = 50, altitude = 40;
  const double s = std::sin(altitude * kDegree), mass = 35 * s / std::sqrt(1224 * s * s + 1);
  const double ln = std::log(rh / 100) + 17.27 * ta / (237.7 + ta),
               dew_f = 1.8 * 237.7 * ln / (17.27 - ln) + 32;
  const auto found = [&](int day, double latitude, LatitudeBands bands) {
    const double global = clear_sky(90 - altitude, day, ta, rh, 1013, latitude, bands).global;
    const double rest = 1370 * s * sun_distance_factor(day) *
                        (1.021 - 0.084 * std::sqrt(mass * (0.000949 * 1013 + 0.051))) * std::pow(0.935, mass);
    const double vapour = std::pow((1 - global / rest) / 0.077, 1 / 0.3) / mass;
    return std::exp(0.1133 + 0.0393 * dew_f) / vapour - 1;
  };
  // Days within and near the ends of winter (December to February), spring, summer and autumn.
  constexpr int kDays[4][3] = {{340, 15, 55}, {65, 105, 148}, {156, 196, 240}, {248, 288, 330}};
  for (int band = 0; band < 9; ++band)
    for (int season = 0; season < 4; ++season)
      for (const int day : kDays[season]) {
        const double latitude = 10 * band + 5;
        EXPECT_NEAR(found(day, latitude, LatitudeBands::by_latitude), kSmith[band][season], 1e-6)
            << latitude << " " << day;
        EXPECT_NEAR(found(day, -latitude, LatitudeBands::by_latitude), kSmith[band][(season + 2) % 4], 1e-6)
            << -latitude;
        EXPECT_NEAR(found(day, -latitude, LatitudeBands::southern_row_one), kSmith[0][season], 1e-6)
            << -latitude;
      }
}

/// East of a northern projection's central meridian the grid's north lies clockwise from true north, by about the
/// difference of longitude times the sine of the latitude; an azimuth from the grid's north is smaller by it.
TEST(Forcing, SunFromTheNorthOfTheGrid) {
  const Site site{50, 15, 0, 1};
  const io::WeatherTable noon = one_row({2015, 6, 21, 12, 30}, 1013);
  EXPECT_NEAR(step_of(noon, site).sun_azimuth_deg - step_of(noon, site, 2).sun_azimuth_deg, 2, 1e-9);
  EXPECT_NEAR(step_of(noon, site).sun_azimuth_deg, 180, 3);
  if (!io::gdal_unavailable_reason().empty()) GTEST_SKIP() << io::gdal_unavailable_reason();
  const lockstep::test::TemporaryFolder folder;
  for (const auto& [easting, northing, epsg, sign] : {std::tuple{800000.0, 5800000.0, 32633, 1.0},
                                                      {200000.0, 5800000.0, 32633, -1.0},
                                                      {800000.0, 4200000.0, 32733, -1.0}}) {
    io::RasterGrid grid;
    grid.rows = grid.cols = 3;
    grid.has_transform = true;
    grid.transform = {easting, 1, 0, northing, 0, -1};
    grid.crs_wkt = io::crs_from_epsg(epsg);
    io::write_raster(folder / "dsm.tif", grid, Array(Storage::f32, {3, 3}));
    const io::LonLat place = io::centre_lon_lat(grid);
    const double expected = (place.lon - 15) * std::sin(place.lat * kDegree);
    EXPECT_EQ(std::copysign(1.0, expected), sign);
    EXPECT_NEAR(read_city({.dsm = folder / "dsm.tif"}).north.convergence_deg, expected, 0.02)
        << easting << " " << epsg;
  }
}

/// Höppe (1999): basal heat by sex, age and build; clothes by their insulation.
TEST(Forcing, BodyOfPet) {
  Person woman{60, 70, 1.65, 60, 0.5, Sex::female};
  Person man = woman;
  man.sex = Sex::male;
  const double build = 165 / std::pow(60, 1.0 / 3), size = std::pow(60, 0.75);
  EXPECT_NEAR(memi::Body(woman).heat, 60 + 3.19 * size * (1 - 0.16 + 0.018 * (build - 42.1)), 1e-9);
  EXPECT_NEAR(memi::Body(man).heat, 60 + 3.45 * size * (1 - 0.16 + 0.010 * (build - 43.4)), 1e-9);
  // Share of the height that is clothed: a tenth, half, all but the head, all.
  for (const auto& [clo, clothed] :
       {std::pair{0.2, 0.1}, {0.5, 0.5}, {0.9, (1.65 - 0.2) / 1.65}, {2.5, 1.0}}) {
    woman.clothing_clo = clo;
    const memi::Body body(woman);
    const double area = 0.203 * std::pow(60, 0.425) * std::pow(1.65, 0.725);
    const double share = std::min(1.0, 0.01 * (((19.28 * clo - 100.76) * clo + 173.51) * clo - 2.36));
    const double wall = 2 * 3.14 * 1.65 * clothed, inner = share * area / wall,
                 outer = inner + 0.15 * clo * area / wall;
    const double resistance = clo / (6.45 * share);
    EXPECT_NEAR(body.clothed_share, share, 1e-12) << clo;
    EXPECT_NEAR(body.conductance,
                6.28 * 1.65 * clothed * (outer - inner) /
                    (resistance * std::log(outer / inner) * area * (share + 0.15 * clo)),
                1e-9)
        << clo;
  }
}

}  // namespace
}  // namespace lockstep::urban
