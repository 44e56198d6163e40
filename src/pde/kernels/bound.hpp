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
  bool fixed = false;  // several members or levels: its arrays cannot be replaced

  /// Gradient of a field at a level, or of all fields where the inputs are rows; empty where not asked for.
  Buffer gradient_of(int field, int64_t level) const;
};

}  // namespace lockstep::pde
