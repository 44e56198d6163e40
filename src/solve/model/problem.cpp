// Building a Problem: blocks, terms, loose residuals, and the checks of all of them.
#include "solve/model/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "lockstep/error.hpp"
#include "solve/model/added_numbers.hpp"
#include "solve/model/host_function.hpp"
#include "solve/model/robust_loss.hpp"

namespace lockstep::solve {

namespace {

constexpr double kWholeTurn = 2 * std::numbers::pi;
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

/// A set, and the place of one of its blocks.
struct Found {
  const SetState& set;
  int64_t place;
  size_t block() const { return size_t(set.first_block + place); }
};
Found find_block(const Problem::State& state, BlockSet set, int64_t block, const std::string& where) {
  const SetState& s = state.set(set, where);
  return {s, s.place(block, where)};
}

void check_component(int component, int size, const std::string& set, const std::string& where) {
  if (component < 0 || component >= size)
    throw InputError(fmt::format("component {} of {}", component, set), where,
                     fmt::format("0 to {}", size - 1));
}

Found find_component(const Problem::State& state, BlockSet set, int64_t block, int component,
                     const std::string& where) {
  const Found found = find_block(state, set, block, where);
  check_component(component, found.set.ambient(), found.set.name, where);
  return found;
}

/// Throws InputError where a unit vector of the manifold, in one of the blocks `values`, has another length.
void check_unit_vectors(const Manifold& manifold, std::span<const double> values, const std::string& where) {
  constexpr double kTolerance = 1e-5;
  for (const Manifold::UnitVector& u : manifold.unit_vectors)
    for (size_t block = 0; block * size_t(manifold.ambient) < values.size(); ++block) {
      double squares = 0;
      for (const double v :
           values.subspan(block * size_t(manifold.ambient) + size_t(u.first), size_t(u.count)))
        squares += v * v;
      if (std::abs(std::sqrt(squares) - 1) > kTolerance)
        throw InputError(
            fmt::format("components {} to {} of block {}, a unit vector of {}, have length {}", u.first,
                        u.first + u.count - 1, block, manifold.name, std::sqrt(squares)),
            where, "length 1");
    }
}

/// Throws InputError where plus(x, 0) is not x: derivatives would be taken elsewhere than at the state.
void check_plus(const TracedManifold& traced, std::span<const double> x, const std::string& where) {
  constexpr double kTolerance = 1e-6;
  const std::vector<double> there = moved(traced, x, std::vector<double>(size_t(traced.manifold.tangent)));
  for (size_t k = 0; k < x.size(); ++k) {
    double off = std::abs(there[k] - x[k]);
    off = std::min(off, std::abs(off - kWholeTurn));  // angles beyond a half turn are wrapped
    if (!(off <= kTolerance * std::max(1.0, std::abs(x[k]))))
      throw InputError(fmt::format("plus(x, 0) of manifold {} gives {} where x has {} (component {})",
                                   traced.manifold.name, there[k], x[k], k),
                       where, "plus(x, 0) = x");
  }
}

[[noreturn]] void too_many(int64_t numbers, const std::string& where) {
  throw InputError(fmt::format("{} numbers in all blocks", numbers), where, fmt::format("at most {}", kMost));
}

/// A term type's residuals with the instance's numbers as leaves.
struct Traced {
  autodiff::Tape graph;
  std::vector<Value> residuals;
  std::vector<LeafSource> sources;  // by leaf number; `block` is the slot
};

void trace(const TermType& type, const std::string& where, Traced& traced) {
  if (!type.residual) throw InputError("no residual", where, "a function");
  std::vector<std::vector<Value>> blocks(type.slots.size());
  for (size_t s = 0; s < type.slots.size(); ++s)
    for (int c = 0; c < type.slots[s]; ++c) {
      blocks[s].push_back(traced.graph.variable(fmt::format("x{}_{}", s, c)));
      traced.sources.push_back({int64_t(s), c});
    }
  std::vector<Value> data;
  for (int k = 0; k < type.data; ++k) {
    data.push_back(traced.graph.parameter(fmt::format("data{}", k)));
    traced.sources.push_back({-1, k});
  }
  traced.residuals =
      type.residual(TermArguments(traced.graph, std::move(blocks), std::move(data), type.name));
  if (traced.residuals.empty()) throw InputError("no residuals", where, "one or more");
  if (type.energy && traced.residuals.size() != 1)
    throw InputError(fmt::format("{} outputs of an energy", traced.residuals.size()), where, "one");
  if (type.energy && type.loss.kind != RobustLoss::Kind::none)
    throw InputError("a robust loss of an energy", where, "none");
  for (const Value& v : traced.residuals)
    if (!v.valid() || &v.graph() != &traced.graph)
      throw InputError("a residual of another graph", where, "values made of the arguments");
}

/// Throws InputError unless sets, indices and data are those of instances of a term; gives their number.
int64_t check_instances(const Problem::State& state, std::span<const int> slots, int data_count,
                        std::span<const BlockSet> sets, std::span<const int32_t> indices,
                        std::span<const double> data, const std::string& where) {
  if (slots.empty()) throw InputError("no slots", where, "one or more");
  if (data_count < 0) throw InputError(fmt::format("{} data", data_count), where, "0 or more");
  if (sets.size() != slots.size())
    throw InputError(fmt::format("{} block sets", sets.size()), where,
                     fmt::format("{}, one a slot", slots.size()));
  for (size_t s = 0; s < slots.size(); ++s) {
    const SetState& set = state.set(sets[s], where);
    if (set.ambient() != slots[s])
      throw InputError(fmt::format("{} with {} numbers in slot {}", set.name, set.ambient(), s), where,
                       fmt::format("blocks of {}", slots[s]));
  }
  if (indices.size() % slots.size() != 0)
    throw InputError(fmt::format("{} indices", indices.size()), where,
                     fmt::format("{} an instance", slots.size()));
  const int64_t count = int64_t(indices.size() / slots.size());
  for (size_t k = 0; k < indices.size(); ++k) {
    const SetState& set = state.sets[size_t(sets[k % slots.size()].id)];
    if (set.whole() && indices[k] >= 0 && indices[k] < set.count) continue;
    set.place(indices[k],
              fmt::format("{}, slot {} of instance {}", where, k % slots.size(), k / slots.size()));
  }
  check_data(data, data_count, count, where);
  return count;
}

/// The number of a block over all sets.
int32_t block_of(const Problem::State& state, BlockSet set, int64_t block, const std::string& where) {
  const SetState& s = state.sets[size_t(set.id)];
  return int32_t(s.first_block + (s.whole() ? block : s.place(block, where)));
}

/// Adds an expression's instances as a segment at the end of its batch.
TermSet append_segment(Problem::State& state, ExpressionKey&& expression, const std::string& name,
                       TermRecord&& record, Segment&& segment) {
  const int64_t count = segment.count;
  state.rows += count * expression.rows;
  const size_t number = state.batch(std::move(expression), name);
  Batch& batch = state.batches[number];
  batch.instances += count;
  record.parts.push_back({int32_t(number), int32_t(batch.segments.size()), 0, count});
  batch.segments.push_back(std::move(segment));
  return state.add(std::move(record));
}

/// The same of a term's instances, which were checked.
TermSet append_instances(Problem::State& state, TermForm&& form, const std::string& name, int type_data,
                         TermRecord&& record, std::span<const BlockSet> sets,
                         std::span<const int32_t> indices, std::span<const double> data) {
  Segment segment;
  segment.count = int64_t(indices.size() / sets.size());
  segment.constants = std::move(form.constants);
  segment.blocks.reserve(size_t(segment.count) * form.slots.size());
  segment.data.reserve(size_t(segment.count) * form.data.size());
  for (int64_t i = 0; i < segment.count; ++i) {
    for (const int64_t slot : form.slots)
      segment.blocks.push_back(
          block_of(state, sets[size_t(slot)], indices[size_t(i) * sets.size() + size_t(slot)], name));
    for (const int datum : form.data) segment.data.push_back(data[size_t(i * type_data + datum)]);
  }
  return append_segment(state, std::move(form.expression), name, std::move(record), std::move(segment));
}

/// "slots 0 to 2".
std::string range_text(const char* what, size_t count) {
  return count == 0 ? fmt::format("no {}", what) : fmt::format("{} 0 to {}", what, count - 1);
}

}  // namespace

std::span<const Value> TermArguments::block(int slot) const {
  if (slot < 0 || size_t(slot) >= blocks_.size())
    throw InputError(fmt::format("slot {}, which the instance does not have", slot),
                     fmt::format("solve residual of {}", term_), range_text("slots", blocks_.size()));
  return blocks_[size_t(slot)];
}
const Value& TermArguments::x(int slot, int component) const {
  const std::span<const Value> of_slot = block(slot);
  if (component < 0 || size_t(component) >= of_slot.size())
    throw InputError(
        fmt::format("component {} of slot {}, which the instance does not have", component, slot),
        fmt::format("solve residual of {}", term_), range_text("components", of_slot.size()));
  return of_slot[size_t(component)];
}
const Value& TermArguments::data(int k) const {
  if (k < 0 || size_t(k) >= data_.size())
    throw InputError(fmt::format("datum {}, which the instance does not have", k),
                     fmt::format("solve residual of {}", term_), range_text("data", data_.size()));
  return data_[size_t(k)];
}

void check_values(const TracedManifold& traced, std::span<const double> values, const std::string& where) {
  const size_t ambient = size_t(traced.manifold.ambient);
  if (values.size() % ambient != 0)
    throw InputError(fmt::format("{} values", values.size()), where,
                     fmt::format("a multiple of {}, the numbers of a block", ambient));
  for (size_t k = 0; k < values.size(); ++k)
    if (!std::isfinite(values[k]))
      throw InputError(fmt::format("component {} of block {} is {}", k % ambient, k / ambient, values[k]),
                       where, "finite numbers");
  check_unit_vectors(traced.manifold, values, where);
  if (!traced.euclidean && !values.empty()) check_plus(traced, values.first(ambient), where);
}

void check_data(std::span<const double> data, int per_instance, int64_t instances, const std::string& where) {
  if (int64_t(data.size()) != instances * per_instance)
    throw InputError(fmt::format("{} data for {} instances", data.size(), instances), where,
                     fmt::format("{} an instance", per_instance));
  for (size_t k = 0; k < data.size(); ++k)
    if (!std::isfinite(data[k]))
      throw InputError(fmt::format("datum {} of instance {} is {}", k % size_t(per_instance),
                                   k / size_t(per_instance), data[k]),
                       where, "finite numbers");
}

int bounded_coordinate(const TracedManifold& traced, const std::string& set, int64_t block, int component,
                       double lower, double upper, const std::string& where) {
  check_component(component, traced.manifold.ambient, set, where);
  const auto added = added_numbers(traced)[size_t(component)];
  if (!added)
    throw InputError(fmt::format("a bound of number {} of {}, on {}", component, set, traced.manifold.name),
                     where, "a number that one tangent coordinate moves by itself: Euclidean, or an angle");
  if (!(lower <= upper))
    throw InputError(fmt::format("bounds {} and {} of block {} of {}", lower, upper, block, set), where,
                     "a lower bound that is not above the upper one");
  const auto within = [](double v) {
    return std::isinf(v) || (v >= -std::numbers::pi && v < std::numbers::pi);
  };
  if (added->angle && !(within(lower) && within(upper) && std::isinf(lower) == std::isinf(upper)))
    throw InputError(fmt::format("bounds {} and {} of an angle of {}", lower, upper, set), where,
                     "two angles in [-pi, pi), or none");
  return added->coordinate;
}

void check_coordinates(const TracedManifold& traced, const std::string& set, std::span<const int> coordinates,
                       const std::string& where) {
  for (const int c : coordinates)
    if (c < 0 || c >= traced.manifold.tangent)
      throw InputError(fmt::format("tangent coordinate {} of {}", c, set), where,
                       fmt::format("0 to {}", traced.manifold.tangent - 1));
}

void check_weights(std::span<const double> weights, int64_t instances, const std::string& where) {
  if (weights.size() != 1 && int64_t(weights.size()) != instances)
    throw InputError(fmt::format("{} weights", weights.size()), where, fmt::format("1 or {}", instances));
  for (size_t k = 0; k < weights.size(); ++k)
    if (!(weights[k] >= 0) || !std::isfinite(weights[k]))
      throw InputError(fmt::format("weight {} of instance {}", weights[k], k), where,
                       "finite numbers that are not negative");
}

TermForm term_form(const Problem::State& state, const TermType& type, std::span<const BlockSet> sets,
                   const std::string& where) {
  check_robust_loss(type.loss, where);
  check_instances(state, type.slots, type.data, sets, {}, {}, where);
  Traced traced;
  trace(type, where, traced);
  Canonical c = canonicalise(traced.residuals, [&](uint32_t leaf) {
    if (leaf >= traced.sources.size())
      throw InputError("a leaf that the residual made", where, "values made of the arguments");
    return traced.sources[leaf];
  });
  if (c.blocks.empty()) throw InputError("residuals that depend on no block", where, "one or more");
  ExpressionKey& t = c.expression;
  for (const int64_t slot : c.blocks) t.slots.push_back(state.sets[size_t(sets[size_t(slot)].id)].manifold);
  t.energy = type.energy;
  t.set_loss(type.loss, c.constants, where);
  complete_key(t);
  return {std::move(c.expression), std::move(c.blocks), std::move(c.data), std::move(c.constants)};
}

TermForm term_form(const Problem::State& state, const HostTerm& type, std::span<const BlockSet> sets,
                   int number, const std::string& where) {
  if (!type.residual) throw InputError("no residual", where, "a function");
  if (type.residuals < 1) throw InputError(fmt::format("{} residuals", type.residuals), where, "1 or more");
  check_robust_loss(type.loss, where);
  check_instances(state, type.slots, type.data, sets, {}, {}, where);
  TermForm form;
  form.expression.host = std::make_shared<const HostTerm>(type);
  form.expression.host_number = number;
  form.expression.rows = type.residuals, form.expression.data = type.data;
  for (const BlockSet set : sets) form.expression.slots.push_back(state.sets[size_t(set.id)].manifold);
  form.expression.set_loss(type.loss, form.constants, where);
  complete_key(form.expression);
  for (size_t k = 0; k < sets.size(); ++k) form.slots.push_back(int64_t(k));
  for (int k = 0; k < type.data; ++k) form.data.push_back(k);
  return form;
}

uint64_t Problem::State::next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}
const SetState& Problem::State::set(BlockSet set, const std::string& where) const {
  if (set.problem != 0 && set.problem != number)
    throw InputError(fmt::format("block set {} of another problem", set.id), where,
                     "a set returned by add_blocks of this problem");
  if (set.id < 0 || size_t(set.id) >= sets.size())
    throw InputError(fmt::format("block set {}", set.id), where,
                     fmt::format("one of the {} sets returned by add_blocks", sets.size()));
  return sets[size_t(set.id)];
}
const SetState& Problem::State::set_of(int64_t block) const {
  const auto next = std::upper_bound(sets.begin(), sets.end(), block,
                                     [](int64_t b, const SetState& s) { return b < s.first_block; });
  return *(next - 1);
}

