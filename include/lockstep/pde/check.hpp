// Checks of the derivatives of a system at given data, as `lockstep pde check`.
#pragma once

#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

struct CheckOptions {
  uint32_t seed = 1;            // of the random directions
  int directions = 2;           // of each comparison
  Path path = Path::automatic;  // that computes loss and gradients
};

/// One comparison.
struct CheckRow {
  std::string what;
  double
      error;  // difference divided by the sum of the magnitudes of the terms; infinite if a term is not finite
  double bound;
  bool passed() const { return error <= bound; }
};
struct CheckResult {
  std::vector<CheckRow> rows;
  bool passed() const;
};

/// Compares, at the given data and along random directions of all fields, parameters and profiles:
/// - residuals and loss with those of a plain C++ reference that stores the cells beyond the grid,
/// - J v (Loss::jvp) and the directional derivatives of the loss (from its gradients, for each field, level, parameter and
///   profile) with complex steps of the reference,
/// - <J v, w> with <v, J^T w> (Loss::vjp, Loss::number_vjp).
/// Uses inputs in f64 if the device supports f64, because f32 would hide errors of the size of its rounding. The bound is
/// 4096 roundings. The reference takes microseconds per cell and operation. Throws InputError for rows and several
/// members, and as Loss::bind.
CheckResult check(const System& system, const Mesh& mesh, const Device& device, const Inputs& inputs,
                  const CheckOptions& options = {});

/// The same for the transport equations with named arrays: stage "pde.check". Arrays and options are those of run_loss.
CheckResult run_check(Context& context, const NamedArrays& arrays, const RunOptions& options, uint32_t seed);
/// {"passed": …, "checks": [{"what", "error", "bound", "passed"} …]}.
std::string to_json(const CheckResult& result);

}  // namespace lockstep::pde
