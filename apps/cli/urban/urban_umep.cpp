// `lockstep urban umep`: sky view factors from and to the files of UMEP and SOLWEIG.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "urban/run/files/umep_exchange.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

struct UmepCommand {
  std::string from, out, format;  // format: empty, or as given
  std::optional<double> transmissivity;
};

int run(const CommonOptions& common, const UmepCommand& arguments) {
  Session session(common);
  const std::filesystem::path from = arguments.from;
  const bool archive = from.extension() == ".zip";
  if (archive && arguments.transmissivity)
    throw InputError("a transmissivity for grids that are read", "--transmissivity",
                     "a folder of 'urban svf'");
  if (!archive && !arguments.format.empty())
    throw InputError("a format for UMEP's files, which are GeoTIFF", "--format", "an svfs.zip");
  std::error_code unknown;
  if (std::filesystem::equivalent(archive ? std::filesystem::absolute(from).parent_path() : from,
                                  arguments.out, unknown))
    throw InputError(fmt::format("{} holds the input", arguments.out), "--out", "another folder");
  const urban::UmepExchange done = session.host_stage("convert", [&] {
    return archive
               ? urban::from_umep(from, arguments.out,
                                  arguments.format == "npy" ? urban::GridFormat::npy : urban::GridFormat::tif)
               : urban::to_umep(from, arguments.out, arguments.transmissivity.value_or(0.03));
  });
  nlohmann::ordered_json document{{"rows", done.rows}, {"cols", done.cols}, {"patches", done.patches}};
  std::string text;
  for (const auto& file : done.files) {
    document["files"].push_back(file.string());
    text += file.string() + "\n";
  }
  session.finish(std::move(document), text);
  return 0;
}

}  // namespace

void add_urban_umep(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "umep",
                                 "sky view factors from and to svfs.zip and shadowmats.npz of UMEP");
  auto arguments = std::make_shared<UmepCommand>();
  CLI::App& app = *command.app;
  add_positional(
      app, "FROM", arguments->from,
      "what 'urban svf' left (with --save-patches: shadowmats.npz too), or an svfs.zip, beside which "
      "shadowmats.npz may lie: it becomes a folder for 'urban run --svf'",
      true);
  add_number(app, "--transmissivity", arguments->transmissivity,
             "of plants, in SkyViewFactor.tif, the total (default 0.03)", "T", {0, 1});
  add_choice(app, "--format", arguments->format, "of the grids that an svfs.zip becomes (default tif)",
             {"tif", "npy"});
  add_output_folder(app, "--out", arguments->out, "folder for the results; it is made if missing");
  require(app, "--out");
  add_common(command, "lockstep urban umep svf_folder --out umep");
  command.run = [&command, arguments] { return run(command.common, *arguments); };
}

}  // namespace lockstep::cli
