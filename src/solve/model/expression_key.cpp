#include "solve/model/expression_key.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "autodiff/topology.hpp"
#include "core/memo.hpp"
#include "lockstep/error.hpp"
#include "solve/model/robust_loss.hpp"

namespace lockstep::solve {

namespace {

template <class T>
void append(std::string& key, T number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void append(std::string& key, const std::string& text) {
  append(key, uint32_t(text.size()));
  key += text;
}

std::shared_ptr<const TracedManifold> trace_anew(const Manifold& manifold, const std::string& where) {
  const std::string place = fmt::format("{}, manifold {}", where, manifold.name);
  if (manifold.ambient < 1 || manifold.tangent < 1)
    throw InputError(fmt::format("sizes {} and {}", manifold.ambient, manifold.tangent), place,
                     "1 or more numbers and degrees of freedom");
  if (!manifold.plus) throw InputError("no plus", place, "a function");
  for (const Manifold::UnitVector& u : manifold.unit_vectors)
    if (u.first < 0 || u.count < 1 || u.first + u.count > manifold.ambient)
      throw InputError(fmt::format("a unit vector of {} numbers from {}", u.count, u.first), place,
                       fmt::format("a part of the block's {} numbers", manifold.ambient));
  auto traced = std::make_shared<TracedManifold>();
  traced->manifold = manifold;
  traced->graph = std::make_unique<autodiff::Tape>();
  std::vector<Value> x, delta;
  for (int k = 0; k < manifold.ambient; ++k) x.push_back(traced->graph->variable(fmt::format("x{}", k)));
  for (int k = 0; k < manifold.tangent; ++k)
    delta.push_back(traced->graph->variable(fmt::format("delta{}", k)));
  traced->plus = manifold.plus(x, delta);
  if (int(traced->plus.size()) != manifold.ambient)
    throw InputError(fmt::format("plus gives {} values", traced->plus.size()), place,
                     fmt::format("{}", manifold.ambient));
  for (const Value& v : traced->plus)
    if (!v.valid() || &v.graph() != traced->graph.get())
      throw InputError("plus gives a value of another graph", place, "values made of x and delta");
  for (const Value& v : traced->plus)
    for (const Value& slope : autodiff::gradient(v, delta)) traced->slopes.push_back(slope);

  if (manifold.minus) {
    traced->minus_graph = std::make_unique<autodiff::Tape>();
    std::vector<Value> to, from;
    for (int k = 0; k < manifold.ambient; ++k)
      to.push_back(traced->minus_graph->variable(fmt::format("to{}", k)));
    for (int k = 0; k < manifold.ambient; ++k)
      from.push_back(traced->minus_graph->variable(fmt::format("from{}", k)));
    traced->minus = manifold.minus(to, from);
    if (int(traced->minus.size()) != manifold.tangent)
      throw InputError(fmt::format("minus gives {} values", traced->minus.size()), place,
                       fmt::format("{}", manifold.tangent));
    for (const Value& v : traced->minus) {
      if (!v.valid() || &v.graph() != traced->minus_graph.get())
        throw InputError("minus gives a value of another graph", place, "values made of x and from");
      for (const Value& slope : autodiff::gradient(v, to)) traced->minus_slopes.push_back(slope);
    }
  }

  using Program = autodiff::HostProgram<double>;
  traced->numbers = {Program(traced->plus), Program(traced->slopes), Program(traced->minus),
                     Program(traced->minus_slopes)};

  const autodiff::Topology s = autodiff::topology(traced->plus);
  append(traced->key, manifold.ambient);
  append(traced->key, manifold.tangent);
  append(traced->key, uint32_t(s.bytes.size()));
  traced->key.append(s.bytes.begin(), s.bytes.end());
  for (uint32_t leaf : s.leaves) append(traced->key, leaf);
  for (double c : s.constants) append(traced->key, std::bit_cast<uint64_t>(c));

  traced->euclidean = manifold.ambient == manifold.tangent;
  for (int k = 0; traced->euclidean && k < manifold.ambient; ++k)
    traced->euclidean = same_node(traced->plus[size_t(k)], x[size_t(k)] + delta[size_t(k)]);
  return traced;
}

}  // namespace

std::shared_ptr<const TracedManifold> trace_manifold(const Manifold& manifold, const std::string& where) {
  using Plus = std::vector<Value>(std::span<const Value>, std::span<const Value>);
  Plus* const* const plain = manifold.plus.target<Plus*>();  // without state, so the same each time
  if (!plain) return trace_anew(manifold, where);
  std::string unit_vectors;
  for (const Manifold::UnitVector& u : manifold.unit_vectors)
    append(unit_vectors, u.first), append(unit_vectors, u.count);
  static Memo<std::tuple<Plus*, std::string, int, int, std::string>, std::shared_ptr<const TracedManifold>>
      known(1000);
  return known.get({*plain, manifold.name, manifold.ambient, manifold.tangent, unit_vectors},
                   [&] { return trace_anew(manifold, where); });
}

std::vector<Value> ExpressionKey::residuals(autodiff::Tape& graph, std::span<const Value> leaf_values,
                                            std::span<const Value> constant_values) const {
  return autodiff::instantiate(topology, graph, leaf_values, constant_values);
}

Canonical canonicalise(std::span<const Value> residuals,
                       const std::function<LeafSource(uint32_t leaf)>& source) {
  Canonical c;
  ExpressionKey& t = c.expression;
  t.topology = autodiff::topology(residuals, [&](uint32_t leaf) {
    const LeafSource from = source(leaf);
    return from.block < 0 ? autodiff::LeafPlace{-1 - int64_t(from.component), 0}
                          : autodiff::LeafPlace{from.block, from.component};
  });
  t.rows = int(residuals.size());
  c.constants = std::move(t.topology.constants);
  t.constants = int(c.constants.size());
  std::unordered_map<int64_t, int> slot_of;  // filled only where there are many blocks
  for (const uint32_t leaf : t.topology.leaves) {
    const LeafSource from = source(leaf);
    if (from.block < 0) {
      t.leaves.push_back({-1, t.data++});
      c.data.push_back(from.component);
      continue;
    }
    int slot = -1;
    if (c.blocks.size() <= 16) {
      for (size_t k = 0; k < c.blocks.size() && slot < 0; ++k)
        if (c.blocks[k] == from.block) slot = int(k);
    } else {
      if (slot_of.empty())
        for (size_t k = 0; k < c.blocks.size(); ++k) slot_of.emplace(c.blocks[k], int(k));
      if (const auto found = slot_of.find(from.block); found != slot_of.end()) slot = found->second;
    }
    if (slot < 0) {
      slot = int(c.blocks.size());
      c.blocks.push_back(from.block);
      if (!slot_of.empty()) slot_of.emplace(from.block, slot);
    }
    t.leaves.push_back({slot, from.component});
  }
  return c;
}

void complete_key(ExpressionKey& t) {
  t.key.clear();
  t.key.reserve(t.topology.bytes.size() + 8 * t.leaves.size() + 64);
  append(t.key, uint32_t(t.topology.bytes.size()));
  t.key.append(t.topology.bytes.begin(), t.topology.bytes.end());
  append(t.key, uint32_t(t.leaves.size()));
  for (const ExpressionKey::Leaf& l : t.leaves)
    append(t.key, int16_t(l.slot)), append(t.key, int16_t(l.index));
  append(t.key, uint32_t(t.slots.size()));
  for (const auto& slot : t.slots) append(t.key, slot->key);
  append(t.key, uint8_t(t.loss));
  append(t.key, uint8_t(t.energy));
  if (t.loss_expression) {
    append(t.key, uint32_t(t.loss_expression->bytes.size()));
    t.key.append(t.loss_expression->bytes.begin(), t.loss_expression->bytes.end());
  }
  if (t.weighted) t.key += 'w';
  if (t.host) append(t.key, t.host_number), append(t.key, t.host->name), append(t.key, int32_t(t.rows));
}

void ExpressionKey::set_loss(const RobustLoss& given, std::vector<double>& numbers,
                             const std::string& where) {
  loss = given.kind;
  loss_constants = 0;
  loss_expression.reset();
  if (loss == RobustLoss::Kind::none) return;
  if (loss != RobustLoss::Kind::expression) {
    numbers.push_back(given.scale), ++constants, loss_constants = 1;
    return;
  }
  autodiff::Tape graph;
  const Value s = graph.variable("s");
  const Value value = given.rho(s);
  if (!value.valid() || &value.graph() != &graph)
    throw InputError("a robust loss that gives a value of another graph", where, "a value made of s");
  if (graph.leaf_count() != 1)
    throw InputError("a robust loss that makes leaves", where, "a value made of s and numbers");
  const double at_0 = autodiff::evaluate<double>(value, std::vector<double>{0.0});
  if (!(std::abs(at_0) <= 1e-12))
    throw InputError(fmt::format("a robust loss with rho(0) = {}", at_0), where, "rho(0) = 0");
  autodiff::Topology topology = autodiff::topology(std::span(&value, 1));
  if (topology.leaves.empty())
    throw InputError("a robust loss that does not depend on s", where, "a function of s");
  numbers.insert(numbers.end(), topology.constants.begin(), topology.constants.end());
  loss_constants = int(topology.constants.size());
  constants += loss_constants;
  topology.constants.clear();
  loss_expression = std::make_shared<const autodiff::Topology>(std::move(topology));
}

Value ExpressionKey::rho(const Value& s, std::span<const Value> numbers) const {
  if (!loss_expression) return has_loss() ? robust_loss(loss, s, numbers[0]) : s;
  return autodiff::instantiate(*loss_expression, s.graph(), std::span(&s, 1), numbers)[0];
}

}  // namespace lockstep::solve
