// Residuals with user-defined derivatives instead of those derived from their expression.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// The Jacobian (residuals, numbers of all slots one after the other), row-major, from the arguments of the residuals.
using GivenJacobian = std::function<std::vector<Value>(const TermArguments&)>;

/// The term type with these derivatives with respect to the numbers of its blocks, which are chained with those of the
/// manifolds. The residuals are unchanged. Their own derivatives are not used, so they may be a table of steps or contain
/// stop_gradient. Adding energies with a Jacobian throws InputError.
TermType with_jacobian(const TermType& type, const GivenJacobian& jacobian);

/// Problem::add_terms() for such a type. Compares the Jacobian with differences near the values of the first instances,
/// as check_derivatives(). If they disagree, throws InputError and leaves the problem unchanged.
TermSet add_terms_with_jacobian(Problem& problem, const TermType& type, const GivenJacobian& jacobian,
                                std::span<const BlockSet> sets, std::span<const int32_t> indices,
                                std::span<const double> data);
inline TermSet add_terms_with_jacobian(Problem& problem, const TermType& type, const GivenJacobian& jacobian,
                                       std::initializer_list<BlockSet> sets, std::span<const int32_t> indices,
                                       std::span<const double> data) {
  return add_terms_with_jacobian(problem, type, jacobian,
                                 std::span<const BlockSet>(sets.begin(), sets.size()), indices, data);
}

}  // namespace lockstep::solve
