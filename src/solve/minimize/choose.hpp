// Which linear solver `automatic` means.
#pragma once

#include "lockstep/solve.hpp"

namespace lockstep::variants {
class Computation;
}

namespace lockstep::solve {

/// The set whose blocks can be eliminated: no term has two of them, and it has more blocks than all others
/// together have that are not fixed. -1 where there is none.
int eliminable_set(const Problem& problem);

/// Whether functions on the host give some of the residuals.
bool has_host_terms(const Problem& problem);
/// Whether steps are solutions of linear systems.
bool has_linear_solver(Method method);
bool is_first_order(Method method);
/// The meaning of `automatic`; the rules, first to last, of which those of dense matrices do not apply to a given order,
/// whose first group, if it is a set, is then the one to eliminate:
/// - dense QR up to 100 unknowns, where the Jacobian has at most 10^6 numbers and there are no energies;
/// - dense Cholesky up to 300 unknowns;
/// - sparse Cholesky where there are host terms;
/// - where a set can be eliminated and there are no energies: conjugate gradients on the Schur complement
/// from
///   20,000 residuals on a GPU or where more than 3,000 other unknowns are left, else the dense complement;
/// - sparse Cholesky up to 200,000 unknowns, on the host; in fast numerics and f64 on a CUDA device from
///   20,000 residuals on, since exact numerics owe the same bits on the CPU;
/// - conjugate gradients.
Linear choose_linear(const Problem& problem, const Options& options, const DeviceInfo& device,
                     Numerics numerics = Numerics::exact);

/// Where a set is eliminated: the dense complement, or conjugate gradients on it.
const variants::Computation& eliminated_computation();
/// Sparse Cholesky on the host, or on the device.
const variants::Computation& factor_computation();

}  // namespace lockstep::solve
