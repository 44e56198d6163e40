// The results of runs as the program's JSON has them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/run.hpp"

namespace lockstep::flow {

using Json = nlohmann::ordered_json;

nlohmann::ordered_json document_of(const RunResult& r) {
  Json j;
  const bool several = r.budget.size() > 1;
  const auto put = [&](const char* name, auto value) {
    Json all = Json::array();
    for (size_t m = 0; m < r.budget.size(); ++m) all.push_back(value(m));
    j[name] = several ? all : all.front();
  };
  put("energy", [&](size_t m) { return r.budget[m].energy; });
  put("enstrophy", [&](size_t m) { return r.budget[m].enstrophy; });
  put("palinstrophy", [&](size_t m) { return r.budget[m].palinstrophy; });
  put("time", [&](size_t m) { return r.time[m]; });
  put("steps", [&](size_t m) { return r.steps[m]; });
  j["steps_per_second"] = r.steps_per_second;
  j["dt_min"] = r.dt_min;
  j["n"] = {r.grid.ny, r.grid.nx};
  j["box"] = {r.grid.lx, r.grid.ly};
  j["precision"] = name(r.precision);
  j["frames"] = r.frames;
  if (r.resumed_at >= 0) j["resumed_at"] = r.resumed_at;
  if (!r.warnings.empty()) j["warnings"] = r.warnings;
  j["files"] = Json::array();
  for (const auto& file : r.files) j["files"].push_back(file.string());
  return j;
}
std::string to_json(const RunResult& r) { return json_text(document_of(r)); }

nlohmann::ordered_json document_of(const Comparison2d& c) {
  Json j;
  for (const auto& row : c.rows)
    j["times"].push_back({{"time", row.time},
                          {"relative_l2", row.relative_l2},
                          {"correlation", row.correlation},
                          {"energy_a", row.energy_a},
                          {"energy_b", row.energy_b},
                          {"enstrophy_a", row.enstrophy_a},
                          {"enstrophy_b", row.enstrophy_b}});
  j["relative_l2"] = c.rows.back().relative_l2;
  j["correlation"] = c.rows.back().correlation;
  j["energy_drift"] = c.energy_drift;
  j["enstrophy_drift"] = c.enstrophy_drift;
  j["spectrum_error"] = c.spectrum_error;
  j["spectrum_a"] = c.spectrum_a;
  j["spectrum_b"] = c.spectrum_b;
  return j;
}
std::string to_json(const Comparison2d& c) { return json_text(document_of(c)); }

}  // namespace lockstep::flow
