// J^T J of linearised batches by blocks: analysed once, assembled again for every linearisation.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "solve/evaluate/evaluator.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"

namespace lockstep::solve {

/// Blocks that are not fixed, numbered by their tangent coordinates, and the places of J^T J that terms fill.
/// Sums run over batches and instances in their order, so the result does not depend on the threads.
class NormalEquations {
 public:
  NormalEquations() = default;
  explicit NormalEquations(std::span<const HostBatch> batches);

  /// A summand of an entry: of an instance, the products of two slots' columns.
  struct Source {
    int32_t batch, row_slot, column_slot;
    int64_t instance;
  };
  std::span<const Source> sources(size_t entry) const {
    return std::span(sources_).subspan(size_t(first_source_[entry]),
                                       size_t(first_source_[entry + 1] - first_source_[entry]));
  }

  int64_t unknowns() const { return pattern_.unknowns(); }
  /// Memory of the sources.
  int64_t bytes() const { return int64_t(sources_.size() * sizeof(Source)); }
  /// Lower triangle; the values of assemble() follow its entries.
  const BlockPattern& pattern() const { return pattern_; }
  /// First tangent coordinate of each block.
  const std::vector<int64_t>& columns() const { return columns_; }
  /// Block that begins at a tangent coordinate, or -1.
  int64_t block_at(int64_t column) const;

  /// By block, the number of its first coordinate; empty where `by_coordinate` is.
  std::vector<int32_t> of_blocks(std::span<const int32_t> by_coordinate) const;

  void assemble(std::span<const HostBatch> batches, std::vector<double>& values) const;
  /// Diagonal of assembled values, by unknown.
  std::vector<double> diagonal(std::span<const double> values) const;
  /// Tangent vector to unknowns, and back into one that is 0 elsewhere.
  std::vector<double> gather(std::span<const double> tangent) const;
  void scatter(std::span<const double> unknowns, std::span<double> tangent) const;

 private:
  BlockPattern pattern_;
  std::vector<int64_t> columns_, offsets_;
  std::vector<int64_t> first_source_;  // by entry; the last element counts all
  std::vector<Source> sources_;
  std::vector<std::vector<int32_t>> starts_;  // by batch: first column of each slot in a row of J
};

/// J over the unknowns of `equations`, as a dense matrix of `rows` rows.
Eigen::MatrixXd dense_jacobian(std::span<const HostBatch> batches, const NormalEquations& equations,
                               int64_t rows);

}  // namespace lockstep::solve
