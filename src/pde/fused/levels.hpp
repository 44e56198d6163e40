// Several levels of a trajectory in one sweep: a part of it as a system of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pde/fused/fused.hpp"

namespace lockstep::pde {

/// Residuals of `levels` adjacent levels. The first part of a trajectory finds no residual before it, the
/// last one leaves none behind it.
struct TrajectoryPart {
  int levels = 1;
  bool first = true, last = true;
};

const variants::Computation& trajectory_computation();

/// The plan of a part: residuals of all its levels, numbered by level and then as in `plan`; accesses and
/// targets at levels -1 to `levels`, counted from its first residual. Gradients of `fields` that the part
/// finishes are targets; what it cannot finish is carried (Plan::carry). Every sum has the order of
/// trajectory_kernel.
std::shared_ptr<const Plan> part_plan(const Plan& plan, const TrajectoryPart& part,
                                      const std::vector<int>& fields);

/// Gradients that a part writes to arrays of their own, in the order of field and level.
std::vector<FieldLevel> part_outputs(const Plan& part);

/// How many levels a sweep takes, and its tile.
struct LevelShape {
  int levels;
  LossOptions options;  // with the tile set
};
/// As many levels as shared memory holds, by variants of levels and tile.
const variants::Computation& sweep_computation();
LevelShape choose_levels(const Discretisation& whole, const Device& device, const KernelForm& form,
                         const std::vector<int>& fields, int64_t residual_levels, const LossOptions& asked);

/// A trajectory as its launches are planned.
struct LevelsProblem {
  std::shared_ptr<const Discretisation> d;
  KernelForm form;
  std::vector<int> fields;  // whose gradients are requested
  int64_t levels, members;
};

/// A sweep over the residuals of some levels.
struct Sweep {
  int64_t first;  // level
  int levels;
  std::string key;
  std::shared_ptr<const Discretisation> d;
  std::vector<FieldLevel> outputs;
  FusedShape shape;
};
using PartStore = std::function<std::shared_ptr<const Discretisation>(
    const std::string& key, const std::function<std::shared_ptr<const Discretisation>()>& make)>;
std::vector<Sweep> plan_sweeps(const LevelsProblem& problem, const Device& device, const LossOptions& options,
                               const PartStore& store);

/// Bytes that sweeps, and slabs of planes, allocate for a trajectory beyond its inputs and gradients.
int64_t sweeps_scratch(const LevelsProblem& problem, const Device& device, const std::vector<Sweep>& sweeps);
int64_t slabs_scratch(const LevelsProblem& problem, const Device& device, const LossOptions& options);

}  // namespace lockstep::pde
