#include "pde/run/files.hpp"

#include <nlohmann/json.hpp>

#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/npy.hpp"

namespace lockstep::pde {

NamedArrays read_arrays(const std::filesystem::path& path) {
  const io::NpzArrays file = io::read_npz(path);
  for (const auto& [name, reason] : file.left_out)
    logging::warning("{}: array {} is left out: {}", path.string(), name, reason);
  return {file.begin(), file.end()};
}

FileRun run_files(Context& context, RunResult (*run)(Context&, const NamedArrays&, const RunOptions&),
                  const RunFiles& files, const RunOptions& options) {
  FileRun done;
  done.files = files;
  const NamedArrays arrays = host_stage(done.host_stages, "read", [&] { return read_arrays(files.input); });
  done.result = run(context, arrays, options);
  const auto write = [&](const std::filesystem::path& file, const auto& named) {
    if (file.empty()) return;
    host_stage(done.host_stages, "write",
               [&] { io::write_npz(file, io::NpzArrays(named.begin(), named.end())); });
  };
  write(files.gradients, done.result.gradients);
  write(files.residuals, done.result.residuals);
  return done;
}

std::string to_json(const FileRun& run) {
  auto json = nlohmann::ordered_json::parse(to_json(run.result));
  if (!run.files.gradients.empty()) json["out"] = run.files.gradients.string();
  if (!run.files.residuals.empty()) json["residuals"] = run.files.residuals.string();
  return json_text(json);
}

}  // namespace lockstep::pde
