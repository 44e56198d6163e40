#include "solve/diagnose/held_normal.hpp"

#include "solve/evaluate/evaluator.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {

HeldNormal::HeldNormal(const Problem& problem, Context& context) {
  const Problem::State& state = problem.state();
  std::vector<HostBatch> batches;
  context.run_stage("solve.evaluate", [&](const Device& device) {
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.linearize();
    batches = evaluator.host_batches();
  });
  equations_ = NormalEquations(batches);
  const BlockPattern& pattern = equations_.pattern();
  equations_.assemble(batches, values_);
  const std::vector<double> diagonal = equations_.diagonal(values_);
  added_.assign(diagonal.size(), 0), idle_.assign(diagonal.size(), 0);
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t k = 0; k < pattern.width(b); ++k) {
      const size_t unknown = size_t(pattern.first[size_t(b)] + k);
      const int64_t coordinate = equations_.columns()[size_t(b)] + k;
      idle_[unknown] = !(diagonal[unknown] > 0);
      added_[unknown] = idle_[unknown] || (!state.held.empty() && state.held[size_t(coordinate)]);
    }
  clear_rows_and_columns(pattern, added_, values_);
  cholesky_.emplace(pattern);
  try {
    free_.emplace(pattern, *cholesky_, values_, added_);
  } catch (const InputError& error) { refused_ = error; }
}

const FreeDirections& HeldNormal::free() const {
  if (refused_) throw InputError(*refused_);
  return *free_;
}

void HeldNormal::factorise() {
  constexpr double kLeastPivot = 1e-14;  // of the scaled matrix
  constexpr double kShift = 1e-11;
  if (free_)
    for (const int64_t k : free_->coordinates()) added_[size_t(k)] = 1;
  clear_rows_and_columns(equations_.pattern(), added_, values_);
  if (free_ && cholesky_->factorise(values_, added_) && cholesky_->least_pivot() >= kLeastPivot) return;
  std::vector<double> shifted = equations_.diagonal(values_);
  for (size_t k = 0; k < shifted.size(); ++k) shifted[k] = kShift * shifted[k] + added_[k];
  if (!cholesky_->factorise(values_, shifted))
    throw InputError("a J^T J that is not positive semidefinite", "solve leverage",
                     "derivatives that are finite");
}

void HeldNormal::solve(std::vector<double>& x) const {
  for (size_t k = 0; k < x.size(); ++k)
    if (added_[k] != 0) x[k] = 0;
  cholesky_->solve(x);
}

std::vector<double> HeldNormal::inverse_entries() const { return cholesky_->inverse_entries(); }

}  // namespace lockstep::solve
