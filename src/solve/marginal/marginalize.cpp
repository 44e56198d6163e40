#include "lockstep/solve/marginalize.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/model/block_groups.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Which blocks leave and which of the others their terms have, by numbers over all sets.
struct Part {
  std::vector<int64_t> leaving, staying;  // ascending
  std::vector<uint8_t> leaves;            // by block
};

Part find_part(const Problem::State& state, std::span<const std::pair<BlockSet, int64_t>> blocks,
               const std::string& where) {
  Part part;
  if (blocks.empty()) throw InputError("no blocks", where, "one or more");
  part.leaves.assign(size_t(state.blocks), 0);
  for (const auto& [set, number] : blocks) {
    const SetState& s = state.set(set, where);
    const int64_t block = s.first_block + s.place(number, where);
    if (state.fixed[size_t(block)])
      throw InputError(fmt::format("{}, which is fixed", block_text(state, block)), where,
                       "blocks that move; erase a fixed one with its terms");
    if (!state.lower.empty())
      for (int64_t k = s.first_ambient + (block - s.first_block) * s.ambient(), n = 0; n < s.ambient();
           ++k, ++n)
        if (std::isfinite(state.lower[size_t(k)]) || std::isfinite(state.upper[size_t(k)]))
          throw InputError(fmt::format("{}, which has bounds", block_text(state, block)), where,
                           "blocks without bounds, which a prior cannot keep");
    if (part.leaves[size_t(block)]++)
      throw InputError(fmt::format("{} twice", block_text(state, block)), where, "each block once");
    part.leaving.push_back(block);
  }
  std::ranges::sort(part.leaving);
  return part;
}

/// Instances of a segment that have a block that leaves.
template <class F>
void each_touched(const Part& part, const Batch& batch, F f) {
  const size_t slots = batch.expression->slots.size();
  for (size_t s = 0; s < batch.segments.size(); ++s)
    for (int64_t i = 0; i < batch.segments[s].count; ++i) {
      if (!batch.segments[s].stays(i)) continue;
      const auto first = batch.segments[s].blocks.begin() + i * int64_t(slots);
      if (std::any_of(first, first + int64_t(slots), [&](int32_t b) { return part.leaves[size_t(b)] != 0; }))
        f(s, i);
    }
}

/// The touched instances that count, as a problem of their own over the same blocks.
std::unique_ptr<Problem> touched_problem(const Problem::State& from, Part& part, const std::string& where) {
  auto problem = std::make_unique<Problem>();
  Problem::State& to = problem->state();
  to.sets = from.sets, to.values = from.values, to.fixed = from.fixed, to.held = from.held;
  to.blocks = from.blocks, to.ambient = from.ambient, to.tangent = from.tangent;
  std::vector<uint8_t> seen(size_t(from.blocks), 0);
  for (const Batch& batch : from.batches) {
    const ExpressionKey& expression = *batch.expression;
    Batch own{batch.name, batch.expression, {}, 0};
    TermRecord record{batch.name, {}, {}, 0, false};
    each_touched(part, batch, [&](size_t number, int64_t i) {
      const Segment& segment = batch.segments[number];
      if (!segment.counts(i)) return;
      if (expression.energy)
        throw InputError(fmt::format("an energy, {}, of a block that leaves", batch.name), where,
                         "residuals");
      Segment one;
      one.count = 1, one.own_constants = segment.own_constants;
      const auto take = [&](const auto& all, size_t width, bool each, auto& out) {
        const int64_t first = each ? i * int64_t(width) : 0;
        if (!all.empty()) out.assign(all.begin() + first, all.begin() + first + int64_t(width));
      };
      take(segment.blocks, expression.slots.size(), true, one.blocks);
      take(segment.data, size_t(expression.data), true, one.data);
      take(segment.constants, size_t(expression.constants), segment.own_constants, one.constants);
      take(segment.weights, 1, true, one.weights);
      for (const int32_t b : one.blocks) seen[size_t(b)] = 1;
      record.parts.push_back({int32_t(to.batches.size()), int32_t(own.segments.size()), 0, 1});
      own.segments.push_back(std::move(one));
      ++own.instances, to.rows += expression.rows;
    });
    if (own.instances == 0) continue;
    to.batches.push_back(std::move(own));
    to.add(std::move(record));
  }
  for (int64_t b = 0; b < from.blocks; ++b) {
    if (!seen[size_t(b)] || from.fixed[size_t(b)]) continue;
    const SetState& set = from.set_of(b);
    for (int c = 0; c < set.tangent(); ++c)
      if (!from.moves(b, set.first_tangent + (b - set.first_block) * set.tangent() + c))
        throw InputError(fmt::format("{} with coordinates that are held", block_text(from, b)), where,
                         "blocks that move as a whole; subset() holds coordinates of a manifold");
    if (part.leaves[size_t(b)]) continue;
    if (set.manifold->minus.empty())
      throw InputError(fmt::format("{} on the manifold {}, which has no minus", block_text(from, b),
                                   set.manifold->manifold.name),
                       where, "Manifold::minus, by which a prior measures how far a block moved");
    part.staying.push_back(b);
  }
  return problem;
}

