// Names and options of runs hour by hour.
#include "lockstep/urban/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/schema/shell_flags.hpp"
#include "urban/options/errors.hpp"

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
std::span<const Choice<SkyModel>> choices(SkyModel) {
  static constexpr auto kAll = std::to_array<Choice<SkyModel>>(
      {{"anisotropic", SkyModel::anisotropic}, {"isotropic", SkyModel::isotropic}});
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

/// 0: auto.
int substeps_of_text(const std::string& text) {
  return text == "auto" ? 0 : whole_of(text, 1, kMostSubsteps);
}
std::string substeps_text(const int& parts) { return parts == 0 ? "auto" : std::to_string(parts); }

void describe_inputs(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  const auto file = [&s](const char* name, auto member, const char* help) {
    return s.option(name, member, help).file(Use::input).shown("FILE");
  };
  file("land_cover", &O::land_cover,
       "classes of the ground (0 cobble, 1 asphalt, 2 roofs, 5 grass, 6 soil, 7 water)");
  file("wall_height", &O::wall_height, "heights of walls (m), as 'urban walls' writes them").or_else("found");
  file("wall_aspect", &O::wall_aspect, "directions of walls, with {wall_height}");
  s.option("svf", &O::svf_folder, "folder of 'urban svf --save-patches'")
      .member("svf_folder")
      .shown("DIR")
      .or_else("computed");
  file("parameters", &O::parameters, "UMEP's parameter file (parametersforsolweig.json)");
  file("weather", &O::weather,
       "EPW, UMEP's text of 24 columns, or CSV: "
       "time,Ta,RH,wind,Kglobal[,Kdirect,Kdiffuse,Ldown,pressure]")
      .required();
  s.option("start", &O::from, "end of the first interval, local time")
      .member("from")
      .flag("from")
      .shown("YYYY-MM-DDTHH:MM")
      .or_else("the file's first");
  s.option("end", &O::to, "end of the last interval").member("to").flag("to").shown("YYYY-MM-DDTHH:MM");
  s.option("utc_offset", &O::utc_offset_h, "hours that the weather's clock is ahead of universal time")
      .member("utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the file's");
  s.option("latitude", &O::latitude_deg, "place")
      .member("latitude_deg")
      .also("lat")
      .at_least(-90)
      .at_most(90)
      .shown("DEG")
      .or_else("the raster's centre, else the weather's");
  s.option("longitude", &O::longitude_deg, "east positive")
      .member("longitude_deg")
      .also("lon")
      .at_least(-180)
      .at_most(180)
      .shown("DEG");
  s.option("elevation", &O::elevation_m, "of the place above the sea")
      .member("elevation_m")
      .at_least(-500)
      .at_most(9000)
      .shown("M")
      .or_else("the weather's, else 0");
  s.option("interval", &O::interval, "what the weather's times name of their intervals");
  s.option("direct", &O::horizontal_direct,
           "plane of the weather's Kdirect: normal faces the sun, horizontal as ERA5's fdir",
           {{"normal", false}, {"horizontal", true}})
      .member("horizontal_direct");
  s.option("wind_height", &O::wind_height_m, "of the wind sensor above the ground")
      .member("wind_height_m")
      .at_least(0.1)
      .at_most(500)
      .shown("M")
      .or_else("the parameters', else 10");
  s.text("leaf_days", &O::leaf_days, "first and last day of the year with leaves, such as 97:300",
         "FIRST:LAST, days of the year from 1 to 366", &leaf_days_text, &leaf_days_of)
      .parts(":")
      .example("97:300")
      .shown("FIRST:LAST")
      .or_else("by latitude");
  s.option("evergreen", &O::evergreen, "trees keep their leaves");
}

void describe_results(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  s.option("outputs", &O::outputs,
           "of tmrt, utci, pet, shadow, kdown, kup, kside, ldown, lup, lside, gvf, kside_east … lside_north")
      .shown("LIST");
  s.option("format", &O::formats, "of nc (run.nc), tif and npy (a file a step and output)")
      .member("formats")
      .formerly("formats")
      .shown("LIST")
      .effect(Effect::display);
  s.option("poi", &O::points,
           "points: CSV with id,x,y or id,lat,lon, GeoJSON, GeoPackage or shapefile; a row of poi.csv a "
           "point and step")
      .member("points")
      .formerly("points")
      .file(Use::input)
      .shown("FILE");
  s.option("preset", &O::preset, "rules: as UMEP, as solweig, or as the papers say");
  s.option("sky", &O::sky, "Perez luminances a patch, or the same everywhere");
  s.option("body", &O::body, "shape of the body that receives radiation");
  s.option("posture", &O::posture, "of the body",
           {{"standing", Posture::standing}, {"sitting", Posture::sitting}})
      .or_else("the parameters', else standing");
  s.option("patches", &O::patches, "patches of the sky");
  s.text(
       "substeps", &O::substeps,
       "parts of an interval, each with its own sun: 1 to 60, or auto, about ten minutes each (presets umep "
       "and solweig: 1)",
       fmt::format("1 to {}, or auto", kMostSubsteps), &substeps_text, &substeps_of_text)
      .example("3")
      .shown("N");
  s.include(&O::rays);
  s.include(&O::walls);
  s.option("pictures", &O::pictures, "PNG a step and film of the day").effect(Effect::display);
  s.option("video", &O::video, "film of the day (day.mp4)").effect(Effect::display);
  s.option("include_roofs", &O::include_roofs,
           "statistics and pictures of roofs and water too, not of the ground where people stand alone")
      .effect(Effect::display);
  s.option("resume", &O::resume, "reuse of finished tiles of a killed run").effect(Effect::speed);
  s.option("out", &O::folder, "folder for the results; it is made if missing")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.include(&O::tiles);
}

constexpr auto kNothing = "an option without effect";

}  // namespace

