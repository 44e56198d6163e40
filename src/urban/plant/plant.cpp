// A whole run: sites, choice of trees, new rasters of plants, before and after.
#include "lockstep/urban/plant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "core/files/folder_lock.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/areas/area_shapes.hpp"
#include "urban/areas/coverage.hpp"
#include "urban/compare/scenario.hpp"
#include "urban/plant/evaluation.hpp"
#include "urban/plant/greedy.hpp"
#include "urban/plant/outputs.hpp"
#include "urban/run/files/result_folder.hpp"
#include "urban/series/arrays.hpp"
#include "urban/series/whole_series.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;

OptionError plant_error(const char* option, std::string what, std::string expected, std::string place = "") {
  return schema_of<PlantOptions>().error(
      {OptionError::Kind::invalid, option, std::move(what), std::move(expected), "", std::move(place)});
}

SeriesInputs read_inputs(const PlantOptions& options) {
  SeriesOptions read = options;
  read.outputs = {SeriesOutput::utci};
  read.points.clear();
  read.pictures = read.video = false;
  SeriesInputs inputs = read_series_inputs(read, {});
  City& city = inputs.city;
  if (city.canopy.empty()) {
    city.canopy = city.trunk = Array(Storage::f32, {city.rows, city.cols});
    note_leaves(inputs.rules);
  }
  return inputs;
}

/// 1 where half of a pixel or more is in one of the areas.
std::vector<uint8_t> allowed_pixels(const PlantOptions& options, const SeriesInputs& inputs) {
  std::vector<uint8_t> allowed;
  if (options.allowed.empty()) return allowed;
  allowed.assign(inputs.ground.size(), 0);
  double inside = 0;
  std::vector<AreaShape> shapes;
  for (const io::Feature& area :
       read_areas({options.allowed, options.layer, options.areas_crs}, inputs.grid)) {
    shapes.push_back({area.where, "", area.rings});
    const Coverage coverage = coverage_of(shapes.back(), inputs.grid);
    inside += coverage.inside;
    for (size_t k = 0; k < coverage.pixels.size(); ++k)
      if (coverage.shares[k] >= 0.5) allowed[coverage.pixels[k]] = 1;
  }
  if (inside == 0) throw outside_error(shapes, inputs.grid, options.allowed);
  return allowed;
}

std::vector<PlantSite> sites_of(const PlantOptions& options, const SeriesInputs& inputs,
                                const std::vector<CrownPixel>& crown, PlantRefusals& refusals) {
  const double pixel = inputs.city.pixel_size_m,
               spacing_m = options.spacing_m.value_or(options.species->crown_m);
  const auto spacing = std::max<int64_t>(1, std::llround(spacing_m / pixel));
  std::vector<PlantSite> sites =
      find_sites(inputs, crown, spacing, allowed_pixels(options, inputs), refusals);
  if (sites.empty())
    throw plant_error(
        options.allowed.empty() ? "" : "allowed",
        fmt::format(
            "no room for a tree: of {} positions {} are not in an allowed area, {} on roofs or water, {} "
            "too near to a roof, water or a plant, {} too near to the raster's edge",
            refusals.positions, refusals.not_allowed, refusals.no_ground, refusals.no_room, refusals.edge),
        fmt::format("open ground for a crown of {:g} m, or a smaller {{spacing}}", options.species->crown_m),
        options.allowed.string());
  return sites;
}

/// The results that the choice gives.
void describe_choice(const PlantOptions& options, const SeriesInputs& inputs, const GreedyChoice& choice,
                     const std::vector<PlantSite>& sites, PlantResult& result) {
  const auto& t = inputs.grid.transform;
  const auto centre = [&](const PlantSite& site) {
    const double row = static_cast<double>(site.row) + 0.5, col = static_cast<double>(site.col) + 0.5;
    return std::pair(t[0] + col * t[1] + row * t[2], t[3] + col * t[4] + row * t[5]);
  };
  for (size_t k = 0; k < sites.size(); ++k) {
    const auto [x, y] = centre(sites[k]);
    result.candidates.push_back(
        {sites[k].row, sites[k].col, x, y, choice.first_gains[k], choice.last_gains[k], 0});
  }
  double total = 0;
  for (size_t k = 0; k < choice.chosen.size(); ++k) {
    PlantCandidate& c = result.candidates[choice.chosen[k]];
    c.tree = static_cast<int64_t>(k) + 1;
    total += choice.gains[k];
    result.trees.push_back({c.row, c.col, c.x, c.y, choice.gains[k], total});
  }
  result.evaluations = choice.evaluations;
  result.raised = choice.raised;
  if (static_cast<int64_t>(choice.chosen.size()) < options.trees)
    result.warnings.push_back(fmt::format("{} of {} trees: no further one has room and lowers {}",
                                          choice.chosen.size(), options.trees, result.objective));
  if (options.search == PlantSearch::lazy && result.raised > 0)
    result.warnings.push_back(fmt::format(
        "{} of {} evaluations found a higher gain than the one before: the trees may not be those of "
        "the exact search",
        result.raised, result.evaluations));
}

