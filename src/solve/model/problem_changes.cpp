// Changes of a Problem after it was built: blocks appended, coordinates held, terms with other data,
// weights, disabled, taken out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {

void Problem::State::check_unused(const std::string& where) const {
  if (uses > 0)
    throw InputError("a change while the problem is minimised or evaluated", where,
                     "changes before or after it, not by callbacks or functions of host terms");
}

const TermRecord& Problem::State::record(TermSet set, const std::string& where) const {
  if (set.problem != 0 && set.problem != number)
    throw InputError(fmt::format("term set {} of another problem", set.id), where,
                     "a set returned by add_terms or add_residuals of this problem");
  const auto found = terms.find(set.id);
  if (found != terms.end()) return found->second;
  const bool gone = set.id >= 0 && set.id < next_term;
  throw InputError(fmt::format("term set {}{}", set.id, gone ? ", which was erased" : ""), where,
                   fmt::format("one of the {} sets returned by add_terms or add_residuals", terms.size()));
}

void Problem::State::erase_blocks(const std::vector<int64_t>& blocks) {
  std::vector<int32_t> left(static_cast<size_t>(this->blocks),
                            0);  // the new number of each block; -1: erased
  for (const int64_t b : blocks) left[size_t(b)] = -1;
  int64_t ambient_at = 0, tangent_at = 0;
  int32_t next = 0;
  const auto keep = [](auto& all, int64_t from, int64_t to, int64_t count) {
    if (from != to && int64_t(all.size()) >= from + count)
      std::copy_n(all.begin() + from, count, all.begin() + to);
  };
  for (SetState& set : sets) {
    SetState own = set;
    own.first_block = next, own.first_ambient = ambient_at, own.first_tangent = tangent_at;
    own.count = 0, own.numbers.clear();
    for (int64_t k = 0; k < set.count; ++k) {
      const int64_t block = set.first_block + k, from = set.first_ambient + k * set.ambient(),
                    coordinate = set.first_tangent + k * set.tangent();
      if (left[size_t(block)] < 0) continue;
      left[size_t(block)] = next;
      keep(values, from, ambient_at, set.ambient());
      keep(lower, from, ambient_at, set.ambient()), keep(upper, from, ambient_at, set.ambient());
      keep(leaf_of, from, ambient_at, set.ambient());
      keep(held, coordinate, tangent_at, set.tangent());
      keep(fixed, block, next, 1);
      own.numbers.push_back(set.number(k));
      ++own.count, ++next, ambient_at += set.ambient(), tangent_at += set.tangent();
    }
    if (own.whole()) own.numbers.clear();
    set = std::move(own);
  }
  this->blocks = next, ambient = ambient_at, tangent = tangent_at;
  values.resize(size_t(ambient)), fixed.resize(size_t(next));
  for (std::vector<double>* bounds : {&lower, &upper})
    if (!bounds->empty()) bounds->resize(size_t(ambient));
  if (!held.empty()) held.resize(size_t(tangent));
  if (int64_t(leaf_of.size()) > ambient) leaf_of.resize(size_t(ambient));
  // Instances that are gone may have had erased blocks; nothing reads theirs.
  for (Batch& batch : batches)
    for (Segment& segment : batch.segments)
      for (int32_t& b : segment.blocks) b = std::max(left[size_t(b)], 0);
  for (LooseLeaf& leaf : loose_leaves)
    if (leaf.block >= 0) leaf.block = left[size_t(leaf.block)];
}

void Problem::State::compact() {
  constexpr size_t kFew = 16;
  size_t empty = 0, all = 0;
  for (const Batch& batch : batches)
    for (const Segment& segment : batch.segments) ++all, empty += segment.count == 0;
  if (empty < kFew || 2 * empty < all) return;
  std::vector<Batch> left;
  std::vector<std::pair<int32_t, std::vector<int32_t>>>
      moved;  // by batch: its new number, and those of its segments
  batch_of.clear();
  for (Batch& batch : batches) {
    auto& [number, segments] = moved.emplace_back(int32_t(left.size()), std::vector<int32_t>());
    std::vector<Segment> own;
    for (Segment& segment : batch.segments) {
      segments.push_back(int32_t(own.size()));
      if (segment.count > 0) own.push_back(std::move(segment));
    }
    if (own.empty()) continue;
    batch.segments = std::move(own);
    batch_of.emplace(batch.expression->key, left.size());
    left.push_back(std::move(batch));
  }
  batches = std::move(left);
  for (auto& [id, record] : terms)
    for (TermRecord::Part& part : record.parts) {
      const auto& [number, segments] = moved[size_t(part.batch)];
      part.segment = segments[size_t(part.segment)], part.batch = number;
    }
}

void Problem::State::mark(const TermRecord::Part& part, int64_t first, int64_t count, uint8_t mark) {
  Batch& batch = batches[size_t(part.batch)];
  Segment& segment = batch.segments[size_t(part.segment)];
  if (segment.off.empty()) {
    if (mark == 0) return;
    segment.off.assign(size_t(segment.count), 0);
  }
  for (int64_t i = part.first + first; i < part.first + first + count; ++i) {
    uint8_t& off = segment.off[size_t(i)];
    if (off & Segment::kGone) continue;
    const int64_t change = int64_t(mark == 0) - int64_t(off == 0);
    batch.instances += change, rows += change * batch.expression->rows;
    off = mark;
  }
}

