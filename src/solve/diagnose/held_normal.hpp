// J^T J at the values of a problem, factorised with those coordinates held that may move freely.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "solve/linear/cholesky/free_directions.hpp"
#include "solve/linear/normal_equations.hpp"

namespace lockstep::solve {

class HeldNormal {
 public:
  HeldNormal(const Problem& problem, Context& context);

  const NormalEquations& equations() const { return equations_; }
  /// Throws InputError for more than FreeDirections::kMost.
  const FreeDirections& free() const;
  /// No residual depends on the unknown.
  bool idle(size_t unknown) const { return idle_[unknown] != 0; }
  /// The price of a factorisation.
  double flops() const { return cholesky_->flops(); }
  int64_t factor_elements() const { return cholesky_->factor_elements(); }

  /// Once, before what follows. Where directions are still free, or free but for rounding, the diagonal grows by 1e-11 of itself,
  /// which leaves the others as they are. Both have 0 at coordinates that are held.
  void factorise();
  void solve(std::vector<double>& x) const;
  /// Blocks of the inverse between the unknowns of instances: by entry of the pattern.
  std::vector<double> inverse_entries() const;
  bool holds(int64_t unknown) const { return free_ && free_->holds(unknown); }

 private:
  NormalEquations equations_;
  std::vector<double> values_, added_;
  std::vector<uint8_t> idle_;
  std::optional<SparseCholesky> cholesky_;
  std::optional<FreeDirections> free_;
  std::optional<InputError> refused_;  // why there are none
};

}  // namespace lockstep::solve
