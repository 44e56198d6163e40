// `lockstep urban plant`: where trees help most.
#include <fmt/format.h>

#include "lockstep/urban/plant.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

std::string text_of_trees(const urban::PlantResult& result) {
  std::string text =
      fmt::format("{:>5} {:>12} {:>12} {:>12} {:>12}\n", "tree", "x", "y", "gain " + result.unit, "total");
  for (size_t k = 0; k < result.trees.size(); ++k) {
    const urban::PlantedTree& tree = result.trees[k];
    text += fmt::format("{:>5} {:>12.1f} {:>12.1f} {:>12.5g} {:>12.5g}\n", k + 1, tree.x, tree.y, tree.gain,
                        tree.total);
  }
  text += fmt::format(
      "{}: {:.6g} before, {:.6g} after; {} candidates, {} evaluations, each of {:.0f} % of the "
      "pixels\n",
      result.objective, result.before, result.after, result.candidates.size(), result.evaluations,
      100 * result.evaluated_share);
  for (const auto* file : {&result.cdsm, &result.tdsm, &result.places, &result.curve, &result.comparison})
    if (!file->empty()) text += file->string() + "\n";
  return text;
}

int run_plant(Session& session, urban::PlantOptions options) {
  options.tiles.on_progress = progress_bar("candidates");
  options.words = schema_of<urban::PlantOptions>().in_shell("lockstep urban plant");
  return until_interrupted(
      options.tiles.on_progress,
      [&] {
        const urban::PlantResult result = urban::plant(session.context(), options);
        show(session, result, text_of_trees(result));
      },
      "the same command starts the search of sites again");
}

}  // namespace

void add_urban_plant(CommandList& commands, CLI::App& urban) {
  add_call<urban::PlantOptions>(
      commands, urban, "plant", "where trees help most: sites selected one by one",
      "lockstep urban plant --dsm dsm.tif --dem dem.tif --cdsm cdsm.tif --weather met.txt --utc-offset 1 "
      "--trees 30 --species 10,3,6 --out trees",
      run_plant);
}

}  // namespace lockstep::cli