std::span<const double> Problem::State::value(int64_t block) const {
  const SetState& s = set_of(block);
  return std::span(values).subspan(size_t(s.first_ambient + (block - s.first_block) * s.ambient()),
                                   size_t(s.ambient()));
}
std::span<double> Problem::State::value(int64_t block) {
  const std::span<const double> own = std::as_const(*this).value(block);
  return std::span(values).subspan(size_t(own.data() - values.data()), own.size());
}

int64_t SetState::place(int64_t number, const std::string& where) const {
  if (number < 0 || number >= added)
    throw InputError(fmt::format("block {} of {}", number, name), where, fmt::format("0 to {}", added - 1));
  if (whole()) return number;
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (at == numbers.end() || *at != number)
    throw InputError(fmt::format("block {} of {}, which was erased", number, name), where,
                     fmt::format("one of the {} that are left", count));
  return at - numbers.begin();
}

void Problem::State::check_unit_vectors() const {
  for (const SetState& set : sets)
    solve::check_unit_vectors(
        set.manifold->manifold,
        std::span(values).subspan(size_t(set.first_ambient), size_t(set.count * set.ambient())),
        fmt::format("solve blocks {}", set.name));
}

size_t Problem::State::batch(ExpressionKey&& expression, const std::string& name) {
  for (const char c : name.substr(0, 32))
    expression.label += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  const auto [at, added] = batch_of.try_emplace(expression.key, batches.size());
  if (added) batches.push_back({name, std::make_shared<const ExpressionKey>(std::move(expression)), {}, 0});
  return at->second;
}

