// Covariances of any number of blocks from one factorisation.
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
  /// Treatment of a singular J^T J, for example of a reconstruction with a gauge freedom. refuse: throw InputError.
  /// complement: use the Moore-Penrose inverse, which is the covariance in the complement of up to 15 free directions.
  enum class Gauge : uint8_t { refuse, complement };
  Gauge gauge = Gauge::refuse;
  /// With Gauge::complement: number of unknowns up to which the inverse is computed from eigenvalues of the dense matrix.
  /// Larger problems use sparse factors.
  int64_t dense_complement = 3000;
};

/// (J^T J)^-1 at the current values. J is that of evaluate(): derivatives of the residuals as whitened by their terms,
/// multiplied by sqrt(rho') of the robust losses and sqrt of the weights. The matrix is the covariance of the estimate if
/// whitened residuals have variance 1; otherwise multiply it by their variance. It is in the tangent coordinates of the
/// manifold of each block (se3: the frame of the body, translation first). Bounds are ignored. Fixed coordinates have
/// zeros; fixed blocks throw InputError.
class Covariance {
 public:
  /// Evaluates and factorises once: by QR of J if J has up to 4 million numbers, otherwise by sparse Cholesky of J^T J.
  /// Throws InputError if J^T J is singular, unless Gauge::complement is set.
  Covariance(const Problem& problem, Context& context, const CovarianceOptions& options = {});
  ~Covariance();
  Covariance(Covariance&&) noexcept;

  /// Covariance of one block, (t, t), and cross-covariance of two blocks, (ta, tb), row-major.
  std::vector<double> block(BlockSet set, int64_t block) const;
  std::vector<double> block(BlockSet a, int64_t block_a, BlockSet b, int64_t block_b) const;
  /// The joint matrix of blocks in the given order.
  std::vector<double> joint(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// Covariances of every block of a set, (count, t, t), with zeros for fixed blocks. They are entries of the inverse
  /// within the pattern of the factor (Erisman and Tinney 1975), at about the cost of two factorisations.
  std::vector<double> marginals(BlockSet set) const;
  /// Number of free directions; 0 except for Gauge::complement.
  int64_t null_space() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
