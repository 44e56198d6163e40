// `lockstep flow learn` and `rollout`.
#include "flow_surrogate.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "session.hpp"
#include "surrogate_options.hpp"

namespace lockstep::cli {
namespace {

struct FlowLearnArguments {
  std::string in, out;
  SurrogateArguments surrogate;
};
struct FlowRolloutArguments {
  std::string in, out, rollout = "doubling";
  int64_t steps = 0;
};

int run_flow_learn(const CommonOptions& common, const FlowLearnArguments& a) {
  Session session(common);
  const flow::LearnRunResult r = flow::learn_run(
      session.context(), {a.in, a.out, surrogate_options(a.surrogate), rollout_mode(a.surrogate)});
  std::string text = fmt::format("{} of {} frames learnt, {} numbers each, states of {}\n",
                                 r.model.train_frames, r.frames, r.model.latent_size, r.model.state_size());
  if (!r.eigenvalues.empty())
    text += fmt::format("spectral radius {:.6g}\n", std::abs(r.eigenvalues.front()));
  text += scores_summary(r.latents, r.fields) + r.file.string() + "\n";
  session.finish(nlohmann::ordered_json::parse(flow::to_json(r)), text);
  return 0;
}

int run_flow_rollout(const CommonOptions& common, const FlowRolloutArguments& a) {
  Session session(common);
  const flow::RolloutRunResult r = flow::rollout_run(
      session.context(),
      {a.in, a.out, a.steps, a.rollout == "steps" ? flow::RolloutMode::steps : flow::RolloutMode::doubling});
  const auto result = nlohmann::ordered_json::parse(flow::to_json(r));
  session.finish(result,
                 fmt::format("{} steps in {:.4g} s, {:.4g} a second; {} of {} held-out steps nearer than "
                             "persistence when it was learnt\n{}\n",
                             r.steps, r.seconds, r.steps_per_second, result["horizon"].get<int64_t>(),
                             result["latents"]["held_out"]["steps"].get<int64_t>(), r.file.string()));
  return 0;
}

}  // namespace

void add_surrogate_options(CLI::App& app, SurrogateArguments& a) {
  add_choice(app, "--method", a.method,
             "ridge (default): regression with --lambda; dmd: least squares on singular vectors",
             {"ridge", "dmd"});
  add_number(app, "--train-share", a.train_share,
             "of the frames, the first ones, to learn from (default 0.5); the others are held out", "S",
             {0, 1, true});
  add_integer(app, "--delays", a.delays, "frames that a state holds (default 1)", "N", 1, 64);
  add_integer(app, "--vectors", a.rank, "singular vectors to keep (default: by --vector-share)", "R", 1,
              flow::kMaxState);
  add_number(app, "--vector-share", a.vectors,
             "of the sum of squares that the singular vectors hold (default 1: all above rounding)", "S",
             {0, 1, true});
  add_number(app, "--lambda", a.lambda, "of ridge (default 1e-3)", "L", {0});
  add_choice(app, "--rollout", a.rollout, "by single steps, or by blocks that double (default)",
             {"steps", "doubling"});
}

void check_surrogate_options(const CLI::App& app, const SurrogateArguments& a) {
  if (a.method != "ridge")
    refuse_given(app, {"--lambda"}, "nothing uses it with --method dmd", "--method ridge");
  refuse_both(app, "--vectors", "--vector-share");
}

flow::SurrogateOptions surrogate_options(const SurrogateArguments& a) {
  flow::SurrogateOptions o;
  o.method = a.method == "dmd" ? flow::SurrogateMethod::dmd : flow::SurrogateMethod::ridge;
  o.train_share = a.train_share;
  o.delays = a.delays;
  o.rank = a.rank;
  o.share = a.vectors;
  o.lambda = a.lambda;
  return o;
}

flow::RolloutMode rollout_mode(const SurrogateArguments& a) {
  return a.rollout == "steps" ? flow::RolloutMode::steps : flow::RolloutMode::doubling;
}

std::string scores_summary(const flow::SurrogateScores& latents, const flow::FieldScores& fields) {
  const flow::RolloutScore &out = latents.held_out, &in = latents.in_sample;
  std::string text = fmt::format("{:<10} {:>12} {:>12} {:>12} {:>12}\n", "relative L2", "held out",
                                 "in sample", "persistence", "climatology");
  text += fmt::format("{:<11} {:>12.4g} {:>12.4g} {:>12.4g} {:>12.4g}\n", "latents", out.surrogate_all,
                      in.surrogate_all, out.persistence_all, out.climatology_all);
  text += fmt::format("{:<11} {:>12.4g} {:>12.4g} {:>12.4g} {:>12.4g}\n", "fields",
                      fields.surrogate.relative_l2, fields.in_sample.relative_l2,
                      fields.persistence.relative_l2, fields.climatology.relative_l2);
  const auto horizon = [&](const char* what, int64_t steps) {
    return steps < int64_t(out.surrogate.size())
               ? fmt::format("{}: loses to persistence after {} steps of {}\n", what, steps,
                             out.surrogate.size())
               : fmt::format("{}: nearer than persistence in all {} steps\n", what, steps);
  };
  return text + horizon("latents", out.horizon) + horizon("fields", fields.horizon);
}

void add_flow_surrogate(CommandList& commands, Command& flow) {
  Command& learn = add_command(commands, *flow.app, "learn", "a linear model of a series of latents");
  auto l = std::make_shared<FlowLearnArguments>();
  add_positional(*learn.app, "in", l->in, "file of flow encode", true);
  add_surrogate_options(*learn.app, l->surrogate);
  add_output_file(*learn.app, "--out", l->out, "the model, .npz", "MODEL.npz");
  require(*learn.app, "--out");
  add_common(learn, "lockstep flow learn z.npz --method dmd --vectors 40 --delays 2 --out model.npz");
  learn.run = [&learn, l] {
    check_surrogate_options(*learn.app, l->surrogate);
    return run_flow_learn(learn.common, *l);
  };

  Command& rollout =
      add_command(commands, *flow.app, "rollout", "latents that a model foretells after its training frames");
  auto r = std::make_shared<FlowRolloutArguments>();
  add_positional(*rollout.app, "in", r->in, "file of flow learn", true);
  add_integer(*rollout.app, "--steps", r->steps, "frames to foretell", "N", 1, 1 << 24);
  require(*rollout.app, "--steps");
  add_choice(*rollout.app, "--rollout", r->rollout, "by single steps, or by blocks that double (default)",
             {"steps", "doubling"});
  add_output_file(*rollout.app, "--out", r->out, "the latents, .npz, for flow decode", "Z.npz");
  require(*rollout.app, "--out");
  add_common(rollout, "lockstep flow rollout model.npz --steps 100 --out future.npz");
  rollout.run = [&rollout, r] { return run_flow_rollout(rollout.common, *r); };
}

}  // namespace lockstep::cli
