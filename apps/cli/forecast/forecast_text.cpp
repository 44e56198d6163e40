// Results of forecast's commands as people read them.
#include "forecast_text.hpp"

#include <fmt/format.h>

namespace lockstep::cli {
namespace {

std::string filled_text(const std::vector<std::string>& filled) {
  std::string text;
  for (const std::string& one : filled) text += "not in the log, filled: " + one + "\n";
  return text;
}

}  // namespace

std::string text_of(const forecast::CurveRun& run, const forecast::CurveRunOptions&) {
  const forecast::CurveForecast& f = run.forecast;
  std::string text = fmt::format("{:>12} {:>12} {:>12} {:>12}\n", "step", "loss", "low", "high");
  const size_t stride = (f.prediction.size() + 9) / 10;
  for (size_t k = f.prediction.size(); k-- > 0;) {
    if ((f.prediction.size() - 1 - k) % stride != 0) continue;
    const forecast::CurvePoint& p = f.prediction[k];
    text.insert(text.find('\n') + 1,
                fmt::format("{:>12.10g} {:>12.5g} {:>12.5g} {:>12.5g}\n", p.step, p.mean, p.low, p.high));
  }
  for (const forecast::BacktestRow& row : f.backtest.rows)
    text +=
        fmt::format("on the run's own past, {}: mean error {:.2f} %\n", row.predictor, 100 * row.mean_error);
  return text + f.advice.text + "\n";
}

std::string text_of(const forecast::EncodeRun& run, const forecast::EncodeRunOptions&) {
  return fmt::format("{} states of {} features in {}\n", run.states, run.features.size(), run.out.string()) +
         filled_text(run.filled);
}

std::string text_of(const forecast::LoggedObservations& logged, const forecast::ObserveRunOptions& options) {
  const forecast::ObserveRun& run = logged.run;
  const std::string out = logged.out.string();
  return fmt::format(
             "{} observations; mean |{}| over the later half {:.4g}, of the row before {:.4g}\n"
             "model with states in {}; continue: lockstep forecast rollout {} --gru {} --heads {}\n",
             run.losses.size(),
             run.logarithmic ? "log(predicted / loss)" : "symlog(predicted) - symlog(loss)", run.error,
             run.last_value_error, out, out, name(options.observe.form), name(options.observe.heads)) +
         filled_text(logged.filled);
}

std::string text_of(const forecast::SweepRun& run, const forecast::SweepRunOptions&) {
  std::string text = fmt::format("{:<18} {:>8} {:>9} {:>8} {:>8} {:>10}\n", "policy", "saved", "regret",
                                 "stopped", "rightly", "mean stop");
  for (const forecast::SweepRow& r : run.rows)
    text += fmt::format("{:<18} {:>6.1f} % {:>7.2f} % {:>8} {:>8} {:>8.1f} %\n", r.policy, 100 * r.saved,
                        100 * r.regret, r.stopped, r.rightly_stopped, 100 * r.mean_stop);
  return text;
}

std::string text_of(const forecast::ModelRollout& rollout, const forecast::RolloutRunOptions&) {
  const forecast::RolloutRun& run = rollout.run;
  std::string text;
  for (size_t b = 0; b < run.forecasts.size(); ++b) {
    const forecast::Forecast& f = run.forecasts[b];
    if (run.forecasts.size() > 1) text += fmt::format("batch entry {}\n", b);
    text += fmt::format(
        "final loss {:.6g} +- {:.3g} (aleatoric {:.3g}, epistemic {:.3g}), confidence {:.4f}, entropy "
        "{:.4f}\n",
        f.final, f.sigma, f.aleatoric, f.epistemic, f.confidence, f.entropy);
    text += fmt::format("{:>8} {:>12} {:>12} {:>12} {:>12}\n", "member", "final", "variance", "smoothness",
                        "|h|");
    for (size_t m = 0; m < f.members.size(); ++m) {
      const forecast::MemberForecast& one = f.members[m];
      text +=
          fmt::format("{:>8} {:>12.6g} {:>12.4g} {:>12.4f} {:>12.5g}\n", m,
                      one.trajectory.empty() ? f.final : one.trajectory.back(), one.loss_variance,
                      one.trajectory_smoothness, one.hidden_norms.empty() ? 0.0 : one.hidden_norms.back());
    }
  }
  const forecast::RolloutMemory& m = run.memory;
  text +=
      fmt::format("{}, state in {}; memory predicted {} bytes (weights {}, state {}, outputs {}), used {}",
                  run.path, run.state_place, m.total(), m.weights, m.state, m.outputs, run.used_bytes);
  if (m.shared_per_group > 0) text += fmt::format("; {} bytes of shared memory a group", m.shared_per_group);
  if (!run.no_batch.empty()) text += fmt::format("\nno kernel for batches: {}", run.no_batch);
  if (!run.no_cluster.empty()) text += fmt::format("\nportable kernels: {}", run.no_cluster);
  text += "\n";
  return rollout.plot.empty() ? text : text + rollout.plot.string() + "\n";
}

std::string text_of(const forecast::TrainResult& r, const forecast::TrainRunOptions&) {
  std::string text = fmt::format("{}, {}: {} parameters, {} examples, {} for validation\n", r.task, r.model,
                                 r.parameters, r.train_examples, r.validation_examples);
  for (const forecast::TrainRun& run : r.runs) {
    text += fmt::format("seed {:<6} steps {:<8} val_loss {:<12.6g}", run.seed, run.steps, run.val_loss);
    if (run.accuracy) text += fmt::format(" accuracy {:<8.4f}", *run.accuracy);
    text += fmt::format(" {:.1f} s", run.seconds);
    if (run.jumps > 0) text += fmt::format(", {} of {} jumps kept", run.accepted, run.jumps);
    if (run.reached) text += ", target reached";
    if (run.resumed_at >= 0) text += fmt::format(", went on from step {}", run.resumed_at);
    text += "\n";
  }
  return text;
}

}  // namespace lockstep::cli
