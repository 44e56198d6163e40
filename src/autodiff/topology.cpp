#include "autodiff/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "autodiff/one_tape.hpp"
#include "autodiff/simplify.hpp"

namespace lockstep::autodiff {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xbf58476d1ce4e5b9u;
  return h ^ (h >> 31);
}

/// Operations by their number in topologies. The numbers order the operands of commutative operations, and so
/// which of two products becomes an fma: bits depend on them. They therefore stay as they are; operations
/// that are not listed follow in the table's order.
const std::vector<Op>& numbered() {
  static const std::vector<Op> kAll = [] {
    std::vector<Op> all = {
        Op::constant,  Op::leaf,        Op::add,        Op::sub,         Op::mul,        Op::div,
        Op::neg,       Op::sum,         Op::abs,        Op::sign,        Op::min,        Op::max,
        Op::floor,     Op::ceil,        Op::trunc,      Op::rint,        Op::fmod,       Op::copysign,
        Op::sqrt,      Op::rsqrt,       Op::cbrt,       Op::hypot,       Op::exp,        Op::exp2,
        Op::expm1,     Op::log,         Op::log2,       Op::log10,       Op::log1p,      Op::pow,
        Op::powi,      Op::sin,         Op::cos,        Op::tan,         Op::asin,       Op::acos,
        Op::atan,      Op::atan2,       Op::sinh,       Op::cosh,        Op::tanh,       Op::sigmoid,
        Op::softplus,  Op::erf,         Op::stop,       Op::less,        Op::less_equal, Op::equal,
        Op::not_equal, Op::logical_and, Op::logical_or, Op::logical_not, Op::select};
    for (size_t op = 0; op < size_t(Op::count_); ++op)
      if (std::find(all.begin(), all.end(), Op(op)) == all.end()) all.push_back(Op(op));
    return all;
  }();
  return kAll;
}
uint8_t number_of(Op op) {
  static const std::vector<uint8_t> kNumbers = [] {
    std::vector<uint8_t> numbers(static_cast<size_t>(Op::count_));
    for (size_t k = 0; k < numbers.size(); ++k) numbers[size_t(numbered()[k])] = uint8_t(k);
    return numbers;
  }();
  return kNumbers[size_t(op)];
}

thread_local uint64_t visits = 0;

/// Numbers by node of a graph that are forgotten all at once. A call touches only the nodes it reaches, so
/// its cost does not depend on the size of the graph.
template <class T>
class Marks {
 public:
  void clear(size_t size) {
    if (stamp_.size() < size) visits += size - stamp_.size(), stamp_.resize(size, 0), value_.resize(size);
    if (++now_ == 0) visits += size, std::fill(stamp_.begin(), stamp_.end(), 0), now_ = 1;
  }
  bool has(uint32_t id) const { return stamp_[id] == now_; }
  T& operator[](uint32_t id) {
    if (stamp_[id] != now_) stamp_[id] = now_, value_[id] = T();
    return value_[id];
  }

 private:
  std::vector<uint32_t> stamp_;
  std::vector<T> value_;
  uint32_t now_ = 0;
};

struct Scratch {
  Marks<uint64_t> hash, context, colour;
  Marks<uint32_t> number;
  std::vector<uint32_t> order;  // operands before their users
  std::vector<std::pair<uint32_t, uint32_t>> stack;
  struct Leaf {
    uint32_t id;
    LeafPlace place;
  };
  std::vector<Leaf> leaves;  // sorted by block
};

// Serialised form: one record per node in the order of first visit (operands first), then the outputs.
// Operand references are tagged: r = node, c = the next constant, l = leaf.
class Serialiser {
 public:
  using Place = std::function<LeafPlace(uint32_t leaf)>;
  Serialiser(const Tape& graph, Scratch& scratch, const Place& place)
      : graph_(graph), s_(scratch), place_(place) {}

  Topology run(std::span<const Value> outputs) {
    find_order(outputs);
    find_leaves();
    s_.colour.clear(graph_.size());
    for (const auto& leaf : s_.leaves) s_.colour[leaf.id] = mix(2, uint64_t(leaf.place.component));
    hash_all();
    // Operands that look the same may still have different positions in the whole graph. Distinguish blocks
    // by the users of their leaves; then, where operands still look the same, by which block is visited first.
    for (int round = 0; round < kRounds && ties_; ++round) {
      find_contexts(outputs);
      colour_blocks();
      hash_all();
    }
    if (ties_) {
      rank_blocks(outputs);
      hash_all();
    }
    s_.number.clear(graph_.size());
    number(uint32_t(outputs.size()));
    for (const Value& v : outputs) visit(v.id());
    byte('o');
    for (const Value& v : outputs) reference(v.id());
    uint64_t h = 0;
    for (uint8_t b : topology_.bytes) h = mix(h, b);
    topology_.hash = h;
    return std::move(topology_);
  }

