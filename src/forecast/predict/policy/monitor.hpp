// Whether a training run diverges, by its losses, gradient norms and missed predictions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/array.hpp"

namespace lockstep::forecast {

/// caution: no jumps for now; warning: no jumps for a while; critical: go back.
enum class Verdict : uint8_t { calm, caution, warning, critical };
std::string_view name(Verdict verdict);

struct MonitorOptions {
  double memory = 0.99;   // of the running mean and variance of the loss
  double recent = 0.3;    // weight of a loss in the short average that is judged
  int64_t baseline = 50;  // losses, and gradient norms, before anything but NaN is judged
  double caution = 2.1, warning = 3, critical = 6;    // deviations above the mean loss
  double explode = 100, vanish = 0.01;                // factors of the baseline's gradient norm
  double missed_caution = 0.2, missed_warning = 0.5;  // relative error of a predicted loss
  /// Share of the last 100 slopes that change their sign. Noise alone changes 2/3 of them.
  double oscillation_caution = 0.85, oscillation_warning = 0.95;
  int64_t calm_stretch = 50;  // calm losses after which warnings are forgotten; the third warning is critical
};

/// Only losses above the mean are a sign; those far below it are progress. They are judged by a short average, so that
/// one hard batch is none.
class DivergenceMonitor {
 public:
  explicit DivergenceMonitor(const MonitorOptions& options = {}) : options_(options) {}

  Verdict observe_loss(double loss);
  Verdict observe_norm(double norm);
  /// A loss that was predicted for this step, and the one that was measured there; `before` the prediction it was that.
  /// A prediction that was too good is a sign, of caution only where the loss fell all the same.
  Verdict observe_prediction(double predicted, double measured, double before);
  /// After a rollback: losses are judged by a new baseline; the norms' stays.
  void begin_anew();

  double mean() const { return mean_; }
  double deviation() const;
  /// Calm losses since the last sign.
  int64_t calm() const { return calm_; }

  Array state() const;
  void restore(const Array& state);

 private:
  Verdict escalate(Verdict verdict);
  double oscillation() const;

  MonitorOptions options_;
  double mean_ = 0, variance_ = 0, recent_ = 0, norm_ = 0, last_ = 0;
  int64_t losses_ = 0, norms_ = 0, calm_ = 0, warnings_ = 0;
  std::vector<double> turns_;  // of the last 100 slopes: 1 where the sign changed
  int slope_ = 0;
};

}  // namespace lockstep::forecast
