// Inner iterations: coordinate descent over groups of blocks at the point of a step (Ruhe and Wedin, SIAM Review 22,
// 1980).
#pragma once

#include <memory>
#include <vector>

#include "lockstep/solve.hpp"
#include "solve/evaluate/evaluator.hpp"

namespace lockstep::solve {

class InnerIterations {
 public:
  /// Throws OptionError for groups that the problem does not have, and for a group of all blocks that move.
  InnerIterations(const Problem& problem, const Options& options);

  /// Minimises each group in turn from `state`, which becomes the point that was found. `prepare` as of the evaluator.
  void improve(std::vector<double>& state, Context& context, bool on_cpu, const Evaluator::Prepare& prepare);

 private:
  struct Group {
    std::unique_ptr<Problem> problem;  // the terms of its blocks, the others fixed; keeps its tables
    std::vector<std::pair<int64_t, int64_t>> numbers;  // [first, last) of its blocks' values
  };
  std::vector<Group> groups_;
  Options options_;
};

}  // namespace lockstep::solve
