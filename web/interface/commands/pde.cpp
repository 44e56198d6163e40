// Studies of losses of partial differential equations.
#include "command.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"

namespace lockstep::web {

void add_study_calls(Calls& calls) {
  add_command<pde::StudyOptions>(calls, "pde.study", [](Context& context, const pde::StudyOptions& options) {
    return pde::run_study(context.device(), options);
  });
  add_command<pde::ConvergenceOptions>(calls, "pde.convergence", &pde::run_convergence);
}

}  // namespace lockstep::web
