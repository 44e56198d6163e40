// Names and options of runs hour by hour.
#include "lockstep/urban/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/numbers/parse_number.hpp"
#include "core/schema/shell_flags.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "urban/options/errors.hpp"
#include "urban/options/hours.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {

std::span<const Choice<SeriesOutput>> choices(SeriesOutput) {
  using enum SeriesOutput;
  static constexpr auto kAll = std::to_array<Choice<SeriesOutput>>({{"tmrt", tmrt},
                                                                    {"utci", utci},
                                                                    {"pet", pet},
                                                                    {"shadow", shadow},
                                                                    {"kdown", kdown},
                                                                    {"kup", kup},
                                                                    {"kside", kside},
                                                                    {"ldown", ldown},
                                                                    {"lup", lup},
                                                                    {"lside", lside},
                                                                    {"gvf", gvf},
                                                                    {"kside_east", kside_east},
                                                                    {"kside_south", kside_south},
                                                                    {"kside_west", kside_west},
                                                                    {"kside_north", kside_north},
                                                                    {"lside_east", lside_east},
                                                                    {"lside_south", lside_south},
                                                                    {"lside_west", lside_west},
                                                                    {"lside_north", lside_north}});
  static_assert(kAll.size() == kSeriesOutputs);
  return kAll;
}
std::span<const Choice<SeriesFormat>> choices(SeriesFormat) {
  static constexpr auto kAll = std::to_array<Choice<SeriesFormat>>(
      {{"nc", SeriesFormat::nc}, {"tif", SeriesFormat::tif}, {"npy", SeriesFormat::npy}});
  return kAll;
}
std::span<const Choice<Preset>> choices(Preset) {
  static constexpr auto kAll = std::to_array<Choice<Preset>>(
      {{"umep", Preset::umep}, {"solweig", Preset::solweig}, {"corrected", Preset::corrected}});
  return kAll;
}
std::span<const Choice<Body>> choices(Body) {
  static constexpr auto kAll =
      std::to_array<Choice<Body>>({{"cylinder", Body::cylinder}, {"box", Body::box}});
  return kAll;
}
std::span<const Choice<Posture>> choices(Posture) {
  static constexpr auto kAll =
      std::to_array<Choice<Posture>>({{"standing", Posture::standing}, {"sitting", Posture::sitting}});
  return kAll;
}
std::span<const Choice<IntervalLabel>> choices(IntervalLabel) {
  using enum IntervalLabel;
  static constexpr auto kAll =
      std::to_array<Choice<IntervalLabel>>({{"start", start}, {"middle", middle}, {"end", end}});
  return kAll;
}

namespace {

using Use = Option::Use;
using SomeDays = std::optional<LeafDays>;

int whole_of(const std::string& text, int low, int high) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > high)
    throw bad_text(fmt::format("'{}'", text), "");
  return number;
}

SomeDays leaf_days_of(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string last = text.substr(std::min(colon + 1, text.size()));
  try {
    return LeafDays{whole_of(text.substr(0, colon), 1, 366), whole_of(last, 1, 366)};
  } catch (const OptionError&) { throw bad_text(fmt::format("'{}'", text), ""); }
}
std::string leaf_days_text(const SomeDays& days) {
  return days ? fmt::format("{}:{}", days->first, days->last) : "";
}

std::optional<PictureRange> range_of(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view all = text;
  const auto low = parse_number<double>(all.substr(0, colon)),
             high = parse_number<double>(all.substr(std::min(colon + 1, all.size())));
  if (!low || !high || !(*low < *high)) throw bad_text(fmt::format("'{}'", text), "");
  return PictureRange{*low, *high};
}
std::string range_text(const std::optional<PictureRange>& range) {
  return range ? fmt::format("{:g}:{:g}", range->low, range->high) : "";
}

std::optional<double> saving_of(const std::string& text) {
  if (text == "auto") return {};
  const auto hours = parse_number<double>(text);
  if (!hours || !(*hours >= 0 && *hours <= 2)) throw bad_text(fmt::format("'{}'", text), "");
  return hours;
}
std::string saving_text(const std::optional<double>& hours) {
  return hours ? fmt::format("{:g}", *hours) : "auto";
}

/// 0: auto.
int substeps_of_text(const std::string& text) {
  return text == "auto" ? 0 : whole_of(text, 1, kMostSubsteps);
}
std::string substeps_text(const int& parts) { return parts == 0 ? "auto" : std::to_string(parts); }

