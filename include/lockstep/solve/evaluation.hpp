// Evaluation of a problem at its current values: cost, residuals, gradient, Jacobian, J^T J, without a minimisation.
//
// Rows are the residuals, ordered by term set, instance and residual, in the order of adding. Disabled instances and
// energies have no rows. Columns are the free tangent coordinates, ordered by set and block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// A sparse matrix in compressed rows: row r has the entries [first[r], first[r + 1]), in ascending order of columns.
struct SparseRows {
  int64_t rows = 0, columns = 0;
  std::vector<int64_t> first;  // (rows + 1)
  std::vector<int32_t> column;
  std::vector<double> values;
};

struct EvaluateOptions {
  bool residuals = true, gradient = true, jacobian = true, normal = false;
  /// True: residuals and Jacobian are multiplied by sqrt(rho'(|r|^2)), so that J^T r is the gradient. False: r and J are
  /// unchanged, and cost and gradient are 1/2 |r|^2 and J^T r without losses and weights.
  bool apply_loss = true;
};

struct Evaluation {
  double cost = 0;
  std::vector<double> residuals;  // (rows)
  std::vector<double> gradient;   // (columns)
  SparseRows jacobian;            // (rows, columns)
  SparseRows normal;              // J^T J and the energies' Hessians, both triangles
};
/// Evaluates in f64, on the device of the context if it supports f64, otherwise on the CPU, with bit-identical results.
/// Throws InputError for a problem without blocks or residuals.
Evaluation evaluate(const Problem& problem, Context& context, const EvaluateOptions& options = {});

/// The same with the results on a device: `residuals` (rows), `gradient` (columns) and `values` (entries) in f64, `first`
/// (rows + 1) and `column` (entries) in i32. Throws InputError for 2^31 entries or more, and UnsupportedError for a device
/// without f64.
struct DeviceEvaluation {
  double cost = 0;
  int64_t rows = 0, columns = 0;
  Buffer residuals, gradient, first, column, values;
};
DeviceEvaluation evaluate_on(const Problem& problem, const Device& device);

/// The column of the first free coordinate of a block; -1 if there is none.
int64_t first_column(const Problem& problem, BlockSet set, int64_t block);

/// The residual of an instance, for finding outliers.
struct InstanceResidual {
  TermSet terms;
  std::string name;  // of the term type; "loose" for individual residuals
  int64_t instance = 0;
  bool enabled = true;
  double norm = 0;    // |r| without the loss; the value of an energy
  double weight = 1;  // rho'(|r|^2) times the weight of the instance
  double scale = 0;   // scale of the loss; 0: it has none
};
/// All instances in the order of adding; disabled ones have norm and weight 0.
std::vector<InstanceResidual> residuals_by_instance(const Problem& problem, Context& context);

/// A derivative of an instance that differs from central differences: at a kink, a jump or a stop_gradient, or because it
/// is not finite although the residual is.
struct DerivativeFault {
  std::string name;  // of the term type; "loose" for individual residuals
  int64_t instance = 0;
  int row = 0;         // residual of the instance
  std::string block;   // "name 3"
  int coordinate = 0;  // tangent coordinate of that block
  double derivative = 0, difference = 0;
  std::string text() const;
};
struct DerivativeCheck {
  int points = 3;  // number of points for each instance
  double spread =
      0.1;  // spread of the tangent coordinates around the current values; 0: the current values only
  double tolerance = 1e-5;  // |derivative - difference| / max(1, largest |derivative| of the row)
  int64_t most = 100;       // largest number of instances per topology
  uint64_t seed = 1;
};
/// Compares the derivatives that minimisations use, of residuals without loss and of energies along x [+] delta at
/// delta = 0, with extrapolated central differences at random points. Returns the first fault of each instance.
std::vector<DerivativeFault> check_derivatives(const Problem& problem, const DerivativeCheck& check = {});

}  // namespace lockstep::solve