/// [J_leaving  J_staying  r] with the columns of the blocks in their order.
MatrixXd dense_rows(const Problem::State& state, const Evaluation& evaluation, const Part& part,
                    Index& leaving, Index& staying) {
  std::vector<Index> column_of;  // by column of the evaluation: those of all blocks that move, ascending
  std::vector<Index> first(size_t(state.blocks), -1);
  leaving = staying = 0;
  for (const int64_t b : part.leaving) first[size_t(b)] = leaving, leaving += state.set_of(b).tangent();
  for (const int64_t b : part.staying)
    first[size_t(b)] = leaving + staying, staying += state.set_of(b).tangent();
  for (const SetState& set : state.sets)
    for (int64_t b = set.first_block; b < set.first_block + set.count; ++b)
      for (int c = 0; c < set.tangent(); ++c)
        if (state.moves(b, set.first_tangent + (b - set.first_block) * set.tangent() + c))
          column_of.push_back(first[size_t(b)] < 0 ? -1 : first[size_t(b)] + c);
  const SparseRows& j = evaluation.jacobian;
  MatrixXd out = MatrixXd::Zero(Index(j.rows), leaving + staying + 1);
  for (int64_t r = 0; r < j.rows; ++r) {
    for (int64_t e = j.first[size_t(r)]; e < j.first[size_t(r) + 1]; ++e)
      if (const Index c = column_of[size_t(j.column[size_t(e)])]; c >= 0)
        out(Index(r), c) = j.values[size_t(e)];
    out(Index(r), leaving + staying) = evaluation.residuals[size_t(r)];
  }
  return out;
}

/// Columns with length 1, so that a rank does not depend on units.
void scale_columns(MatrixXd& a) {
  for (Index c = 0; c < a.cols(); ++c)
    if (const double length = a.col(c).norm(); length > 0) a.col(c) /= length;
}

/// The rest of rows [A b] when x of A is free: Q^T [rest b] below the rank of A.
MatrixXd eliminated(const MatrixXd& rows, Index leaving, double tolerance, Index& rank) {
  MatrixXd a = rows.leftCols(leaving);
  scale_columns(a);
  Eigen::ColPivHouseholderQR<MatrixXd> qr(a.rows(), a.cols());
  qr.setThreshold(tolerance);
  qr.compute(a);
  rank = qr.rank();
  MatrixXd rest = rows.rightCols(rows.cols() - leaving);
  rest.applyOnTheLeft(qr.householderQ().setLength(qr.nonzeroPivots()).adjoint());
  return rest.bottomRows(rest.rows() - rank);
}

/// The same rows in as few as their rank. Columns have the units of `lengths`, which they had before the elimination:
/// what it left of one is rounding below `tolerance` of that.
void compress(const MatrixXd& rest, const VectorXd& lengths, double tolerance, LinearPrior& prior) {
  const Index columns = rest.cols() - 1;
  VectorXd b = rest.col(columns);
  prior.columns = columns;
  if (columns == 0 || rest.rows() == 0) {
    prior.constant = 0.5 * b.squaredNorm();
    return;
  }
  MatrixXd a = rest.leftCols(columns);
  for (Index c = 0; c < columns; ++c)
    if (a.col(c).norm() > tolerance * lengths(c))
      a.col(c) /= lengths(c);
    else
      a.col(c).setZero();
  const Eigen::ColPivHouseholderQR<MatrixXd> qr(a);
  Index rank = 0;
  while (rank < std::min(a.rows(), columns) && std::abs(qr.matrixR()(rank, rank)) > tolerance) ++rank;
  b.applyOnTheLeft(qr.householderQ().setLength(qr.nonzeroPivots()).adjoint());
  const MatrixXd r = MatrixXd(qr.matrixR().topRows(rank).template triangularView<Eigen::Upper>()) *
                     qr.colsPermutation().transpose() * lengths.asDiagonal();
  prior.rows = rank;
  for (Index k = 0; k < rank; ++k) {
    for (Index c = 0; c < columns; ++c) prior.root.push_back(r(k, c));
    prior.offset.push_back(b(k));
  }
  prior.constant = 0.5 * b.tail(b.size() - rank).squaredNorm();
}