void describe_inputs(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  const auto file = [&s](const char* name, auto member, std::string help) {
    return s.option(name, member, help).file(Use::input).shown("FILE");
  };
  file("land_cover", &O::land_cover,
       fmt::format("classes of the ground ({})", ModelParameters{}.class_table()));
  file("wall_height", &O::wall_height, "heights of walls (m), as 'urban walls' writes them")
      .or_else("computed");
  file("wall_aspect", &O::wall_aspect, "directions of walls, with {wall_height}");
  s.option("svf", &O::svf_folder, "folder of 'urban svf --save-patches'")
      .member("svf_folder")
      .shown("DIR")
      .or_else("computed");
  file("parameters", &O::parameters, "UMEP's parameter file (parametersforsolweig.json)");
  file("weather", &O::weather,
       "EPW, UMEP's text of 24 columns, ERA5 single levels (NetCDF), or CSV: "
       "time,Ta,RH,wind,Kglobal[,Kdirect,Kdiffuse,Ldown,pressure,wind_direction]")
      .required();
  s.option("start", &O::from, "end of the first interval, local time")
      .member("from")
      .flag("from")
      .shown("YYYY-MM-DDTHH:MM")
      .or_else("the file's first");
  s.option("end", &O::to, "end of the last interval").member("to").flag("to").shown("YYYY-MM-DDTHH:MM");
  s.option("utc_offset", &O::utc_offset_h,
           "hours by which the clock of the weather is ahead of universal time")
      .member("utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the file's");
  s.option("latitude", &O::latitude_deg, "latitude, north positive")
      .member("latitude_deg")
      .also("lat")
      .at_least(-90)
      .at_most(90)
      .shown("DEG")
      .or_else("the raster's centre, else the weather's");
  s.option("longitude", &O::longitude_deg, "longitude, east positive")
      .member("longitude_deg")
      .also("lon")
      .at_least(-180)
      .at_most(180)
      .shown("DEG");
  s.option("elevation", &O::elevation_m, "elevation above sea level")
      .member("elevation_m")
      .at_least(-500)
      .at_most(9000)
      .shown("M")
      .or_else("the weather's, else 0");
  s.option("interval", &O::interval, "part of the interval that the times of the weather denote");
  s.option("direct", &O::horizontal_direct,
           "plane of Kdirect in the weather: normal faces the sun, horizontal as in ERA5's fdir",
           {{"normal", false}, {"horizontal", true}})
      .member("horizontal_direct");
  s.option("wind_height", &O::wind_height_m, "height of the wind sensor above the ground")
      .member("wind_height_m")
      .at_least(0.1)
      .at_most(500)
      .shown("M")
      .or_else("the parameters', else 10");
  s.option("weather_cell", &O::nearest_cell,
           "cell of gridded weather (ERA5): the nearest, or interpolated between four",
           {{"bilinear", false}, {"nearest", true}})
      .member("nearest_cell");
  s.include(&O::wind_field);
  s.include(&O::air_field);
  s.text("leaf_days", &O::leaf_days, "first and last day of the year with leaves, such as 97:300",
         "FIRST:LAST, days of the year from 1 to 366", &leaf_days_text, &leaf_days_of)
      .parts(":")
      .example("97:300")
      .shown("FIRST:LAST")
      .or_else("by latitude");
  s.option("evergreen", &O::evergreen, "trees keep their leaves");
}

void describe_summary(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  s.option("threshold", &O::thresholds,
           "bounds of outputs, whose hours the summary has in addition: 'utci>35,tmrt>=50'")
      .member("thresholds")
      .shown("LIST")
      .effect(Effect::display);
  s.text("hours", &O::hours, "hours of the day that the summary counts, such as 11-17", kHoursForm,
         &hours_text, &hours_of)
      .parts("-")
      .example("11-17")
      .shown("FROM-TO");
}

