// Saved fields of flows: the codec, linear models of its latents, and differences between two runs.
#include "command.hpp"
#include "lockstep/flow/codec.hpp"
#include "lockstep/flow/documents.hpp"
#include "lockstep/flow/pipeline.hpp"
#include "lockstep/flow/run.hpp"

namespace lockstep::web {

namespace {

struct ComparedRuns {
  std::filesystem::path a, b;
};
void describe(Schema<ComparedRuns>& s) {
  constexpr auto kFile = "a saved run or a single field (.npz, .npy)";
  s.of("flow::compare_runs");
  s.option("a", &ComparedRuns::a, kFile).file(Option::Use::input).required();
  s.option("b", &ComparedRuns::b, kFile).file(Option::Use::input).required();
}

}  // namespace

void add_flow_commands(Calls& calls) {
  add_command<flow::EncodeRunOptions>(calls, "flow.encode", &flow::encode_run);
  add_command<flow::DecodeRunOptions>(calls, "flow.decode", &flow::decode_run);
  add_command<flow::LearnRunOptions>(calls, "flow.learn", &flow::learn_run);
  add_command<flow::RolloutRunOptions>(calls, "flow.rollout", &flow::rollout_run);
  add_command<ComparedRuns>(calls, "flow.compare", [](Context&, const ComparedRuns& runs) {
    return flow::compare_runs(runs.a, runs.b);
  });
}

}  // namespace lockstep::web
