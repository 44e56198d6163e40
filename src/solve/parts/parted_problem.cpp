#include "solve/parts/parted_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/model/problem.hpp"
#include "solve/parts/part_sums.hpp"

namespace lockstep::solve {
namespace {

/// Calls f(segment, instance of the segment) for those that count.
template <class F>
void each_that_counts(const Batch& batch, F f) {
  for (size_t s = 0; s < batch.segments.size(); ++s)
    for (int64_t i = 0; i < batch.segments[s].count; ++i)
      if (batch.segments[s].counts(i)) f(s, i);
}

/// The part of each instance.
class Cut {
 public:
  Cut(const Problem::State& state, int split, int64_t parts) : parts_(parts) {
    if (split >= 0) cut_blocks(state, state.sets[size_t(split)]);
    for (const Batch& batch : state.batches) instances_ += batch.instances;
    std::vector<int64_t> counts(size_t(parts), 0);
    for (const Batch& batch : state.batches)
      each_that_counts(batch, [&](size_t s, int64_t i) { ++counts[size_t(part_of(batch, s, i))]; });
    const auto none = std::find(counts.begin(), counts.end(), 0);
    if (none != counts.end())
      refuse(fmt::format("part {} of {} has no residuals", none - counts.begin(), parts));
    seen_ = 0;
  }

  /// To be requested all instances in their order.
  int64_t part_of(const Batch& batch, size_t segment, int64_t instance) {
    const int64_t number = seen_++;
    if (const int64_t block = split_block(batch, segment, instance); block >= 0)
      return std::upper_bound(first_block_.begin(), first_block_.end(), block) - first_block_.begin() - 1;
    return number * parts_ / instances_;
  }
  /// Blocks of the split set by part.
  const std::vector<int64_t>& first_block() const { return first_block_; }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw InputError(what, "solve parts", "fewer parts, each with some of the residuals");
  }
  /// The place in the split set of an instance's block there, or -1.
  int64_t split_block(const Batch& batch, size_t segment, int64_t instance) const {
    const size_t slots = batch.expression->slots.size();
    for (size_t k = 0; k < slots && count_ > 0; ++k) {
      const int64_t place = batch.segments[segment].blocks[size_t(instance) * slots + k] - first_;
      if (place >= 0 && place < count_) return place;
    }
    return -1;
  }
  /// Runs of blocks with about equal numbers of instances.
  void cut_blocks(const Problem::State& state, const SetState& set) {
    first_ = set.first_block, count_ = set.count;
    if (count_ < parts_) refuse(fmt::format("{} blocks of {} for {} parts", count_, set.name, parts_));
    std::vector<int64_t> before(size_t(count_) + 1, 0);
    for (const Batch& batch : state.batches)
      each_that_counts(batch, [&](size_t s, int64_t i) {
        if (const int64_t block = split_block(batch, s, i); block >= 0) ++before[size_t(block) + 1];
      });
    for (size_t b = 0; b < size_t(count_); ++b) before[b + 1] += before[b];
    for (int64_t k = 0; k <= parts_; ++k) {
      const int64_t at =
          std::lower_bound(before.begin(), before.end(), before.back() * k / parts_) - before.begin();
      const int64_t least = k == 0 ? 0 : first_block_.back() + 1;  // none is empty
      first_block_.push_back(k == parts_ ? count_
                                         : std::clamp(at, least, std::max(least, count_ - parts_ + k)));
    }
    first_block_.front() = 0;
  }

  int64_t parts_, instances_ = 0, seen_ = 0, first_ = 0, count_ = 0;
  std::vector<int64_t> first_block_;
};

/// The instance `i` of a segment at the end of another one, with its blocks' own numbers.
void append_instance(const Segment& from, const ExpressionKey& expression, int64_t i,
                     const std::vector<int32_t>& own_block, Segment& to) {
  const auto take = [i](const auto& all, size_t width, auto& out) {
    const auto begin = all.begin() + i * int64_t(width);
    out.insert(out.end(), begin, begin + int64_t(width));
  };
  const size_t slots = expression.slots.size();
  take(from.blocks, slots, to.blocks);
  for (size_t k = to.blocks.size() - slots; k < to.blocks.size(); ++k)
    to.blocks[k] = own_block[size_t(to.blocks[k])];
  take(from.data, size_t(expression.data), to.data);
  to.own_constants = from.own_constants;
  if (from.own_constants)
    take(from.constants, size_t(expression.constants), to.constants);
  else
    to.constants = from.constants;
  if (!from.weights.empty()) to.weights.push_back(from.weights[size_t(i)]);
  ++to.count;
}

}  // namespace

