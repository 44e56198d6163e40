// Covariances of many blocks from one factorisation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct CovarianceOptions {
  /// Treatment of a singular J^T J, as of a reconstruction with a gauge freedom. refuse: throws InputError.
  /// complement: the Moore-Penrose inverse, which is the covariance in the complement of up to 15 free directions.
  enum class Gauge : uint8_t { refuse, complement };
  Gauge gauge = Gauge::refuse;
  /// Number of unknowns up to which the complement's inverse is dense, by eigenvalues; beyond, sparse factors are
  /// used.
  int64_t dense_complement = 3000;
};

/// (J^T J)^-1 at the current values, with J of evaluate(): residuals whitened by their terms, times sqrt(rho') of the
/// robust losses and the weights. It is the covariance of the estimate if whitened residuals have variance 1;
/// otherwise multiply by their variance. Matrices are in tangent coordinates of each block's manifold (se3: the body
/// frame, translation first). Bounds are ignored. Fixed coordinates have zeros; fixed blocks are rejected.
class Covariance {
 public:
  /// Evaluates and factorises once. Up to 4 million numbers in J by QR of J, else by sparse Cholesky of J^T J.
  Covariance(const Problem& problem, Context& context, const CovarianceOptions& options = {});
  ~Covariance();
  Covariance(Covariance&&) noexcept;

  /// Covariance of one block (t, t), row-major, and between two (ta, tb).
  std::vector<double> block(BlockSet set, int64_t block) const;
  std::vector<double> block(BlockSet a, int64_t block_a, BlockSet b, int64_t block_b) const;
  /// The joint matrix of blocks in the given order.
  std::vector<double> joint(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// Covariances of every block of a set: (count, t, t), zeros for fixed ones. Computed from the entries of the
  /// inverse within the pattern of the factor (Erisman and Tinney 1975), for about the cost of two factorisations.
  std::vector<double> marginals(BlockSet set) const;
  /// Number of free directions; 0 except for Gauge::complement.
  int64_t null_space() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