Problem::Problem() : state_(std::make_unique<State>()) { state_->graph = std::make_unique<autodiff::Tape>(); }
Problem::~Problem() = default;
Problem::Problem(Problem&&) noexcept = default;
Problem& Problem::operator=(Problem&&) noexcept = default;

BlockSet Problem::add_blocks(std::string name, Manifold manifold, std::span<const double> values) {
  const std::string where = fmt::format("solve blocks {}", name);
  State& state = *state_;
  state.check_unused(where);
  SetState set;
  set.manifold = trace_manifold(manifold, where);
  check_values(*set.manifold, values, where);
  if (state.ambient + int64_t(values.size()) > kMost) too_many(state.ambient + int64_t(values.size()), where);
  set.name = std::move(name);
  set.count = set.added = int64_t(values.size()) / manifold.ambient;
  set.first_block = state.blocks, set.first_ambient = state.ambient, set.first_tangent = state.tangent;
  state.blocks += set.count;
  state.ambient += int64_t(values.size());
  state.tangent += set.count * manifold.tangent;
  state.values.insert(state.values.end(), values.begin(), values.end());
  state.fixed.resize(size_t(state.blocks), 0);
  if (!state.held.empty()) state.held.resize(size_t(state.tangent), 0);
  if (!state.lower.empty()) {
    state.lower.resize(size_t(state.ambient), -INFINITY);
    state.upper.resize(size_t(state.ambient), INFINITY);
  }
  state.sets.push_back(std::move(set));
  return {int(state.sets.size()) - 1, state.number};
}

