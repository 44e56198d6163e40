// Corrections of predicted losses, from the misses so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/array.hpp"

namespace lockstep::forecast {

/// Residuals are shares of the loss: (measured - predicted) / loss before. A new one is expected from 0.7 parts of the
/// nearest ones' mean (by the cosine of their features) and 0.3 parts of a linear model of the features.
class ResidualCorrector {
 public:
  /// `doubt`: weight of a residual of 0 in addition to the others, so that old ones are forgotten.
  ResidualCorrector(int features, double doubt);

  /// The share of the loss by which a prediction made at `step` should be moved, within -0.2 to 0.2.
  double correction(uint64_t step, std::span<const double> features) const;
  void learn(uint64_t step, std::span<const double> features, double residual);
  int64_t size() const { return int64_t(entries_.size()) / (features_ + 2); }

  /// (2, …): the memory (step, residual, features of each), and the linear model.
  std::vector<double> entries() const { return entries_; }
  std::vector<double> model() const { return model_; }
  void restore(std::span<const double> entries, std::span<const double> model);

 private:
  double nearest(uint64_t step, std::span<const double> features) const;
  int features_;
  double doubt_;
  std::vector<double> entries_;  // step, residual, features; oldest first
  std::vector<double> model_;    // features x features + features: normal equations that fade
};

}  // namespace lockstep::forecast
