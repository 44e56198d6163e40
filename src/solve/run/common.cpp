#include "solve/run/common.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/telemetry.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/evaluation.hpp"

namespace lockstep::solve {
namespace {

io::Drawing convergence_plot(const Summary& summary, std::string_view title) {
  io::PlotSeries cost{"", {0}, {summary.initial_cost}}, gradient;
  for (const Iteration& i : summary.trace) {
    cost.x.push_back(i.iteration);
    cost.y.push_back(i.cost);
    gradient.x.push_back(i.iteration);
    gradient.y.push_back(i.gradient_max);
  }
  io::PlotOptions options;
  options.log_y = options.whole_x = true;
  options.height = 360;
  options.title = title;
  options.y_label = "cost";
  const io::Drawing top = io::draw_plot({&cost, 1}, options);
  options.title.clear();
  options.y_label = "gradient, largest component";
  options.x_label = "iteration";
  const io::Drawing parts[] = {top, io::draw_plot({&gradient, 1}, options)};
  return io::stack(parts);
}

/// Lines of telemetry: what was evaluated as one, every kernel, and the bytes that went each way. Occupancy
/// is null where the back end does not report it.
void record_evaluation(const Summary& summary) {
  Telemetry& telemetry = Telemetry::global();
  if (!telemetry.enabled()) return;
  for (const BatchReport& b : summary.batches)
    telemetry.event("solve.batch", {{"name", b.name},
                                    {"program", b.program},
                                    {"instances", b.instances},
                                    {"residuals", b.residuals},
                                    {"grouped", b.grouped},
                                    {"kept", b.kept},
                                    {"bytes", b.bytes},
                                    {"tables_begin_s", b.tables_begin_s},
                                    {"tables_end_s", b.tables_end_s},
                                    {"upload_begin_s", b.upload_begin_s},
                                    {"upload_end_s", b.upload_end_s},
                                    {"first_launch_s", b.launch_s}});
  for (const KernelReport& k : summary.kernel_reports)
    telemetry.event("solve.kernel", {{"kernel", k.name},
                                     {"from_cache", k.from_cache},
                                     {"begin_s", k.begin_s},
                                     {"end_s", k.end_s},
                                     {"group_lanes", k.group_lanes},
                                     {"groups_at_once", k.groups_at_once},
                                     {"registers", k.registers},
                                     {"shared_bytes", k.shared_bytes},
                                     {"local_bytes", k.local_bytes},
                                     {"occupancy", k.occupancy > 0 ? k.occupancy : std::nan("")}});
  telemetry.event("solve.transfers", {{"device", summary.device},
                                      {"kernels_compiled", summary.kernels_compiled},
                                      {"cache_hits", summary.cache_hits},
                                      {"scratch_bytes", summary.scratch_bytes},
                                      {"bytes_to_device", summary.bytes_to_device},
                                      {"bytes_from_device", summary.bytes_from_device}});
}

ordered_json members(const Summary& summary) {
  ordered_json batches = ordered_json::array(), trace = ordered_json::array();
  for (const BatchReport& b : summary.batches)
    batches.push_back({{"name", b.name},
                       {"instances", b.instances},
                       {"residuals", b.residuals},
                       {"grouped", b.grouped},
                       {"bytes", b.bytes}});
  for (const Iteration& i : summary.trace)
    trace.push_back({{"iteration", i.iteration},
                     {"cost", i.cost},
                     {"cost_change", i.cost_change},
                     {"gradient_max", i.gradient_max},
                     {"step_norm", i.step_norm},
                     {"damping", i.damping},
                     {"gain", i.gain},
                     {"accepted", i.accepted},
                     {"linear_iterations", i.linear_iterations},
                     {"seconds", i.seconds}});
  return {{"method", name(summary.method)},
          {"linear", name(summary.linear_used)},
          {"linear_given", name(summary.linear_given)},
          {"linear_used", name(summary.linear_used)},
          {"precision", name(summary.precision)},
          {"initial_cost", summary.initial_cost},
          {"final_cost", summary.final_cost},
          {"iterations", summary.iterations},
          {"linear_iterations", summary.linear_iterations},
          {"termination", name(summary.termination)},
          {"converged", converged(summary.termination)},
          {"message", summary.message},
          {"notes", summary.notes},
          {"gradient_max", summary.gradient_max},
          {"residuals", summary.residuals},
          {"variables", summary.variables},
          {"kernels", summary.kernels},
          {"kernels_compiled", summary.kernels_compiled},
          {"cache_hits", summary.cache_hits},
          {"batches", std::move(batches)},
          {"trace", std::move(trace)},
          {"solve_seconds", summary.seconds}};
}

}  // namespace

void check_folders(const OptionList& list, const void* options) {
  for (const Option& o : list.options()) {
    if (o.use != Option::Use::output_file) continue;
    const auto folder = std::filesystem::path(list.text(options, o.name)).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      throw list.error({OptionError::Kind::invalid, o.name, fmt::format("no folder '{}'", folder.string()),
                        "a file in a folder that exists", ""});
  }
}

Options observed(const Options& options) {
  Options out = options;
  if (!options.leads()) {
    out.callback = {};
    return out;
  }
  out.callback = [each = options.callback](const Iteration& i) {
    Telemetry::global().event("solve.iteration", {{"iteration", i.iteration},
                                                  {"cost", i.cost},
                                                  {"gradient_max", i.gradient_max},
                                                  {"step_norm", i.step_norm},
                                                  {"damping", i.damping},
                                                  {"accepted", i.accepted},
                                                  {"linear_iterations", i.linear_iterations},
                                                  {"seconds", i.seconds}});
    return !each || each(i);
  };
  return out;
}

void finish(RunResult& result, const RunOptions& options, const std::string& title) {
  if (!options.plot.empty()) {
    host_stage(result.host_stages, "plot",
               [&] { io::write_drawing(options.plot, convergence_plot(result.summary, title)); });
    wrote(result, "plot", options.plot);
  }
  record_evaluation(result.summary);
}

void write_residuals(RunResult& result, const std::string& file, const Problem& problem, Context& context) {
  if (file.empty()) return;
  host_stage(result.host_stages, "residuals", [&] {
    std::string text = "term,instance,norm,weight\n";
    for (const InstanceResidual& r : residuals_by_instance(problem, context))
      fmt::format_to(std::back_inserter(text), "{},{},{},{}\n", r.name, r.instance, r.norm, r.weight);
    write_file(file, text);
  });
  wrote(result, "residuals_file", file);
}

void wrote(RunResult& result, const char* what, const std::string& file) {
  result.files.emplace_back(what, file);
}

std::string outcome(const Summary& summary) {
  std::string text = fmt::format("cost {:.10g} to {:.10g} in {} iterations ({})", summary.initial_cost,
                                 summary.final_cost, summary.iterations, name(summary.termination));
  for (const std::string& note : summary.notes) text += "\n  note: " + note;
  return text;
}

ordered_json whole(ordered_json document, const RunResult& result) {
  for (const auto& [what, file] : result.files) document[what] = file;
  document.update(document_of(result.summary));
  return document;
}

nlohmann::ordered_json document_of(const Summary& summary) { return members(summary); }
std::string to_json(const Summary& summary) { return json_text(document_of(summary)); }

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace lockstep::solve
