// A small city and a clear day in a folder, for runs hour by hour.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "core/temporary_folder.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/context.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/weather/solar.hpp"

namespace lockstep::urban::testing {

inline constexpr int64_t kCaseSide = 48;

/// A day of clear weather as CSV, from the sun of the place.
inline std::string clear_day(const Site& site, const std::string& date, int hours = 24) {
  std::string text = "time,Ta,RH,wind,Kglobal\n";
  const io::CivilMinutes midnight = io::parse_iso_time(date + "T00:00")->minutes;
  for (int hour = 1; hour <= hours; ++hour) {
    const io::CivilMinutes time = midnight + 60 * hour;
    const double altitude = sun_at(site, time, -30).altitude_deg;
    const double global = altitude > 0 ? 950 * std::sin(altitude * std::numbers::pi / 180) : 0;
    text += fmt::format("{},{:.1f},{},2.5,{:.1f}\n", io::civil_text(time),
                        18 + 6 * std::sin((hour - 9) * 0.26), 55, global);
  }
  return text;
}

struct SeriesCase {
  test::TemporaryFolder folder;
  SeriesOptions options;
  Site site{57.7, 11.97, 0, 1};

  explicit SeriesCase(int hours = 24, const std::string& date = "2015-06-21",
                      std::optional<Site> place = {}) {
    if (place) site = *place;
    SampleRunOptions sample;
    sample.output = {folder / "city", GridFormat::npy, false};
    sample.rows = sample.cols = kCaseSide;
    run(sample);
    options.city.dsm = folder / "city/dsm.npy";
    options.city.dem = folder / "city/dem.npy";
    options.city.cdsm = folder / "city/cdsm.npy";
    options.city.pixel_size_m = 1;
    options.latitude_deg = site.latitude_deg;
    options.longitude_deg = site.longitude_deg;
    options.utc_offset_h = site.utc_offset_h;
    options.weather = folder / "weather.csv";
    write_file(options.weather, clear_day(site, date, hours));
    options.patches = SkyPatches::p145;
    options.formats = {SeriesFormat::npy};
    options.pictures = options.video = false;
    options.folder = folder / "out";
  }
  SeriesResult compute() const {
    Context context(ContextOptions{.device = "cpu,interp"});
    return run(context, options);
  }
  std::vector<float> read(const std::string& file) const {
    std::vector<float> values(kCaseSide * kCaseSide);
    io::RasterReader::open(options.folder / file)->read(0, 0, kCaseSide, kCaseSide, values.data());
    return values;
  }
};

}  // namespace lockstep::urban::testing
