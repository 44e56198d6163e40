// Remarks on a minimisation: parts that no residual connects, and directions that change no residual.
#pragma once

#include <string>
#include <vector>

#include "solve/minimize/run.hpp"

namespace lockstep::solve {

/// One line if the blocks that move fall into parts that no residual connects.
std::vector<std::string> notes_of_parts(const Problem& problem);
/// One line if J, of residuals and in f64, lacks full rank at the evaluator's state, where the minimisation ended: how many
/// directions change no residual and whose they are. Of methods whose kernels of J exist (Run::forms_jacobian); nothing for
/// others, for energies, where J is not finite, and for more than about 10^7 products.
std::vector<std::string> notes_of_rank(const Problem& problem, Run& run);

}  // namespace lockstep::solve
