// Statistics of a run by areas: districts, squares, school yards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"
#include "lockstep/urban/thresholds.hpp"

namespace lockstep::urban {

/// Groups of an area's pixels: by their land cover, or the class of thermal stress of each step.
enum class AreaGroups { none, land_cover, stress };
std::span<const Choice<AreaGroups>> choices(AreaGroups);

/// The period of a row: a step, the mean over a day's steps, the mean over all.
enum class AreaPeriod { hour, day, period };
std::span<const Choice<AreaPeriod>> choices(AreaPeriod);

struct AreaStatisticsOptions {
  std::filesystem::path run;    ///< folder of `urban run`
  std::filesystem::path areas;  ///< GeoPackage, shapefile, GeoJSON, or CSV with a column wkt
  std::string layer, areas_crs, id;
  std::vector<std::string> outputs;  ///< outputs of the run and names of its summaries; empty: all outputs
  std::optional<HourWindow> hours;
  std::vector<std::string> thresholds;
  AreaGroups groups = AreaGroups::none;
  std::vector<AreaPeriod> periods = {AreaPeriod::period};
  std::vector<double> percentiles = {5, 50, 95};
  std::filesystem::path land_cover;  ///< else that of the run
  bool include_roofs = false;
  std::filesystem::path file;  ///< .csv or .gpkg
};

/// A row of the table. Statistics of the pixels' values, weighted by the covered area; NaN if there is none.
struct AreaRow {
  std::string area, group, output, unit, time;
  double m2 = 0, mean = 0, deviation = 0, minimum = 0, maximum = 0;
  std::vector<double> percentiles;
  /// By threshold of the row's output: area beyond it (mean over the steps), and hours (mean over the ground).
  std::vector<double> threshold_m2, threshold_hours;
};

struct AreaStatisticsResult {
  int64_t areas = 0, steps = 0;
  int64_t outside = 0, partly = 0;  ///< areas outside the raster, or with a part outside
  std::vector<double> percentiles;
  std::vector<std::string> thresholds;
  std::vector<std::string> warnings;
  std::vector<AreaRow> rows;
  std::filesystem::path file;
  std::vector<StageRecord> host_stages;  ///< "read", "areas", "write"
};

/// Throws InputError for a folder that is not a run, files without areas, self-intersecting areas, areas that are all
/// outside, and outputs and thresholds that the run does not have.
AreaStatisticsResult area_statistics(const AreaStatisticsOptions& options);

void describe(Schema<AreaStatisticsOptions>& s);

}  // namespace lockstep::urban
