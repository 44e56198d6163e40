// The parts of a problem that a diagnosis looks at: the columns of J by block, pieces that residuals connect, instances by their rows.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/solve/evaluation.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {

/// Everything about the columns of J: which coordinate of which block they are.
struct Columns {
  std::vector<int64_t> block;    // by column
  std::vector<int> coordinate;   // tangent, by column
  std::vector<int64_t> tangent;  // coordinate over all blocks, by column
  std::vector<uint8_t> moves;    // by block

  explicit Columns(const Problem::State& state);
};

/// Instances that count, in the order of the rows: f(name, number in its term set, batch, segment, place, first row).
template <class F>
void each_counting(const Problem::State& state, F f) {
  int64_t row = 0;
  for (const auto& [id, record] : state.terms)
    each_instance(record, [&](int64_t number, const TermRecord::Part& part, int64_t i) {
      const Batch& batch = state.batches[size_t(part.batch)];
      const Segment& segment = batch.segments[size_t(part.segment)];
      if (!segment.counts(i)) return;
      f(record.name, number, size_t(part.batch), segment, i, row);
      if (!batch.expression->energy) row += batch.expression->rows;
    });
}

/// Blocks that move, by the piece that they belong to.
struct Pieces {
  std::vector<int64_t> of_block;  // -1: does not move
  std::vector<std::vector<int64_t>> blocks;
  std::vector<uint8_t> touches_held;

  Pieces(const Problem::State& state, const Columns& columns);
};

/// The part of J that belongs to a piece.
struct DensePiece {
  std::vector<int64_t> rows, columns;  // of J; rows without entries belong to no piece
  Eigen::MatrixXd matrix;
};
/// Calls f for all pieces; false, without a call, where one is too large for a dense factorisation.
bool each_dense_piece(const SparseRows& j, const Pieces& pieces, const Columns& columns,
                      const std::function<void(DensePiece)>& f);

}  // namespace lockstep::solve
