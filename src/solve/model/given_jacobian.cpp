#include "lockstep/solve/given_jacobian.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {

// r(x) + J(x) (y - x) with x held at y: the residuals, and nothing but J in their derivative.
TermType with_jacobian(const TermType& type, const GivenJacobian& jacobian) {
  TermType out = type;
  out.residual = [type, jacobian](const TermArguments& at) {
    const std::string where = fmt::format("solve term {}", type.name);
    if (type.energy) throw InputError("a Jacobian of an energy", where, "residuals");
    if (!type.residual || !jacobian) throw InputError("no residual or no Jacobian", where, "functions");
    std::vector<std::vector<Value>> held;
    std::vector<Value> steps, data;
    for (size_t slot = 0; slot < type.slots.size(); ++slot) {
      held.emplace_back();
      for (const Value& x : at.block(int(slot))) {
        held.back().push_back(stop_gradient(x));
        steps.push_back(x - held.back().back());
      }
    }
    for (int k = 0; k < at.data_count(); ++k) data.push_back(at.data(k));
    const TermArguments there(at.graph(), std::move(held), std::move(data), type.name);
    std::vector<Value> residuals = type.residual(there);
    const std::vector<Value> slopes = jacobian(there);
    if (slopes.size() != residuals.size() * steps.size())
      throw InputError(fmt::format("a Jacobian of {} numbers", slopes.size()), where,
                       fmt::format("{} rows of {}", residuals.size(), steps.size()));
    for (size_t r = 0; r < residuals.size(); ++r)
      for (size_t k = 0; k < steps.size(); ++k)
        if (const Value& slope = slopes[r * steps.size() + k]; !slope.is_constant(0))
          residuals[r] = residuals[r] + slope * steps[k];
    return residuals;
  };
  return out;
}

namespace {

/// The first instances in a problem of their own.
void check_first(const Problem& problem, const TermType& type, std::span<const BlockSet> sets,
                 std::span<const int32_t> indices, std::span<const double> data, const std::string& where) {
  constexpr size_t kChecked = 3;
  const size_t slots = sets.size(), count = std::min(kChecked, slots > 0 ? indices.size() / slots : 0);
  if (count == 0 || data.size() < count * size_t(type.data))
    return;  // what is wrong is named when terms are added
  Problem own;
  std::vector<BlockSet> own_sets;
  std::vector<int32_t> own_indices;
  for (size_t slot = 0; slot < slots; ++slot) {
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) {
      const std::span<const double> block = problem.value(sets[slot], indices[i * slots + slot]);
      values.insert(values.end(), block.begin(), block.end());
    }
    const SetState& set = problem.state().set(sets[slot], where);
    own_sets.push_back(own.add_blocks(set.name, set.manifold->manifold, values));
  }
  for (size_t i = 0; i < count; ++i) own_indices.insert(own_indices.end(), slots, int32_t(i));
  own.add_terms(type, own_sets, own_indices, data.first(count * size_t(type.data)));
  const std::vector<DerivativeFault> faults = check_derivatives(own);
  if (!faults.empty()) throw InputError(faults[0].text(), where, "the residuals' derivatives");
}

}  // namespace

TermSet add_terms_with_jacobian(Problem& problem, const TermType& type, const GivenJacobian& jacobian,
                                std::span<const BlockSet> sets, std::span<const int32_t> indices,
                                std::span<const double> data) {
  const TermType own = with_jacobian(type, jacobian);
  check_first(problem, own, sets, indices, data, fmt::format("solve term {}", type.name));
  return problem.add_terms(own, sets, indices, data);
}

}  // namespace lockstep::solve
