// `lockstep urban stage`: one stage of the model by itself, from arrays to arrays.
#include <fmt/format.h>

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
  show(session, urban::urban_stages(), text);
  return 0;
}

int run_stage(Command& command, Session& session, const urban::StageOptions& options) {
  if (asked(command, "list")) return list_stages(session);
  if (options.name.empty() || options.input.empty())
    throw InputError("no stage", "urban stage", "NAME IN.npz, or --list");
  const urban::StageRun run = urban::run(options);
  std::string text;
  for (const urban::StageOutput& o : run.outputs)
    text += o.elements == 1 ? fmt::format("{:20} {}\n", o.name, o.minimum)
                            : fmt::format("{:20} {:14} {:.6g} to {:.6g}, mean {:.6g}\n", o.name,
                                          to_string(o.shape), o.minimum, o.maximum, o.mean);
  show(session, run, text);
  return 0;
}

}  // namespace

void add_urban_stage(CommandList& commands, CLI::App& urban) {
  add_call<urban::StageOptions>(commands, urban, "stage", "compute one stage of the model on arrays",
                                "lockstep urban stage tmrt fluxes.npz --out tmrt.npz", run_stage);
}

}  // namespace lockstep::cli
