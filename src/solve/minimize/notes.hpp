// Remarks on a minimisation: parts that no residual connects, and directions that change no residual.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "solve/minimize/run.hpp"

namespace lockstep::solve {

/// Directions of the columns of J, each of length 1, so that their units do not matter.
class ColumnDirections {
 public:
  explicit ColumnDirections(Eigen::MatrixXd j);
  /// By column, its squared share in the directions that change no row; and their number.
  std::pair<Eigen::VectorXd, int64_t> free();
  /// The least of the singular values that are not 0 over the largest, and by column its squared share in that direction.
  std::pair<double, Eigen::VectorXd> weakest();

 private:
  const Eigen::BDCSVD<Eigen::MatrixXd>& decomposed();  // of the triangle
  Eigen::Index rank();                                 // singular values that are not 0

  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr_;
  std::optional<Eigen::BDCSVD<Eigen::MatrixXd>> svd_;
};
/// One line if the blocks that move fall into parts that no residual connects.
std::vector<std::string> notes_of_parts(const Problem& problem);
/// One line if J, of residuals and in f64, lacks full rank at the evaluator's state, where the minimisation ended: how many
/// directions change no residual and whose they are. Of methods whose kernels of J exist (Run::forms_jacobian); nothing for
/// others, for energies, where J is not finite, and for more than about 10^7 products.
std::vector<std::string> notes_of_rank(const Problem& problem, Run& run);

}  // namespace lockstep::solve
