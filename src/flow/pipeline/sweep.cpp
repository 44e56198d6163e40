// Several pipelines and their report.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/memory.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {
namespace {

template <class T>
std::vector<T> or_one(const std::vector<T>& all, const T& one) {
  return all.empty() ? std::vector{one} : all;
}

/// Every combination, sizes outermost.
std::vector<PipelineOptions> combinations(const PipelineSweep& sweep) {
  std::vector<PipelineOptions> all;
  const BoxGrid& given = sweep.run.model.grid;
  for (const int64_t n : or_one<int64_t>(sweep.sizes, 0))
    for (const int64_t stride : or_one(sweep.strides, sweep.stride))
      for (const Storage precision : or_one(sweep.precisions, sweep.run.precision))
        for (const Place place : or_one(sweep.places, sweep.place)) {
          PipelineOptions& o = all.emplace_back(sweep);
          if (n > 0) o.run.model.grid = {n, n, given.lx, given.ly};
          o.run.grid_given = sweep.run.grid_given || n > 0;
          o.stride = stride;
          o.run.precision = precision;
          o.place = place;
        }
  return all;
}

}  // namespace

SweepResult run_sweep(Context& context, const PipelineSweep& sweep, bool fallback) {
  std::vector<PipelineOptions> runs = combinations(sweep);
  const bool several = runs.size() > 1;
  if (several && !sweep.run.video.empty())
    throw schema_of<PipelineSweep>().error(
        {OptionError::Kind::conflict, "video", fmt::format("a film of {} runs", runs.size()), "one run", ""});
  for (PipelineOptions& o : runs) {
    const BoxGrid& grid = o.run.model.grid;
    if (several)
      o.run.folder /= fmt::format("{}x{}_stride{}_{}_{}", grid.ny, grid.nx, o.stride,
                                  lockstep::name(o.run.precision), name(o.place));
    require_memory(context, o.run, fallback, sweep.sizes.empty() ? "{ny}" : "{sizes}");
  }
  if (several)
    for (const PipelineOptions& o : runs) check_pipeline(context, o);
  SweepResult result;
  for (const PipelineOptions& o : runs) result.runs.push_back(run_pipeline(context, o));
  result.files = write_report(sweep.run.folder, result.runs);
  if (!sweep.log_metrics.empty()) result.files.push_back(log_metrics(sweep.log_metrics, result.runs));
  return result;
}

nlohmann::ordered_json document_of(const SweepResult& result) {
  auto all = document_of(result.runs);
  all["files"] = nlohmann::ordered_json::array();
  for (const auto& file : result.files) all["files"].push_back(file.string());
  return all;
}
std::string to_json(const SweepResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::flow