void describe_results(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  s.option("outputs", &O::outputs,
           "outputs: tmrt, utci, pet, shadow, kdown, kup, kside, ldown, lup, lside, gvf, kside_east … "
           "lside_north")
      .shown("LIST");
  s.option("format", &O::formats, "formats: nc (run.nc), tif and npy (one file per step and output)")
      .member("formats")
      .formerly("formats")
      .shown("LIST")
      .effect(Effect::display);
  describe_summary(s);
  s.option("poi", &O::points,
           "points: CSV with id,x,y or id,lat,lon, GeoJSON, GeoPackage or shapefile; poi.csv has a row per "
           "point and step")
      .member("points")
      .formerly("points")
      .file(Use::input)
      .shown("FILE");
  s.option("preset", &O::preset, "rules: of UMEP, of solweig, or of the papers");
  s.option("sky", &O::sky, "Perez luminance of each patch, or uniform");
  s.option("body", &O::body, "shape of the body");
  s.option("posture", &O::posture, "posture of the body",
           {{"standing", Posture::standing}, {"sitting", Posture::sitting}})
      .or_else("as the parameters specify, else standing");
  s.option("patches", &O::patches, "patches of the sky");
  s.text("substeps", &O::substeps,
         "parts of an interval, each with its own sun position: 1 to 60, or auto, about ten minutes each "
         "(presets umep and solweig: 1)",
         fmt::format("1 to {}, or auto", kMostSubsteps), &substeps_text, &substeps_of_text)
      .example("3")
      .shown("N");
  s.include(&O::rays);
  s.include(&O::walls);
  s.option("pictures", &O::pictures, "PNG per step and film of the day").effect(Effect::display);
  s.option("video", &O::video, "film of the day (day.mp4)").effect(Effect::display);
  s.option("include_roofs", &O::include_roofs,
           "include roofs and water in statistics and pictures, not only ground that people can use")
      .effect(Effect::display);
  s.option("place", &O::place, "name of the place, on pictures and in the report")
      .shown("TEXT")
      .effect(Effect::display);
  s.option("scenario", &O::scenario,
           "name of the scenario, such as 'with 30 trees', on pictures and in the report")
      .shown("TEXT")
      .effect(Effect::display);
  s.include(&O::map);
  s.text("picture_range", &O::picture_range,
         "range of the colours of pictures without classes, such as 0:60; keeps the scale of a film constant",
         "LOW:HIGH", &range_text, &range_of)
      .parts(":")
      .example("0:60")
      .shown("LOW:HIGH")
      .or_else("each picture's values")
      .effect(Effect::display);
  s.text("daylight_saving", &O::daylight_saving_h,
         "hours added for daylight saving time on pictures and in the report; auto: by date and place, in "
         "the European Union, the United States and Canada",
         "0 to 2, or auto", &saving_text, &saving_of)
      .member("daylight_saving_h")
      .example("1")
      .shown("H")
      .effect(Effect::display);
  s.option("resume", &O::resume, "reuse of finished tiles of a killed run").effect(Effect::speed);
  s.option("out", &O::folder, "folder for the results, created if missing")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.include(&O::tiles);
}

constexpr auto kNothing = "an option without effect";

}  // namespace

void describe(Schema<WindFieldOptions>& s) {
  using O = WindFieldOptions;
  s.of("urban::WindFieldOptions");
  s.option("wind_field", &O::file, "wind of each pixel by its direction: GeoTIFF with bands, or NetCDF")
      .member("file")
      .file(Use::input)
      .shown("FILE");
  s.option("wind_field_values", &O::speeds, "unit of {wind_field}: share of the wind, or m/s",
           {{"factor", false}, {"speed", true}})
      .member("speeds");
  s.option("wind_field_directions", &O::directions_deg,
           "directions of its bands: degrees from north, where the wind comes from")
      .member("directions_deg")
      .at_least(0)
      .at_most(360)
      .shown("DEG,DEG…")
      .or_else("the file's");
  s.option("wind_field_height", &O::height_m, "height of the values of {wind_field} above the ground")
      .member("height_m")
      .at_least(0.1)
      .at_most(500)
      .shown("M");
  s.option("wind_field_reference_height", &O::reference_height_m,
           "height of the reference wind of its values")
      .member("reference_height_m")
      .at_least(0.1)
      .at_most(500)
      .shown("M");
  s.option("wind_field_reference_speed", &O::reference_speed_m_s, "reference wind speed of its values")
      .member("reference_speed_m_s")
      .above(0)
      .at_most(100)
      .shown("M/S");
}

void describe(Schema<AirFieldOptions>& s) {
  using O = AirFieldOptions;
  s.of("urban::AirFieldOptions");
  s.option("air_temperature_field", &O::file,
           "air temperature of each pixel: GeoTIFF or NetCDF with one band, or one per time")
      .member("file")
      .file(Use::input)
      .shown("FILE");
  s.option("air_temperature_values", &O::absolute,
           "unit of {air_temperature_field}: K above the air of the weather, or °C",
           {{"offset", false}, {"absolute", true}})
      .member("absolute");
}

