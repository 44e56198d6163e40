#include "forecast/predict/policy/monitor.hpp"

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr size_t kSlopes = 100, kMonitorNumbers = 10;

Verdict worse(Verdict a, Verdict b) { return std::max(a, b); }

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::calm: return "calm";
    case Verdict::caution: return "caution";
    case Verdict::warning: return "warning";
    default: return "critical";
  }
}

double DivergenceMonitor::deviation() const {
  // A loss that hardly varies: its rounding is no sign.
  return std::max(std::sqrt(std::max(variance_, 0.0)), 1e-3 * std::abs(mean_));
}

double DivergenceMonitor::oscillation() const {
  if (turns_.size() < kSlopes) return 0;
  double changed = 0;
  for (const double t : turns_) changed += t;
  return changed / double(turns_.size());
}

Verdict DivergenceMonitor::escalate(Verdict verdict) {
  if (verdict == Verdict::calm) {
    if (++calm_ >= options_.calm_stretch) warnings_ = 0;
    return verdict;
  }
  calm_ = 0;
  if (verdict == Verdict::warning && ++warnings_ >= 3) verdict = Verdict::critical;
  if (verdict == Verdict::critical) warnings_ = 0;
  return verdict;
}

Verdict DivergenceMonitor::observe_loss(double loss) {
  if (!std::isfinite(loss)) return escalate(Verdict::critical);
  Verdict verdict = Verdict::calm;
  recent_ = losses_ == 0 ? loss : recent_ + options_.recent * (loss - recent_);
  if (losses_ >= options_.baseline) {
    const double above = (recent_ - mean_) / deviation();
    verdict = above > options_.critical  ? Verdict::critical
              : above > options_.warning ? Verdict::warning
              : above > options_.caution ? Verdict::caution
                                         : Verdict::calm;
  }
  if (losses_ > 0) {
    const int slope = loss > last_ ? 1 : loss < last_ ? -1 : 0;
    if (slope_ != 0) turns_.push_back(slope != 0 && slope != slope_ ? 1 : 0);
    if (turns_.size() > kSlopes) turns_.erase(turns_.begin());
    if (slope != 0) slope_ = slope;
  }
  last_ = loss;
  const double turning = oscillation();
  verdict = worse(verdict, turning > options_.oscillation_warning   ? Verdict::warning
                           : turning > options_.oscillation_caution ? Verdict::caution
                                                                    : Verdict::calm);
  // The first losses count alike, later ones with the memory's weight. A critical one would spoil both numbers.
  if (verdict != Verdict::critical) {
    ++losses_;
    const double weight = std::max(1 - options_.memory, 1 / double(losses_)), away = loss - mean_;
    mean_ += weight * away;
    variance_ = (1 - weight) * (variance_ + weight * away * away);
  }
  return escalate(verdict);
}

Verdict DivergenceMonitor::observe_norm(double norm) {
  if (!std::isfinite(norm)) return escalate(Verdict::critical);
  if (norms_ * 10 < options_.baseline) {
    norm_ += (norm - norm_) / double(++norms_);
    return Verdict::calm;
  }
  if (!(norm_ > 0)) return Verdict::calm;
  const double factor = norm / norm_;
  if (factor > 10 * options_.explode) return escalate(Verdict::critical);
  if (factor > options_.explode) return escalate(Verdict::warning);
  // A gradient that vanishes is also what the end of training looks like: no jumps, no way back.
  return factor < options_.vanish ? Verdict::caution : Verdict::calm;
}

Verdict DivergenceMonitor::observe_prediction(double predicted, double measured, double before) {
  if (!std::isfinite(measured)) return escalate(Verdict::critical);
  if (measured <= predicted) return Verdict::calm;
  const double missed = (measured - predicted) / std::max(std::abs(measured), 1e-300);
  if (missed > options_.missed_warning && !(measured < before)) return escalate(Verdict::warning);
  return missed > options_.missed_caution ? Verdict::caution : Verdict::calm;
}

void DivergenceMonitor::begin_anew() {
  mean_ = variance_ = recent_ = last_ = 0;
  losses_ = calm_ = warnings_ = 0;
  turns_.clear();
  slope_ = 0;
}

Array DivergenceMonitor::state() const {
  std::vector<double> numbers{mean_,           variance_,      norm_,         last_,
                              double(losses_), double(norms_), double(calm_), double(warnings_),
                              double(slope_),  recent_};
  numbers.insert(numbers.end(), turns_.begin(), turns_.end());
  return Array::of(numbers);
}

void DivergenceMonitor::restore(const Array& state) {
  if (state.storage() != Storage::f64 || state.elements() < int64_t(kMonitorNumbers))
    throw InputError("a monitor's state of another form", "forecast: checkpoint", "10 numbers or more");
  const auto n = state.as<double>();
  mean_ = n[0], variance_ = n[1], norm_ = n[2], last_ = n[3];
  losses_ = int64_t(n[4]), norms_ = int64_t(n[5]), calm_ = int64_t(n[6]), warnings_ = int64_t(n[7]);
  slope_ = int(n[8]), recent_ = n[9];
  turns_.assign(n.begin() + kMonitorNumbers, n.end());
}

}  // namespace lockstep::forecast
