// The result of a series as JSON.
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"

namespace lockstep::urban {

nlohmann::ordered_json document_of(const SeriesResult& result) {
  nlohmann::ordered_json document = document_of(static_cast<const RunResult&>(result));
  document["place"] = {{"latitude", result.latitude_deg},
                       {"longitude", result.longitude_deg},
                       {"utc_offset", result.utc_offset_h}};
  document["steps"] = result.steps;
  document["step_minutes"] = result.step_min;
  document["substeps"] = result.substeps;
  document["day_steps"] = result.day_steps;
  if (!result.times.empty()) {
    document["from"] = result.times.front();
    document["to"] = result.times.back();
  }
  const auto add_file = [&](const char* key, const std::filesystem::path& file) {
    if (!file.empty()) document[key] = file.string();
  };
  add_file("netcdf", result.netcdf);
  add_file("poi", result.points_file);
  add_file("report", result.report);
  add_file("video", result.video);
  for (const SeriesPoint& p : result.points)
    document["points"].push_back({{"id", p.id}, {"x", p.x}, {"y", p.y}, {"row", p.row}, {"col", p.col}});
  for (const StressArea& area : result.stress)
    document["stress"].push_back(
        {{"grid", area.grid}, {"class", area.name}, {"m2", area.m2}, {"percent", area.percent}});
  const SeriesTimes& m = result.metrics;
  document["metrics"] = {{"timestep_wall_time_s", m.timestep_wall_time_s},
                         {"timestep_wall_time_p95_s", m.timestep_wall_time_p95_s},
                         {"tile_turnaround_ms", m.tile_turnaround_ms},
                         {"tile_turnaround_p95_ms", m.tile_turnaround_p95_ms},
                         {"stage_time_ms", m.stage_time_ms},
                         {"gpu_stage_time_ms", m.gpu_stage_time_ms},
                         {"queue_depth_peak", result.tiles.queue_depth_peak},
                         {"in_flight_limit", result.tiles.workers},
                         {"stitch_ms", m.stitch_ms},
                         {"copy_ms", m.copy_ms},
                         {"write_ms", m.write_ms},
                         {"wait_ms", m.wait_ms}};
  return document;
}

std::string to_json(const SeriesResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
