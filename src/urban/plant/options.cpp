// Options and results of planting.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"

namespace lockstep::urban {

std::span<const Choice<PlantSearch>> choices(PlantSearch) {
  static constexpr auto kAll =
      std::to_array<Choice<PlantSearch>>({{"exact", PlantSearch::exact}, {"lazy", PlantSearch::lazy}});
  return kAll;
}

namespace {

using SomeSpecies = std::optional<TreeSpecies>;
SomeSpecies species_of(const std::string& text) { return parse_species(text); }
std::string species_text(const SomeSpecies& s) {
  return s ? fmt::format("{},{},{}", s->height_m, s->trunk_m, s->crown_m) : "";
}

}  // namespace

void describe(Schema<PlantOptions>& s) {
  using O = PlantOptions;
  using Use = Option::Use;
  s.of("urban::PlantOptions");
  s.option("trees", &O::trees, "trees to place").at_least(1).at_most(10'000).shown("N").required();
  s.text(
       "species", &O::species,
       "height of the tree, height of the crown base above the ground, and diameter of the crown (m): 10,3,6",
       "height,trunk,crown in metres", &species_text, &species_of)
      .example("10,3,6")
      .shown("HEIGHT,TRUNK,CROWN")
      .required();
  s.option("allowed", &O::allowed,
           "areas that trunks may be in: GeoPackage, shapefile, GeoJSON, or CSV with a column wkt")
      .file(Use::input)
      .shown("FILE")
      .or_else("all ground");
  s.option("layer", &O::layer, "layer of a file of areas with several").shown("NAME");
  s.option("areas_crs", &O::areas_crs, "CRS of areas whose file declares none").shown("EPSG:CODE");
  s.option("objective", &O::objective,
           "quantity that trees should reduce: hours>38, hours of UTCI above a bound on each square metre of "
           "ground; mean-utci, its mean over ground and time; or a file, its mean over people: areas with a "
           "field people, or a raster of them")
      .shown("hours>BOUND|mean-utci|FILE");
  s.option("spacing", &O::spacing_m, "distance between candidates")
      .member("spacing_m")
      .above(0)
      .at_most(1e5)
      .shown("M")
      .or_else("the crown's diameter");
  s.option(
      "search", &O::search,
      "exact: every candidate within reach of a new tree is re-evaluated; lazy: only the most promising one");
  s.option("least_altitude", &O::least_altitude_deg,
           "lowest altitude of the sun and of sky patches considered; a tree is evaluated where it is seen "
           "in front of them, 0: all")
      .member("least_altitude_deg")
      .at_least(0)
      .below(90)
      .shown("DEG");
  s.option("before_after", &O::before_after, "runs before and after, and their comparison")
      .effect(Effect::display);
  s.include_base<SeriesOptions>({"svf", "poi", "video", "resume", "basemap", "threshold", "hours"});
}

namespace {

nlohmann::ordered_json planted(const PlantResult& result) {
  auto trees = nlohmann::ordered_json::array();
  for (const PlantedTree& t : result.trees)
    trees.push_back(
        {{"row", t.row}, {"col", t.col}, {"x", t.x}, {"y", t.y}, {"gain", t.gain}, {"total", t.total}});
  return trees;
}

nlohmann::ordered_json tried(const PlantResult& result) {
  auto candidates = nlohmann::ordered_json::array();
  for (const PlantCandidate& c : result.candidates)
    candidates.push_back({{"row", c.row},
                          {"col", c.col},
                          {"x", c.x},
                          {"y", c.y},
                          {"first_gain", c.first_gain},
                          {"last_gain", c.last_gain},
                          {"tree", c.tree}});
  return candidates;
}

}  // namespace

nlohmann::ordered_json document_of(const PlantResult& result) {
  nlohmann::ordered_json document = document_of(static_cast<const RunResult&>(result));
  document["objective"] = result.objective;
  document["unit"] = result.unit;
  document["before"] = result.before;
  document["after"] = result.after;
  document["trees"] = planted(result);
  document["candidates"] = tried(result);
  const PlantRefusals& r = result.refusals;
  document["positions"] = {{"all", r.positions},
                           {"not_allowed", r.not_allowed},
                           {"no_ground", r.no_ground},
                           {"no_room", r.no_room},
                           {"edge", r.edge}};
  document["reach"] = result.reach_m;
  document["evaluations"] = result.evaluations;
  document["evaluated_share"] = result.evaluated_share;
  document["raised"] = result.raised;
  for (const auto& [key, file] : {std::pair("cdsm", &result.cdsm),
                                  {"tdsm", &result.tdsm},
                                  {"places", &result.places},
                                  {"curve", &result.curve},
                                  {"curve_picture", &result.curve_picture},
                                  {"before_run", &result.before_run},
                                  {"after_run", &result.after_run},
                                  {"comparison", &result.comparison}})
    if (!file->empty()) document[key] = file->string();
  return document;
}
std::string to_json(const PlantResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
