// A loss bound to its buffers: the list of launches.
#pragma once

#include <vector>

#include "pde/kernels/kernels.hpp"

namespace lockstep::pde {

struct Launch {
  Kernel kernel;
  Shape extent;
  std::vector<Argument> arguments;
};

struct BoundLoss::State {
  std::shared_ptr<Loss::State> loss;  // keeps the kernels
  std::shared_ptr<const Discretisation> d;
  Device device;
  Path path = Path::two_kernel;
  std::vector<Launch> launches;         // of a run
  std::vector<Launch> totals_launches;  // of what only the value of the loss needs
  std::vector<FieldLevel> outputs;
  std::vector<Buffer> gradients;  // by outputs, or by their levels where the inputs are rows
  bool rows = false;
  Buffer totals;                    // one sum per residual
  std::vector<double> total_scale;  // from that sum to the weighted mean square
  double bytes = 0;
  /// Of a part of a grid: what its own planes give to the sums, (residuals, …) for each level.
  std::vector<Buffer> partials;
  bool fixed = false;  // several members or levels: its arrays cannot be replaced

  /// Gradient of a field at a level, or of all fields where the inputs are rows; empty where not requested.
  Buffer gradient_of(int field, int64_t level) const;
};

/// The terms of the loss from the sums of all residuals, level by level.
std::vector<double> weighted_terms(const Plan& plan, const std::vector<double>& sums,
                                   const std::vector<double>& scale);
/// Throws where the loss is that of a part of a grid.
void expect_whole(const BoundLoss::State& bound);

}  // namespace lockstep::pde
