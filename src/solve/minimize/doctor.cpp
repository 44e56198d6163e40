// Diagnosis of a problem: pieces, directions that nothing holds, columns, idle and double instances.
#include "lockstep/solve/doctor.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/hash.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/cholesky/free_directions.hpp"
#include "solve/linear/normal_equations.hpp"
#include "solve/minimize/notes.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

using Eigen::Index;

constexpr double kFarColumn = 1e6;     // of a column's length from the median
constexpr double kCarries = 1e-10;     // squared share of an unknown in the free directions
constexpr double kMostProducts = 3e8;  // of a piece's dense factorisation

/// Everything about the columns of J: which coordinate of which block they are.
struct Columns {
  std::vector<int64_t> block;    // by column
  std::vector<int> coordinate;   // tangent, by column
  std::vector<int64_t> tangent;  // coordinate over all blocks, by column
  std::vector<uint8_t> moves;    // by block
};

Columns columns_of(const Problem::State& state) {
  Columns out;
  out.moves.assign(size_t(state.blocks), 0);
  for (const SetState& set : state.sets)
    for (int64_t b = set.first_block; b < set.first_block + set.count; ++b)
      for (int c = 0; c < set.tangent(); ++c) {
        const int64_t at = set.first_tangent + (b - set.first_block) * set.tangent() + c;
        if (!state.moves(b, at)) continue;
        out.block.push_back(b), out.coordinate.push_back(c), out.tangent.push_back(at);
        out.moves[size_t(b)] = 1;
      }
  return out;
}

ProblemReport::Block named_block(const Problem::State& state, int64_t block) {
  const SetState& set = state.set_of(block);
  return {set.name, set.number(block - set.first_block)};
}

/// Instances that count, in the order of the rows: f(name, number in its term set, batch, segment, place, first row).
template <class F>
void each_counting(const Problem::State& state, F f) {
  int64_t row = 0;
  for (const auto& [id, record] : state.terms) {
    int64_t number = 0;
    for (const TermRecord::Part& part : record.parts) {
      const Batch& batch = state.batches[size_t(part.batch)];
      const Segment& segment = batch.segments[size_t(part.segment)];
      for (int64_t i = part.first; i < part.first + part.count; ++i, ++number) {
        if (!segment.counts(i)) continue;
        f(record.name, number, size_t(part.batch), segment, i, row);
        if (!batch.expression->energy) row += batch.expression->rows;
      }
    }
  }
}

/// Blocks that move, by the piece that they belong to.
struct Pieces {
  std::vector<int64_t> of_block;  // -1: does not move
  std::vector<std::vector<int64_t>> blocks;
  std::vector<uint8_t> touches_held;
};

Pieces pieces_of(const Problem::State& state, const Columns& columns) {
  std::vector<int64_t> parent(size_t(state.blocks));
  std::iota(parent.begin(), parent.end(), int64_t(0));
  const auto root = [&](int64_t b) {
    while (parent[size_t(b)] != b) b = parent[size_t(b)] = parent[size_t(parent[size_t(b)])];
    return b;
  };
  std::vector<uint8_t> beside_held(size_t(state.blocks), 0);
  each_counting(state,
                [&](const std::string&, int64_t, size_t batch, const Segment& segment, int64_t i, int64_t) {
                  const size_t slots = state.batches[batch].expression->slots.size();
                  int64_t first = -1;
                  bool held = false;
                  for (size_t s = 0; s < slots; ++s) {
                    const int64_t b = segment.blocks[size_t(i) * slots + s];
                    held |= !columns.moves[size_t(b)];
                    if (!columns.moves[size_t(b)]) continue;
                    if (first < 0) first = root(b);
                    parent[size_t(root(b))] = first;
                  }
                  if (held && first >= 0) beside_held[size_t(first)] = 1;
                });
  Pieces out;
  out.of_block.assign(size_t(state.blocks), -1);
  std::map<int64_t, int64_t> number;  // by root
  for (int64_t b = 0; b < state.blocks; ++b) {
    if (!columns.moves[size_t(b)]) continue;
    const auto [at, fresh] = number.emplace(root(b), int64_t(out.blocks.size()));
    if (fresh) out.blocks.emplace_back(), out.touches_held.push_back(0);
    out.blocks[size_t(at->second)].push_back(b), out.of_block[size_t(b)] = at->second;
    if (beside_held[size_t(b)]) out.touches_held[size_t(at->second)] = 1;
  }
  return out;
}

