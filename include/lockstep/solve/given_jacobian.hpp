// Residuals with derivatives of one's own, in place of those that are derived from their expression.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// (residuals, numbers of all slots one after the other), row-major, made of the same arguments as the residuals.
using GivenJacobian = std::function<std::vector<Value>(const TermArguments&)>;

/// The type with these derivatives to the numbers of its blocks; those of manifolds are chained with them. Its residuals are
/// the same, and may be without a slope of their own (a table of steps, stop_gradient). Energies are rejected when terms are added.
TermType with_jacobian(const TermType& type, const GivenJacobian& jacobian);

/// Problem::add_terms() of it. Throws InputError, and leaves the problem as it is, where differences contradict the Jacobian near
/// the values of the first instances, as check_derivatives() compares them.
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