 private:
  static constexpr int kRounds = 2;

  void find_order(std::span<const Value> outputs) {
    s_.order.clear();
    s_.number.clear(graph_.size());
    for (const Value& v : outputs) {
      if (s_.number.has(v.id())) continue;
      s_.number[v.id()] = 1;
      s_.stack.push_back({v.id(), 0});
      while (!s_.stack.empty()) {
        auto& [id, next] = s_.stack.back();
        const Node& node = graph_.node(id);
        if (next == node.args.size()) {
          s_.order.push_back(id);
          ++visits;
          s_.stack.pop_back();
          continue;
        }
        const uint32_t child = node.args[next++];
        if (s_.number.has(child)) continue;
        s_.number[child] = 1;
        s_.stack.push_back({child, 0});
      }
    }
  }
  void find_leaves() {
    s_.leaves.clear();
    for (const uint32_t id : s_.order) {
      const Node& node = graph_.node(id);
      if (node.op == Op::leaf) s_.leaves.push_back({id, place_(uint32_t(node.imm))});
    }
    std::sort(s_.leaves.begin(), s_.leaves.end(), [](const auto& a, const auto& b) {
      return std::tie(a.place.block, a.place.component) < std::tie(b.place.block, b.place.component);
    });
  }
  /// Calls f(first, one past the last) for the leaves of each block.
  template <class F>
  void each_block(F f) {
    for (size_t first = 0, last; first < s_.leaves.size(); first = last) {
      last = first;
      while (last < s_.leaves.size() && s_.leaves[last].place.block == s_.leaves[first].place.block) ++last;
      f(first, last);
    }
  }
  void colour_blocks() {
    each_block([&](size_t first, size_t last) {
      uint64_t h = 0;
      for (size_t k = first; k < last; ++k)
        h = mix(mix(h, uint64_t(s_.leaves[k].place.component)), s_.context[s_.leaves[k].id]);
      for (size_t k = first; k < last; ++k)
        s_.colour[s_.leaves[k].id] = mix(h, uint64_t(s_.leaves[k].place.component));
    });
  }
  /// Numbers the blocks in the order of their first visit.
  void rank_blocks(std::span<const Value> outputs) {
    s_.number.clear(graph_.size());
    for (const Value& v : outputs) visit(v.id());
    each_block([&](size_t first, size_t last) {
      uint32_t rank = UINT32_MAX;
      for (size_t k = first; k < last; ++k) rank = std::min(rank, s_.number[s_.leaves[k].id]);
      for (size_t k = first; k < last; ++k)
        s_.colour[s_.leaves[k].id] = mix(mix(3, rank), uint64_t(s_.leaves[k].place.component));
    });
    topology_ = {};
    nodes_ = 0;
  }
  void hash_all() {
    s_.hash.clear(graph_.size());
    ties_ = false;
    for (const uint32_t id : s_.order) s_.hash[id] = hash_of(id);
  }
  uint64_t hash_of(uint32_t id) {
    const Node& node = graph_.node(id);
    uint64_t h = mix(0, number_of(node.op));
    if (node.op == Op::constant) return h;
    if (node.op == Op::leaf)
      return mix(mix(h, uint64_t(graph_.leaf_class(uint32_t(node.imm)))), s_.colour[id]);
    h = mix(h, node.imm);
    if (commutes(node.op)) {
      const uint64_t a = s_.hash[node.args[0]], b = s_.hash[node.args[1]];
      ties_ = ties_ || (a == b && node.args[0] != node.args[1]);
      return mix(mix(h, std::min(a, b)), std::max(a, b));
    }
    for (uint32_t a : node.args) h = mix(h, s_.hash[a]);
    return h;
  }
  /// A hash of each node's users and of the way they use it, which does not depend on their order.
  void find_contexts(std::span<const Value> outputs) {
    s_.context.clear(graph_.size());
    for (size_t k = 0; k < outputs.size(); ++k) s_.context[outputs[k].id()] += mix(1, k);
    for (size_t n = s_.order.size(); n-- > 0;) {
      const uint32_t id = s_.order[n];
      const Node& node = graph_.node(id);
      const uint64_t from = mix(s_.hash[id], s_.context[id]);
      for (size_t k = 0; k < node.args.size(); ++k)
        s_.context[node.args[k]] += mix(from, commutes(node.op) ? 0 : k + 1);
    }
  }
  bool swapped(const Node& node) {
    return commutes(node.op) && s_.hash[node.args[1]] < s_.hash[node.args[0]];
  }
  uint32_t argument(const Node& node, size_t k) { return node.args[swapped(node) ? 1 - k : k]; }

