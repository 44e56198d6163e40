// What follows from a system's residuals: the accesses to fields, the cotangents' way back to each field.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/pde.hpp"
#include "pde/stencil.hpp"

namespace lockstep::pde {

/// What a leaf of the graph stands for.
struct Access {
  enum Kind : uint8_t { field, tangent, parameter, cotangent };
  Kind kind = field;
  int field_index = 0, component = 0, level = 0;  // level -1, 0, +1
  Stencil stencil = Stencil::point;
  int axis = 0;
  int number = 0;  // of a parameter or residual
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
};

struct FieldInfo {
  std::string name;
  int components;
  std::optional<Boundary> boundary;
  bool vector = false;
  bool used[3] = {false, false, false};  // by level + 1
};

struct Plan {
  int dimensions = 3;
  std::vector<FieldInfo> fields;
  std::vector<std::string>
      parameters;  // the first are those of the time step: kTimeFirst, kTimeForward, kTimeSecond
  std::vector<Access> accesses;  // by leaf number
  std::vector<Value> residuals, tangents;
  std::vector<double> weights;
  std::vector<int> term_of;  // term number of each residual
  std::vector<std::string> terms;
  std::vector<Target> targets;
  std::shared_ptr<autodiff::Graph> graph;
};

inline constexpr int kTimeFirst = 0, kTimeForward = 1, kTimeSecond = 2, kTimeParameters = 3;

}  // namespace lockstep::pde
