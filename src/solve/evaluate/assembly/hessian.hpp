// Hessians of energy terms, made positive semidefinite.
#pragma once

#include "lockstep/device.hpp"
#include "solve/model/term_derivatives.hpp"

namespace lockstep::solve {

/// Replaces each instance's Hessian H (upper triangles, (stored, n)) by the nearest positive semidefinite
/// matrix: negative eigenvalues become 0. Where H + e trace|H| I has a Cholesky factor (e = 1e-14 in f64,
/// 1e-7 in f32), H stays. Eigenvalues by cyclic Jacobi sweeps until no entry off the diagonal exceeds the
/// rounding error of trace|H| / w, kMostJacobiSweeps at most. Also writes the blocks on the diagonal,
/// (diagonal_rows, n).
void project_hessians(const Device& device, const std::shared_ptr<const TermDerivatives>& term,
                      const Buffer& hessian, const Buffer& diagonal);

inline constexpr int kMostJacobiSweeps = 16;

}  // namespace lockstep::solve
