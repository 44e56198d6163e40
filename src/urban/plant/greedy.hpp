// Greedy choice with gains that a choice may change: no files, no cities.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/urban/plant.hpp"

namespace lockstep::urban {

struct GreedyProblem {
  size_t candidates = 0;
  /// Gains of candidates next to what was chosen.
  std::function<std::vector<double>(std::span<const size_t>)> evaluate;
  std::function<void(size_t)> choose;
  std::function<bool(size_t chosen, size_t other)> changes;   ///< may change the other's gain
  std::function<bool(size_t chosen, size_t other)> excludes;  ///< leaves the other no room
};

struct GreedyChoice {
  std::vector<size_t> chosen;
  std::vector<double> gains;                    ///< of the chosen, when they were
  std::vector<double> first_gains, last_gains;  ///< of all candidates
  int64_t evaluations = 0, raised = 0;
};

/// Chooses up to `count` candidates of the highest positive gain, the first of equal ones. Design: docs/design/plant.md.
GreedyChoice greedy(const GreedyProblem& problem, int64_t count, PlantSearch search);

}  // namespace lockstep::urban
