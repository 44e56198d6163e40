// The memory of L-BFGS on the device: the last steps with the changes of the gradient, their products, and a
// recorded graph that goes from an accepted point to the numbers of the first trial along the next direction.
#pragma once

#include <vector>

#include "lockstep/optimize.hpp"
#include "optimize/lbfgs/kernels.hpp"
#include "optimize/line_search.hpp"

namespace lockstep::optimize {

/// The numbers that decide on a trial.
struct LbfgsTrial {
  double value = 0;
  double start_slope = 0;  // derivative of the value along the direction where it starts
  double slope = 0;        // gradient at the trial times the whole step
  double step_norm = 0;
  double gradient_max = 0;  // NaN where a component is
  double point_norm = 0;    // of the numbers that count
  int pairs = 0;            // that the direction was formed of
};

/// A direction belongs to the accepted point: the objective's point() with the gradient that begin() or accept()
/// found in the objective.
class LbfgsMemory {
 public:
  /// `history` pairs, 1 to LbfgsLayout::kMostHistory. `scaled`: the first inverse Hessian is a multiple of
  /// that of diagonal(), else of the identity.
  LbfgsMemory(Objective& objective, int history, bool scaled);

  /// Forgets all pairs; the objective's gradient must be that at its point.
  void begin();
  /// The same at a point whose last trials were not accepted: the gradient is taken back.
  void begin_again();
  /// The direction at the accepted point and a trial at its end: a graph and one read. Takes over the pair of
  /// the trial that was accepted last.
  LbfgsTrial advance();
  /// Another trial at `t` times the direction of the last advance().
  LbfgsTrial trial(double t);
  /// The last trial's point and gradient become the accepted ones; launches only.
  void accept();

  /// The parts of advance(), for steps that are changed in between: the direction for a gradient of the
  /// caller's, left in step(), of so many pairs; a trial at step().
  int find_direction(const Buffer& gradient);
  LbfgsTrial try_step();
  const Buffer& step() const { return step_; }
  const Buffer& diagonal() const { return diagonal_; }

  /// A strong Wolfe search along the direction of the last advance(), which left `trial`; the last trial is left
  /// there. `rounding`: relative error of a value.
  LineResult search(const LinePoint& start, double rounding, LbfgsTrial& trial);

  /// Everything that directions depend on, except the point; restored bit for bit. At a point that was
  /// accepted. `restore` begins again where the numbers are of another history.
  void save(std::vector<double>& scalars, std::vector<std::vector<double>>& vectors) const;
  void restore(const std::vector<double>& scalars, const std::vector<std::vector<double>>& vectors);

  /// The small buffers that advance() changes, for those who time it again and again.
  const Buffer& numbers() const { return numbers_; }
  const Buffer& products() const { return memory_; }

 private:
  const Device& device() const { return objective_.device(); }
  void launch_direction(const Buffer& gradient);
  void launch_loops(const Buffer& gradient);
  void launch_products(const Buffer& gradient, LbfgsPass pass);
  void launch_totals();
  void launch_trial(LbfgsPass pass);
  LbfgsTrial read() const;

  Objective& objective_;
  LbfgsLayout layout_;
  Buffer s_, y_;             // (slots, size)
  Buffer earlier_;           // gradient at the accepted point
  Buffer step_, direction_;  // the trial's step; the direction, once a trial was not at its end
  Buffer diagonal_;
  Buffer memory_, coefficients_, partial_, numbers_;
  Graph graph_;
  bool recorded_ = false, has_direction_ = false;
  bool probed_ = false;  // the last trial left no products with the older pairs
};

}  // namespace lockstep::optimize