/// By column, its squared share in the directions that change no residual: of pieces that are small enough, from their
/// rows; false where there are others.
bool dense_shares(const SparseRows& j, const Pieces& pieces, const Columns& columns,
                  std::vector<double>& share) {
  const size_t count = pieces.blocks.size();
  std::vector<std::vector<int64_t>> own(count), rows(count);  // columns and rows by piece
  std::vector<Index> place(columns.block.size());
  for (size_t c = 0; c < columns.block.size(); ++c) {
    std::vector<int64_t>& all = own[size_t(pieces.of_block[size_t(columns.block[c])])];
    place[c] = Index(all.size()), all.push_back(int64_t(c));
  }
  for (int64_t r = 0; r < j.rows; ++r)
    if (const int64_t e = j.first[size_t(r)]; e < j.first[size_t(r) + 1])
      rows[size_t(pieces.of_block[size_t(columns.block[size_t(j.column[size_t(e)])])])].push_back(r);
  bool all = true;
  for (size_t p = 0; p < count; ++p) {
    const double n = double(own[p].size()), m = double(std::max(rows[p].size(), own[p].size()));
    if (m * n * n > kMostProducts) {
      all = false;
      continue;
    }
    Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(Index(rows[p].size()), Index(own[p].size()));
    for (size_t r = 0; r < rows[p].size(); ++r)
      for (int64_t e = j.first[size_t(rows[p][r])]; e < j.first[size_t(rows[p][r]) + 1]; ++e)
        dense(Index(r), place[size_t(j.column[size_t(e)])]) = j.values[size_t(e)];
    const Eigen::VectorXd found =
        dense.rows() == 0 ? Eigen::VectorXd::Ones(dense.cols()) : null_space(std::move(dense)).first;
    for (size_t k = 0; k < own[p].size(); ++k) share[size_t(own[p][k])] = found[Index(k)];
  }
  return all;
}

/// The same of all pieces by a sparse factorisation of J^T J.
void sparse_shares(const Problem& problem, Context& context, const Columns& columns,
                   std::vector<double>& share) {
  const Problem::State& state = problem.state();
  std::vector<HostBatch> batches;
  context.run_stage("solve.evaluate", [&](const Device& device) {
    Evaluator evaluator(problem, device, Precision::f64);
    evaluator.linearize();
    batches = evaluator.host_batches();
  });
  const NormalEquations equations(batches);
  const BlockPattern& pattern = equations.pattern();
  std::vector<double> values;
  equations.assemble(batches, values);
  const std::vector<double> diagonal = equations.diagonal(values);
  std::vector<double> added(diagonal.size(), 0), by_tangent(size_t(state.tangent), 1);
  std::vector<uint8_t> zero(diagonal.size(), 0);
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t k = 0; k < pattern.width(b); ++k) {
      const size_t unknown = size_t(pattern.first[size_t(b)] + k);
      const int64_t coordinate = equations.columns()[size_t(b)] + k;
      zero[unknown] = !(diagonal[unknown] > 0);
      added[unknown] = zero[unknown] || (!state.held.empty() && state.held[size_t(coordinate)]);
    }
  clear_rows_and_columns(pattern, added, values);
  SparseCholesky cholesky(pattern);
  const FreeDirections free(pattern, cholesky, values, added);
  const Eigen::VectorXd found = free.basis().rowwise().squaredNorm();
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t k = 0; k < pattern.width(b); ++k) {
      const size_t unknown = size_t(pattern.first[size_t(b)] + k);
      by_tangent[size_t(equations.columns()[size_t(b)] + k)] = zero[unknown] ? 1 : found[Index(unknown)];
    }
  for (size_t c = 0; c < share.size(); ++c) share[c] = by_tangent[size_t(columns.tangent[c])];
}