void Problem::State::take_out(const TermRecord::Part& part) {
  mark(part, 0, part.count, Segment::kGone);
  Segment& segment = batches[size_t(part.batch)].segments[size_t(part.segment)];
  if (part.count < segment.count) return;
  // The place stays, as others' records count on it; what it held goes.
  const bool own = segment.own_constants;
  segment = {};
  segment.own_constants = own;
}

std::pair<std::string, int64_t> Problem::State::origin(size_t batch, int64_t place) const {
  const std::vector<Segment>& segments = batches[batch].segments;
  for (size_t s = 0; s < segments.size(); ++s)
    for (int64_t i = 0; i < segments[s].count; ++i) {
      if (!segments[s].counts(i) || place-- > 0) continue;
      for (const auto& [id, record] : terms) {
        int64_t first = 0;
        for (const TermRecord::Part& part : record.parts) {
          if (size_t(part.batch) == batch && size_t(part.segment) == s && i >= part.first &&
              i < part.first + part.count)
            return {record.name, first + i - part.first};
          first += part.count;
        }
      }
    }
  return {batches[batch].name, 0};
}

namespace {

int64_t count_of(const TermRecord& record) {
  int64_t count = 0;
  for (const TermRecord::Part& part : record.parts) count += part.count;
  return count;
}

/// Calls f(part, first, count) for the pieces of the instances [first, first + count) of a record.
template <class F>
void each_piece(const TermRecord& record, int64_t first, int64_t count, F f) {
  int64_t begin = 0;
  for (const TermRecord::Part& part : record.parts) {
    const int64_t from = std::max(first, begin), to = std::min(first + count, begin + part.count);
    if (from < to) f(part, from - begin, to - from);
    begin += part.count;
  }
}

void check_instance(const TermRecord& record, int64_t instance, const char* where) {
  if (const int64_t count = count_of(record); instance < 0 || instance >= count)
    throw InputError(fmt::format("instance {} of {}", instance, record.name), where,
                     fmt::format("0 to {}", count - 1));
}

/// A part's instances as a segment of their own.
Segment copy_part(const Segment& from, const TermRecord::Part& part, const ExpressionKey& t) {
  Segment to;
  const auto rows = [&](const auto& all, size_t width) {
    const auto begin = all.begin() + part.first * int64_t(width);
    return std::vector(begin, begin + part.count * int64_t(width));
  };
  to.count = part.count, to.own_constants = from.own_constants;
  to.blocks = rows(from.blocks, t.slots.size());
  to.data = rows(from.data, size_t(t.data));
  to.constants = from.own_constants ? rows(from.constants, size_t(t.constants)) : from.constants;
  if (!from.weights.empty()) to.weights = rows(from.weights, 1);
  if (!from.off.empty()) to.off = rows(from.off, 1);
  return to;
}

}  // namespace

int64_t Problem::instance_count(TermSet terms) const {
  return count_of(state_->record(terms, "solve instance_count"));
}

void Problem::set_data(TermSet terms, std::span<const double> data, int64_t first) {
  state_->check_unused("solve set_data");
  const TermRecord& record = state_->record(terms, "solve set_data");
  const std::string where = fmt::format("solve set_data of {}", record.name);
  if (record.loose)
    throw InputError("data of individual residuals", where,
                     "a set returned by add_terms, whose data are columns");
  const int64_t width = record.type_data, count = width > 0 ? int64_t(data.size()) / width : 0;
  if (width == 0 || int64_t(data.size()) != count * width)
    throw InputError(fmt::format("{} data", data.size()), where, fmt::format("{} an instance", width));
  if (first < 0 || first + count > count_of(record))
    throw InputError(fmt::format("instances {} to {}", first, first + count - 1), where,
                     fmt::format("0 to {}", count_of(record) - 1));
  for (size_t k = 0; k < data.size(); ++k)
    if (!std::isfinite(data[k]))
      throw InputError(fmt::format("datum {} of instance {} is {}", int64_t(k) % width,
                                   first + int64_t(k) / width, data[k]),
                       where, "finite numbers");
  int64_t done = 0;
  each_piece(record, first, count, [&](const TermRecord::Part& part, int64_t begin, int64_t pieces) {
    Batch& batch = state_->batches[size_t(part.batch)];
    Segment& segment = batch.segments[size_t(part.segment)];
    const size_t own = record.data.size();
    for (int64_t i = 0; i < pieces; ++i, ++done)
      for (size_t k = 0; k < own; ++k)
        segment.data[size_t(part.first + begin + i) * own + k] = data[size_t(done * width + record.data[k])];
  });
}

void Problem::enable(TermSet terms, int64_t instance, bool enabled) {
  state_->check_unused("solve enable");
  const TermRecord& record = state_->record(terms, "solve enable");
  check_instance(record, instance, "solve enable");
  each_piece(record, instance, 1, [&](const TermRecord::Part& part, int64_t first, int64_t count) {
    state_->mark(part, first, count, enabled ? 0 : Segment::kDisabled);
  });
}

