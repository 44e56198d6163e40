#include "lockstep/urban/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/numbers/statistics.hpp"
#include "core/reports/json_text.hpp"
#include "lockstep/urban/documents.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json document_of(const TileReport& report) {
  return {{"side", report.side},
          {"tiles", report.tiles},
          {"resumed", report.resumed},
          {"workers", report.workers},
          {"queue_depth_peak", report.queue_depth_peak},
          {"predicted_bytes", report.predicted_bytes},
          {"predicted_host_bytes", report.predicted_host_bytes},
          {"peak_host_bytes", report.peak_host_bytes},
          {"tile_seconds_median", percentile(report.tile_seconds, 0.5)},
          {"tile_seconds_p95", percentile(report.tile_seconds, 0.95)},
          {"stitch_seconds", report.stitch_seconds},
          {"seconds", report.seconds}};
}

ordered_json head(const RunResult& result) {
  ordered_json document = {{"rows", result.rows}, {"cols", result.cols}, {"pixel_size", result.pixel_size_m}};
  if (result.projection_scale != 1) document["projection_scale"] = result.projection_scale;
  return document;
}

void add_outputs(ordered_json& document, const RunResult& result) {
  if (result.tiles.tiles > 0) document["tiles"] = document_of(result.tiles);
  document["outputs"] = ordered_json::array();
  for (const OutputGrid& grid : result.outputs)
    document["outputs"].push_back({{"name", grid.name},
                                   {"file", grid.file.string()},
                                   {"picture", grid.picture.string()},
                                   {"min", number(grid.minimum)},
                                   {"max", number(grid.maximum)},
                                   {"mean", number(grid.mean)},
                                   {"missing", grid.missing}});
  if (!result.warnings.empty()) document["warnings"] = result.warnings;
  if (result.left_over.empty()) return;
  document["left_over"] = ordered_json::array();
  for (const auto& file : result.left_over) document["left_over"].push_back(file.string());
}

ordered_json document_of(const std::vector<StageArray>& arrays) {
  ordered_json list = ordered_json::array();
  for (const StageArray& a : arrays) {
    list.push_back({{"name", a.name}, {"shape", a.shape}, {"unit", a.unit}, {"about", a.about}});
    if (a.optional) list.back()["optional"] = true;
  }
  return list;
}

}  // namespace

ordered_json document_of(const RunResult& result) {
  ordered_json document = head(result);
  add_outputs(document, result);
  return document;
}
std::string to_json(const WallRunResult& result) { return json_text(document_of(result)); }

nlohmann::ordered_json document_of(const ShadowRunResult& result) {
  ordered_json document = head(result);
  double azimuth = result.sun.azimuth_deg;
  if (result.place) {
    azimuth = result.place->azimuth_deg;
    document["place"] = {{"latitude", result.place->latitude_deg},
                         {"longitude", result.place->longitude_deg},
                         {"convergence", result.place->convergence_deg}};
  }
  document["sun"] = {{"azimuth", azimuth},
                     {"grid_azimuth", result.sun.azimuth_deg},
                     {"altitude", result.sun.altitude_deg},
                     {"night", result.sun.altitude_deg <= 0}};
  add_outputs(document, result);
  return document;
}
std::string to_json(const ShadowRunResult& result) { return json_text(document_of(result)); }

nlohmann::ordered_json document_of(const SkyRunResult& result) {
  ordered_json document = head(result);
  document["patches"] = result.patches;
  document["zenith"] = result.zenith == ZenithRule::open ? "open" : "umep";
  if (!result.states.empty()) document["states"] = result.states.string();
  add_outputs(document, result);
  return document;
}
std::string to_json(const SkyRunResult& result) { return json_text(document_of(result)); }

nlohmann::ordered_json document_of(const SampleRunResult& result) {
  ordered_json document = head(result);
  document["seed"] = result.seed;
  add_outputs(document, result);
  return document;
}
std::string to_json(const SampleRunResult& result) { return json_text(document_of(result)); }

nlohmann::ordered_json document_of(const UmepExchange& result) {
  ordered_json document = {{"rows", result.rows}, {"cols", result.cols}, {"patches", result.patches}};
  for (const auto& file : result.files) document["files"].push_back(file.string());
  return document;
}
std::string to_json(const UmepExchange& result) { return json_text(document_of(result)); }

nlohmann::ordered_json document_of(const StageRun& run) {
  ordered_json outputs = ordered_json::array();
  for (const StageOutput& o : run.outputs)
    outputs.push_back({{"name", o.name},
                       {"shape", o.shape},
                       {"minimum", number(o.minimum)},
                       {"maximum", number(o.maximum)},
                       {"mean", number(o.mean)}});
  return {{"stage", run.stage}, {"outputs", outputs}};
}
std::string to_json(const StageRun& run) { return json_text(document_of(run)); }

nlohmann::ordered_json document_of(const std::vector<Stage>& stages) {
  ordered_json list = ordered_json::array();
  for (const Stage& stage : stages)
    list.push_back({{"name", stage.name},
                    {"about", stage.about},
                    {"reads", document_of(stage.reads)},
                    {"writes", document_of(stage.writes)}});
  return {{"stages_of_urban", list}};
}
std::string to_json(const std::vector<Stage>& stages) { return json_text(document_of(stages)); }

nlohmann::ordered_json document_of(const UtciResult& r) {
  return {{"utci", r.value}, {"wind_10m", r.wind}, {"fitted", r.fitted}, {"stress", r.stress}};
}
std::string to_json(const UtciResult& r) { return json_text(document_of(r)); }
nlohmann::ordered_json document_of(const PetResult& r) {
  return {{"pet", r.value}, {"wind_1m1", r.wind}, {"stress", r.stress}};
}
std::string to_json(const PetResult& r) { return json_text(document_of(r)); }

}  // namespace lockstep::urban
