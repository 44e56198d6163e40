// LinUCB (Li, Chu, Langford and Schapire, WWW 2010): arms with a linear reward each, and a bonus for what is uncertain.
#pragma once

#include <span>
#include <vector>

#include "lockstep/array.hpp"

namespace lockstep::forecast {

class LinearBandit {
 public:
  /// Arm 0 stands for doing nothing: its reward is 0, and known. The others learn.
  LinearBandit(int arms, int features, double exploration);

  /// The arm of the highest mean + exploration * deviation; of equal ones the first learning arm.
  int choose(std::span<const double> features) const;
  double mean(int arm, std::span<const double> features) const;
  double deviation(int arm, std::span<const double> features) const;
  void learn(int arm, std::span<const double> features, double reward);

  /// (arms, features + 1, features): I + sum of x x', then sum of reward x.
  Array state() const;
  void restore(const Array& state);

 private:
  std::span<const double> matrix(int arm) const;
  int arms_, features_;
  double exploration_;
  std::vector<double> numbers_;
};

}  // namespace lockstep::forecast
