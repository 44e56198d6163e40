// A plan on a mesh: every operator as a matrix, the scales, the reach of the adjoint.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "pde/kernels/plan.hpp"

namespace lockstep::pde {

/// Source of a side's value where no number of the mesh gives it.
struct SideValue {
  enum Kind : uint8_t { parameter, profile } kind;
  int number;  // among the plan's parameters or profiles
};

struct Discretisation {
  Discretisation(std::shared_ptr<const Plan> plan, const Mesh& mesh);

  const AxisOperator& of(int field_index, int component, Stencil stencil, int axis) const {
    return operators.at({field_index, component, int(stencil), axis});
  }
  Side side(int field_index, int component, int axis, int end) const;
  SideValue side_value(int field_index, int component, int axis, size_t end) const;

  std::shared_ptr<const Plan> plan;
  Mesh mesh;
  std::map<std::tuple<int, int, int, int>, AxisOperator> operators;  // field, component, stencil, axis
  std::vector<int> profile_axes;                // of the plan's profiles; -1: no side names it
  std::array<bool, 3> wraps{};                  // indices along the axis wrap
  std::array<int, 3> reach{};                   // largest offset that any adjoint needs
  std::array<int, 3> forward_reach{};           // largest offset that any residual needs
  std::vector<std::pair<Stencil, int>> scales;  // in the order of the kernels' parameters
  std::vector<double> scale_values;
  int scale_index(Stencil stencil, int axis) const;
  /// No cotangent's way back depends on a difference: neighbours' contributions need no second stencil.
  bool pointwise_adjoint = true;

 private:
  const BoundaryConditions& boundary(int field_index, int component) const;
  void check_mesh() const;
  void check_sides();
};

}  // namespace lockstep::pde
