// `lockstep flow`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "bound_call.hpp"
#include "core/files/output_files.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "flow_text.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/memory.hpp"

namespace lockstep::cli {
namespace {

/// A command that is one call of the library: work(context, options).
template <class Options, class Work>
void add_flow_call(CommandList& commands, Command& flow, const char* name, const char* help,
                   const char* example, Work work) {
  add_call<Options>(commands, *flow.app, name, help, example,
                    [work](Session& session, const Options& options) {
                      const auto result = work(session.context(), options);
                      show(session, result, text_of(result));
                      return 0;
                    });
}

struct ComparedFields {
  std::filesystem::path a, b;
};

void describe(Schema<ComparedFields>& s) {
  s.of("cli::ComparedFields");
  const auto file = [&](const char* name, std::filesystem::path ComparedFields::* member, const char* flag) {
    s.option(name, member, "run.npz or run.nc, or a single field (.npz, .npy, .mat)")
        .flag(flag)
        .file(Option::Use::input)
        .positional()
        .required();
  };
  file("a", &ComparedFields::a, "A");
  file("b", &ComparedFields::b, "B");
}

/// Prints the device memory that a run would take, without making it.
int predict_memory(Session& session, flow::RunOptions options) {
  if (!options.grid_given && std::filesystem::exists(options.initial)) flow::load_initial(options);
  const DeviceInfo& device = session.context().device().info();
  const int64_t bytes =
      flow::memory_bytes(options.model, options.stepping, options.precision, options.members, device);
  const flow::BoxGrid& grid = options.model.grid;
  session.finish({{"n", {grid.ny, grid.nx}},
                  {"members", options.members},
                  {"precision", name(options.precision)},
                  {"predicted_device_bytes", bytes}},
                 fmt::format("{} x {}, {} members, {}: {} bytes on {}\n", grid.ny, grid.nx, options.members,
                             name(options.precision), bytes, device.name));
  return 0;
}

int run_flow(Command& command, Session& session, flow::RunOptions options) {
  const CommonOptions& common = session.options();
  const bool watch = asked(command, "watch");
  if (watch && common.quiet) throw InputError("--watch with --quiet", "flow run", "one of them");
  check_output_file(options.folder / fmt::format("run.{}", flow::name(options.format)));
  if (asked(command, "memory")) return predict_memory(session, std::move(options));
  if (watch) {
    // In a terminal the line is drawn again; else one below the other.
    options.on_watch = [](const flow::Moment& m, int64_t steps, double speed) {
      const std::string text = text_of(m, steps, speed);
      if (logging::is_terminal())
        logging::set_status(text.substr(0, size_t(logging::terminal_columns()) - 1));
      else
        logging::line(text);
    };
  } else {
    const auto progress = std::make_shared<Progress>("steps", 1000);
    options.on_progress = [progress](int64_t done, int64_t) { progress->set(done); };
  }
  const auto result = session.on_lead([&](Context& context, const parallel::Group& group) {
    flow::RunOptions own = options;
    if (options.members >= group.size()) own.members = parallel::share(options.members, group).size();
    flow::require_memory(context, own, !common.no_fallback);
    return flow::run(context, options, group);
  });
  logging::set_status("");
  if (result) show(session, *result, text_of(*result));
  return 0;
}

void add_flow_compare(CommandList& commands, Command& flow) {
  Command& both = add_command(commands, *flow.app, "compare", "differences between two saved runs");
  const ComparedFields& files = add_options<ComparedFields>(both);
  add_common(both, "lockstep flow compare coarse/run.npz fine/run.npz");
  both.run = [&both, &files] {
    Session session(both.common);
    const flow::Comparison2d c =
        session.host_stage("flow.compare", [&] { return flow::compare_runs(files.a, files.b); });
    show(session, c, text_of(c));
    return 0;
  };
}

}  // namespace

void add_flow(CommandList& commands, CLI::App& root) {
  Command& flow = add_command(commands, root, "flow",
                              "two-dimensional turbulence: simulation, codec and surrogate model");
  set_footer(*flow.app,
             "Example:\n  lockstep flow run --n 512 --closure smagorinsky --time 10 --cfl 0.5 --out out");
  add_call<flow::RunOptions>(
      commands, *flow.app, "run", "simulate a flow on a doubly periodic box",
      "lockstep flow run --n 512 --ic mcwilliams --closure smagorinsky:0.17 --cfl 0.5 --time 10 "
      "--save-every 200 --pictures --out out",
      run_flow, Ranks::several);
  add_flow_compare(commands, flow);
  add_flow_call<flow::EncodeRunOptions>(
      commands, flow, "encode", "encode the fields of a run as short latents or small files",
      "lockstep flow encode out/run.nc --max-error 1e-3 --out z.npz",
      [](Context& context, const auto& options) { return flow::encode_run(context, options); });
  add_flow_call<flow::DecodeRunOptions>(
      commands, flow, "decode", "decode encoded fields, or latents of a rollout, to fields",
      "lockstep flow decode z.npz --decoder mean --out fields.nc",
      [](Context& context, const auto& options) { return flow::decode_run(context, options); });
  add_flow_call<flow::LearnRunOptions>(
      commands, flow, "learn", "learn a linear model of a series of latents",
      "lockstep flow learn z.npz --method dmd --vectors 40 --delays 2 --out model.npz",
      [](Context& context, const auto& options) { return flow::learn_run(context, options); });
  add_flow_call<flow::RolloutRunOptions>(
      commands, flow, "rollout", "predict latents after the training frames of a model",
      "lockstep flow rollout model.npz --steps 100 --out future.npz",
      [](Context& context, const auto& options) { return flow::rollout_run(context, options); });
  add_call<flow::PipelineSweep>(
      commands, *flow.app, "pipeline",
      "simulate, encode, learn, roll out, decode and draw, all on one device",
      "lockstep flow pipeline --n 256 --steps 2000 --strides 10 --rank 0.9 --places cpu,device --pictures "
      "--out out",
      [](Session& session, const flow::PipelineSweep& options) {
        const flow::SweepResult result =
            flow::run_sweep(session.context(), options, !session.options().no_fallback);
        show(session, result, text_of(result));
        return 0;
      });
}

}  // namespace lockstep::cli
