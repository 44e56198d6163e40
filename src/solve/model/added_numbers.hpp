// Numbers of a block that one tangent coordinate moves by itself, which may be bounded.
#pragma once

#include <optional>
#include <vector>

#include "solve/model/expression_key.hpp"

namespace lockstep::solve {

struct AddedNumber {
  int coordinate = 0;  // tangent; its sum with the number is the number moved
  bool angle = false;  // the sum is kept in [-pi, pi)
};
/// By number of a block; none: it moves otherwise, or its coordinate moves other numbers too.
std::vector<std::optional<AddedNumber>> added_numbers(const TracedManifold& manifold);

}  // namespace lockstep::solve
