// Sets, blocks and terms of a Smoother, and the checks of all of them.
#include "lockstep/solve/smoother.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "solve/model/host_function.hpp"
#include "solve/smooth/smoother_state.hpp"

namespace lockstep::solve {

Smoother::State::Set& Smoother::State::set(BlockSet handle, const std::string& where) {
  registry.state().set(handle, where);
  return sets[size_t(handle.id)];
}

int32_t Smoother::State::variable(BlockSet handle, int64_t block, const std::string& where) const {
  registry.state().set(handle, where);
  const Set& s = sets[size_t(handle.id)];
  if (block < 0 || block >= s.added)
    throw InputError(fmt::format("block {} of {}", block, s.name), where,
                     s.added == 0 ? "blocks returned by append_blocks" : fmt::format("0 to {}", s.added - 1));
  if (int64_t(s.numbers.size()) == s.added) return s.variables[size_t(block)];
  const auto at = std::ranges::lower_bound(s.numbers, block);
  if (at == s.numbers.end() || *at != block)
    throw InputError(fmt::format("block {} of {}, which left the window", block, s.name), where,
                     fmt::format("one of the {} that are left", s.numbers.size()));
  return s.variables[size_t(at - s.numbers.begin())];
}

FactorGroup& Smoother::State::group(FactorKind kind, const std::string& where) const {
  if ((kind.smoother != 0 && kind.smoother != registry.number()) || kind.id < 0 ||
      size_t(kind.id) >= groups.size())
    throw InputError(fmt::format("term kind {} of another smoother", kind.id), where,
                     "a kind returned by add_kind of this smoother");
  return *groups[size_t(kind.id)];
}

std::string Smoother::State::text(int32_t variable) const {
  const Variable& v = variables[size_t(variable)];
  return fmt::format("block {} of {}", v.number, sets[size_t(v.set)].name);
}

FactorKind Smoother::State::add_kind(FactorGroup::Type type, std::span<const BlockSet> of, TermForm form) {
  registry.state().check_unused("solve smoother add_kind");
  groups.push_back(std::make_unique<FactorGroup>(std::move(type), std::vector<BlockSet>(of.begin(), of.end()),
                                                 std::move(form)));
  return {int(groups.size()) - 1, registry.number()};
}

/// The variables of a factor's slots that move, each once.
void Smoother::State::join_variables(SmoothFactor& factor) const {
  factor.variables.clear();
  for (const int32_t v : factor.slots)
    if (!variables[size_t(v)].fixed && std::ranges::find(factor.variables, v) == factor.variables.end())
      factor.variables.push_back(v);
}

int32_t Smoother::State::add_factor(SmoothFactor&& factor) {
  if (free_factors.empty()) {
    free_factors.push_back(int32_t(factors.size()));
    factors.emplace_back();
  }
  const int32_t number = free_factors.back();
  free_factors.pop_back();
  for (const int32_t v : factor.slots) {
    std::vector<int32_t>& own = variables[size_t(v)].factors;
    if (own.empty() || own.back() != number) own.push_back(number);
  }
  factors[size_t(number)] = std::move(factor);
  ++instances;
  return number;
}

void Smoother::State::drop_factor(int32_t number) {
  SmoothFactor& factor = factors[size_t(number)];
  for (const int32_t v : factor.slots) std::erase(variables[size_t(v)].factors, number);
  if (const auto record = terms.find(factor.term); record != terms.end()) {
    std::ranges::replace(record->second, number, -1);
    if (std::ranges::all_of(record->second, [](int32_t f) { return f < 0; })) terms.erase(record);
  }
  std::erase(new_factors, number);
  factor = {};
  free_factors.push_back(number);
  --instances;
}

void Smoother::State::drop_variable(int32_t number) {
  Variable& v = variables[size_t(number)];
  Set& s = sets[size_t(v.set)];
  const auto at = std::ranges::lower_bound(s.numbers, v.number) - s.numbers.begin();
  s.numbers.erase(s.numbers.begin() + at), s.variables.erase(s.variables.begin() + at);
  for (std::vector<int32_t>* list : {&new_variables, &touched, &moved, &last, &bounded})
    std::erase(*list, number);
  v = {};
  tree.set_variable(number, 0, 1);
  points[size_t(number)].clear();
  free_variables.push_back(number);
}

Smoother::Smoother(Context& context, const SmootherOptions& options)
    : state_(std::make_unique<State>(context, options)) {
  const auto check = [](double value, const char* what) {
    if (!(value >= 0))
      throw InputError(fmt::format("{} {}", what, value), "solve smoother", "a number that is not negative");
  };
  check(options.lag, "lag"), check(options.relinearize, "relinearize"), check(options.propagate, "propagate");
}
Smoother::~Smoother() = default;
Smoother::Smoother(Smoother&&) noexcept = default;

BlockSet Smoother::add_set(std::string name, Manifold manifold, double unit) {
  State& s = *state_;
  if (!(unit > 0) || !std::isfinite(unit))
    throw InputError(fmt::format("unit {}", unit), fmt::format("solve smoother set {}", name),
                     "a positive number");
  if (std::isfinite(s.options.lag) && !manifold.minus)
    throw InputError(fmt::format("the manifold {}, which has no minus", manifold.name),
                     fmt::format("solve smoother set {}", name),
                     "Manifold::minus, by which the prior of blocks that left measures");
  const BlockSet handle = s.registry.add_blocks(name, std::move(manifold), {});
  s.sets.push_back({s.registry.state().sets.back().manifold, std::move(name), unit, 0, {}, {}});
  return handle;
}

int64_t Smoother::append_blocks(BlockSet set, std::span<const double> values, double time) {
  State& s = *state_;
  s.registry.state().check_unused("solve smoother append_blocks");
  State::Set& own = s.set(set, "solve smoother append_blocks");
  const std::string where = fmt::format("solve smoother blocks {}", own.name);
  check_values(*own.manifold, values, where);
  if (std::isnan(time)) time = std::isfinite(s.latest) ? s.latest : 0;
  if (!std::isfinite(time) || time < s.latest)
    throw InputError(fmt::format("time {} after time {}", time, s.latest), where,
                     "finite times that do not decrease");
  const size_t ambient = size_t(own.manifold->manifold.ambient);
  const int64_t first = own.added;
  for (size_t at = 0; at < values.size(); at += ambient) {
    if (s.free_variables.empty()) {
      s.free_variables.push_back(int32_t(s.variables.size()));
      s.variables.emplace_back(), s.points.emplace_back();
    }
    const int32_t variable = s.free_variables.back();
    s.free_variables.pop_back();
    State::Variable& v = s.variables[size_t(variable)];
    v.set = set.id, v.number = own.added++, v.time = time;
    own.numbers.push_back(v.number), own.variables.push_back(variable);
    s.points[size_t(variable)].assign(values.begin() + int64_t(at), values.begin() + int64_t(at + ambient));
    s.tree.set_variable(variable, own.manifold->manifold.tangent, own.unit);
    s.new_variables.push_back(variable);
  }
  if (!values.empty()) s.latest = time;
  return first;
}

void Smoother::touch(BlockSet set, int64_t block, double time) {
  State& s = *state_;
  const std::string where = "solve smoother touch";
  s.registry.state().check_unused(where);
  State::Variable& v = s.variables[size_t(s.variable(set, block, where))];
  if (!std::isfinite(time) || time < v.time)
    throw InputError(fmt::format("time {} after time {}", time, v.time), where,
                     "finite times that do not decrease");
  v.time = time, s.latest = std::max(s.latest, time);
}

void Smoother::fix(BlockSet set, int64_t block) {
  State& s = *state_;
  s.registry.state().check_unused("solve smoother fix");
  const int32_t variable = s.variable(set, block, "solve smoother fix");
  if (s.variables[size_t(variable)].fixed) return;
  if (s.tree.clique_of(variable) >= 0)
    throw InputError(s.text(variable) + ", which an update moved", "solve smoother fix",
                     "a block that no update has processed");
  s.variables[size_t(variable)].fixed = true;
  std::erase(s.new_variables, variable);
  s.tree.set_variable(variable, 0, 1);
  for (const int32_t f : s.variables[size_t(variable)].factors) s.join_variables(s.factors[size_t(f)]);
}

FactorKind Smoother::add_kind(const TermType& type, std::span<const BlockSet> sets) {
  const std::string where = fmt::format("solve smoother term {}", type.name);
  if (type.energy) throw InputError("an energy", where, "residuals");
  return state_->add_kind(type, sets, term_form(state_->registry.state(), type, sets, where));
}
FactorKind Smoother::add_kind(const HostTerm& type, std::span<const BlockSet> sets) {
  const std::string where = fmt::format("solve smoother term {}", type.name);
  return state_->add_kind(
      type, sets, term_form(state_->registry.state(), type, sets, int(state_->groups.size()) + 1, where));
}

TermSet Smoother::add_terms(FactorKind kind, std::span<const int32_t> indices, std::span<const double> data) {
  State& s = *state_;
  s.registry.state().check_unused("solve smoother add_terms");
  const FactorGroup& group = s.group(kind, "solve smoother add_terms");
  const std::string where = fmt::format("solve smoother term {}", group.name());
  const size_t slots = group.sets().size(), width = size_t(group.data());
  if (indices.size() % slots != 0)
    throw InputError(fmt::format("{} indices", indices.size()), where, fmt::format("{} an instance", slots));
  const size_t count = indices.size() / slots;
  check_data(data, int(width), int64_t(count), where);
  std::vector<SmoothFactor> added(count);
  for (size_t i = 0; i < count; ++i) {
    added[i].group = kind.id, added[i].term = s.next_term;
    for (size_t k = 0; k < slots; ++k)
      added[i].slots.push_back(s.variable(group.sets()[k], indices[i * slots + k],
                                          fmt::format("{}, slot {} of instance {}", where, k, i)));
    added[i].data.assign(data.begin() + int64_t(i * width), data.begin() + int64_t((i + 1) * width));
    s.join_variables(added[i]);
  }
  std::vector<int32_t>& record = s.terms[s.next_term];
  for (SmoothFactor& factor : added) {
    record.push_back(s.add_factor(std::move(factor)));
    s.new_factors.push_back(record.back());
  }
  if (record.empty()) s.terms.erase(s.next_term);
  return {s.next_term++, s.registry.number()};
}

std::vector<int32_t> Smoother::State::term_factors(TermSet handle, const std::string& where) const {
  if ((handle.problem != 0 && handle.problem != registry.number()) || handle.id < 0 || handle.id >= next_term)
    throw InputError(fmt::format("term set {} of another smoother", handle.id), where,
                     "a set returned by add_terms of this smoother");
  const auto record = terms.find(handle.id);
  return record == terms.end() ? std::vector<int32_t>() : record->second;
}

void Smoother::erase(TermSet terms) {
  State& s = *state_;
  s.registry.state().check_unused("solve smoother erase");
  for (const int32_t f : s.term_factors(terms, "solve smoother erase")) {
    if (f < 0) continue;
    for (const int32_t v : s.factors[size_t(f)].variables) s.touch_clique(v);
    s.drop_factor(f);
  }
}

void Smoother::weigh(TermSet terms, std::span<const double> weights) {
  State& s = *state_;
  s.registry.state().check_unused("solve smoother weigh");
  const std::vector<int32_t> factors = s.term_factors(terms, "solve smoother weigh");
  if (factors.empty())
    throw InputError(fmt::format("term set {}, of which nothing is left", terms.id), "solve smoother weigh",
                     "instances that were not erased and whose blocks are in the window");
  check_weights(weights, int64_t(factors.size()), "solve smoother weigh");
  for (size_t k = 0; k < factors.size(); ++k) {
    if (factors[k] < 0) continue;
    s.factors[size_t(factors[k])].weight = weights[weights.size() == 1 ? 0 : k];
    s.new_factors.push_back(factors[k]);
  }
}

SmootherUpdate Smoother::update() {
  state_->registry.state().check_unused("solve smoother update");
  const ProblemUse use(state_->registry.state());
  return state_->update(false);
}
int Smoother::solve(int max_iterations) {
  state_->registry.state().check_unused("solve smoother solve");
  const ProblemUse use(state_->registry.state());
  return state_->solve(max_iterations);
}

std::vector<double> Smoother::value(BlockSet set, int64_t block) const {
  const int32_t variable = state_->variable(set, block, "solve smoother value");
  return state_->moved_values({&variable, 1})[0];
}

std::vector<double> Smoother::values(BlockSet set) const {
  std::vector<double> out;
  for (const BlockValues& own : state_->moved_values(state_->set(set, "solve smoother values").variables))
    out.insert(out.end(), own.begin(), own.end());
  return out;
}

std::vector<int64_t> Smoother::block_numbers(BlockSet set) const {
  return state_->set(set, "solve smoother block_numbers").numbers;
}

int64_t Smoother::instance_count() const { return state_->instances; }
double Smoother::cost() const {
  const ProblemUse use(state_->registry.state());
  return state_->total_cost();
}
Problem Smoother::problem() const { return state_->problem(); }

std::vector<double> Smoother::covariance(std::span<const std::pair<BlockSet, int64_t>> blocks) const {
  const std::string where = "solve smoother covariance";
  std::vector<int32_t> which;
  for (const auto& [set, block] : blocks) {
    which.push_back(state_->variable(set, block, where));
    if (std::ranges::count(which, which.back()) > 1)
      throw InputError(state_->text(which.back()) + " twice", where, "each block once");
    if (state_->tree.clique_of(which.back()) < 0)
      throw InputError(state_->text(which.back()) + ", which is fixed or new", where,
                       "blocks that an update has processed");
  }
  return state_->tree.covariance(which);
}

int64_t Smoother::bytes() const {
  const State& s = *state_;
  int64_t sum = s.tree.bytes();
  const auto add = [&](const auto& list) { sum += int64_t(list.capacity() * sizeof(list[0])); };
  for (const SmoothFactor& f : s.factors) add(f.slots), add(f.data), add(f.variables), add(f.gram);
  for (const State::Variable& v : s.variables) add(v.factors), add(v.held), add(v.bounds);
  for (const BlockValues& p : s.points) add(p);
  for (const State::Set& own : s.sets) add(own.numbers), add(own.variables);
  add(s.factors), add(s.variables), add(s.points), add(s.bounded);
  return sum + int64_t(s.terms.size()) * 64;
}

}  // namespace lockstep::solve