void take_estimates(Problem& problem, const MarginalizeOptions& options, const std::string& where) {
  for (const MarginalizeOptions::Estimate& e : options.first_estimates) {
    const std::span<double> to = problem.value(e.set, e.block);
    if (e.values.size() != to.size())
      throw InputError(fmt::format("{} numbers of a first estimate", e.values.size()), where,
                       fmt::format("{}", to.size()));
    std::ranges::copy(e.values, to.begin());
  }
}

}  // namespace

LinearPrior marginalize(Problem& problem, Context& context,
                        std::span<const std::pair<BlockSet, int64_t>> blocks,
                        const MarginalizeOptions& options) {
  const std::string where = "solve marginalize";
  Problem::State& state = problem.state();
  state.check_unused(where);
  Part part = find_part(state, blocks, where);
  const std::unique_ptr<Problem> touched = touched_problem(state, part, where);
  if (!options.first_estimates.empty()) {
    MarginalizeOptions own = options;
    for (MarginalizeOptions::Estimate& e : own.first_estimates) {
      state.set(e.set, where);
      e.set.problem = touched->state().number;
    }
    take_estimates(*touched, own, where);
  }
  const Problem::State& at = touched->state();
  LinearPrior prior;
  if (at.rows > 0) {
    EvaluateOptions wanted;
    wanted.gradient = false;
    Index leaving = 0, staying = 0, rank = 0;
    const MatrixXd rows = [&] {
      const ProblemUse use(state);
      return dense_rows(at, evaluate(*touched, context, wanted), part, leaving, staying);
    }();
    if (!rows.allFinite())
      throw InputError("residuals or derivatives that are not finite", where, "finite numbers");
    const MatrixXd rest = eliminated(rows, leaving, options.rank_tolerance, rank);
    prior.undetermined = leaving - rank;
    compress(rest, rows.middleCols(leaving, staying).colwise().norm(), options.rank_tolerance, prior);
  } else {
    for (const int64_t b : part.leaving) prior.undetermined += state.set_of(b).tangent();
  }
  for (const int64_t b : part.staying) {
    const SetState& set = state.set_of(b);
    const int64_t place = b - set.first_block;
    prior.blocks.emplace_back(BlockSet{int(&set - state.sets.data()), state.number}, set.number(place));
    const auto first = at.values.begin() + set.first_ambient + place * set.ambient();
    prior.from.insert(prior.from.end(), first, first + set.ambient());
  }
  // Nothing throws from here on but for want of memory.
  if (prior.rows > 0) prior.terms = add_prior(problem, prior, options.name);
  for (auto record = state.terms.begin(); record != state.terms.end();) {
    bool left = false, touched_one = false;
    for (const TermRecord::Part& p : record->second.parts) {
      Batch& batch = state.batches[size_t(p.batch)];
      const size_t slots = batch.expression->slots.size();
      for (int64_t i = 0; i < p.count; ++i) {
        const Segment& segment = batch.segments[size_t(p.segment)];
        if (!segment.stays(p.first + i)) continue;
        const auto first = segment.blocks.begin() + (p.first + i) * int64_t(slots);
        const bool goes = std::any_of(first, first + int64_t(slots),
                                      [&](int32_t b) { return part.leaves[size_t(b)] != 0; });
        if (goes) state.mark(p, i, 1, Segment::kGone);
        touched_one |= goes, left |= !goes;
      }
    }
    if (!touched_one || left) {
      ++record;
      continue;
    }
    for (const TermRecord::Part& p : record->second.parts) state.take_out(p);
    record = state.terms.erase(record);
  }
  state.erase_blocks(part.leaving);
  state.compact();
  return prior;
}

LinearPrior marginalize(Problem& problem, Context& context, BlockSet set, std::span<const int64_t> blocks,
                        const MarginalizeOptions& options) {
  std::vector<std::pair<BlockSet, int64_t>> pairs;
  for (const int64_t b : blocks) pairs.emplace_back(set, b);
  return marginalize(problem, context, pairs, options);
}

}  // namespace lockstep::solve