/// Directions by piece, and the blocks that carry them.
void find_directions(const Problem& problem, Context& context, const SparseRows& j, const Columns& columns,
                     const Pieces& pieces, ProblemReport& out) {
  std::vector<double> share(columns.block.size(), 0);
  const auto unknown = [&](std::string why) { out.rank_note = std::move(why); };
  if (out.energies > 0) return unknown("energies, which have no rows of J");
  if (!std::ranges::all_of(j.values, [](double v) { return std::isfinite(v); }))
    return unknown("derivatives that are not finite, which check_derivatives() names");
  if (!dense_shares(j, pieces, columns, share)) try {
      sparse_shares(problem, context, columns, share);
    } catch (const InputError& error) { return unknown(error.what()); }
  out.free_directions = 0;
  std::vector<double> by_block(pieces.of_block.size(), 0);
  for (size_t c = 0; c < share.size(); ++c) by_block[size_t(columns.block[c])] += share[c];
  for (size_t p = 0; p < pieces.blocks.size(); ++p) {
    ProblemReport::Piece& piece = out.pieces[p];
    double sum = 0;
    std::vector<int64_t> carriers;
    for (const int64_t b : pieces.blocks[p]) {
      sum += by_block[size_t(b)];
      if (by_block[size_t(b)] > kCarries) carriers.push_back(b);
    }
    piece.free_directions = std::llround(sum);
    *out.free_directions += *piece.free_directions;
    if (*piece.free_directions == 0) continue;
    piece.gauge = carriers.size() > 1 && carriers.size() == pieces.blocks[p].size();
    std::ranges::stable_sort(carriers,
                             [&](int64_t a, int64_t b) { return by_block[size_t(a)] > by_block[size_t(b)]; });
    for (const int64_t b : carriers)
      if (!piece.gauge) piece.carriers.push_back(named_block(problem.state(), b));
  }
}

void find_scales(const Problem::State& state, const SparseRows& j, const Columns& columns,
                 ProblemReport& out) {
  std::vector<double> length(columns.block.size(), 0), seen;
  for (size_t e = 0; e < j.values.size(); ++e)
    length[size_t(j.column[e])] = std::hypot(length[size_t(j.column[e])], j.values[e]);
  for (const double v : length)
    if (v > 0 && std::isfinite(v)) seen.push_back(v);
  if (seen.empty()) return;
  std::ranges::nth_element(seen, seen.begin() + int64_t(seen.size() / 2));
  out.median_column = seen[seen.size() / 2];
  std::map<std::pair<size_t, int>, ProblemReport::Scale> far;  // by set and coordinate
  for (size_t c = 0; c < length.size(); ++c) {
    const double ratio = length[c] / out.median_column;
    if (!(length[c] > 0) || (ratio < kFarColumn && ratio > 1 / kFarColumn)) continue;
    const SetState& set = state.set_of(columns.block[c]);
    const auto [at, fresh] =
        far.try_emplace({size_t(&set - state.sets.data()), columns.coordinate[c]},
                        ProblemReport::Scale{set.name, columns.coordinate[c], 0, length[c], 0});
    ProblemReport::Scale& scale = at->second;
    ++scale.blocks;
    scale.shortest = std::min(scale.shortest, length[c]), scale.longest = std::max(scale.longest, length[c]);
  }
  for (auto& [at, scale] : far) out.badly_scaled.push_back(std::move(scale));
}

/// Why no unknown changes an instance; empty where one does.
std::string why_idle(const Batch& batch, const Segment& segment, int64_t i, const Columns& columns,
                     const SparseRows& j, int64_t row) {
  const size_t slots = batch.expression->slots.size();
  bool moves = false;
  for (size_t s = 0; s < slots; ++s)
    moves |= columns.moves[size_t(segment.blocks[size_t(i) * slots + s])] != 0;
  if (!moves) return "all of its blocks are held";
  if (!segment.weights.empty() && segment.weights[size_t(i)] == 0) return "its weight is 0";
  if (batch.expression->energy) return "";
  for (int64_t e = j.first[size_t(row)]; e < j.first[size_t(row + batch.expression->rows)]; ++e)
    if (j.values[size_t(e)] != 0) return "";
  return batch.expression->loss == RobustLoss::Kind::none
             ? "all of its derivatives are 0"
             : "all of its derivatives are 0, or its loss leaves nothing";
}

