// Losses of the transport equations for named arrays, as in `lockstep pde loss` and `pde trajectory`, with stages, CPU
// fallback and telemetry. Programs with their own buffers use pde::Loss.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/parallel.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {

/// Host arrays by name, all f32 or all f64; the mask may have any type.
/// - An evaluation reads sigma0 sigma1 sigma2 (nz, ny, nx) and u0 u1 u2 (3, nz, ny, nx), component 0 = x, at the levels
///   -1, 0, +1. A trajectory reads sigma (T, nz, ny, nx) and u (T, 3, nz, ny, nx).
/// - If the terms use them: p (nz, ny, nx) and force (3, nz, ny, nx) at level 0.
/// - Optional: mask (nz, ny, nx) of numbers that are not negative.
using NamedArrays = std::map<std::string, Array>;

struct RunOptions {
  std::array<double, 3> spacing{1, 1, 1};  // of cells along x, y, z
  double dt = 1;
  BoundaryConditions boundary;
  /// Boundary conditions of "sigma", "ux", "uy", "uz" or "p", instead of `boundary`.
  std::map<std::string, BoundaryConditions> boundaries;
  /// Numbers that boundaries refer to by name (`dirichlet_face:@lid`). Other names refer to arrays: a number (), or for a
  /// trajectory one per level (T,); or a profile with a number for each cell of the boundary, (nz, ny) in x, (nz, nx) in
  /// y, (ny, nx) in z, or for a trajectory (T, …).
  std::map<std::string, double> parameters;
  bool residuals = false;  // run_loss: also return the residual fields
  int order = 2;
  TransportOptions terms;
  Gradients gradients = Gradients::all;
  Path path = Path::automatic;
  bool reference = false;  // compute the plain reference on the host instead
  /// If the requested path does not support the problem: true uses the two-kernel path, false throws UnsupportedError.
  bool any_path = true;
  std::string where = "pde";  // source of the arrays, for errors
};

struct RunResult {
  std::vector<std::pair<std::string, double>> terms;  // weighted losses by name
  double loss = 0;                                    // their sum
  /// d_sigma0 … d_u2, or d_sigma and d_u for a trajectory; d_NAME for named boundary values.
  std::vector<std::pair<std::string, Array>> gradients;
  /// r_sigma (nz, ny, nx), r_u (3, nz, ny, nx), r_divergence, r_speed, if requested.
  std::vector<std::pair<std::string, Array>> residuals;
  /// Derivatives of the loss with respect to single numbers: named boundary values, and "viscosity".
  std::vector<std::pair<std::string, double>> by_number;
  Mesh mesh;
  int64_t levels = 3;
  std::string kernel;        // the path used, or "reference"
  std::string path_refused;  // reason why the requested path was not used, or empty
};

/// Stage "pde.loss" (or "pde.reference" on the host). Throws InputError for arrays that are missing, of inconsistent
/// shapes or types, or not finite, for a negative mask, and for a loss that is not finite; UnsupportedError for a
/// path that does not support the problem if `any_path` is false.
RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options);
/// The same over ranks that all have the whole arrays. Each rank computes some planes (lockstep/pde/divided.hpp), and
/// rank 0 returns the result. Collective. Throws GroupError if arrays or options of ranks differ, for the reference, and
/// for derivatives with respect to boundary values.
RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options,
                   const parallel::Group& group);

/// Stage "pde.trajectory". Gradients: all or none. Throws as run_loss, and for fewer than three levels.
RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options);
/// Over ranks, as run_loss.
RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options,
                         const parallel::Group& group);

/// The members of the program's JSON, in one object.
std::string to_json(const RunResult& result);

}  // namespace lockstep::pde
