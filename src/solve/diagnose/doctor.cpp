// Diagnosis of a problem: pieces, directions that nothing holds, columns, idle and double instances.
#include "lockstep/solve/doctor.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/hash.hpp"
#include "lockstep/error.hpp"
#include "solve/diagnose/held_normal.hpp"
#include "solve/diagnose/influence.hpp"
#include "solve/diagnose/structure.hpp"
#include "solve/minimize/notes.hpp"

namespace lockstep::solve {
namespace {

using Eigen::Index;

constexpr double kFarColumn = 1e6;   // of a column's length from the median
constexpr double kCarries = 1e-10;   // squared share of an unknown in the free directions
constexpr double kUnlikely = 0.05;   // probability, over all instances, of one that is an outlier by chance
constexpr double kUnchecked = 1e-9;  // of 1 - leverage
constexpr double kWeak = 1e-6;       // of one that is not 0
constexpr double kTakesPart = 0.01;  // squared share of a block in a direction
constexpr double kInfluential = 1;   // Cook's distance
constexpr double kHigh = 0.5, kTimesMean = 3;  // of leverages (Huber 1981, 7.2)

ProblemReport::Block named_block(const Problem::State& state, int64_t block) {
  const SetState& set = state.set_of(block);
  return {set.name, set.number(block - set.first_block)};
}

void find_weak(const Problem::State& state, const DensePiece& piece, const Columns& columns,
               ColumnDirections& directions, ProblemReport::Piece& out) {
  const auto [least, share] = directions.weakest();
  out.weakest = least;
  if (!(least < kWeak)) return;
  std::map<int64_t, double> by_block;
  for (size_t k = 0; k < piece.columns.size(); ++k)
    by_block[columns.block[size_t(piece.columns[k])]] += share[Index(k)];
  std::vector<std::pair<double, int64_t>> parts;
  for (const auto& [block, part] : by_block)
    if (part > kTakesPart) parts.emplace_back(-part, block);
  std::ranges::sort(parts);
  for (const auto& [part, block] : parts) out.weak.push_back(named_block(state, block));
}

/// By column, its squared share in the directions that change no residual, from the rows of each piece; false, and no
/// share, where a piece is too large for that.
bool dense_shares(const Problem::State& state, const SparseRows& j, const Pieces& pieces,
                  const Columns& columns, std::vector<double>& share, ProblemReport& out) {
  size_t number = 0;
  return each_dense_piece(j, pieces, columns, [&](DensePiece piece) {
    ProblemReport::Piece& own = out.pieces[number++];
    Eigen::VectorXd found = Eigen::VectorXd::Ones(piece.matrix.cols());
    if (piece.matrix.rows() > 0) {
      ColumnDirections directions(std::move(piece.matrix));
      find_weak(state, piece, columns, directions, own);
      found = directions.free().first;
    }
    for (size_t k = 0; k < piece.columns.size(); ++k) share[size_t(piece.columns[k])] = found[Index(k)];
  });
}

/// The same of all pieces by a sparse factorisation of J^T J.
void sparse_shares(const Problem::State& state, const HeldNormal& normal, const Columns& columns,
                   std::vector<double>& share) {
  const NormalEquations& equations = normal.equations();
  const BlockPattern& pattern = equations.pattern();
  std::vector<double> by_tangent(size_t(state.tangent), 1);
  const Eigen::VectorXd found = normal.free().basis().rowwise().squaredNorm();
  for (int64_t b = 0; b < pattern.blocks(); ++b)
    for (int64_t k = 0; k < pattern.width(b); ++k) {
      const size_t unknown = size_t(pattern.first[size_t(b)] + k);
      by_tangent[size_t(equations.columns()[size_t(b)] + k)] =
          normal.idle(unknown) ? 1 : found[Index(unknown)];
    }
  for (size_t c = 0; c < share.size(); ++c) share[c] = by_tangent[size_t(columns.tangent[c])];
}

/// Directions by piece, and the blocks that carry them.
void find_directions(const Problem& problem, Context& context, const SparseRows& j, const Columns& columns,
                     const Pieces& pieces, std::optional<HeldNormal>& normal, ProblemReport& out) {
  std::vector<double> share(columns.block.size(), 0);
  const auto unknown = [&](std::string why) { out.rank_note = std::move(why); };
  if (out.energies > 0) return unknown("energies, which have no rows of J");
  if (!std::ranges::all_of(j.values, [](double v) { return std::isfinite(v); }))
    return unknown("derivatives that are not finite, which check_derivatives() names");
  if (!dense_shares(problem.state(), j, pieces, columns, share, out)) try {
      normal.emplace(problem, context);
      sparse_shares(problem.state(), *normal, columns, share);
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

/// Instances that the others contradict, that move the estimate or that the others hardly check.
void find_influence(const Influence& all, int named, ProblemReport& out) {
  const auto list = [&](auto belongs, auto rank, int64_t& count, std::vector<InstanceInfluence>& to) {
    std::ranges::copy_if(all.instances, std::back_inserter(to), belongs);
    std::ranges::stable_sort(to, std::ranges::greater(), rank);
    count = int64_t(to.size());
    to.resize(std::min(to.size(), size_t(named)));
  };
  const auto tested =
      double(std::ranges::count_if(all.instances, [](const auto& i) { return i.checked > 0; }));
  list([&](const auto& i) { return i.checked > 0 && i.probability * tested < kUnlikely; },
       &InstanceInfluence::studentized, out.outlier_count, out.outliers);
  list([](const auto& i) { return i.cook > kInfluential; }, &InstanceInfluence::cook, out.influential_count,
       out.influential);
  const double high = std::max(kHigh, kTimesMean * double(all.rank) / double(std::max<int64_t>(all.rows, 1)));
  list([&](const auto& i) { return i.leverage > std::min(high, 1 - kUnchecked); },
       &InstanceInfluence::leverage, out.lever_count, out.levers);
  out.step_gain = all.step_gain;
}

}  // namespace

bool ProblemReport::well() const {
  return piece_count <= 1 && free_directions == 0 && badly_scaled.empty() && idle_count == 0 &&
         duplicate_count == 0 &&
         std::ranges::all_of(pieces, [](const Piece& piece) { return piece.weak.empty(); });
}

ProblemReport diagnose(const Problem& problem, Context& context, int named) {
  std::optional<Influence> ignored;
  return diagnose(problem, context, named, ignored);
}

ProblemReport diagnose(const Problem& problem, Context& context, int named,
                       std::optional<Influence>& influence) {
  influence.reset();
  const Problem::State& state = problem.state();
  const Columns columns(state);
  EvaluateOptions wanted;
  wanted.gradient = false;
  const Evaluation evaluation = evaluate(problem, context, wanted);
  ProblemReport out;
  out.blocks = state.blocks, out.unknowns = int64_t(columns.block.size());
  out.held = state.blocks - std::ranges::count(columns.moves, uint8_t(1));
  out.residuals = state.rows, out.cost = evaluation.cost;
  find_idle_and_double(state, evaluation.jacobian, columns, named, out);
  const Pieces pieces(state, columns);
  std::optional<HeldNormal> normal;
  out.piece_count = int64_t(pieces.blocks.size());
  for (size_t p = 0; p < pieces.blocks.size(); ++p) {
    ProblemReport::Piece& piece = out.pieces.emplace_back();
    piece.blocks = int64_t(pieces.blocks[p].size());
    piece.first = named_block(state, pieces.blocks[p].front());
    piece.touches_held = pieces.touches_held[p] != 0;
  }
  for (const int64_t b : columns.block) ++out.pieces[size_t(pieces.of_block[size_t(b)])].unknowns;
  find_directions(problem, context, evaluation.jacobian, columns, pieces, normal, out);
  try {
    influence = influence_at(problem, context, evaluation, columns, pieces, normal);
    find_influence(*influence, named, out);
  } catch (const InputError& error) { out.influence_note = error.what(); }
  find_scales(state, evaluation.jacobian, columns, out);
  std::ranges::stable_sort(out.pieces, [](const ProblemReport::Piece& a, const ProblemReport::Piece& b) {
    const auto rank = [](const ProblemReport::Piece& p) {
      return std::tuple(p.free_directions.value_or(0) == 0, p.weak.empty(), p.blocks);
    };
    return rank(a) < rank(b);
  });
  out.pieces.resize(std::min(out.pieces.size(), size_t(named)));
  for (ProblemReport::Piece& p : out.pieces) {
    p.carriers.resize(std::min(p.carriers.size(), size_t(named)));
    p.weak.resize(std::min(p.weak.size(), size_t(named)));
  }
  return out;
}

}  // namespace lockstep::solve