void Problem::enable_all(TermSet terms, bool enabled) {
  state_->check_unused("solve enable");
  for (const TermRecord::Part& part : state_->record(terms, "solve enable").parts)
    state_->mark(part, 0, part.count, enabled ? 0 : Segment::kDisabled);
}

bool Problem::enabled(TermSet terms, int64_t instance) const {
  const TermRecord& record = state_->record(terms, "solve enabled");
  check_instance(record, instance, "solve enabled");
  bool on = true;
  each_piece(record, instance, 1, [&](const TermRecord::Part& part, int64_t first, int64_t) {
    on = state_->batches[size_t(part.batch)].segments[size_t(part.segment)].counts(part.first + first);
  });
  return on;
}

// Instances with weights are of an expression of their own, so that those without pay nothing.
void Problem::weigh(TermSet terms, std::span<const double> weights) {
  State& state = *state_;
  state.check_unused("solve weigh");
  state.record(terms, "solve weigh");
  TermRecord& record = state.terms.at(terms.id);
  const std::string where = fmt::format("solve weigh of {}", record.name);
  check_weights(weights, count_of(record), where);
  int64_t first = 0;
  for (TermRecord::Part& part : record.parts) {
    if (!state.batches[size_t(part.batch)].expression->weighted) {
      ExpressionKey expression = *state.batches[size_t(part.batch)].expression;
      const std::string name = state.batches[size_t(part.batch)].name;
      Segment own =
          copy_part(state.batches[size_t(part.batch)].segments[size_t(part.segment)], part, expression);
      own.weights.assign(size_t(own.count), 1);
      int64_t live = 0;
      for (int64_t i = 0; i < own.count; ++i) live += own.counts(i);
      expression.weighted = true;
      expression.label.clear();
      complete_key(expression);
      state.take_out(part);
      const size_t number = state.batch(std::move(expression), name);
      Batch& batch = state.batches[number];
      batch.instances += live, state.rows += live * batch.expression->rows;
      part = {int32_t(number), int32_t(batch.segments.size()), 0, own.count};
      batch.segments.push_back(std::move(own));
    }
    Segment& segment = state.batches[size_t(part.batch)].segments[size_t(part.segment)];
    for (int64_t i = 0; i < part.count; ++i)
      segment.weights[size_t(part.first + i)] = weights[weights.size() == 1 ? 0 : size_t(first + i)];
    first += part.count;
  }
}

void Problem::remove(TermSet terms) {
  state_->check_unused("solve remove");
  state_->record(terms, "solve remove");
  TermRecord& record = state_->terms.at(terms.id);
  for (const TermRecord::Part& part : record.parts) state_->take_out(part);
  record.parts.clear();
}

void Problem::erase(TermSet terms) {
  state_->record(terms, "solve erase");
  remove(terms);
  state_->terms.erase(terms.id);
  state_->compact();
}

void Problem::erase(BlockSet set, std::span<const int64_t> blocks) {
  const std::string where = "solve erase";
  State& state = *state_;
  state.check_unused(where);
  const SetState& s = state.set(set, where);
  std::vector<int64_t> gone;
  for (const int64_t b : blocks) gone.push_back(s.first_block + s.place(b, where));
  std::vector<uint8_t> marked(size_t(state.blocks), 0);
  for (const int64_t b : gone) marked[size_t(b)] = 1;
  for (const auto& [id, record] : state.terms) {
    int64_t first = 0;
    for (const TermRecord::Part& part : record.parts) {
      const Batch& batch = state.batches[size_t(part.batch)];
      const Segment& segment = batch.segments[size_t(part.segment)];
      const size_t slots = batch.expression->slots.size();
      for (int64_t i = part.first; i < part.first + part.count; ++i)
        for (size_t k = 0; k < slots && segment.stays(i); ++k)
          if (const int32_t b = segment.blocks[size_t(i) * slots + k]; marked[size_t(b)])
            throw InputError(
                fmt::format("block {} of {} is in instance {} of {}", s.number(b - s.first_block), s.name,
                            first + i - part.first, record.name),
                where, "blocks without terms: erase those first, or marginalize the block");
      first += part.count;
    }
  }
  state.erase_blocks(gone);
  state.compact();
}

void Problem::fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates) {
  State& state = *state_;
  state.check_unused("solve fix_coordinates");
  const SetState& s = state.set(set, "solve fix_coordinates");
  const int64_t place = s.place(block, "solve fix_coordinates");
  check_coordinates(*s.manifold, s.name, coordinates, "solve fix_coordinates");
  if (state.held.empty()) state.held.assign(size_t(state.tangent), 0);
  const size_t first = size_t(s.first_tangent + place * s.tangent());
  std::fill_n(state.held.begin() + int64_t(first), s.tangent(), uint8_t(0));
  for (const int c : coordinates) state.held[first + size_t(c)] = 1;
  if (std::find(state.held.begin(), state.held.end(), 1) == state.held.end()) state.held.clear();
}

}  // namespace lockstep::solve
