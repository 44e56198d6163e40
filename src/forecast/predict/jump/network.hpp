// One small network for every parameter: the next difference of a path from its last ones, in units of its tensor's
// differences.
#pragma once

#include <span>
#include <vector>

namespace lockstep::forecast {

/// y = a x + v tanh(B x + b), x the last `taps` differences, newest first.
class DirectionNetwork {
 public:
  /// At most seven taps. At first a and v are 0, B and b normal numbers at Halton's points. `ridge` pulls at the weights
  /// of the linear start and, by a thousandth of it, at all but a.
  DirectionNetwork(int taps, int units, double ridge);

  /// Rows of `x` (rows x taps) and `y` (rows): six steps of Levenberg-Marquardt, from where the last fit ended; the first
  /// one begins with the ridge regression. Gives the share of y's squares that is explained.
  double fit(std::span<const double> x, std::span<const double> y);
  double value(std::span<const double> x) const;

  int taps() const { return taps_; }
  int units() const { return units_; }
  /// a (taps), B (units x taps), b (units), v (units), one behind the other.
  const std::vector<double>& weights() const { return w_; }

  /// Weights, then 1 where a fit was made, else 0.
  std::vector<double> state() const;
  void restore(std::span<const double> state);

 private:
  struct Rows;
  void begin(const Rows& rows);
  double squares(const Rows& rows) const;
  double cost(const Rows& rows) const;
  std::vector<double> step(const Rows& rows, double damping) const;

  int taps_, units_;
  double ridge_;
  bool fitted_ = false;
  std::vector<double> w_;
};

/// Multiplications of a fit to `rows` rows, and of one predicted difference; an elementary function counts as 20.
double network_fit_work(int taps, int units, double rows);
double network_value_work(int taps, int units);

}  // namespace lockstep::forecast
