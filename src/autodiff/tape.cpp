#include <fmt/format.h>

#include <bit>
#include <vector>

#include "autodiff/one_tape.hpp"
#include "autodiff/simplify.hpp"

namespace lockstep::autodiff {

std::string_view name(Op op) {
  static constexpr std::string_view kNames[] = {"constant", "leaf",
#define LOCKSTEP_NODE(name, ...) #name,
#define LOCKSTEP_MATH(name, ...) #name,
#include "lockstep/ir/ops.def"
                                                "sum",      "powi", "sign", "stop", "select"};
  static_assert(std::size(kNames) == size_t(Op::count_));
  return kNames[size_t(op)];
}

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::equal || op == Op::not_equal || op == Op::hypot ||
         op == Op::logical_and || op == Op::logical_or;
}

namespace {

uint64_t hash_of(const Node& n) {
  uint64_t h = uint64_t(n.op) * 0x9e3779b97f4a7c15u ^ n.imm;
  for (uint32_t a : n.args) h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u + a;
  h = (h ^ (h >> 32)) * 0x94d049bb133111ebu;
  return h ^ (h >> 29);
}

}  // namespace

struct Tape::State {
  std::vector<Node> nodes;
  std::vector<uint32_t> index = std::vector<uint32_t>(64, 0);  // 1 + node by hash, linear probing; 0: none
  struct Leaf {
    std::string name;
    LeafClass kind;
    uint32_t node;
  };
  std::vector<Leaf> leaves;

  uint32_t intern(Node node) {
    for (size_t at = hash_of(node) & (index.size() - 1);; at = (at + 1) & (index.size() - 1)) {
      if (index[at] == 0) {
        nodes.push_back(std::move(node));
        index[at] = uint32_t(nodes.size());
        if (2 * nodes.size() > index.size()) grow();
        return uint32_t(nodes.size()) - 1;
      }
      const Node& there = nodes[index[at] - 1];
      if (there.op == node.op && there.imm == node.imm && there.args == node.args) return index[at] - 1;
    }
  }
  void grow() {
    index.assign(index.size() * 4, 0);
    for (size_t id = 0; id < nodes.size(); ++id) {
      size_t at = hash_of(nodes[id]) & (index.size() - 1);
      while (index[at] != 0) at = (at + 1) & (index.size() - 1);
      index[at] = uint32_t(id) + 1;
    }
  }
};

Tape::Tape() : state_(std::make_unique<State>()) {}
Tape::~Tape() = default;

size_t Tape::size() const { return state_->nodes.size(); }
const Node& Tape::node(uint32_t id) const { return state_->nodes[id]; }

Value Tape::constant(double number) {
  return {this, state_->intern({Op::constant, std::bit_cast<uint64_t>(number), {}})};
}

Value Tape::leaf(std::string name, LeafClass kind) {
  const uint32_t number = uint32_t(state_->leaves.size());
  const uint32_t id = state_->intern({Op::leaf, number, {}});
  state_->leaves.push_back({std::move(name), kind, id});
  return {this, id};
}

uint32_t Tape::leaf_count() const { return uint32_t(state_->leaves.size()); }
const std::string& Tape::leaf_name(uint32_t leaf) const { return state_->leaves.at(leaf).name; }
LeafClass Tape::leaf_class(uint32_t leaf) const { return state_->leaves.at(leaf).kind; }
Value Tape::leaf_value(uint32_t leaf) { return {this, state_->leaves.at(leaf).node}; }

Value Tape::make(Op op, std::span<const Value> operands, int64_t imm) {
  for (const Value& v : operands)
    if (!v.valid() || &v.graph() != this)
      throw InputError(v.valid() ? "a value of another graph" : "an empty value",
                       fmt::format("autodiff {}", name(op)), "operands of one graph");
  Simplifier simplifier(*this);
  if (const auto simple = simplifier.simplify(op, operands, imm)) return *simple;
  Node node{op, uint64_t(imm), {}};
  for (const Value& v : operands) node.args.push_back(v.id());
  if (commutes(op) && node.args[1] < node.args[0]) std::swap(node.args[0], node.args[1]);
  return {this, state_->intern(std::move(node))};
}

bool Value::is_constant() const { return graph_->node(id_).op == Op::constant; }
bool Value::is_constant(double number) const {
  const Node& n = graph_->node(id_);
  return n.op == Op::constant && std::bit_cast<double>(n.imm) == number;
}

