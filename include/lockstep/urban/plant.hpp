// Where trees help most: greedy selection of sites by the effect of each tree. `lockstep urban plant`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

/// A tree: half an ellipsoid on a trunk.
struct TreeSpecies {
  double height_m = 0, trunk_m = 0,
         crown_m = 0;  ///< top and base of the crown above the ground; its diameter
};
/// "10,3,6". Throws InputError for other text, and for a crown base that is not below the top.
TreeSpecies parse_species(const std::string& text);

/// exact: each candidate in reach of a new tree is re-evaluated. lazy: only those whose last gain exceeds the best
/// one, with the same result if gains only fall as trees are added.
enum class PlantSearch { exact, lazy };
std::span<const Choice<PlantSearch>> choices(PlantSearch);

/// As `run`, with the same inputs and model.
struct PlantOptions : SeriesOptions {
  PlantOptions() { trees_follow = true; }
  int64_t trees = 1;
  std::optional<TreeSpecies> species;
  std::filesystem::path allowed;  ///< areas allowed for trees; empty: anywhere on the ground
  std::string layer, areas_crs;   ///< of `allowed`, and of areas with people
  /// "hours>38": hours of UTCI above a threshold per square metre of ground. "mean-utci": its mean over ground and
  /// time. A file: the same mean over people, areas with a field `people` or a raster of people per pixel.
  std::string objective = "hours>38";
  std::optional<double> spacing_m;  ///< between candidates; default: the crown's diameter
  PlantSearch search = PlantSearch::exact;
  /// A tree is evaluated on the pixels that see it in front of the sun or a patch of the sky at this altitude or
  /// above; 0: on all that it can change.
  double least_altitude_deg = 6;
  bool before_after = true;  ///< runs without and with the trees, and their comparison
};

struct PlantedTree {
  int64_t row = 0, col = 0;
  double x = 0, y = 0;
  double gain = 0, total = 0;  ///< of this tree; of all until it
};

struct PlantCandidate {
  int64_t row = 0, col = 0;
  double x = 0, y = 0;
  double first_gain = 0;  ///< alone
  double last_gain = 0;   ///< when last evaluated, with the trees selected so far
  int64_t tree = 0;       ///< its number among the trees; 0: not chosen
};

/// Why positions of the grid are not candidates.
struct PlantRefusals {
  int64_t positions = 0, not_allowed = 0, no_ground = 0, no_room = 0, edge = 0;
};

struct PlantResult : RunResult {
  std::string objective, unit;   ///< the unit of gains
  double before = 0, after = 0;  ///< the objective according to the evaluations
  std::vector<PlantedTree> trees;
  std::vector<PlantCandidate> candidates;
  PlantRefusals refusals;
  double reach_m = 0;          ///< half of the widest window of a candidate
  int64_t evaluations = 0;     ///< of a candidate, including the first ones
  double evaluated_share = 0;  ///< pixels computed by them, relative to the same number of whole grids
  int64_t raised = 0;          ///< evaluations that found a higher gain than before
  std::filesystem::path cdsm, tdsm, places, curve, curve_picture, before_run, after_run, comparison;
};

/// Throws InputError for invalid inputs, and if there is no candidate. Writes nothing before the trees are selected.
PlantResult plant(Context& context, const PlantOptions& options);

void describe(Schema<PlantOptions>& s);

}  // namespace lockstep::urban
