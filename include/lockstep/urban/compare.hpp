// Compares two runs of `urban run` that differ in their scenario: what changes, where, when, and on how much ground.
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
  bool include_roofs = false;  ///< in statistics and maps; otherwise pixels that are ground in both runs
  GridFormat format = GridFormat::tif;
  bool pictures = true;
  std::filesystem::path folder;  ///< of results
  MapOptions map;
};

/// An option whose value or files differ.
struct RunDifference {
  std::string option, before, after;
};

/// A pixel with its centre and time.
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
  int64_t pixels = 0;  ///< that count
  double before_mean = 0, after_mean = 0, mean_change = 0;
  Distribution before{}, after{}, change{};
  ChangePlace lowest, highest;  ///< of the change
  std::filesystem::path file, picture;
};

/// An output over time: means of each step, and the largest changes of all pixels and steps.
struct OutputChange {
  std::string name, title, unit;
  std::vector<double> before_mean, after_mean;  ///< a value a step
  ChangePlace lowest, highest;
  /// Of these two the one below zero and the one above: places where nothing changes are none of a largest change.
  std::vector<const ChangePlace*> places() const;
};

/// Ground in a class of thermal stress.
struct ClassChange {
  std::string name;
  double upper_c = 0;
  double before_m2 = 0, after_m2 = 0;  ///< mean over the steps
  double before_percent = 0, after_percent = 0;
  double hottest_before_m2 = 0, hottest_after_m2 = 0;  ///< at the step with the highest mean before
};
struct StressChange {
  ComfortIndex index = ComfortIndex::utci;
  std::string hottest;               ///< the time of that step
  std::vector<ClassChange> classes;  ///< coldest first
};

struct CompareResult {
  int64_t rows = 0, cols = 0, steps = 0;
  double pixel_size_m = 1;
  std::string place, before_scenario,
      after_scenario;              ///< as the runs were given them; scenarios else their folders
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

/// Reads both runs, compares their records, and writes the differences of their summaries, maps and a page. Throws
/// InputError if the runs differ in more than the surface and `differing`, in their grids or in their steps.
CompareResult compare(const CompareOptions& options);

void describe(Schema<CompareOptions>& s);

}  // namespace lockstep::urban
