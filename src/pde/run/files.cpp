// The commands on files.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"
#include "pde/run/run_parts.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {

namespace {

/// Arrays that a run can use; others cost nothing.
std::vector<std::string> names_of(const RunOptions& options) {
  std::vector<std::string> names{"sigma", "u", "p", "force", "mask"};
  for (int level = 0; level < 3; ++level)
    for (const char* field : {"sigma", "u"}) names.push_back(fmt::format("{}{}", field, level));
  for (const std::string& name : side_names(options)) names.push_back(name);
  return names;
}
using LeftOut = std::vector<std::pair<std::string, std::string>>;
void name_left_out(const LeftOut& arrays, const std::filesystem::path& path) {
  for (const auto& [name, reason] : arrays)
    logging::warning("{}: array {} is omitted: {}", path.string(), name, reason);
}
void name_unread(const std::vector<std::string>& arrays, const std::filesystem::path& path) {
  if (!arrays.empty()) logging::warning("{}: not used: {}", path.string(), fmt::join(arrays, ", "));
}
io::NpzArrays read_arrays(const std::filesystem::path& path, const RunOptions& options) {
  io::NpzArrays file = io::read_npz(path, names_of(options));
  name_left_out(file.left_out, path);
  return file;
}

using Work = RunResult (*)(Context&, const Fields&, const RunOptions&, const parallel::Group&);

/// One rank holds the arrays; several read their planes.
RunResult run_on_file(Context& context, Work work, const std::filesystem::path& input,
                      const RunOptions& options, std::vector<StageRecord>& stages,
                      const parallel::Group& group) {
  if (group.size() > 1) {
    const FieldsInFile fields(input, names_of(options), stages);
    name_left_out(fields.left_out(), input);
    RunResult result = work(context, fields, options, group);
    if (group.leads()) name_unread(fields.unread(), input);
    return result;
  }
  const io::NpzArrays file = host_stage(stages, "read", [&] { return read_arrays(input, options); });
  const NamedArrays arrays(file.begin(), file.end());
  RunResult result = work(context, FieldsInMemory(arrays), options, group);
  name_unread(file.unread, input);
  return result;
}

FileRun run_files(Context& context, Work work, const std::filesystem::path& input, RunOptions options,
                  const std::filesystem::path& out, const std::filesystem::path& residuals,
                  const parallel::Group& group) {
  FileRun done{.out = out, .residuals = residuals};
  options.where = input.string();
  options.residuals = !residuals.empty();
  done.result = run_on_file(context, work, input, options, done.host_stages, group);
  if (!group.leads()) return done;
  const auto write = [&](const std::filesystem::path& file, const auto& named, const char* title) {
    if (file.empty()) return;
    host_stage(done.host_stages, "write", [&] {
      io::write_npz(file, io::NpzArrays(named.begin(), named.end()), io::NpzCompression::stored,
                    {.title = title});
    });
  };
  write(out, done.result.gradients, "gradients of the loss");
  write(residuals, done.result.residuals, "residuals");
  return done;
}

}  // namespace

FileRun run(Context& context, const LossRunOptions& o, const parallel::Group& group) {
  schema_of<LossRunOptions>().check(&o);
  return run_files(context, &run_loss, o.input, o.run, o.out, o.residuals, group);
}
FileRun run(Context& context, const TrajectoryRunOptions& o, const parallel::Group& group) {
  schema_of<TrajectoryRunOptions>().check(&o);
  return run_files(context, &run_trajectory, o.input, o.run, o.out, {}, group);
}
CheckResult run(Context& context, const CheckRunOptions& o) {
  schema_of<CheckRunOptions>().check(&o);
  RunOptions options = o.run;
  options.where = o.input.string();
  const io::NpzArrays arrays = read_arrays(o.input, options);
  CheckResult result = run_check(context, {arrays.begin(), arrays.end()}, options, uint32_t(o.seed));
  name_unread(arrays.unread, o.input);
  return result;
}

nlohmann::ordered_json document_of(const FileRun& run) {
  auto json = document_of(run.result);
  if (!run.out.empty()) json["out"] = run.out.string();
  if (!run.residuals.empty()) json["residuals"] = run.residuals.string();
  return json;
}
std::string to_json(const FileRun& run) { return json_text(document_of(run)); }

}  // namespace lockstep::pde