void choose_trees(Context& context, const PlantOptions& options, const SeriesInputs& inputs,
                  const PlantObjective& objective, const std::vector<CrownPixel>& crown,
                  PlantResult& result) {
  std::vector<PlantSite> sites = sites_of(options, inputs, crown, result.refusals);
  const Walls walls = walls_of_series(context, inputs, options.walls);
  PlantEvaluation evaluation(context, inputs, walls, objective, crown, std::move(sites), options);
  result.before = evaluation.value();
  GreedyProblem problem;
  problem.candidates = evaluation.sites().size();
  problem.evaluate = [&](std::span<const size_t> which) { return evaluation.evaluate(which); };
  problem.choose = [&](size_t site) { evaluation.plant(site); };
  problem.changes = [&](size_t site, size_t other) { return evaluation.changes(site, other); };
  problem.excludes = [&](size_t site, size_t other) { return evaluation.excludes(site, other); };
  const GreedyChoice choice = greedy(problem, options.trees, options.search);
  result.after = evaluation.value();
  for (size_t k = 0; k < problem.candidates; ++k)
    result.reach_m = std::max(
        result.reach_m, static_cast<double>(std::max(evaluation.window(k).rows, evaluation.window(k).cols)) *
                            inputs.city.pixel_size_m / 2);
  describe_choice(options, inputs, choice, evaluation.sites(), result);
  result.evaluated_share =
      static_cast<double>(evaluation.pixels()) /
      (static_cast<double>(result.evaluations) * static_cast<double>(inputs.city.pixels()));
}

/// Runs without and with the trees in folders of their own, and their comparison.
void run_before_after(Context& context, const PlantOptions& options, PlantResult& result) {
  SeriesOptions before = options;
  before.pictures = before.video = false;
  before.folder = options.folder / "before";
  SeriesOptions after = before;
  after.folder = options.folder / "after";
  after.city.cdsm = result.cdsm;
  after.city.tdsm = result.tdsm;
  after.city.trunk_ratio = CityFiles().trunk_ratio;
  for (const SeriesOptions* o : {&before, &after})
    for (StageRecord& stage : run(context, *o).host_stages) result.host_stages.push_back(std::move(stage));
  CompareOptions both;
  both.before = before.folder;
  both.after = after.folder;
  both.include_roofs = options.include_roofs;
  both.format = result.cdsm.extension() == ".npy" ? GridFormat::npy : GridFormat::tif;
  both.pictures = options.pictures;
  both.folder = options.folder / "compare";
  const auto shown = [](const fs::path& file) { return file.empty() ? std::string("none") : file.string(); };
  const CompareResult compared = compare(both, {{"cdsm", shown(before.city.cdsm), shown(after.city.cdsm)},
                                                {"tdsm", shown(before.city.tdsm), shown(after.city.tdsm)}});
  result.host_stages.insert(result.host_stages.end(), compared.host_stages.begin(),
                            compared.host_stages.end());
  result.before_run = before.folder;
  result.after_run = after.folder;
  result.comparison = compared.page;
}

}  // namespace

PlantResult plant(Context& context, const PlantOptions& options) {
  schema_of<PlantOptions>().check(&options);
  if (options.folder.empty())
    throw schema_of<PlantOptions>().error(
        {OptionError::Kind::missing, "out", "no folder for the results", "a folder", ""});
  if (!options.species)
    throw schema_of<PlantOptions>().error(
        {OptionError::Kind::missing, "species", "no species", "height,trunk,crown in metres", ""});
  PlantResult result;
  result.objective = options.objective;
  PlantObjective objective;
  const SeriesInputs inputs = host_stage(result.host_stages, "read", [&] {
    SeriesInputs read = read_inputs(options);
    objective = read_objective(options, read);
    return read;
  });
  result.rows = inputs.grid.rows;
  result.cols = inputs.grid.cols;
  result.pixel_size_m = inputs.grid.pixel_size();
  result.projection_scale = inputs.projection_scale;
  result.unit = objective.unit;
  result.warnings = inputs.findings.warnings();
  const size_t said = result.warnings.size();
  const std::vector<CrownPixel> crown = crown_of(*options.species, inputs.city.pixel_size_m);
  choose_trees(context, options, inputs, objective, crown, result);
  for (size_t k = said; k < result.warnings.size(); ++k) logging::warning("{}", result.warnings[k]);
  make_result_folder(options.folder);
  const FolderLock lock(options.folder);
  host_stage(result.host_stages, "write", [&] { write_plants(options, inputs, crown, result); });
  if (options.before_after && !result.trees.empty()) run_before_after(context, options, result);
  write_file(options.folder / "run.json", json_text(document_of(result), 2) + "\n");
  return result;
}

}  // namespace lockstep::urban
