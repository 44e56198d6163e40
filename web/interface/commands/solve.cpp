// Least squares of files: curves of tables, pose graphs, bundle adjustment, and diagnoses of problems.
#include "command.hpp"
#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::web {

namespace {

template <class Run>
void add_solve(Calls& calls, const char* name) {
  add_command<Run>(calls, name, [](Context& context, Run& run) { return solve::run(context, run); });
}

}  // namespace

void add_solve_calls(Calls& calls) {
  add_solve<solve::FitRun>(calls, "solve.fit");
  add_solve<solve::PoseGraphRun>(calls, "solve.poseGraph");
  add_solve<solve::BundleRun>(calls, "solve.bundle");
  add_solve<solve::DoctorRun>(calls, "solve.doctor");
}

}  // namespace lockstep::web