void describe(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  s.of("urban::SeriesOptions");
  s.include(&O::city);
  describe_inputs(s);
  describe_results(s);
  s.conflict("trunk_ratio", "parameters");
  s.conflict("leaf_days", "evergreen");
  for (const char* name : {"wind_field_values", "wind_field_directions", "wind_field_height",
                           "wind_field_reference_height", "wind_field_reference_speed"})
    s.useless(name, [](const O& o) { return o.wind_field.file.empty(); }, kNothing, "{wind_field} too");
  s.useless(
      "weather_cell", [](const O& o) { return !o.weather.empty() && !io::is_netcdf(o.weather); },
      "of weather of one place", "ERA5's NetCDF as {weather}");
  s.useless(
      "air_temperature_values", [](const O& o) { return o.air_field.file.empty(); }, kNothing,
      "{air_temperature_field} too");
  s.useless(
      "wind_field_reference_speed", [](const O& o) { return !o.wind_field.speeds; },
      "of speeds, not of factors", "{wind_field_values} speed");
  s.needed(
      "wind_field_reference_speed",
      [](const O& o) { return !o.wind_field.file.empty() && o.wind_field.speeds; },
      "speeds without the wind that they belong to", "{wind_field_reference_speed}");
  for (const char* name : {"leaf_days", "evergreen"})
    s.useless(
        name, [](const O& o) { return !o.trees_follow && !o.city.dsm.empty() && o.city.cdsm.empty(); },
        kNothing, "{cdsm} too");
  for (const char* name : {"minimum_height", "wall_filter", "wall_ties"})
    s.useless(
        name, [](const O& o) { return !o.wall_height.empty(); }, "of walls that are found",
        "no {wall_height}");
  s.useless(
      "patches", [](const O& o) { return !o.svf_folder.empty() && !has_patches(o.sky); },
      "grids that are read and no patches", "no {svf}, or {sky} anisotropic");
  // A film is made of the pictures.
  s.derive([](O& o, const Given&) { o.video = o.video && o.pictures; });
}

OptionError file_error(std::string what, std::string place, std::string expected, std::string hint) {
  return schema_of<SeriesOptions>().error({OptionError::Kind::invalid, "", std::move(what),
                                           std::move(expected), std::move(hint), std::move(place)});
}

void describe(Schema<CheckOptions>& s) {
  s.of("urban::CheckOptions");
  s.include_base<SeriesOptions>({"out", "basemap"});
  add_shell_flag(s, "strict", "exit code 1 if a verdict is not ok");
}

void describe(Schema<ValidationOptions>& s) {
  using O = ValidationOptions;
  s.of("urban::ValidationOptions");
  s.option("measured", &O::measured, "CSV: time or hour, and Tmrt, Kdown, Kup, Kside, Ldown, Lup, Lside")
      .file(Use::input)
      .shown("FILE")
      .required();
  s.option("measured_utc_offset", &O::measured_utc_offset_h, "UTC offset of the measurements")
      .member("measured_utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the weather's");
  s.include(&O::series, {"basemap", "threshold", "hours"});
}

void describe(Schema<GateOptions>& s) {
  s.of("urban::GateOptions");
  s.include_base<SeriesOptions>({"out", "format", "poi", "pictures", "video", "include_roofs", "resume",
                                 "place", "scenario", "picture_range", "daylight_saving", "basemap",
                                 "threshold", "hours"});
  for (const char* name : {"dsm", "weather"}) s.change(name).required(false);
  s.needed(
      "weather", [](const GateOptions& o) { return !o.city.dsm.empty(); }, "a city without its weather",
      "{weather} next to {dsm}");
  // The sample has its own city, weather and place.
  for (const char* name : {"dem", "cdsm", "tdsm", "pixel_size", "band", "dsm_heights", "trunk_ratio",
                           "canopy", "land_cover", "wall_height", "wall_aspect", "svf", "weather",
                           "wind_field", "air_temperature_field", "latitude", "longitude", "utc_offset"})
    s.useless(
        name, [](const GateOptions& o) { return o.city.dsm.empty(); }, "of a city, next to the sample",
        "{dsm} too");
  add_shell_flag(s, "quirks", "print the effect of each difference between the presets on Tmrt instead");
}

}  // namespace lockstep::urban
