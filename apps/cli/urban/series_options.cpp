#include "series_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

std::vector<urban::SeriesFormat> formats_of(const std::string& text) {
  std::vector<urban::SeriesFormat> formats;
  for (const std::string& part : split_list(text, "--format")) {
    if (part == "nc")
      formats.push_back(urban::SeriesFormat::nc);
    else if (part == "tif")
      formats.push_back(urban::SeriesFormat::tif);
    else if (part == "npy")
      formats.push_back(urban::SeriesFormat::npy);
    else
      throw InputError(fmt::format("'{}'", part), "--format", "of nc, tif, npy, with commas between");
  }
  return formats;
}

urban::SkyPatches patches_of(const std::string& text) {
  if (text == "145") return urban::SkyPatches::p145;
  if (text == "305") return urban::SkyPatches::p305;
  return text == "609" ? urban::SkyPatches::p609 : urban::SkyPatches::p153;
}

void add_weather_options(CLI::App& app, SeriesArguments& a) {
  add_choice(app, "--interval", a.interval, "what the weather's times name of their intervals (default end)",
             {"start", "middle", "end"});
  add_choice(app, "--direct", a.direct,
             "plane of the weather's Kdirect: normal faces the sun (default), horizontal as ERA5's fdir",
             {"normal", "horizontal"});
  add_number(app, "--wind-height", a.wind_height,
             "of the wind sensor above the ground (default: the parameters', else 10)", "M", {0.1, 500});
  add_text(app, "--leaf-days", a.leaf_days,
           "first and last day of the year with leaves, such as 97:300 (default: by latitude)", "FIRST:LAST");
  add_flag(app, "--evergreen", a.evergreen, "trees keep their leaves");
}

urban::LeafDays leaf_days_of(const std::string& text) {
  const size_t colon = text.find(':');
  const auto day = [&](const std::string& part) {
    const std::optional<double> value = parse_number(part);
    if (!value || *value != std::floor(*value) || *value < 1 || *value > 366)
      throw InputError(fmt::format("'{}'", text), "--leaf-days",
                       "FIRST:LAST, days of the year from 1 to 366");
    return static_cast<int>(*value);
  };
  return {day(text.substr(0, colon)), day(colon == text.npos ? "" : text.substr(colon + 1))};
}

/// 0: auto.
int substeps_of(const std::string& text) {
  if (text == "auto") return 0;
  int parts = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts);
  if (error != std::errc{} || end != text.data() + text.size() || parts < 1 || parts > urban::kMostSubsteps)
    throw InputError(fmt::format("'{}'", text), "--substeps",
                     fmt::format("1 to {}, or auto", urban::kMostSubsteps));
  return parts;
}

}  // namespace