/// The batch, blocks, data and constants of an instance.
Hash128 content_of(size_t number, const Batch& batch, const Segment& segment, int64_t i) {
  std::vector<double> all{double(number)};
  const auto put = [&](const auto& from, size_t width, int64_t at) {
    for (size_t k = 0; k < width && !from.empty(); ++k) all.push_back(double(from[size_t(at) * width + k]));
  };
  put(segment.blocks, batch.expression->slots.size(), i);
  put(segment.data, size_t(batch.expression->data), i);
  put(segment.constants, size_t(batch.expression->constants), segment.own_constants ? i : 0);
  return hash128(std::as_bytes(std::span(all)));
}

void find_idle_and_double(const Problem::State& state, const SparseRows& j, const Columns& columns, int named,
                          ProblemReport& out) {
  struct Hasher {
    size_t operator()(const Hash128& h) const { return size_t(h.low ^ h.high); }
  };
  std::unordered_map<Hash128, ProblemReport::Instance, Hasher> known;
  each_counting(state, [&](const std::string& name, int64_t number, size_t at, const Segment& segment,
                           int64_t i, int64_t row) {
    const Batch& batch = state.batches[at];
    ++out.instances, out.energies += batch.expression->energy;
    if (std::string why = why_idle(batch, segment, i, columns, j, row);
        !why.empty() && out.idle_count++ < named)
      out.idle.push_back({{name, number}, std::move(why)});
    const auto [first, fresh] =
        known.try_emplace(content_of(at, batch, segment, i), ProblemReport::Instance{name, number});
    if (!fresh && out.duplicate_count++ < named) out.duplicates.push_back({{name, number}, first->second});
  });
}

}  // namespace

bool ProblemReport::well() const {
  return piece_count <= 1 && free_directions == 0 && badly_scaled.empty() && idle_count == 0 &&
         duplicate_count == 0;
}

ProblemReport diagnose(const Problem& problem, Context& context, int named) {
  const Problem::State& state = problem.state();
  const Columns columns = columns_of(state);
  EvaluateOptions wanted;
  wanted.residuals = wanted.gradient = false;
  const Evaluation evaluation = evaluate(problem, context, wanted);
  ProblemReport out;
  out.blocks = state.blocks, out.unknowns = int64_t(columns.block.size());
  out.held = state.blocks - std::ranges::count(columns.moves, uint8_t(1));
  out.residuals = state.rows, out.cost = evaluation.cost;
  find_idle_and_double(state, evaluation.jacobian, columns, named, out);
  const Pieces pieces = pieces_of(state, columns);
  out.piece_count = int64_t(pieces.blocks.size());
  for (size_t p = 0; p < pieces.blocks.size(); ++p) {
    ProblemReport::Piece& piece = out.pieces.emplace_back();
    piece.blocks = int64_t(pieces.blocks[p].size());
    piece.first = named_block(state, pieces.blocks[p].front());
    piece.touches_held = pieces.touches_held[p] != 0;
  }
  for (const int64_t b : columns.block) ++out.pieces[size_t(pieces.of_block[size_t(b)])].unknowns;
  find_directions(problem, context, evaluation.jacobian, columns, pieces, out);
  find_scales(state, evaluation.jacobian, columns, out);
  std::ranges::stable_sort(out.pieces, [](const ProblemReport::Piece& a, const ProblemReport::Piece& b) {
    const auto rank = [](const ProblemReport::Piece& p) {
      return std::pair(p.free_directions.value_or(0) == 0, p.blocks);
    };
    return rank(a) < rank(b);
  });
  out.pieces.resize(std::min(out.pieces.size(), size_t(named)));
  for (ProblemReport::Piece& p : out.pieces) p.carriers.resize(std::min(p.carriers.size(), size_t(named)));
  return out;
}

}  // namespace lockstep::solve
