#include "math/reference.hpp"

#include "math/bodies/bodies.hpp"

namespace lockstep::math {

float evaluate(ir::Op op, float a, float b) { return body<Host, f32>(op, Host<f32>(a), Host<f32>(b)).v; }
double evaluate(ir::Op op, double a, double b) { return body<Host, f64>(op, Host<f64>(a), Host<f64>(b)).v; }

const std::vector<ir::Op>& functions() {
  static const std::vector<ir::Op> kAll = {
#define LOCKSTEP_MATH(name, ...) ir::Op::name,
#include "lockstep/ir/ops.def"
  };
  return kAll;
}

}  // namespace lockstep::math