void add_series_options(CLI::App& app, SeriesArguments& a, SeriesNeeds needs) {
  const bool required = needs != SeriesNeeds::nothing;
  add_city_options(app, a.city, true, required);
  add_file(app, "--land-cover", a.land_cover,
           "classes of the ground (0 cobble, 1 asphalt, 2 roofs, 5 grass, 6 soil, 7 water)");
  add_file(app, "--wall-height", a.wall_height,
           "heights of walls (m), as 'urban walls' writes them (default: found)");
  add_file(app, "--wall-aspect", a.wall_aspect, "directions of walls, with --wall-height");
  add_text(app, "--svf", a.svf, "folder of 'urban svf --save-patches' (default: computed)", "DIR");
  add_file(app, "--parameters", a.parameters, "UMEP's parameter file (parametersforsolweig.json)");
  add_file(
      app, "--weather", a.weather,
      "EPW, UMEP's text of 24 columns, or CSV: time,Ta,RH,wind,Kglobal[,Kdirect,Kdiffuse,Ldown,pressure]");
  if (required) require(app, "--weather");
  add_text(app, "--from", a.from, "end of the first interval, local time (default: the file's first)",
           "YYYY-MM-DDTHH:MM");
  add_text(app, "--to", a.to, "end of the last interval", "YYYY-MM-DDTHH:MM");
  add_number(app, "--utc-offset", a.utc_offset,
             "hours that the weather's clock is ahead of universal time (default: the file's)", "H",
             {-14, 14});
  add_number(app, "--lat,--latitude", a.latitude, "place (default: the raster's centre, else the weather's)",
             "DEG", {-90, 90});
  add_number(app, "--lon,--longitude", a.longitude, "east positive", "DEG", {-180, 180});
  add_number(app, "--elevation", a.elevation, "of the place above the sea (default: the weather's, else 0)",
             "M", {-500, 9000});
  add_weather_options(app, a);
  add_text(app, "--outputs", a.outputs,
           "of tmrt, utci, pet, shadow, kdown, kup, kside, ldown, lup, lside, gvf, kside_east … lside_north "
           "(default tmrt,utci,shadow)",
           "LIST");
  add_text(app, "--format", a.format, "of nc (run.nc), tif and npy (a file a step and output) (default nc)",
           "LIST");
  add_file(app, "--poi", a.points,
           "points: CSV with id,x,y or id,lat,lon, or GeoJSON; a row of poi.csv a point and step");
  add_choice(app, "--preset", a.preset,
             "rules: as UMEP, as solweig, or as the papers say (default corrected)",
             {"umep", "solweig", "corrected"});
  add_choice(app, "--sky", a.sky, "Perez luminances a patch, or the same everywhere",
             {"anisotropic", "isotropic"});
  add_choice(app, "--body", a.body, "shape of the body that receives radiation", {"cylinder", "box"});
  add_choice(app, "--posture", a.posture, "of the body (default: the parameters', else standing)",
             {"standing", "sitting"});
  add_choice(app, "--patches", a.patches, "patches of the sky (default 153)", {"145", "153", "305", "609"});
  add_text(app, "--substeps", a.substeps,
           "parts of an interval, each with its own sun: 1 to 60, or auto, about ten minutes each (presets "
           "umep and "
           "solweig: 1)",
           "N");
  add_number(app, "--max-reach", a.max_reach, "longest horizontal reach of a ray (default: no limit)", "M",
             {0, 1e7, true});
  add_wall_options(app, a.walls);
  add_flag(app, "--no-pictures", a.no_pictures, "no PNG a step, and no film");
  add_flag(app, "--no-video", a.no_video, "no film of the day (day.mp4)");
  add_flag(app, "--no-resume", a.no_resume, "do not take over finished tiles of a killed run");
  add_output_folder(app, "--out", a.out, "folder for the results; it is made if missing");
  if (needs == SeriesNeeds::all) require(app, "--out");
  add_tile_options(app, a.tiles);
}

void check_series_options(const CLI::App& app, const SeriesArguments& a) {
  check_plants(app, a.city);
  refuse_both(app, "--trunk-ratio", "--parameters");
  refuse_both(app, "--leaf-days", "--evergreen");
  for (const char* option : {"--leaf-days", "--evergreen"})
    if (!a.city.dsm.empty()) expect_beside(app, option, "--cdsm");
  if (!a.wall_height.empty())
    refuse_given(app, {"--wall-limit", "--wall-filter", "--wall-ties"}, "of walls that are found",
                 "no --wall-height");
  if (!a.svf.empty() && a.sky == "isotropic")
    refuse_given(app, {"--patches"}, "grids that are read and no patches", "no --svf, or --sky anisotropic");
}

urban::SeriesOptions series_options(const SeriesArguments& a) {
  urban::SeriesOptions o;
  o.city = city_files(a.city);
  o.land_cover = a.land_cover;
  o.wall_height = a.wall_height;
  o.wall_aspect = a.wall_aspect;
  o.svf_folder = a.svf;
  o.parameters = a.parameters;
  o.weather = a.weather;
  o.points = a.points;
  o.from = a.from;
  o.to = a.to;
  o.utc_offset_h = a.utc_offset;
  o.latitude_deg = a.latitude;
  o.longitude_deg = a.longitude;
  o.elevation_m = a.elevation;
  o.interval = a.interval == "start"    ? urban::IntervalLabel::start
               : a.interval == "middle" ? urban::IntervalLabel::middle
                                        : urban::IntervalLabel::end;
  o.horizontal_direct = a.direct == "horizontal";
  o.wind_height_m = a.wind_height;
  if (!a.leaf_days.empty()) o.leaf_days = leaf_days_of(a.leaf_days);
  o.evergreen = a.evergreen;
  o.outputs.clear();
  for (const std::string& output : split_list(a.outputs, "--outputs"))
    o.outputs.push_back(urban::parse_series_output(output));
  o.formats = formats_of(a.format);
  o.folder = a.out;
  o.pictures = !a.no_pictures;
  o.video = !a.no_video && !a.no_pictures;  // a film is made of the pictures
  o.preset = a.preset;
  o.sky = a.sky;
  o.body = a.body;
  o.posture = a.posture;
  o.patches = patches_of(a.patches);
  o.substeps = substeps_of(a.substeps);
  if (a.max_reach) o.rays.max_reach_m = *a.max_reach;
  o.walls = wall_options(a.walls);
  o.tiles = tile_options(a.tiles);
  o.tiles.on_progress = progress_bar("parts");
  o.resume = !a.no_resume;
  return o;
}

}  // namespace lockstep::cli
