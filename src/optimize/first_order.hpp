// First-order methods: one row each, and the vectors that they keep between steps.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optimize.hpp"

namespace lockstep::optimize {

/// The data of a step: vectors of one storage, f32 or f64, and one length.
struct FirstOrderStep {
  const Device& device;
  Buffer gradient, first, second;  ///< `first` and `second` start as zeros and are the method's own
  Buffer point, move;              ///< the step is written to `move`
  double rate, momentum, decay;    ///< `decay`: the share of the point that a step takes away
  int64_t number;                  ///< of the step, from 1
};

struct FirstOrderRow {
  Method method;
  std::string_view name;
  bool has_momentum = false, has_decay = false;  ///< options that it reads besides the rate
  bool moves_point = false;                      ///< `launch` adds the step to `point`
  void (*launch)(const FirstOrderStep& step) = nullptr;
};

/// All first-order methods, in the order of their enumerators here and in solve::Method.
std::span<const FirstOrderRow> first_order_rows();
/// The row of a method; null for other methods.
const FirstOrderRow* first_order(Method method);
const FirstOrderRow* first_order(std::string_view name);
/// "sgd, adam or adamw", with `last` before the last name: of all methods, or of those with a property.
std::string first_order_names(std::string_view last = " or ", bool FirstOrderRow::* property = nullptr);

/// Vectors that first-order methods keep between steps.
class FirstOrderState {
 public:
  /// Vectors as the objective's gradient. Methods with decay pull x, a copy of the point, towards 0 where points and
  /// steps have the same coordinates. Elsewhere there is no decay.
  FirstOrderState(const Objective& objective, Method method);
  /// The next step from the objective's gradient.
  const Buffer& next(const Objective& objective, const Options& options);
  const Buffer& step() const { return step_; }

  /// Both of the method's vectors, the decaying copy; and how many steps there were.
  std::vector<std::vector<double>> vectors(const Device& device) const;
  void restore(const Device& device, std::span<const std::vector<double>> vectors, int64_t steps);
  int64_t steps() const { return steps_; }

 private:
  const FirstOrderRow& row_;
  Buffer step_, first_, second_, point_;
  int64_t steps_ = 0;
};

}  // namespace lockstep::optimize
