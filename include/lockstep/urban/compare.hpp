// Compares two runs of `urban run` that differ in their scenario: the changes, their places and times, and their areas.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"
#include "lockstep/urban/comfort.hpp"

namespace lockstep::urban {

struct CompareOptions {
  std::filesystem::path before, after;  ///< folders of `urban run`
  /// Options, by their names in run.json, that may differ in addition to those of the surface.
  std::vector<std::string> differing;
  bool include_roofs = false;  ///< in statistics and maps; default: only pixels that are ground in both runs
  GridFormat format = GridFormat::tif;
  bool pictures = true;
  std::filesystem::path folder;  ///< of results
  MapOptions map;
};

/// An option whose value or files differ.
struct RunDifference {
  std::string option, before, after;
};

/// A pixel with the coordinates of its centre, a time and the values of both runs.
struct ChangePlace {
  int64_t row = 0, col = 0;
  double x = 0, y = 0;
  std::string time;  ///< end of the interval; empty for summaries
  double before = 0, after = 0;
};

/// Percentiles at 1, 5, 25, 50, 75, 95 and 99 % of the pixels.
using Distribution = std::array<double, 7>;

/// A summary grid of both runs; changes are after minus before.
struct SummaryChange {
  std::string name, title, unit;
  int64_t pixels = 0;  ///< number of compared pixels
  double before_mean = 0, after_mean = 0, mean_change = 0;
  Distribution before{}, after{}, change{};
  ChangePlace lowest, highest;  ///< of the change
  std::filesystem::path file, picture;
};

/// An output over time: means of each step, and the largest changes of all pixels and steps.
struct OutputChange {
  std::string name, title, unit;
  std::vector<double> before_mean, after_mean;  ///< one value per step
  ChangePlace lowest, highest;                  ///< of the change
  /// `lowest` if its change is below zero, and `highest` if its change is above zero.
  std::vector<const ChangePlace*> places() const;
};

/// The area of ground in a class of thermal stress.
struct ClassChange {
  std::string name;
  double upper_c = 0;
  double before_m2 = 0, after_m2 = 0;  ///< mean over the steps
  double before_percent = 0, after_percent = 0;
  double hottest_before_m2 = 0, hottest_after_m2 = 0;  ///< at the hottest step
};
struct StressChange {
  ComfortIndex index = ComfortIndex::utci;
  std::string hottest;  ///< time of the hottest step: the one with the highest mean in the run before
  std::vector<ClassChange> classes;  ///< coldest first
};

struct CompareResult {
  int64_t rows = 0, cols = 0, steps = 0;
  double pixel_size_m = 1;
  /// Names as in the options of the runs; if a scenario has no name, that of its folder.
  std::string place, before_scenario, after_scenario;
  std::vector<std::string> times;  ///< of the run before
  std::vector<RunDifference> differences;
  std::vector<std::string> warnings;
  double compared_m2 = 0, before_ground_m2 = 0, after_ground_m2 = 0;
  std::vector<SummaryChange> summaries;
  std::vector<OutputChange> outputs;
  std::vector<StressChange> stress;
  std::filesystem::path page;
  std::vector<StageRecord> host_stages;  ///< "read", "compare", "write"
};

/// Reads both runs, compares their records, and writes the differences of their summaries, maps and a report page. Throws
/// InputError if the runs differ in their grids, in their steps, or in options other than those of the surface and
/// `differing`.
CompareResult compare(const CompareOptions& options);

void describe(Schema<CompareOptions>& s);

}  // namespace lockstep::urban