PartedProblem::PartedProblem(const Problem& whole, Linear linear, int64_t parts,
                             const parallel::Group& ranks) {
  layout_.ranks = ranks, layout_.parts = parts;
  const Problem::State& from = whole.state();
  Problem::State& to = own_.state();
  const int split = linear == Linear::schur_pcg ? eliminable_set(whole) : -1;
  layout_.split = split >= 0;
  Cut cut(from, split, parts);
  const parallel::Range own = layout_.own = parallel::share(parts, ranks);
  layout_.make_sums = make_part_sums;
  ambient_ = from.ambient;
  std::vector<int32_t> own_block(size_t(from.blocks), -1);
  const auto add_set = [&](const SetState& given, int64_t begin, int64_t end) {
    SetState set = given;
    set.count = set.added = end - begin, set.numbers.clear();
    set.first_block = to.blocks, set.first_ambient = to.ambient, set.first_tangent = to.tangent;
    const int64_t first = given.first_ambient + begin * set.ambient(), numbers = set.count * set.ambient();
    to.values.insert(to.values.end(), from.values.begin() + first, from.values.begin() + first + numbers);
    for (int64_t b = begin; b < end; ++b) {
      to.fixed.push_back(from.fixed[size_t(given.first_block + b)]);
      own_block[size_t(given.first_block + b)] = int32_t(to.blocks++);
    }
    sets_.push_back({first, to.ambient, numbers});
    to.ambient += numbers, to.tangent += set.count * set.tangent();
    to.sets.push_back(std::move(set));
  };
  for (size_t k = 0; k < from.sets.size(); ++k)
    if (int(k) != split) add_set(from.sets[k], 0, from.sets[k].count);
  if (split >= 0) {
    const std::vector<int64_t>& first = cut.first_block();
    first_split_ = from.sets[size_t(split)].first_ambient;
    for (int64_t k = own.begin; k <= own.end; ++k)
      layout_.first_block.push_back(first[size_t(k)] - first[size_t(own.begin)]);
    add_set(from.sets[size_t(split)], first[size_t(own.begin)], first[size_t(own.end)]);
  }
  std::vector<std::vector<Batch>> by_part(static_cast<size_t>(own.size()));
  for (const Batch& batch : from.batches) {
    if (batch.instances == 0) continue;
    Batch empty{batch.name, batch.expression, {}, 0, derivatives_of(batch)};
    for (size_t k = 0; k < by_part.size(); ++k) {
      empty.part = int(k);
      by_part[k].push_back(empty);
      by_part[k].back().segments.resize(batch.segments.size());
    }
    each_that_counts(batch, [&](size_t s, int64_t i) {
      const int64_t part = cut.part_of(batch, s, i);
      if (part < own.begin || part >= own.end) return;
      Batch& mine = by_part[size_t(part - own.begin)].back();
      append_instance(batch.segments[s], *batch.expression, i, own_block, mine.segments[s]);
      ++mine.instances;
    });
  }
  for (std::vector<Batch>& batches : by_part)
    for (Batch& batch : batches) {
      to.rows += batch.instances * batch.expression->rows;
      to.batches.push_back(std::move(batch));
    }
}

std::vector<double> PartedProblem::own_state(std::span<const double> whole) const {
  std::vector<double> own;
  for (const SetShare& set : sets_)
    own.insert(own.end(), whole.begin() + set.first_of_whole, whole.begin() + set.first_of_whole + set.count);
  return own;
}

std::vector<double> PartedProblem::whole_state(const std::vector<double>& own) const {
  std::vector<double> whole(static_cast<size_t>(ambient_));
  for (const SetShare& set : sets_)
    std::copy_n(own.begin() + set.first, set.count, whole.begin() + set.first_of_whole);
  if (!layout_.split || layout_.ranks.size() == 1) return whole;
  const auto mine = std::as_bytes(std::span(own).subspan(size_t(sets_.back().first)));
  auto* at = reinterpret_cast<std::byte*>(whole.data() + first_split_);
  for (const parallel::Bytes& bytes : layout_.ranks.all_gather({mine.begin(), mine.end()}))
    at = std::copy(bytes.begin(), bytes.end(), at);
  return whole;
}

}  // namespace lockstep::solve
