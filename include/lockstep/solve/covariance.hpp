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
  /// Treatment of a singular J^T J, as of a reconstruction that may move as a whole. refuse: an
  /// InputError. complement: the Moore-Penrose inverse, which is the covariance within the complement of what may
  /// move freely, of up to 15 directions.
  enum class Gauge : uint8_t { refuse, complement };
  Gauge gauge = Gauge::refuse;
  /// Unknowns up to which the complement's is a dense matrix, by eigenvalues; beyond, sparse factors.
  int64_t dense_complement = 3000;
};

/// (J^T J)^-1 at the problem's values, with J as evaluate() gives it: residuals whitened by their terms, times
/// sqrt(rho') of the robust losses and the weights. It is the covariance of the estimate where whitened residuals
/// have variance 1; else multiply by theirs. Matrices are in tangent coordinates of each block's manifold (se3:
/// the block's own frame, translation first). Bounds are not seen. Coordinates that are held have zeros; blocks
/// that are fixed are refused.
class Covariance {
 public:
  /// Evaluates and factorises once. Up to 4 million numbers in J by QR of J, else by sparse Cholesky of J^T J.
  Covariance(const Problem& problem, Context& context, const CovarianceOptions& options = {});
  ~Covariance();
  Covariance(Covariance&&) noexcept;

  /// Covariance of one block (t, t), row-major, and between two (ta, tb).
  std::vector<double> block(BlockSet set, int64_t block) const;
  std::vector<double> block(BlockSet a, int64_t block_a, BlockSet b, int64_t block_b) const;
  /// The joint matrix of blocks in the order given.
  std::vector<double> joint(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// Covariances of every block of a set: (count, t, t), zeros for fixed ones. From the entries of the inverse at
  /// the places of the factor's (Erisman and Tinney 1975), for about the price of two factorisations.
  std::vector<double> marginals(BlockSet set) const;
  /// Directions that may move freely; 0 but for Gauge::complement.
  int64_t null_space() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
