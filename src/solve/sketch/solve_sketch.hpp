// Solving a sketch and explaining the outcome.
#pragma once

#include <vector>

#include "lockstep/solve.hpp"
#include "solve/sketch/diagnose.hpp"
#include "solve/sketch/sketch.hpp"

namespace lockstep::solve::sketch {

struct SketchResult {
  Sketch sketch;    // as solved
  Summary summary;  // of the minimisation that ended there, in units of the sketch's size
  bool satisfied = false;
  double size = 1;                // unit of the residuals
  std::vector<double> residuals;  // largest |residual| of each constraint; angles and sines as they are
  Freedom freedom;
  /// Sets of constraints that cannot hold together, none of which can be left out of its set. Empty where the
  /// sketch is satisfied, or where the minimisation stopped for another reason than convergence.
  std::vector<std::vector<int32_t>> conflicts;
};

/// Largest |residual| of a satisfied sketch.
double satisfied_below(Precision precision);

/// Minimises from the current state of the sketch. Where that ends unsatisfied, nearby starts are tried before the
/// constraints count as contradictory. Points that no constraint names stay. Throws InputError for a
/// first-order method, or damping by the identity (a sketch's damping is the same for all coordinates).
SketchResult solve_sketch(const Sketch& sketch, Context& context, const Options& options = {});

}  // namespace lockstep::solve::sketch
