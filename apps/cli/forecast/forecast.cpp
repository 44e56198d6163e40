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

forecast::TrainResult train_network(Session& session, forecast::TrainRunOptions options) {
  std::shared_ptr<Progress> bar;
  options.train.on_progress = [&bar](int64_t done, int64_t total) {
    if (!bar) bar = std::make_shared<Progress>("training", total, "steps");
    bar->set(done);
  };
  return forecast::run_train(session.context(), options);
}

}  // namespace

void add_forecast(CommandList& commands, CLI::App& root) {
  Command& forecast = add_command(commands, root, "forecast", "forecasts of training runs");
  set_footer(*forecast.app,
             "Example:\n  lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json");
  add_forecast_call<forecast::CurveRunOptions>(
      commands, forecast, "curve", "where the loss of a running training will be",
      "lockstep forecast curve log.csv --horizon 20000 --target 0.3 --out curve.png",
      [](Session&, const auto& options) { return forecast::run_curve(options); });
  add_forecast_call<forecast::EncodeRunOptions>(
      commands, forecast, "encode", "the states of a logged training as 64 features",
      "lockstep forecast encode log.jsonl --out features.npz",
      [](Session& s, const auto& options) { return forecast::run_encode(s.context(), options); });
  add_forecast_call<forecast::ObserveRunOptions>(
      commands, forecast, "observe", "teach an ensemble a logged training, row by row",
      "lockstep forecast observe log.csv --out model.npz",
      [](Session& s, const auto& options) { return forecast::run_observe(s.context(), options); });
  add_forecast_call<forecast::SweepRunOptions>(
      commands, forecast, "sweep", "what stopping runs early would have saved, on finished runs",
      "lockstep forecast sweep sweep.csv",
      [](Session&, const auto& options) { return forecast::run_sweep(options); });
  add_forecast_call<forecast::RolloutRunOptions>(
      commands, forecast, "rollout", "forecast losses by an ensemble of recurrent networks",
      "lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json",
      [](Session& s, const auto& options) { return forecast::run_rollout(s.context(), options); });
  add_forecast_call<forecast::TrainRunOptions>(
      commands, forecast, "train", "train a network on xor, mnist, charlm or a task of your own",
      "lockstep forecast train mnist --data data --seeds 3 --out out",
      [](Session& s, const auto& options) { return train_network(s, options); });
}

}  // namespace lockstep::cli
