// Statistics of areas as JSON.
#include "lockstep/urban/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"

namespace lockstep::urban {
namespace {

nlohmann::ordered_json known(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace

nlohmann::ordered_json document_of(const AreaStatisticsResult& result) {
  nlohmann::ordered_json document = {{"areas", result.areas},
                                     {"outside", result.outside},
                                     {"partly_outside", result.partly},
                                     {"steps", result.steps},
                                     {"rows", nlohmann::ordered_json::array()}};
  for (const AreaRow& r : result.rows) {
    nlohmann::ordered_json row = {{"area", r.area}};
    if (!r.group.empty()) row["group"] = r.group;
    row.update({{"output", r.output},
                {"unit", r.unit},
                {"time", r.time},
                {"m2", known(r.m2)},
                {"mean", known(r.mean)},
                {"sd", known(r.deviation)},
                {"min", known(r.minimum)},
                {"max", known(r.maximum)}});
    for (size_t k = 0; k < r.percentiles.size(); ++k)
      row["percentiles"].push_back({result.percentiles[k], known(r.percentiles[k])});
    for (size_t t = 0; t < result.thresholds.size(); ++t)
      if (std::isfinite(r.threshold_m2[t]))
        row["thresholds"][result.thresholds[t]] = {{"m2", r.threshold_m2[t]},
                                                   {"hours", r.threshold_hours[t]}};
    document["rows"].push_back(std::move(row));
  }
  document["file"] = result.file.string();
  if (!result.warnings.empty()) document["warnings"] = result.warnings;
  return document;
}
std::string to_json(const AreaStatisticsResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