int64_t Problem::append_blocks(BlockSet given, std::span<const double> values) {
  State& state = *state_;
  state.check_unused("solve append_blocks");
  const std::string& name = state.set(given, "solve append_blocks").name;
  const std::string where = fmt::format("solve blocks {}", name);
  SetState& set = state.sets[size_t(given.id)];
  check_values(*set.manifold, values, where);
  if (state.ambient + int64_t(values.size()) > kMost) too_many(state.ambient + int64_t(values.size()), where);
  const int64_t count = int64_t(values.size()) / set.ambient(), tangent = count * set.tangent();
  const int64_t first = set.added;
  if (count == 0) return first;
  const int64_t block = set.first_block + set.count, at = set.first_ambient + set.count * set.ambient(),
                coordinate = set.first_tangent + set.count * set.tangent();
  const bool last = size_t(given.id) + 1 == state.sets.size();
  state.values.insert(state.values.begin() + at, values.begin(), values.end());
  state.fixed.insert(state.fixed.begin() + block, size_t(count), 0);
  if (!state.held.empty()) state.held.insert(state.held.begin() + coordinate, size_t(tangent), 0);
  if (!state.lower.empty()) {
    state.lower.insert(state.lower.begin() + at, values.size(), -INFINITY);
    state.upper.insert(state.upper.begin() + at, values.size(), INFINITY);
  }
  if (int64_t(state.leaf_of.size()) > at) state.leaf_of.insert(state.leaf_of.begin() + at, values.size(), 0);
  if (!set.whole())
    for (int64_t k = 0; k < count; ++k) set.numbers.push_back(set.added + k);
  set.count += count, set.added += count;
  state.blocks += count, state.ambient += int64_t(values.size()), state.tangent += tangent;
  if (last) return first;
  // Blocks of later sets have new numbers.
  for (size_t k = size_t(given.id) + 1; k < state.sets.size(); ++k) {
    SetState& later = state.sets[k];
    later.first_block += count, later.first_ambient += int64_t(values.size()), later.first_tangent += tangent;
  }
  for (Batch& batch : state.batches)
    for (Segment& segment : batch.segments)
      for (int32_t& b : segment.blocks)
        if (b >= block) b += int32_t(count);
  for (State::LooseLeaf& leaf : state.loose_leaves)
    if (leaf.block >= block) leaf.block += int32_t(count);
  return first;
}