std::vector<uint32_t> reachable(std::span<const Value> outputs) {
  if (outputs.empty()) return {};
  expect_one_tape({outputs[0], "output"}, outputs, "output", "autodiff");
  const Tape& g = outputs[0].graph();
  std::vector<char> needed(g.size(), 0);
  std::vector<uint32_t> stack;
  for (const Value& v : outputs)
    if (!needed[v.id()]) needed[v.id()] = 1, stack.push_back(v.id());
  while (!stack.empty()) {
    const uint32_t id = stack.back();
    stack.pop_back();
    for (uint32_t a : g.node(id).args)
      if (!needed[a]) needed[a] = 1, stack.push_back(a);
  }
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < needed.size(); ++id)
    if (needed[id]) ids.push_back(id);
  return ids;
}

std::vector<uint32_t> leaves_of(std::span<const Value> outputs) {
  std::vector<uint32_t> leaves;
  for (uint32_t id : reachable(outputs)) {
    const Node& n = outputs[0].graph().node(id);
    if (n.op == Op::leaf) leaves.push_back(uint32_t(n.imm));
  }
  return leaves;  // leaves are interned in the order of their numbers
}

std::string print(const Value& value) {
  const Tape& g = value.graph();
  const Node& n = g.node(value.id());
  const auto arg = [&](size_t k) { return print(Value(&value.graph(), n.args[k])); };
  switch (n.op) {
    case Op::constant: return fmt::format("{}", std::bit_cast<double>(n.imm));
    case Op::leaf: return g.leaf_name(uint32_t(n.imm));
    case Op::add: return fmt::format("({} + {})", arg(0), arg(1));
    case Op::sub: return fmt::format("({} - {})", arg(0), arg(1));
    case Op::mul: return fmt::format("({} * {})", arg(0), arg(1));
    case Op::div: return fmt::format("({} / {})", arg(0), arg(1));
    case Op::neg: return fmt::format("-{}", arg(0));
    case Op::powi: return fmt::format("powi({}, {})", arg(0), int64_t(n.imm));
    default: break;
  }
  std::string text = fmt::format("{}(", name(n.op));
  for (size_t k = 0; k < n.args.size(); ++k) text += (k ? ", " : "") + arg(k);
  return text + ")";
}

Value select(const Condition& c, const Value& yes, const Value& no) {
  return c.graph().make(Op::select, {c.node(), yes, no});
}
Value number(const Condition& c) { return select(c, c.graph().constant(1), c.graph().constant(0)); }

Value powi(const Value& a, int exponent) { return a.graph().make(Op::powi, {a}, exponent); }
Value relu(const Value& a) { return select(a > 0, a, 0); }
Value round(const Value& a) {
  const Value t = trunc(a);
  return copysign(select(abs(a - t) >= 0.5, abs(t) + 1, abs(t)), stop_gradient(a));
}
Value clamp(const Value& a, double low, double high) { return min(max(a, low), high); }

Value sum(std::span<const Value> terms) {
  if (terms.empty()) throw InputError("a sum without terms", "autodiff sum", "one term or more");
  return terms[0].graph().make(Op::sum, terms);
}
Value sum(std::initializer_list<Value> terms) {
  return sum(std::span<const Value>(terms.begin(), terms.size()));
}
Value mean(std::span<const Value> terms) { return sum(terms) / double(terms.size()); }

// The guarded operand is replaced before the operation, so that neither branch is ever infinite.
Value safe_sqrt(const Value& a, double floor) {
  const Condition ok = a > floor;
  return select(ok, sqrt(select(ok, a, 1)), 0);
}
Value safe_rsqrt(const Value& a, double floor) {
  const Condition ok = a > floor;
  return select(ok, rsqrt(select(ok, a, 1)), 0);
}
Value safe_div(const Value& a, const Value& b, double floor) {
  const Condition ok = abs(b) > floor;
  return select(ok, a / select(ok, b, 1), 0);
}
Value safe_log(const Value& a, double floor) {
  if (!(floor > 0)) throw InputError(fmt::format("floor {}", floor), "autodiff safe_log", "a number above 0");
  const Condition ok = a > floor;
  return log(select(ok, a, floor));
}
namespace {
Value inside_unit(const Value& a, const Condition& inside) { return select(inside, a, 0); }
}  // namespace
Value safe_acos(const Value& a) {
  const Condition inside = abs(a) < 1;
  return select(inside, acos(inside_unit(a, inside)),
                select(a < 0, a.graph().constant(3.14159265358979323846), 0));
}
Value safe_asin(const Value& a) {
  const Condition inside = abs(a) < 1;
  return select(inside, asin(inside_unit(a, inside)), sign(a) * 1.57079632679489661923);
}
Value safe_atan2(const Value& y, const Value& x) {
  const Condition ok = not_equal(abs(x) + abs(y), 0);
  return select(ok, atan2(y, select(ok, x, 1)), 0);
}
Value safe_pow(const Value& a, const Value& b) {
  const Condition ok = a > 0;
  return select(ok, pow(select(ok, a, 1), b), 0);
}

}  // namespace lockstep::autodiff
