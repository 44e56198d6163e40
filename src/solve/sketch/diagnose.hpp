// Freedoms that the constraints of a solved sketch leave, and constraints that say the same twice.
#pragma once

#include <vector>

#include "solve/sketch/system.hpp"

namespace lockstep::solve::sketch {

/// A constraint with equations that follow from earlier ones, and the constraints they follow from.
struct Redundancy {
  int32_t constraint = -1;
  int rows = 0, redundant_rows = 0;
  std::vector<int32_t> follows_from;
};

struct Freedom {
  int64_t columns = 0, rank = 0;
  int64_t degrees_of_freedom() const { return columns - rank; }
  std::vector<Redundancy> redundant;
  std::vector<uint8_t> point_determined;   // no motion that the constraints allow moves the point
  std::vector<uint8_t> circle_determined;  // neither its centre nor its radius
};

/// By orthogonalising the Jacobian's rows in the order of the constraints, twice each; a row of which less
/// than 1e-6 is left depends on those before it.
Freedom analyse_freedom(const Sketch& sketch, const ConstraintSystem& system, const Coordinates& at);

}  // namespace lockstep::solve::sketch
