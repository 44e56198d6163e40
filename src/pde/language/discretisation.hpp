// A plan on a mesh: every operator as a matrix, the scales, the reach of the adjoint.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "pde/kernels/plan.hpp"

namespace lockstep::pde {

struct Discretisation {
  Discretisation(std::shared_ptr<const Plan> plan, const Mesh& mesh);

  const AxisOperator& of(int field_index, int component, Stencil stencil, int axis) const {
    return operators.at({field_index, component, int(stencil), axis});
  }
  Side side(int field_index, int component, int axis, int end) const;

  std::shared_ptr<const Plan> plan;
  Mesh mesh;
  std::map<std::tuple<int, int, int, int>, AxisOperator> operators;  // field, component, stencil, axis
  std::array<bool, 3> wraps{};                                       // indices along the axis wrap
  std::array<int, 3> reach{};                                        // largest offset that any adjoint needs
  std::array<int, 3> forward_reach{};                                // largest offset that any residual needs
  std::vector<std::pair<Stencil, int>> scales;  // in the order of the kernels' parameters
  std::vector<double> scale_values;
  int scale_index(Stencil stencil, int axis) const;
  /// No cotangent's way back depends on a difference: neighbours' contributions need no second stencil.
  bool pointwise_adjoint = true;
};

}  // namespace lockstep::pde
