// Options of what is made of runs.
#include <fmt/format.h>

#include <array>

#include "lockstep/urban/areas.hpp"
#include "lockstep/urban/compare.hpp"
#include "urban/options/hours.hpp"

namespace lockstep::urban {

std::span<const Choice<AreaGroups>> choices(AreaGroups) {
  using enum AreaGroups;
  static constexpr auto kAll =
      std::to_array<Choice<AreaGroups>>({{"none", none}, {"land-cover", land_cover}, {"class", stress}});
  return kAll;
}
std::span<const Choice<AreaPeriod>> choices(AreaPeriod) {
  using enum AreaPeriod;
  static constexpr auto kAll =
      std::to_array<Choice<AreaPeriod>>({{"hour", hour}, {"day", day}, {"period", period}});
  return kAll;
}

namespace {

using Use = Option::Use;

}  // namespace

void describe(Schema<CompareOptions>& s) {
  using O = CompareOptions;
  s.of("urban::CompareOptions");
  s.option("before", &O::before, "folder of 'urban run', before the change")
      .flag("BEFORE")
      .file(Use::input)
      .positional()
      .required();
  s.option("after", &O::after, "folder of 'urban run' of the same place and weather, after the change")
      .flag("AFTER")
      .file(Use::input)
      .positional()
      .required();
  s.option("differing", &O::differing,
           "options that may differ in addition to those of the surface, by their names in run.json: "
           "weather,preset")
      .shown("LIST");
  s.option("include_roofs", &O::include_roofs,
           "count and show roofs and water too, not only what is ground in both runs");
  s.option("format", &O::format, "format of the grids").effect(Effect::display);
  s.option("pictures", &O::pictures, "map of the change next to each grid").effect(Effect::display);
  s.include(&O::map);
  s.option("out", &O::folder, "folder for the results, created if missing")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
}

void describe(Schema<AreaStatisticsOptions>& s) {
  using O = AreaStatisticsOptions;
  s.of("urban::AreaStatisticsOptions");
  s.option("run", &O::run, "folder of 'urban run'").flag("DIR").file(Use::input).positional().required();
  s.option("areas", &O::areas, "GeoPackage, shapefile, GeoJSON, or CSV with a column wkt")
      .file(Use::input)
      .shown("FILE")
      .required();
  s.option("layer", &O::layer, "layer of a file with several").shown("NAME");
  s.option("areas_crs", &O::areas_crs, "CRS of areas whose file declares none").shown("EPSG:CODE");
  s.option("id", &O::id, "field with the names of the areas")
      .shown("FIELD")
      .or_else("id or name, else numbers");
  s.option("outputs", &O::outputs, "outputs of the run and names of its summaries")
      .shown("LIST")
      .or_else("all outputs");
  s.text("hours", &O::hours, "hours of the day that count, such as 11-17", kHoursForm, &hours_text, &hours_of)
      .parts("-")
      .example("11-17")
      .shown("FROM-TO");
  s.option("threshold", &O::thresholds, "ground and hours beyond bounds of outputs: 'utci>38,tmrt>=60'")
      .member("thresholds")
      .shown("LIST");
  s.option("by", &O::groups,
           "classes that divide the ground of an area: land cover, or the stress class of each step")
      .member("groups");
  s.option("per", &O::periods, "one row per hour, per day (mean), or for the whole period (mean)")
      .member("periods")
      .shown("LIST");
  s.option("percentiles", &O::percentiles, "percentiles of the pixels, 0 to 100")
      .at_least(0)
      .at_most(100)
      .shown("LIST");
  s.option("land_cover", &O::land_cover, "classes of the ground")
      .file(Use::input)
      .shown("FILE")
      .or_else("the run's");
  s.option("include_roofs", &O::include_roofs,
           "count roofs and water too, not only ground that people can use");
  s.option("out", &O::file, "table of the areas: CSV, or a GeoPackage with their shapes")
      .member("file")
      .file(Use::output_file, {".csv", ".gpkg"})
      .shown("FILE")
      .required()
      .effect(Effect::display);
  s.useless(
      "land_cover", [](const O& o) { return o.groups != AreaGroups::land_cover; }, "classes without effect",
      "{by} land-cover");
}

}  // namespace lockstep::urban
