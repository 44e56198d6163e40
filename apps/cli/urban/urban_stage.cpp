// `lockstep urban stage`: one stage of the model by itself, from arrays to arrays.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

int list_stages(Session& session) {
  std::string text;
  for (const urban::Stage& stage : urban::urban_stages()) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", stage.name, stage.about);
    for (const auto* side : {&stage.reads, &stage.writes})
      for (const urban::StageArray& a : *side)
        text += fmt::format("  {:6} {:26} {:12} {:10} {}{}\n", side == &stage.reads ? "reads" : "writes",
                            a.name, a.shape, a.unit, a.about, a.optional ? " (optional)" : "");
  }
  session.finish(urban::to_json(urban::urban_stages()), text);
  return 0;
}

int run_stage(Session& session, const urban::StageOptions& options, bool list) {
  constexpr auto kExpected = "NAME IN.npz, or --list";
  if (list && (!options.name.empty() || !options.out.empty()))
    throw InputError("a stage with --list", "urban stage", kExpected);
  if (list) return list_stages(session);
  if (options.name.empty() || options.input.empty()) throw InputError("no stage", "urban stage", kExpected);
  const urban::StageRun run = urban::run(options);
  for (const StageRecord& stage : run.host_stages) session.note(stage);
  std::string text;
  for (const urban::StageOutput& o : run.outputs)
    text += o.elements == 1 ? fmt::format("{:20} {}\n", o.name, o.minimum)
                            : fmt::format("{:20} {:14} {:.6g} to {:.6g}, mean {:.6g}\n", o.name,
                                          to_string(o.shape), o.minimum, o.maximum, o.mean);
  session.finish(urban::to_json(run), text);
  return 0;
}

}  // namespace

void add_urban_stage(CommandList& commands, CLI::App& urban) {
  const auto list = std::make_shared<bool>(false);
  Command& stage = add_call<urban::StageOptions>(
      commands, urban, "stage", "one stage of the model by itself, from arrays to arrays",
      "lockstep urban stage tmrt fluxes.npz --out tmrt.npz",
      [list](Session& session, const urban::StageOptions& o) { return run_stage(session, o, *list); });
  add_flag(*stage.app, "--list", *list, "each stage's arrays, their shapes and units");
}

}  // namespace lockstep::cli
