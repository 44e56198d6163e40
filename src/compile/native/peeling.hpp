// The inner part of a row of points: where every clamp along x leaves its coordinate and every comparison of
// x with a bound has a known outcome. There a shifted row is one vector load.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/divergence.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

using ir::Assumptions;

/// x + sum(sign * value of term) + constant, over values that are fixed for the launch.
struct Affine {
  struct Term {
    ir::Id id;
    int sign;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
};

/// low: x + affine >= 0; else x + affine <= 0. All lanes of an inner vector satisfy every bound.
struct RowBound {
  bool low;
  Affine affine;
};

struct Peeling {
  Assumptions assumptions;
  std::vector<RowBound> bounds;
};

Peeling find_peeling(const ir::Function& function);

/// The value as x + …, over integers for which `fixed` holds; nothing where it has another form.
std::optional<Affine> along_x(const ir::Function& function, ir::Id id, const Assumptions& known,
                              const std::function<bool(ir::Id)>& fixed);

/// Depends on parameters, shapes and the extent only, through pure integer operations.
bool fixed_for_launch(const ir::Function& function, ir::Id id);

}  // namespace lockstep::compile::simd
