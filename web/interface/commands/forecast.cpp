// Features of logged trainings, early stopping in sweeps, and trainings of networks.
#include "command.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/run.hpp"

namespace lockstep::web {

void add_forecast_commands(Calls& calls) {
  add_command<forecast::EncodeRunOptions>(calls, "forecast.encode", &forecast::run_encode);
  add_command<forecast::SweepRunOptions>(
      calls, "forecast.sweep",
      [](Context&, const forecast::SweepRunOptions& options) { return forecast::run_sweep(options); });
  add_command<forecast::TrainRunOptions>(
      calls, "forecast.train",
      [](Context& context, forecast::TrainRunOptions& options, const PageProgress& progress) {
        options.train.on_progress = progress;
        return forecast::run_train(context, options);
      });
}

}  // namespace lockstep::web
