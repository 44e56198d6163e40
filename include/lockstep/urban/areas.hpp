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

/// Grouping of the pixels of an area: none, by land cover, or by the class of thermal stress in each step.
enum class AreaGroups { none, land_cover, stress };
std::span<const Choice<AreaGroups>> choices(AreaGroups);

/// The period of a row: a step, the mean over the steps of a day, or the mean over all steps.
enum class AreaPeriod { hour, day, period };
std::span<const Choice<AreaPeriod>> choices(AreaPeriod);

struct AreaStatisticsOptions {
  std::filesystem::path run;    ///< folder of `urban run`
  std::filesystem::path areas;  ///< GeoPackage, shapefile, GeoJSON, or CSV with a column wkt
  std::string layer, areas_crs,
      id;  ///< layer of the file, its coordinate system, and the field with the names
  std::vector<std::string> outputs;     ///< outputs of the run and names of its summaries; empty: all outputs
  std::optional<HourWindow> hours;      ///< hours of the day; default: all
  std::vector<std::string> thresholds;  ///< "utci>38"
  AreaGroups groups = AreaGroups::none;
  std::vector<AreaPeriod> periods = {AreaPeriod::period};
  std::vector<double> percentiles = {5, 50, 95};
  std::filesystem::path land_cover;  ///< default: that of the run
  bool include_roofs = false;        ///< default: ground pixels only
  std::filesystem::path file;        ///< .csv or .gpkg
};

/// A row of the table: statistics over the pixels of an area, weighted by the covered area of each pixel; NaN without
/// pixels.
struct AreaRow {
  std::string area, group, output, unit, time;
  double m2 = 0, mean = 0, deviation = 0, minimum = 0,
         maximum = 0;  ///< m2: area; deviation: standard deviation
  std::vector<double> percentiles;
  /// For each threshold of the output: area beyond it (mean over the steps) and hours beyond it (mean over the area).
  std::vector<double> threshold_m2, threshold_hours;
};

struct AreaStatisticsResult {
  int64_t areas = 0, steps = 0;
  int64_t outside = 0, partly = 0;  ///< areas completely outside the raster, and areas partly outside
  std::vector<double> percentiles;
  std::vector<std::string> thresholds;
  std::vector<std::string> warnings;
  std::vector<AreaRow> rows;
  std::filesystem::path file;
  std::vector<StageRecord> host_stages;  ///< "read", "areas", "write"
};

/// Computes the statistics and writes the table. Throws InputError for a folder that does not contain a run, a file
/// without areas, self-intersecting areas, areas that are all outside the raster, and outputs or thresholds that the run
/// does not have.
AreaStatisticsResult area_statistics(const AreaStatisticsOptions& options);

void describe(Schema<AreaStatisticsOptions>& s);

}  // namespace lockstep::urban
