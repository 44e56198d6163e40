// `lockstep urban stage`: one stage of the model by itself, from arrays to arrays.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "urban/stages/run_stage.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

struct StageCommand {
  std::string name, input, out;
  bool list = false;
};

nlohmann::ordered_json to_json(const std::vector<urban::StageArray>& arrays) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const urban::StageArray& a : arrays) {
    list.push_back({{"name", a.name}, {"shape", a.shape}, {"unit", a.unit}, {"about", a.about}});
    if (a.optional) list.back()["optional"] = true;
  }
  return list;
}

int list_stages(Session& session) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  std::string text;
  for (const urban::Stage& stage : urban::urban_stages()) {
    stages.push_back({{"name", stage.name},
                      {"about", stage.about},
                      {"reads", to_json(stage.reads)},
                      {"writes", to_json(stage.writes)}});
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", stage.name, stage.about);
    for (const auto* side : {&stage.reads, &stage.writes})
      for (const urban::StageArray& a : *side)
        text += fmt::format("  {:6} {:26} {:12} {:10} {}{}\n", side == &stage.reads ? "reads" : "writes",
                            a.name, a.shape, a.unit, a.about, a.optional ? " (optional)" : "");
  }
  if (!text.empty()) text.pop_back();
  session.finish({{"stages_of_urban", stages}}, text);
  return 0;
}

int run(const CommonOptions& common, const StageCommand& arguments) {
  Session session(common);
  if (arguments.list) {
    if (!arguments.name.empty() || !arguments.out.empty())
      throw InputError("a stage with --list", "urban stage", "NAME IN.npz, or --list");
    return list_stages(session);
  }
  if (arguments.name.empty() || arguments.input.empty())
    throw InputError("no stage", "urban stage", "NAME IN.npz, or --list");
  const urban::StageRun run = urban::run_urban_stage(arguments.name, arguments.input, arguments.out);
  for (const StageRecord& stage : run.host_stages) session.note(stage);
  std::string text;
  for (const urban::StageOutput& o : run.outputs) {
    if (!text.empty()) text += "\n";
    text += o.elements == 1 ? fmt::format("{:20} {}", o.name, o.minimum)
                            : fmt::format("{:20} {:14} {:.6g} to {:.6g}, mean {:.6g}", o.name,
                                          to_string(o.shape), o.minimum, o.maximum, o.mean);
  }
  session.finish(nlohmann::ordered_json::parse(to_json(run)), text);
  return 0;
}

}  // namespace

void add_urban_stage(CommandList& commands, CLI::App& urban) {
  Command& command =
      add_command(commands, urban, "stage", "one stage of the model by itself, from arrays to arrays");
  auto arguments = std::make_shared<StageCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "NAME", arguments->name, "the stage; --list tells all", false);
  add_positional(app, "IN.npz", arguments->input, "its arrays, f64; scalars without axes", false);
  add_output_file(app, "--out", arguments->out, "where its results go (.npz)", {".npz"});
  add_flag(app, "--list", arguments->list, "each stage's arrays, their shapes and units");
  add_common(command, "lockstep urban stage tmrt fluxes.npz --out tmrt.npz");
  command.run = [&command, arguments] { return run(command.common, *arguments); };
}

}  // namespace lockstep::cli
