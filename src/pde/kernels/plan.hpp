// The plan that follows from a system's residuals: the accesses to fields, the cotangents' way back to each field.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/pde.hpp"
#include "pde/language/stencil.hpp"

namespace lockstep::pde {

/// Meaning of a leaf of the graph.
struct Access {
  enum Kind : uint8_t { field, tangent, parameter, cotangent, carried, parameter_tangent };
  Kind kind = field;
  int field_index = 0, component = 0, level = 0;  // level -1, 0, +1
  Stencil stencil = Stencil::point;
  int axis = 0;
  int number = 0;  // of a parameter, a residual, or a row of the carried array
};

/// One part of a field's gradient: the transposed stencil applied to g.
struct Term {
  Stencil stencil;
  int axis;
  Value g;
};

/// Gradient of one component of a field at one level: the point terms are one Value, if any.
struct Target {
  int field_index, component, level;
  std::optional<Value> point;
  std::vector<Term> terms;  // by axis
  /// Pointwise values that are added to the complete sum, one after the other: what other levels' residuals
  /// give.
  std::vector<Value> after;
};

/// The carry between two parts of a trajectory, from the earlier to the later: an array of rows (rows,
/// nz, ny, nx) with the gradients of one level, as far as the parts up to it give them, then cotangents.
struct Carry {
  /// Component of a field.
  struct Row {
    int field_index, component;
  };
  std::vector<Row> gradients;
  std::vector<int> cotangents;  // residuals of one level whose cotangents follow
  bool reads = false, writes = false;
  int level = 1, residual = 0;  // what is left: gradients of this level, cotangents from this residual on
  int rows() const { return int(gradients.size() + cotangents.size()); }
  /// Row of a component, or -1.
  int row_of(int field_index, int component) const {
    for (size_t k = 0; k < gradients.size(); ++k)
      if (gradients[k].field_index == field_index && gradients[k].component == component) return int(k);
    return -1;
  }
  /// Row of a target that is left to the next part, or -1.
  int row_left(const Target& t) const {
    return writes && t.level == level ? row_of(t.field_index, t.component) : -1;
  }
};

struct FieldInfo {
  std::string name;
  int components;
  std::vector<BoundaryConditions> boundaries;  // of all components, or of each; none: the mesh's
  bool vector = false;
  bool used[3] = {false, false, false};  // by level + 1
};

struct Plan {
  int dimensions = 3;
  std::vector<FieldInfo> fields;
  std::vector<std::string>
      parameters;  // the first are those of the time step: kTimeFirst, kTimeForward, kTimeSecond
  std::vector<std::string> profiles;
  std::vector<Access> accesses;  // by leaf number
  std::vector<Value> residuals, tangents;
  std::vector<Value> tangents_of_all;  // along fields, parameters and sides' values
  /// A cell's part of the derivative by a parameter that residuals mention.
  struct ByParameter {
    int number;
    Value value;
  };
  std::vector<ByParameter> by_parameter;
  /// Derivatives of the targets and of by_parameter along fields, parameters, sides' values and cotangents, whose
  /// tangents are numbered after them: the way to products with the loss' Hessian.
  std::vector<Target> target_slopes;
  std::vector<ByParameter> by_parameter_slopes;
  bool second_order = false;  // the slopes are in the places of `targets` and `by_parameter`
  std::vector<double> weights;
  std::vector<int> term_of;  // term number of each residual
  std::vector<std::string> terms;
  std::vector<Target> targets;
  int last_level = 1;  // accesses are at levels -1 to this; residuals are of levels 0 to the one before it
  Carry carry;
  std::shared_ptr<autodiff::Tape> graph;
};

inline constexpr int kTimeFirst = 0, kTimeForward = 1, kTimeSecond = 2, kTimeParameters = 3;

}  // namespace lockstep::pde
