// Options of `lockstep flow run` as texts, and the run that they mean.
#pragma once

#include <optional>
#include <string>

#include "lockstep/context.hpp"
#include "lockstep/flow/run.hpp"
#include "options.hpp"

namespace lockstep::cli {

struct FlowArguments {
  std::string n, initial = "mcwilliams", closure = "none", closure_form, averaging, forcing = "none", hyper,
                 hypo, box, integrator = "rk4", dealias = "two-thirds", advection = "stress",
                 precision = "f32", checkpoint, format = "nc", video, out;
  std::optional<double> dt, cfl, time;
  double nu = 1e-4, drag = 0, beta = 0;
  int64_t seed = 0, steps = 0, members = 1, save_every = 0, history_every = 0;
  bool pictures = false;
};

void add_flow_options(CLI::App& app, FlowArguments& arguments);
/// Refuses options that contradict each other or that nothing would use.
void check_flow_options(const CLI::App& app, const FlowArguments& arguments);
/// Throws InputError for texts that mean nothing and options that contradict each other.
flow::RunOptions flow_run_options(const FlowArguments& arguments);
/// Throws InputError, naming `given`, unless both sides are within what a grid may have.
void check_flow_sides(int64_t ny, int64_t nx, const std::string& given);
/// Throws InputError where neither the device nor, by fallback, the host can hold the fields of a run whose grid was
/// given, by an option named as in `given`.
void require_flow_memory(Context& context, const flow::RunOptions& run, bool fallback,
                         const std::string& given);

}  // namespace lockstep::cli