TermSet Problem::add_terms(const TermType& type, std::span<const BlockSet> sets,
                           std::span<const int32_t> indices, std::span<const double> data) {
  const std::string where = fmt::format("solve term {}", type.name);
  State& state = *state_;
  state.check_unused(where);
  check_robust_loss(type.loss, where);
  const int64_t count = check_instances(state, type.slots, type.data, sets, indices, data, where);
  TermForm form = term_form(state, type, sets, where);
  TermRecord record{type.name, {}, form.data, type.data, false, {form.slots.begin(), form.slots.end()}};
  if (count == 0) return state.add(std::move(record));
  return append_instances(state, std::move(form), type.name, type.data, std::move(record), sets, indices,
                          data);
}

TermSet Problem::add_terms(const HostTerm& type, std::span<const BlockSet> sets,
                           std::span<const int32_t> indices, std::span<const double> data) {
  constexpr int64_t kChecked = 3;  // instances whose Jacobian is compared with differences
  return state_->add(type, sets, indices, data, kChecked);
}

TermSet Problem::State::add(const HostTerm& type, std::span<const BlockSet> from,
                            std::span<const int32_t> indices, std::span<const double> data, int64_t checked) {
  const std::string where = fmt::format("solve term {}", type.name);
  check_unused(where);
  TermForm form = term_form(*this, type, from, host_terms + 1, where);
  const int64_t count = check_instances(*this, type.slots, type.data, from, indices, data, where);
  const size_t slots = type.slots.size();
  TermRecord record{type.name, {}, form.data, type.data, false, {form.slots.begin(), form.slots.end()}};
  const HostFunction function(form.expression);
  const ProblemUse use(*this);
  for (int64_t i = 0; i < std::min(count, checked); ++i) {
    std::vector<std::span<const double>> blocks;
    for (size_t k = 0; k < slots; ++k)
      blocks.push_back(value(block_of(*this, from[k], indices[size_t(i) * slots + k], where)));
    function.check({blocks, data.subspan(size_t(i * type.data), size_t(type.data)), i});
  }
  ++host_terms;
  if (count == 0) return add(std::move(record));
  return append_instances(*this, std::move(form), type.name, type.data, std::move(record), from, indices,
                          data);
}

