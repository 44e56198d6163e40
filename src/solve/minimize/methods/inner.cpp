#include "solve/minimize/methods/inner.hpp"

#include <algorithm>
#include <numeric>

#include "solve/minimize/checkpoint.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/model/block_groups.hpp"
#include "solve/model/counting.hpp"

namespace lockstep::solve {
namespace {

/// Groups of blocks that share no term: blocks by their number of neighbours, least first, each in the first group that has
/// no neighbour. -1 of fixed blocks.
std::vector<int32_t> independent_groups(const Problem::State& state) {
  std::vector<std::vector<int32_t>> neighbours(static_cast<size_t>(state.blocks));
  for (const Batch& batch : state.batches)
    each_that_counts(batch, [&](auto blocks, const Segment&, int64_t) {
      for (const int32_t a : blocks)
        for (const int32_t b : blocks)
          if (a != b && !state.fixed[size_t(a)] && !state.fixed[size_t(b)])
            neighbours[size_t(a)].push_back(b);
    });
  for (std::vector<int32_t>& list : neighbours) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
  }
  std::vector<int32_t> order(neighbours.size()), group_of(neighbours.size(), -1);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t b) { return neighbours[size_t(b)].size(); });
  for (const int32_t block : order) {
    if (state.fixed[size_t(block)]) continue;
    std::vector<uint8_t> taken(neighbours[size_t(block)].size() + 1, 0);
    for (const int32_t other : neighbours[size_t(block)])
      if (const int32_t g = group_of[size_t(other)]; g >= 0 && size_t(g) < taken.size()) taken[size_t(g)] = 1;
    group_of[size_t(block)] = int32_t(std::ranges::find(taken, 0) - taken.begin());
  }
  return group_of;
}

/// The problem with the terms of the given blocks, which alone move.
std::unique_ptr<Problem> restricted(const Problem::State& from, const std::vector<uint8_t>& moves) {
  auto problem = std::make_unique<Problem>();
  Problem::State& to = problem->state();
  to.sets = from.sets, to.values = from.values, to.held = from.held, to.lower = from.lower,
  to.upper = from.upper;
  to.terms = from.terms, to.batches = from.batches, to.blocks = from.blocks, to.ambient = from.ambient;
  to.tangent = from.tangent;
  for (const uint8_t m : moves) to.fixed.push_back(!m);
  for (Batch& batch : to.batches) {
    batch.instances = 0;
    each_that_counts(batch, [&](auto blocks, Segment& segment, int64_t i) {
      if (std::ranges::any_of(blocks, [&](int32_t b) { return moves[size_t(b)] != 0; })) {
        ++batch.instances, to.rows += batch.expression->rows;
        return;
      }
      segment.off.resize(size_t(segment.count), 0);
      segment.off[size_t(i)] |= Segment::kDisabled;
    });
  }
  return problem;
}

}  // namespace

InnerIterations::InnerIterations(const Problem& problem, const Options& options) {
  const Problem::State& state = problem.state();
  const auto refuse = [](OptionError::Kind kind, const char* found, const char* expected) {
    throw schema_of<Options>().error({kind, "inner_groups", found, expected, ""});
  };
  if (!has_linear_solver(options.method))
    refuse(OptionError::Kind::useless, "it has no effect with this {method}",
           "{method} lm, gn, dogleg or newton");
  const bool automatic = options.inner_groups.size() == 1 && options.inner_groups[0] == "auto";
  const std::vector<int32_t> group_of =
      automatic ? independent_groups(state) : block_groups(problem, options.inner_groups, "inner_groups");
  const int32_t count = group_of.empty() ? 0 : 1 + *std::ranges::max_element(group_of);
  for (int32_t g = 0; g < count; ++g) {
    std::vector<uint8_t> moves(group_of.size(), 0);
    Group group;
    bool all = true;
    for (const SetState& set : state.sets)
      for (int64_t b = set.first_block; b < set.first_block + set.count; ++b) {
        if (state.fixed[size_t(b)]) continue;
        moves[size_t(b)] = group_of[size_t(b)] == g;
        all = all && moves[size_t(b)];
        if (!moves[size_t(b)]) continue;
        const int64_t first = set.first_ambient + (b - set.first_block) * set.ambient();
        if (!group.numbers.empty() && group.numbers.back().second == first)
          group.numbers.back().second += set.ambient();
        else
          group.numbers.emplace_back(first, first + set.ambient());
      }
    if (all)
      refuse(OptionError::Kind::invalid, "a group of all blocks that move",
             "some of them: the others are fixed meanwhile");
    group.problem = restricted(state, moves);
    if (!group.numbers.empty() && group.problem->residual_count() > 0) groups_.push_back(std::move(group));
  }
  // The outer steps need no more digits, and start from a good point.
  options_.function_tolerance = 1e-6, options_.max_iterations = 50, options_.initial_damping = 1e-8;
  options_.precision = options.precision, options_.damping = options.damping;
}

void InnerIterations::improve(std::vector<double>& state, Context& context, bool on_cpu,
                              const Evaluator::Prepare& prepare) {
  options_.backend = on_cpu ? Placement::cpu : Placement::gpu;
  for (Group& group : groups_) {
    Problem::State& copy = group.problem->state();
    std::vector<double>& own = copy.values;
    own = state;
    for (size_t k = 0; k < copy.lower.size(); ++k)  // a state in f32 rounds to outside of its bounds
      own[k] = std::clamp(own[k], copy.lower[k], copy.upper[k]);
    options_.prepare = {};
    if (prepare && has_host_terms(*group.problem))
      options_.prepare = [&](bool derivatives) { prepare(own, derivatives); };
    CheckpointFile none(options_);
    minimize_next(*group.problem, context, options_, none, false);
    for (const auto& [first, last] : group.numbers)
      std::copy(own.begin() + first, own.begin() + last, state.begin() + first);
  }
}

}  // namespace lockstep::solve