void describe(Schema<SeriesOptions>& s) {
  using O = SeriesOptions;
  s.of("urban::SeriesOptions");
  s.include(&O::city);
  describe_inputs(s);
  describe_results(s);
  s.conflict("trunk_ratio", "parameters");
  s.conflict("leaf_days", "evergreen");
  for (const char* name : {"leaf_days", "evergreen"})
    s.useless(
        name, [](const O& o) { return !o.city.dsm.empty() && o.city.cdsm.empty(); }, kNothing, "{cdsm} too");
  for (const char* name : {"minimum_height", "wall_filter", "wall_ties"})
    s.useless(
        name, [](const O& o) { return !o.wall_height.empty(); }, "of walls that are found",
        "no {wall_height}");
  s.useless(
      "patches", [](const O& o) { return !o.svf_folder.empty() && o.sky == SkyModel::isotropic; },
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
  s.include_base<SeriesOptions>({"out"});
  add_shell_flag(s, "strict", "exit code 1 where a verdict is not ok");
}

void describe(Schema<ValidationOptions>& s) {
  using O = ValidationOptions;
  s.of("urban::ValidationOptions");
  s.option("measured", &O::measured, "CSV: time or hour, and Tmrt, Kdown, Kup, Kside, Ldown, Lup, Lside")
      .file(Use::input)
      .shown("FILE")
      .required();
  s.option("measured_utc_offset", &O::measured_utc_offset_h, "of the measurements' clock")
      .member("measured_utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the weather's");
  s.include(&O::series);
}

void describe(Schema<GateOptions>& s) {
  s.of("urban::GateOptions");
  s.include_base<SeriesOptions>({"out", "format", "poi", "pictures", "video", "include_roofs", "resume"});
  for (const char* name : {"dsm", "weather"}) s.change(name).required(false);
  s.needed(
      "weather", [](const GateOptions& o) { return !o.city.dsm.empty(); }, "a city without its weather",
      "{weather} next to {dsm}");
  // The sample has its own city, weather and place.
  for (const char* name :
       {"dem", "cdsm", "tdsm", "pixel_size", "band", "dsm_heights", "trunk_ratio", "canopy", "land_cover",
        "wall_height", "wall_aspect", "svf", "weather", "latitude", "longitude", "utc_offset"})
    s.useless(
        name, [](const GateOptions& o) { return o.city.dsm.empty(); }, "of a city, next to the sample",
        "{dsm} too");
  add_shell_flag(s, "quirks",
                 "instead: what each point where the presets differ does to Tmrt, toggled alone");
}

}  // namespace lockstep::urban