autodiff::Tape& Problem::graph() { return *state_->graph; }

Value Problem::variable(BlockSet set, int64_t block, int component) {
  State& state = *state_;
  const auto [s, place] = find_component(state, set, block, component, "solve variable");
  const size_t at = size_t(s.first_ambient + place * s.ambient() + component);
  if (state.leaf_of.size() <= at) state.leaf_of.resize(size_t(state.ambient), 0);
  if (state.leaf_of[at] == 0) {
    const Value leaf = state.graph->variable(fmt::format("{}[{}].{}", s.name, block, component));
    state.loose_leaves.resize(state.graph->leaf_count(), {-1, 0, 0});
    state.loose_leaves.back() = {int32_t(s.first_block + place), component, set.id};
    state.leaf_of[at] = state.graph->leaf_count();
    return leaf;
  }
  return state.graph->leaf_value(state.leaf_of[at] - 1);
}

TermSet Problem::add_residuals(std::span<const Value> residuals, const RobustLoss& loss) {
  State& state = *state_;
  const std::string where = "solve add_residuals";
  state.check_unused(where);
  check_robust_loss(loss, where);
  std::vector<Canonical> read;  // nothing is added before all are known to be valid
  for (size_t k = 0; k < residuals.size(); ++k) {
    const Value& residual = residuals[k];
    if (!residual.valid() || &residual.graph() != state.graph.get())
      throw InputError(fmt::format("residual {} is of another graph", k), where,
                       "values made of variable() and graph()");
    Canonical& c = read.emplace_back(canonicalise(std::span(&residual, 1), [&](uint32_t leaf) {
      if (leaf >= state.loose_leaves.size() || state.loose_leaves[leaf].block < 0)
        throw InputError(fmt::format("residual {} has the leaf {}", k, state.graph->leaf_name(leaf)), where,
                         "leaves returned by variable()");
      return LeafSource{state.loose_leaves[leaf].block, state.loose_leaves[leaf].component};
    }));
    ExpressionKey& t = c.expression;
    if (c.blocks.empty())
      throw InputError(fmt::format("residual {} depends on no variable", k), where, "one or more");
    for (const int64_t block : c.blocks) t.slots.push_back(state.set_of(block).manifold);
    t.set_loss(loss, c.constants, where);
    complete_key(t);
    t.topology.leaves.clear();
  }
  TermRecord record;
  record.name = "loose", record.loose = true;
  for (Canonical& c : read) {
    const size_t number = state.batch(std::move(c.expression), "loose");
    Batch& batch = state.batches[number];
    if (batch.segments.empty() || !batch.segments.back().own_constants) {
      batch.segments.emplace_back();
      batch.segments.back().own_constants = true;
    }
    Segment& segment = batch.segments.back();
    const TermRecord::Part own{int32_t(number), int32_t(batch.segments.size() - 1), segment.count, 1};
    if (!record.parts.empty() && record.parts.back().batch == own.batch &&
        record.parts.back().segment == own.segment &&
        record.parts.back().first + record.parts.back().count == own.first)
      ++record.parts.back().count;
    else
      record.parts.push_back(own);
    if (!segment.off.empty()) segment.off.push_back(0);
    for (const int64_t block : c.blocks) segment.blocks.push_back(int32_t(block));
    segment.constants.insert(segment.constants.end(), c.constants.begin(), c.constants.end());
    ++segment.count, ++batch.instances, ++state.rows;
  }
  return state.add(std::move(record));
}

