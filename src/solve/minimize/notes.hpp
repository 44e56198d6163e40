// Remarks on a minimisation: parts that no residual connects, and directions that change no residual.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "solve/minimize/run.hpp"

namespace lockstep::solve {

/// By column of J, its squared share in the directions that change no row; and their number. Does not depend on the columns'
/// units.
std::pair<Eigen::VectorXd, int64_t> null_space(Eigen::MatrixXd j);
/// One line if the blocks that move fall into parts that no residual connects.
std::vector<std::string> notes_of_parts(const Problem& problem);
/// One line if J, of residuals and in f64, lacks full rank at the evaluator's state, where the minimisation ended: how many
/// directions change no residual and whose they are. Of methods whose kernels of J exist (Run::forms_jacobian); nothing for
/// others, for energies, where J is not finite, and for more than about 10^7 products.
std::vector<std::string> notes_of_rank(const Problem& problem, Run& run);

}  // namespace lockstep::solve
