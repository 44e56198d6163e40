// The commands on files.
#include <nlohmann/json.hpp>

#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"
#include "pde/run/side_values.hpp"

namespace lockstep::pde {

namespace {

/// Those arrays of a NumPy archive that a run can use; others cost nothing.
io::NpzArrays read_arrays(const std::filesystem::path& path, const RunOptions& options) {
  std::vector<std::string> names{"sigma", "u", "p", "force", "mask"};
  for (int level = 0; level < 3; ++level)
    for (const char* field : {"sigma", "u"}) names.push_back(fmt::format("{}{}", field, level));
  for (const std::string& name : side_names(options)) names.push_back(name);
  io::NpzArrays file = io::read_npz(path, names);
  for (const auto& [name, reason] : file.left_out)
    logging::warning("{}: array {} is left out: {}", path.string(), name, reason);
  return file;
}
void name_unread(const io::NpzArrays& file, const std::filesystem::path& path) {
  if (!file.unread.empty()) logging::warning("{}: not used: {}", path.string(), fmt::join(file.unread, ", "));
}

using Work = RunResult (*)(Context&, const NamedArrays&, const RunOptions&);

FileRun run_files(Context& context, Work work, const std::filesystem::path& input, RunOptions options,
                  const std::filesystem::path& out, const std::filesystem::path& residuals) {
  FileRun done{.out = out, .residuals = residuals};
  options.where = input.string();
  options.residuals = !residuals.empty();
  const io::NpzArrays arrays =
      host_stage(done.host_stages, "read", [&] { return read_arrays(input, options); });
  done.result = work(context, {arrays.begin(), arrays.end()}, options);
  name_unread(arrays, input);
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

FileRun run(Context& context, const LossRunOptions& o) {
  schema_of<LossRunOptions>().check(&o);
  return run_files(context, &run_loss, o.input, o.run, o.out, o.residuals);
}
FileRun run(Context& context, const TrajectoryRunOptions& o) {
  schema_of<TrajectoryRunOptions>().check(&o);
  return run_files(context, &run_trajectory, o.input, o.run, o.out, {});
}
CheckResult run(Context& context, const CheckRunOptions& o) {
  schema_of<CheckRunOptions>().check(&o);
  RunOptions options = o.run;
  options.where = o.input.string();
  const io::NpzArrays arrays = read_arrays(o.input, options);
  CheckResult result = run_check(context, {arrays.begin(), arrays.end()}, options, uint32_t(o.seed));
  name_unread(arrays, o.input);
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
