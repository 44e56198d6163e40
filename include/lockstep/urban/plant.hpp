// Greedy selection of sites for trees by the effect of each tree on thermal comfort, as in `lockstep urban plant`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

/// A tree: a crown that is the upper half of an ellipsoid, on a trunk.
struct TreeSpecies {
  double height_m = 0;  ///< top of the crown above the ground
  double trunk_m = 0;   ///< base of the crown above the ground
  double crown_m = 0;   ///< diameter of the crown
};
/// Reads "10,3,6": height, base and diameter of the crown (m). Throws InputError for other text, and for a base that is
/// not below the top.
TreeSpecies parse_species(const std::string& text);

/// exact: every candidate in reach of a new tree is evaluated again. lazy (Minoux 1978): only those whose last gain
/// exceeds the best one. The result is the same if gains only decrease as trees are added.
enum class PlantSearch { exact, lazy };
std::span<const Choice<PlantSearch>> choices(PlantSearch);

/// The options of `run` for inputs and model, and those of the selection.
struct PlantOptions : SeriesOptions {
  PlantOptions() { trees_follow = true; }
  int64_t trees = 1;
  std::optional<TreeSpecies> species;
  std::filesystem::path allowed;  ///< areas allowed for trees; empty: anywhere on the ground
  std::string layer, areas_crs;   ///< of `allowed`, and of areas with people
  /// "hours>38": hours with UTCI above a threshold (°C), per square metre of ground. "mean-utci": mean of UTCI over ground
  /// and time. A file: mean of UTCI over people, from areas with a field `people` or a raster of people per pixel.
  std::string objective = "hours>38";
  std::optional<double> spacing_m;  ///< between candidates; default: the crown's diameter
  PlantSearch search = PlantSearch::exact;
  /// A tree is evaluated on the pixels from which it hides the sun or a patch of the sky at this altitude or above; 0: on
  /// all pixels that it can change.
  double least_altitude_deg = 6;
  bool before_after = true;  ///< also run the model without and with the trees, and compare the two runs
};

struct PlantedTree {
  int64_t row = 0, col = 0;
  double x = 0, y = 0;
  double gain = 0, total = 0;  ///< of this tree, and of all trees up to this one
};

struct PlantCandidate {
  int64_t row = 0, col = 0;
  double x = 0, y = 0;
  double first_gain = 0;  ///< without other trees
  double last_gain = 0;   ///< with the trees that were selected when it was last evaluated
  int64_t tree = 0;       ///< number among the selected trees, from 1; 0: not selected
};

/// Number of positions of the grid, and of those that are not candidates, by reason.
struct PlantRefusals {
  int64_t positions = 0, not_allowed = 0, no_ground = 0, no_room = 0, edge = 0;
};

struct PlantResult : RunResult {
  std::string objective, unit;   ///< the unit of gains
  double before = 0, after = 0;  ///< the objective without and with the trees, according to the evaluations
  std::vector<PlantedTree> trees;
  std::vector<PlantCandidate> candidates;
  PlantRefusals refusals;
  double reach_m = 0;          ///< half of the widest window that was evaluated for a candidate
  int64_t evaluations = 0;     ///< number of evaluations of candidates, including the first ones
  double evaluated_share = 0;  ///< pixels that they computed, relative to evaluations of the whole grid
  int64_t raised = 0;          ///< evaluations that found a higher gain than before
  std::filesystem::path cdsm, tdsm, places, curve, curve_picture, before_run, after_run, comparison;
};

/// Selects the trees and writes the results. Nothing is written before the trees are selected. Throws InputError for
/// invalid inputs, and if there is no candidate.
PlantResult plant(Context& context, const PlantOptions& options);

void describe(Schema<PlantOptions>& s);

}  // namespace lockstep::urban
