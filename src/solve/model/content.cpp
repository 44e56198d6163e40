#include "lockstep/solve/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

/// Calls f(instance of the set, batch, segment, instance of the segment) for those that were not removed.
template <class F>
void each_staying(const Problem::State& state, const TermRecord& record, F f) {
  each_instance(record, [&](int64_t instance, const TermRecord::Part& part, int64_t i) {
    const Batch& batch = state.batches[size_t(part.batch)];
    const Segment& segment = batch.segments[size_t(part.segment)];
    if (segment.stays(i)) f(instance, batch, segment, i);
  });
}

/// The text of an instance's loss.
std::string loss_text(const ExpressionKey& expression, const Segment& segment, int64_t i) {
  const size_t width = size_t(expression.constants);
  const bool scaled = expression.has_loss() && expression.loss != RobustLoss::Kind::expression;
  return to_text(
      {expression.loss,
       scaled ? segment.constants[(segment.own_constants ? size_t(i) * width : 0) + width - 1] : 1});
}

}  // namespace

std::vector<BlockSetContent> block_sets(const Problem& problem) {
  std::vector<BlockSetContent> out;
  for (const SetState& set : problem.state().sets)
    out.push_back({{int(out.size()), problem.number()},
                   set.name,
                   set.manifold->manifold.name,
                   set.ambient(),
                   set.tangent(),
                   set.count});
  return out;
}

std::vector<TermSetContent> term_sets(const Problem& problem) {
  const Problem::State& state = problem.state();
  std::vector<TermSetContent> out;
  for (const auto& [number, record] : state.terms) {
    TermSetContent& own = out.emplace_back();
    own.terms = {number, problem.number()}, own.name = record.name, own.data = record.type_data;
    each_staying(state, record, [&](int64_t, const Batch& batch, const Segment& segment, int64_t i) {
      const ExpressionKey& expression = *batch.expression;
      ++own.instances, own.enabled += segment.counts(i);
      own.residuals = expression.rows, own.energy = expression.energy, own.weighted = expression.weighted;
      own.host = expression.host != nullptr;
      if (own.loss.empty()) own.loss = loss_text(expression, segment, i);
    });
  }
  return out;
}

InstanceContent instance_content(const Problem& problem, TermSet terms, int64_t instance) {
  const Problem::State& state = problem.state();
  const TermRecord& record = state.record(terms, "solve instance_content");
  InstanceContent out;
  bool found = false;
  each_staying(state, record, [&](int64_t k, const Batch& batch, const Segment& segment, int64_t i) {
    if (k != instance) return;
    found = true;
    const size_t slots = batch.expression->slots.size(), data = size_t(batch.expression->data);
    for (size_t s = 0; s < slots; ++s) {
      const int64_t block = segment.blocks[size_t(i) * slots + s];
      const SetState& set = state.set_of(block);
      out.blocks.push_back({s < record.slots.size() ? record.slots[s] : int(s),
                            {int(&set - state.sets.data()), problem.number()},
                            set.number(block - set.first_block)});
    }
    for (size_t d = 0; d < data; ++d)
      out.data.emplace_back(record.data[d], segment.data[size_t(i) * data + d]);
    if (!segment.weights.empty()) out.weight = segment.weights[size_t(i)];
    out.enabled = segment.counts(i);
  });
  if (!found)
    throw InputError(fmt::format("instance {} of {}", instance, record.name), "solve instance_content",
                     "one that the set has");
  std::ranges::sort(out.blocks, {}, &InstanceContent::Slot::slot);
  std::ranges::sort(out.data);
  return out;
}

std::vector<std::pair<TermSet, int64_t>> instances_of(const Problem& problem, BlockSet set, int64_t block) {
  const Problem::State& state = problem.state();
  const SetState& s = state.set(set, "solve instances_of");
  const auto number = int32_t(s.first_block + s.place(block, "solve instances_of"));
  std::vector<std::pair<TermSet, int64_t>> out;
  for (const auto& [id, record] : state.terms)
    each_staying(state, record, [&](int64_t k, const Batch& batch, const Segment& segment, int64_t i) {
      const size_t slots = batch.expression->slots.size();
      const auto first = segment.blocks.begin() + i * int64_t(slots);
      if (std::find(first, first + int64_t(slots), number) != first + int64_t(slots))
        out.emplace_back(TermSet{id, problem.number()}, k);
    });
  return out;
}

BlockContent block_content(const Problem& problem, BlockSet set, int64_t block) {
  const Problem::State& state = problem.state();
  const SetState& s = state.set(set, "solve block_content");
  const int64_t place = s.place(block, "solve block_content");
  BlockContent out;
  out.fixed = state.fixed[size_t(s.first_block + place)] != 0;
  for (int c = 0; c < s.tangent() && !state.held.empty(); ++c)
    if (state.held[size_t(s.first_tangent + place * s.tangent() + c)]) out.held.push_back(c);
  out.lower.assign(size_t(s.ambient()), -INFINITY), out.upper.assign(size_t(s.ambient()), INFINITY);
  if (!state.lower.empty()) {
    const auto first = s.first_ambient + place * s.ambient();
    std::copy_n(state.lower.begin() + first, s.ambient(), out.lower.begin());
    std::copy_n(state.upper.begin() + first, s.ambient(), out.upper.begin());
  }
  return out;
}

}  // namespace lockstep::solve