void Problem::fix(BlockSet set, int64_t block, bool fixed) {
  state_->check_unused("solve fix");
  state_->fixed[find_block(*state_, set, block, "solve fix").block()] = fixed;
}
bool Problem::fixed(BlockSet set, int64_t block) const {
  return state_->fixed[find_block(*state_, set, block, "solve fixed").block()] != 0;
}

void Problem::bound(BlockSet set, int64_t block, int component, double lower, double upper) {
  State& state = *state_;
  state.check_unused("solve bound");
  const auto [s, place] = find_block(state, set, block, "solve bound");
  bounded_coordinate(*s.manifold, s.name, block, component, lower, upper, "solve bound");
  if (state.lower.empty()) {
    state.lower.assign(size_t(state.ambient), -INFINITY);
    state.upper.assign(size_t(state.ambient), INFINITY);
  }
  const size_t at = size_t(s.first_ambient + place * s.ambient() + component);
  state.lower[at] = lower, state.upper[at] = upper;
}

std::span<const double> Problem::values(BlockSet set) const {
  const SetState& s = state_->set(set, "solve values");
  return std::span(state_->values).subspan(size_t(s.first_ambient), size_t(s.count * s.ambient()));
}
std::span<double> Problem::values(BlockSet set) {
  const SetState& s = state_->set(set, "solve values");
  return std::span(state_->values).subspan(size_t(s.first_ambient), size_t(s.count * s.ambient()));
}
std::span<const double> Problem::value(BlockSet set, int64_t block) const {
  return std::as_const(*state_).value(int64_t(find_block(*state_, set, block, "solve value").block()));
}
std::span<double> Problem::value(BlockSet set, int64_t block) {
  return state_->value(int64_t(find_block(*state_, set, block, "solve value").block()));
}
std::vector<int64_t> Problem::block_numbers(BlockSet set) const {
  const SetState& s = state_->set(set, "solve block_numbers");
  std::vector<int64_t> numbers;
  for (int64_t k = 0; k < s.count; ++k) numbers.push_back(s.number(k));
  return numbers;
}
int64_t Problem::block_count(BlockSet set) const { return state_->set(set, "solve block_count").count; }
int64_t Problem::residual_count() const { return state_->rows; }
int64_t Problem::variable_count() const {
  int64_t n = 0;
  for (const SetState& s : state_->sets)
    for (int64_t b = 0; b < s.count; ++b)
      for (int c = 0; c < s.tangent(); ++c)
        n += state_->moves(s.first_block + b, s.first_tangent + b * s.tangent() + c);
  return n;
}
int64_t Problem::batch_count() const { return int64_t(state_->batches.size()); }
uint64_t Problem::number() const { return state_->number; }

}  // namespace lockstep::solve
