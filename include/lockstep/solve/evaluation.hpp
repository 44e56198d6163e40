// Evaluation of a problem at its values: cost, residuals, gradient, Jacobian, J^T J, without a minimisation.
//
// Rows are the residuals in the order of adding: term sets as they were added, their instances in order, each with
// its residuals; disabled instances and energies have none. Columns are the free tangent coordinates, set after set,
// block after block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// A sparse matrix by rows: entries [first[r], first[r + 1]) of row r, with ascending columns.
struct SparseRows {
  int64_t rows = 0, columns = 0;
  std::vector<int64_t> first;  // (rows + 1)
  std::vector<int32_t> column;
  std::vector<double> values;
};

struct EvaluateOptions {
  bool residuals = true, gradient = true, jacobian = true, normal = false;
  /// Residuals and Jacobian times sqrt(rho'(|r|^2)), so that J^T r is the gradient; otherwise plain r and J, and cost
  /// and gradient are 1/2 |r|^2 and J^T r without losses and weights.
  bool apply_loss = true;
};

struct Evaluation {
  double cost = 0;
  std::vector<double> residuals;  // (rows)
  std::vector<double> gradient;   // (columns)
  SparseRows jacobian;            // (rows, columns)
  SparseRows normal;              // J^T J and the energies' Hessians, both triangles
};
/// In f64, on the context's device if it supports f64, bit-identical on all. Throws InputError for a problem
/// without blocks or residuals.
Evaluation evaluate(const Problem& problem, Context& context, const EvaluateOptions& options = {});

/// The same with the results on a device: `residuals` (rows) and `values` (entries) f64; `first` (rows + 1) and
/// `column` (entries) i32; `gradient` (columns) f64. Throws InputError for 2^31 entries or more, UnsupportedError for
/// a device without f64.
struct DeviceEvaluation {
  double cost = 0;
  int64_t rows = 0, columns = 0;
  Buffer residuals, gradient, first, column, values;
};
DeviceEvaluation evaluate_on(const Problem& problem, const Device& device);

/// The column of the first free coordinate of a block; -1 if there is none.
int64_t first_column(const Problem& problem, BlockSet set, int64_t block);

/// An instance, for finding outliers.
struct InstanceResidual {
  TermSet terms;
  std::string name;  // of the term type; "loose"
  int64_t instance = 0;
  bool enabled = true;
  double norm = 0;    // |r| without loss; of an energy its value
  double weight = 1;  // rho'(|r|^2) times the weight of the instance
  double scale = 0;   // of a loss that has one, else 0
};
/// All instances in the order of adding; disabled ones have norm and weight 0.
std::vector<InstanceResidual> residuals_by_instance(const Problem& problem, Context& context);

/// A derivative of an instance that differs from the slope: at a kink, a jump, a stop_gradient, or not finite where
/// the residual is.
struct DerivativeFault {
  std::string name;  // of the term type; "loose"
  int64_t instance = 0;
  int row = 0;         // residual of the instance
  std::string block;   // "name 3"
  int coordinate = 0;  // tangent, of that block
  double derivative = 0, difference = 0;
  std::string text() const;
};
struct DerivativeCheck {
  int points = 3;           // of each instance
  double spread = 0.1;      // of the tangent coordinates around the current values; 0: only there
  double tolerance = 1e-5;  // |derivative - difference| over the largest derivative of the row, or 1
  int64_t most = 100;       // instances of a topology
  uint64_t seed = 1;
};
/// Derivatives of residuals (without loss) and energies as used by minimisations, along x [+] delta at delta = 0,
/// compared with extrapolated central differences at random points. Returns the first fault of each instance.
std::vector<DerivativeFault> check_derivatives(const Problem& problem, const DerivativeCheck& check = {});

}  // namespace lockstep::solve
