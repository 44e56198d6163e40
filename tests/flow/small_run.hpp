// A run of flow that takes no time.
#pragma once

#include <filesystem>

#include "lockstep/flow/run.hpp"

namespace lockstep::flow {

inline RunOptions small_run(const std::filesystem::path& folder) {
  RunOptions o;
  o.model.grid = {16, 16};
  o.model.viscosity = 1e-3;
  o.grid_given = true;
  o.stepping = {Integrator::rk2, 0.01};
  o.steps = 20;
  o.save_every = 10;
  o.folder = folder;
  o.format = RunOptions::Format::npz;
  return o;
}

}  // namespace lockstep::flow
