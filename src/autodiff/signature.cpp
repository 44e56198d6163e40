#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xbf58476d1ce4e5b9u;
  return h ^ (h >> 31);
}

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::equal || op == Op::not_equal || op == Op::hypot ||
         op == Op::logical_and || op == Op::logical_or;
}

// Serialised form: one record per node in the order of first visit (operands first), then the outputs.
// Operand references are tagged: n = node, c = the next constant, l = leaf.
class Serialiser {
 public:
  explicit Serialiser(const Graph& graph) : graph_(graph) {}

  Signature run(std::span<const Value> outputs) {
    std::vector<uint32_t> ids = reachable(outputs);
    for (uint32_t id : ids) anonymous_[id] = hash_of(graph_.node(id));
    number(uint32_t(outputs.size()));
    for (const Value& v : outputs) visit(v.id());
    byte('o');
    for (const Value& v : outputs) reference(v.id());
    uint64_t h = 0;
    for (uint8_t b : signature_.bytes) h = mix(h, b);
    signature_.hash = h;
    return std::move(signature_);
  }

 private:
  uint64_t hash_of(const Node& node) const {
    uint64_t h = mix(0, uint64_t(node.op));
    if (node.op == Op::leaf) return mix(h, uint64_t(graph_.leaf_class(uint32_t(node.imm))));
    if (node.op == Op::constant) return h;
    h = mix(h, node.imm);
    std::vector<uint64_t> parts;
    for (uint32_t a : node.args) parts.push_back(anonymous_.at(a));
    if (commutes(node.op)) std::sort(parts.begin(), parts.end());
    for (uint64_t p : parts) h = mix(h, p);
    return h;
  }
  std::vector<uint32_t> ordered_args(const Node& node) const {
    std::vector<uint32_t> args = node.args;
    if (commutes(node.op) && anonymous_.at(args[1]) < anonymous_.at(args[0])) std::swap(args[0], args[1]);
    return args;
  }
  void visit(uint32_t root) {
    struct Frame {
      uint32_t id;
      std::vector<uint32_t> args;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto enter = [&](uint32_t id) {
      const Node& node = graph_.node(id);
      if (node.op == Op::constant || node_number_.count(id)) return;
      if (node.op == Op::leaf) {
        if (leaf_number_.try_emplace(id, uint32_t(signature_.leaves.size())).second)
          signature_.leaves.push_back(uint32_t(node.imm));
        return;
      }
      stack.push_back({id, ordered_args(node)});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.args.size()) {
        const uint32_t child = top.args[top.next++];
        enter(child);  // may move the stack
        continue;
      }
      const Frame done = std::move(top);
      stack.pop_back();
      const Node& node = graph_.node(done.id);
      byte('n');
      byte(uint8_t(node.op));
      number(uint32_t(done.args.size()));
      if (node.op == Op::powi) number(uint32_t(int32_t(int64_t(node.imm))));
      for (uint32_t a : done.args) reference(a);
      node_number_.emplace(done.id, uint32_t(node_number_.size()));
    }
  }
  void reference(uint32_t id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::constant) {
      byte('c');
      signature_.constants.push_back(std::bit_cast<double>(node.imm));
    } else if (node.op == Op::leaf) {
      byte('l');
      byte(uint8_t(graph_.leaf_class(uint32_t(node.imm))));
      number(leaf_number_.at(id));
    } else {
      byte('r');
      number(node_number_.at(id));
    }
  }
  void byte(uint8_t v) { signature_.bytes.push_back(v); }
  void number(uint32_t v) {
    for (int k = 0; k < 4; ++k) byte(uint8_t(v >> (8 * k)));
  }

  const Graph& graph_;
  Signature signature_;
  std::unordered_map<uint32_t, uint64_t> anonymous_;
  std::unordered_map<uint32_t, uint32_t> node_number_, leaf_number_;
};

}  // namespace

Signature signature(std::span<const Value> outputs) {
  if (outputs.empty()) return {};
  return Serialiser(outputs[0].graph()).run(outputs);
}

std::vector<Value> instantiate(const Signature& topology, Graph& graph, std::span<const Value> leaves,
                               std::span<const Value> constants) {
  size_t at = 0, constant = 0;
  const auto broken = [] {
    return InputError("malformed signature", "autodiff instantiate", "bytes made by signature()");
  };
  const auto byte = [&] {
    if (at >= topology.bytes.size()) throw broken();
    return topology.bytes[at++];
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
  if (topology.bytes.empty()) return {};
  const uint32_t outputs = number();
  for (;;) {
    const uint8_t tag = byte();
    if (tag == 'o') break;
    const Op op = Op(byte());
    if (tag != 'n' || op >= Op::count_) throw broken();
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
