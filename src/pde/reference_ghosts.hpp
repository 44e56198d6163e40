// Boundary rules of the plain references: a ghost from the cells and ghosts that come before it.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde::reference {

/// sum of weight * f[at] over `cells`, plus `value` times the side's own. Position 0 is the last cell inside, 1 the next
/// one inward, and -1 the first ghost.
struct Ghost {
  struct Cell {
    int64_t at;
    double weight;
  };
  std::vector<Cell> cells;
  double value = 0;
};

/// The ghost -d of a rule for one component that is not periodic.
inline Ghost ghost(Rule rule, int64_t d) {
  switch (rule) {
    case Rule::clamp:
    case Rule::reflect_even: return {{{d - 1, 1}}};
    case Rule::reflect_odd: return {{{d - 1, -1}}};
    case Rule::dirichlet_face: return {{{d - 1, -1}}, 2};
    case Rule::ghost: return {{}, 1};
    case Rule::node_mirror: return {{{d, 1}}};
    // The next number of a line, and of a parabola, from those before it.
    case Rule::one_sided1: return {{{1 - d, 2}, {2 - d, -1}}};
    case Rule::one_sided2: return {{{1 - d, 3}, {2 - d, -3}, {3 - d, 1}}};
    default: throw InternalError("boundary rule not resolved", "pde reference", "a rule of one component");
  }
}

}  // namespace lockstep::pde::reference
