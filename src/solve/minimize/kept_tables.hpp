// The evaluator and the linear solver that a problem keeps from one minimisation to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/solve.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/linear/linear_solver.hpp"

namespace lockstep::solve {

/// Both compare themselves with the problem that they are given next: nothing has to announce its changes.
struct KeptTables {
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<LinearSolver> solver;
  // The solver was made for these.
  Linear linear = Linear::automatic;
  int max_linear_iterations = 0;
  bool bounded = false;
  std::vector<int32_t> order;

  KeptTables() = default;
  ~KeptTables();
  KeptTables(const KeptTables&) = delete;
  KeptTables& operator=(const KeptTables&) = delete;

  /// Whether the evaluator is of this kind.
  bool evaluates_on(const Device& device, Precision precision, const EvaluatorOptions& options) const;
  /// The tables of a problem, which has none afterwards; null where it has none.
  static std::shared_ptr<KeptTables> take(Problem& problem);
  /// Leaves tables with a problem, unless the tables of all problems of the process would have more than 1 GiB.
  static void keep(Problem& problem, std::shared_ptr<KeptTables> tables);

 private:
  int64_t bytes_ = 0;  // while a problem has them
};

}  // namespace lockstep::solve
