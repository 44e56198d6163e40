// `lockstep forecast`: each command is one call of the library.
#include <memory>

#include "bound_call.hpp"
#include "core/reports/progress.hpp"
#include "forecast_text.hpp"
#include "lockstep/forecast/documents.hpp"

namespace lockstep::cli {
namespace {

/// work(session, options) gives a result with its stages on the host, which to_json() and text_of() show.
template <class Options, class Work>
void add_forecast_call(CommandList& commands, Command& forecast, const char* name, const char* help,
                       const char* example, Work work) {
  add_call<Options>(commands, *forecast.app, name, help, example,
                    [work](Session& session, const Options& options) {
                      const auto result = work(session, options);
                      show(session, result, text_of(result, options));
                      return 0;
                    });
}

int train_network(Session& session, forecast::TrainRunOptions options) {
  std::shared_ptr<Progress> bar;
  options.train.on_progress = [&bar](int64_t done, int64_t total) {
    if (!bar) bar = std::make_shared<Progress>("training", total, "steps");
    bar->set(done);
  };
  const auto result = session.on_lead([&](Context& context, const parallel::Group& group) {
    return forecast::run_train(context, options, group);
  });
  if (result) show(session, *result, text_of(*result, options));
  return 0;
}

int sweep_runs(Session& session, const forecast::SweepRunOptions& options) {
  const auto result =
      session.on_lead([&](const parallel::Group& group) { return forecast::run_sweep(options, group); });
  if (result) show(session, *result, text_of(*result, options));
  return 0;
}

}  // namespace

void add_forecast(CommandList& commands, CLI::App& root) {
  Command& forecast =
      add_command(commands, root, "forecast", "learning curves, rollouts and training of networks");
  set_footer(*forecast.app,
             "Example:\n  lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json");
  add_forecast_call<forecast::CurveRunOptions>(
      commands, forecast, "curve", "forecast the loss of a running training",
      "lockstep forecast curve log.csv --horizon 20000 --target 0.3 --out curve.png",
      [](Session&, const auto& options) { return forecast::run_curve(options); });
  add_forecast_call<forecast::EncodeRunOptions>(
      commands, forecast, "encode", "compute 64 features of each state of a logged training",
      "lockstep forecast encode log.jsonl --out features.npz",
      [](Session& s, const auto& options) { return forecast::run_encode(s.context(), options); });
  add_forecast_call<forecast::ObserveRunOptions>(
      commands, forecast, "observe", "fit an ensemble to a logged training, row by row",
      "lockstep forecast observe log.csv --out model.npz",
      [](Session& s, const auto& options) { return forecast::run_observe(s.context(), options); });
  add_call<forecast::SweepRunOptions>(commands, *forecast.app, "sweep",
                                      "savings and losses of stopping runs early, from finished runs",
                                      "lockstep forecast sweep sweep.csv", sweep_runs, Ranks::several);
  add_forecast_call<forecast::RolloutRunOptions>(
      commands, forecast, "rollout", "forecast losses by an ensemble of recurrent networks",
      "lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json",
      [](Session& s, const auto& options) { return forecast::run_rollout(s.context(), options); });
  add_call<forecast::TrainRunOptions>(
      commands, *forecast.app, "train", "train a network on xor, mnist, charlm or your own task",
      "lockstep forecast train mnist --data data --seeds 3 --out out", train_network, Ranks::several);
}

}  // namespace lockstep::cli