  void visit(uint32_t root) {
    const auto enter = [&](uint32_t id) {
      const Node& node = graph_.node(id);
      if (node.op == Op::constant || s_.number.has(id)) return;
      if (node.op == Op::leaf) {
        s_.number[id] = uint32_t(topology_.leaves.size());
        topology_.leaves.push_back(uint32_t(node.imm));
        return;
      }
      s_.stack.push_back({id, 0});
    };
    enter(root);
    while (!s_.stack.empty()) {
      auto& [id, next] = s_.stack.back();
      const Node& node = graph_.node(id);
      if (next < node.args.size()) {
        enter(argument(node, next++));  // may move the stack
        continue;
      }
      const uint32_t done = id;
      s_.stack.pop_back();
      if (s_.number.has(done)) continue;
      byte('n');
      byte(number_of(node.op));
      number(uint32_t(node.args.size()));
      if (node.op == Op::powi) number(uint32_t(int32_t(int64_t(node.imm))));
      for (size_t k = 0; k < node.args.size(); ++k) reference(argument(node, k));
      s_.number[done] = nodes_++;
    }
  }
  void reference(uint32_t id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::constant) {
      byte('c');
      topology_.constants.push_back(std::bit_cast<double>(node.imm));
    } else if (node.op == Op::leaf) {
      byte('l');
      byte(uint8_t(graph_.leaf_class(uint32_t(node.imm))));
      number(s_.number[id]);
    } else {
      byte('r');
      number(s_.number[id]);
    }
  }
  void byte(uint8_t v) { topology_.bytes.push_back(v); }
  void number(uint32_t v) {
    for (int k = 0; k < 4; ++k) byte(uint8_t(v >> (8 * k)));
  }

  const Tape& graph_;
  Scratch& s_;
  const Place& place_;
  Topology topology_;
  uint32_t nodes_ = 0;
  bool ties_ = false;
};

}  // namespace

Topology topology(std::span<const Value> outputs, const std::function<LeafPlace(uint32_t leaf)>& place) {
  if (outputs.empty()) return {};
  expect_one_tape({outputs[0], "output"}, outputs, "output", "autodiff topology");
  thread_local Scratch scratch;
  return Serialiser(outputs[0].graph(), scratch, place).run(outputs);
}
uint64_t topology_visits() { return visits; }
Topology topology(std::span<const Value> outputs) {
  return topology(outputs, [](uint32_t leaf) { return LeafPlace{leaf, 0}; });
}

std::vector<Value> instantiate(const Topology& shape, Tape& graph, std::span<const Value> leaves,
                               std::span<const Value> constants) {
  size_t at = 0, constant = 0;
  const auto broken = [] {
    return InputError("malformed topology", "autodiff instantiate", "bytes made by topology()");
  };
  const auto byte = [&] {
    if (at >= shape.bytes.size()) throw broken();
    return shape.bytes[at++];
  };
  const auto number = [&] {
    uint32_t v = 0;
    for (int k = 0; k < 4; ++k) v |= uint32_t(byte()) << (8 * k);
    return v;
  };
  std::vector<Value> nodes;
  const auto reference = [&]() -> Value {
    switch (byte()) {
      case 'c':
        if (constant >= constants.size())
          throw InputError("too few constants", "autodiff instantiate", "as many as the topology uses");
        return constants[constant++];
      case 'l': {
        byte();
        const uint32_t leaf = number();
        if (leaf >= leaves.size())
          throw InputError("too few leaves", "autodiff instantiate", "as many as the topology has");
        return leaves[leaf];
      }
      case 'r': {
        const uint32_t node = number();
        if (node >= nodes.size()) throw broken();
        return nodes[node];
      }
      default: throw broken();
    }
  };
  if (shape.bytes.empty()) return {};
  const uint32_t outputs = number();
  for (;;) {
    const uint8_t tag = byte();
    if (tag == 'o') break;
    const uint8_t known = byte();
    if (tag != 'n' || known >= numbered().size()) throw broken();
    const Op op = numbered()[known];
    std::vector<Value> args(number());
    const int64_t imm = op == Op::powi ? int64_t(int32_t(number())) : 0;
    for (Value& a : args) a = reference();
    nodes.push_back(graph.make(op, args, imm));
  }
  std::vector<Value> result;
  for (uint32_t k = 0; k < outputs; ++k) result.push_back(reference());
  return result;
}

}  // namespace lockstep::autodiff
