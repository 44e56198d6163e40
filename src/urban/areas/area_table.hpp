// The table of areas, step by step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "urban/areas/zonal.hpp"
#include "urban/results/run_folder.hpp"

namespace lockstep::urban {

/// Where rows come from.
struct AreaPlan {
  const RunFolder* run = nullptr;
  std::vector<std::string> names;  ///< of the areas
  std::vector<Zone> zones;         ///< by area, then group
  std::vector<std::string> outputs, summaries;
  std::vector<size_t> steps;  ///< that count
  std::vector<Threshold> thresholds;
  std::vector<AreaPeriod> periods;
  std::vector<double> percentiles;
  bool by_stress = false;
};

/// In the order of areas, groups, outputs and times.
std::vector<AreaRow> area_rows(const AreaPlan& plan);

/// The day of an interval: that of its start.
std::string day_of(const RunFolder& run, size_t step);

}  // namespace lockstep::urban
