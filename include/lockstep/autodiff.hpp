// The Value graph: scalar expressions without side effects, in which equal expressions are one node (hash consing).
// They are differentiated in forward and reverse mode into the same graph, lowered to kernels, and evaluated on the host.
//
//   autodiff::Tape g;
//   const Value x = g.variable("x"), y = g.variable("y");
//   const Value f = sin(x * y) + square(x);
//   const std::vector<Value> grad = gradient(f, {x, y});
//   const std::vector<double> at = evaluate<double>(grad, {0.3, 0.7});  // by leaf number
//
// The operations are the elementary functions and the nodes of ir/ops.def, with the names that kernels use, and the
// functions below. Values behave like numbers, with these rules:
// - Equal expressions are one node. Constants are folded in f64. 0 * x and x - x are 0 even if x is not finite.
// - No function throws outside its domain: the result is NaN or an infinity, as in IEEE arithmetic. The safe_ functions
//   have finite values and derivatives for all finite arguments.
// - Derivatives at kinks: abs'(0) = 1 and relu'(0) = 0. sign, floor, ceil, trunc, rint and comparisons have
//   derivative 0. On ties, min and max pass the whole derivative to the first operand. clamp passes it inside and at
//   both ends. fmod has the derivatives 1 and -trunc(a / b).
// - pow with a constant integer exponent up to 64 in magnitude becomes products. Otherwise a < 0 gives NaN unless the
//   exponent is an integer, and the derivative with respect to the exponent is 0 for a <= 0.
// - select evaluates both branches, and only the chosen branch receives the derivative. If the other branch has an
//   infinite derivative, the result is NaN (0 * inf). Guard its operand too, as the safe_ functions do.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::autodiff {

enum class Op : uint8_t {
  constant,
  leaf,
#define LOCKSTEP_NODE(name, ...) name,
#define LOCKSTEP_MATH(name, ...) name,
#include "lockstep/ir/ops.def"
  sum,
  powi,
  sign,
  stop,    // identity without derivative
  select,  // condition, value if true, value if false
  count_
};
std::string_view name(Op op);

class Tape;

/// A number: a handle to a node of a graph, cheap to copy. The graph must outlive it.
class Value {
 public:
  Value() = default;
  Value(Tape* graph, uint32_t id) : graph_(graph), id_(id) {}
  Tape& graph() const { return *graph_; }
  uint32_t id() const { return id_; }
  bool valid() const { return graph_ != nullptr; }
  bool is_constant() const;
  bool is_constant(double number) const;
  friend bool operator==(const Value&, const Value&) = delete;  // ambiguous: same_node() or equal()

 private:
  Tape* graph_ = nullptr;
  uint32_t id_ = 0;
};
inline bool same_node(const Value& a, const Value& b) { return &a.graph() == &b.graph() && a.id() == b.id(); }

/// A condition: a handle to a node that is true or false.
class Condition {
 public:
  Condition(Tape* graph, uint32_t id) : value_(graph, id) {}
  Tape& graph() const { return value_.graph(); }
  uint32_t id() const { return value_.id(); }
  const Value& node() const { return value_; }

 private:
  Value value_;
};

enum class LeafClass : uint8_t {
  variable,   // an unknown, with respect to which derivatives are computed
  parameter,  // a datum of an instance
};

/// A node as stored. Operands have smaller ids than the node.
struct Node {
  Op op;
  uint64_t imm = 0;  // constant: bits of the f64; leaf: number; powi: the exponent as int64_t
  std::vector<uint32_t> args;
};

/// Owns nodes. Not thread-safe.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Value constant(double number);
  /// A new leaf; leaves are numbered in the order of creation.
  Value leaf(std::string name, LeafClass kind);
  Value variable(std::string name) { return leaf(std::move(name), LeafClass::variable); }
  Value parameter(std::string name) { return leaf(std::move(name), LeafClass::parameter); }

  uint32_t leaf_count() const;
  const std::string& leaf_name(uint32_t leaf) const;
  LeafClass leaf_class(uint32_t leaf) const;
  Value leaf_value(uint32_t leaf);

  size_t size() const;
  const Node& node(uint32_t id) const;
  /// The node of an operation after simplification. Throws InputError if an operand belongs to another graph.
  Value make(Op op, std::span<const Value> operands, int64_t imm = 0);
  Value make(Op op, std::initializer_list<Value> operands, int64_t imm = 0) {
    return make(op, std::span<const Value>(operands.begin(), operands.size()), imm);
  }

 private:
  friend class Simplifier;
  struct State;
  std::unique_ptr<State> state_;
};

/// Ids of all nodes that `outputs` depend on, in ascending order, so operands precede their users.
std::vector<uint32_t> reachable(std::span<const Value> outputs);
/// Numbers of the leaves that `outputs` depend on, in ascending order.
std::vector<uint32_t> leaves_of(std::span<const Value> outputs);
/// Readable text such as "sin(x * y)".
std::string print(const Value& value);

// ── operators ──

namespace detail {
template <class X>
inline constexpr bool kNumber = std::is_arithmetic_v<X>;
template <class A, class B>
concept Operands = (std::same_as<A, Value> && (std::same_as<B, Value> || kNumber<B>)) ||
                   (kNumber<A> && std::same_as<B, Value>);
inline Tape& graph_of(const Value& a, const Value&) { return a.graph(); }
template <class N>
Tape& graph_of(const Value& a, const N&) {
  return a.graph();
}
template <class N>
Tape& graph_of(const N&, const Value& b) {
  return b.graph();
}
inline Value lift(Tape&, const Value& v) { return v; }
template <class N>
  requires kNumber<N>
Value lift(Tape& g, N number) {
  return g.constant(double(number));
}
template <class A, class B>
Value binary(Op op, const A& a, const B& b) {
  Tape& g = graph_of(a, b);
  return g.make(op, {lift(g, a), lift(g, b)});
}
}  // namespace detail

// Each node and elementary function of ir/ops.def, under the name in its row.
#define LOCKSTEP_VALUE1(word, op) \
  inline Value word(const Value& a) { return a.graph().make(Op::op, {a}); }
#define LOCKSTEP_VALUE2(word, op)        \
  template <class A, class B>            \
    requires detail::Operands<A, B>      \
  Value word(const A& a, const B& b) {   \
    return detail::binary(Op::op, a, b); \
  }
#define LOCKSTEP_CONDITION2(word, op)             \
  template <class A, class B>                     \
    requires detail::Operands<A, B>               \
  Condition word(const A& a, const B& b) {        \
    const Value v = detail::binary(Op::op, a, b); \
    return Condition(&v.graph(), v.id());         \
  }
#define LOCKSTEP_LOGIC1(word, op)                       \
  inline Condition word(const Condition& a) {           \
    const Value v = a.graph().make(Op::op, {a.node()}); \
    return Condition(&v.graph(), v.id());               \
  }
#define LOCKSTEP_LOGIC2(word, op)                                 \
  inline Condition word(const Condition& a, const Condition& b) { \
    const Value v = a.graph().make(Op::op, {a.node(), b.node()}); \
    return Condition(&v.graph(), v.id());                         \
  }
#define LOCKSTEP_NODE(name, word, kind, arity, ...) LOCKSTEP_##kind##arity(word, name)
#define LOCKSTEP_MATH(name, arity, ...) LOCKSTEP_VALUE##arity(name, name)
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_VALUE1
#undef LOCKSTEP_VALUE2
#undef LOCKSTEP_CONDITION2
#undef LOCKSTEP_LOGIC1
#undef LOCKSTEP_LOGIC2

template <class A, class B>
  requires detail::Operands<A, B>
Condition operator>(const A& a, const B& b) {
  return b < a;
}
template <class A, class B>
  requires detail::Operands<A, B>
Condition operator>=(const A& a, const B& b) {
  return b <= a;
}
inline Value sign(const Value& a) { return a.graph().make(Op::sign, {a}); }  // -1, 0 or 1
inline Value stop_gradient(const Value& a) { return a.graph().make(Op::stop, {a}); }

inline Value& operator+=(Value& a, const Value& b) { return a = a + b; }
inline Value& operator-=(Value& a, const Value& b) { return a = a - b; }
inline Value& operator*=(Value& a, const Value& b) { return a = a * b; }

Value select(const Condition& condition, const Value& yes, const Value& no);
template <class N>
  requires detail::kNumber<N>
Value select(const Condition& c, const Value& yes, N no) {
  return select(c, yes, c.graph().constant(double(no)));
}
template <class N>
  requires detail::kNumber<N>
Value select(const Condition& c, N yes, const Value& no) {
  return select(c, c.graph().constant(double(yes)), no);
}
/// 1 if true, else 0.
Value number(const Condition& condition);

/// a to an integer power. In kernels: by squaring up to |exponent| = 64, by pow beyond.
Value powi(const Value& a, int exponent);
inline Value square(const Value& a) { return a * a; }
inline Value cube(const Value& a) { return a * a * a; }
inline Value reciprocal(const Value& a) { return 1.0 / a; }
/// max(a, 0); derivative 0 at 0.
Value relu(const Value& a);
/// To the nearest integer, halves away from zero.
Value round(const Value& a);
/// min(max(a, low), high).
Value clamp(const Value& a, double low, double high);
/// Sum of the terms, added from first to last, and their mean. Throws InputError for an empty list.
Value sum(std::span<const Value> terms);
Value sum(std::initializer_list<Value> terms);
Value mean(std::span<const Value> terms);

/// sqrt(a) where a > floor, else 0 with derivative 0.
Value safe_sqrt(const Value& a, double floor = 0);
/// 1 / sqrt(a) where a > floor, else 0 with derivative 0.
Value safe_rsqrt(const Value& a, double floor = 0);
/// a / b where |b| > floor, else 0 with derivatives 0.
Value safe_div(const Value& a, const Value& b, double floor = 0);
/// log(a) where a > floor, else log(floor) with derivative 0; floor > 0.
Value safe_log(const Value& a, double floor = 1e-30);
/// acos and asin of a clamped to [-1, 1]; derivative 0 at and beyond the ends.
Value safe_acos(const Value& a);
Value safe_asin(const Value& a);
/// atan2 with value and derivatives 0 at the origin.
Value safe_atan2(const Value& y, const Value& x);
/// a^b where a > 0, else 0 with derivatives 0.
Value safe_pow(const Value& a, const Value& b);

// ── derivatives ──

/// Reverse mode: sum over outputs k of seeds[k] * d outputs[k] / d inputs[i], for each i, in the same graph.
/// Contributions are added in the order of descending node ids, so the result is the same expression every time.
std::vector<Value> vjp(std::span<const Value> outputs, std::span<const Value> seeds,
                       std::span<const Value> inputs);
/// Forward mode: sum over inputs i of d outputs[k] / d inputs[i] * tangents[i], for each k.
std::vector<Value> jvp(std::span<const Value> outputs, std::span<const Value> inputs,
                       std::span<const Value> tangents);
/// d output / d inputs[i] for each i, by reverse mode.
std::vector<Value> gradient(const Value& output, std::span<const Value> inputs);
std::vector<Value> gradient(const Value& output, std::initializer_list<Value> inputs);

// ── host evaluation ──

/// Values of `outputs` for values of the leaves, by leaf number. T: float, double or std::complex<double>. For complex
/// numbers every operation is continued analytically, with comparisons, abs, min, floor … decided by the real part, so
/// complex steps give derivatives to rounding. Throws InputError if `leaves` is shorter than the leaves that are used.
template <class T>
std::vector<T> evaluate(std::span<const Value> outputs, std::span<const T> leaves);
template <class T>
std::vector<T> evaluate(const std::vector<Value>& outputs, const std::vector<T>& leaves) {
  return evaluate<T>(std::span<const Value>(outputs), std::span<const T>(leaves));
}
template <class T>
T evaluate(const Value& output, const std::vector<T>& leaves) {
  return evaluate<T>(std::span<const Value>(&output, 1), std::span<const T>(leaves))[0];
}

/// Differences between derivatives and complex steps.
struct GradientCheck {
  double max_error = 0;  // largest |derivative - complex step| / max(1, |complex step|) of the reverse mode
  double forward_error = 0;  // the same for the forward mode, along each axis
  uint32_t worst_leaf = 0;   // the leaf with the largest error of the reverse mode
};
/// Compares the reverse and the forward mode of `output` with complex steps at `leaves`.
GradientCheck check_gradient(const Value& output, const std::vector<double>& leaves);

// ── kernels ──

/// Lowers values into the kernel that is being traced. Each node becomes one kernel value, shared by its users. A sum
/// with a product becomes fma by a rule that depends on the graph only, and no other product is contracted later, so an
/// expression has the same bits in every kernel. All values of one Lowering must be used in the block where they were
/// first requested, or in blocks nested there.
class Lowering {
 public:
  using Leaf = std::function<AnyVal(uint32_t leaf)>;
  /// `type` is f32 or f64. `leaf` returns the kernel value of a leaf, in that type; it is called once per leaf.
  Lowering(const Tape& graph, Type type, Leaf leaf);
  /// The kernel value. Throws InputError if a leaf has another type.
  AnyVal operator()(const Value& value);
  template <class T>
  Val<T> as(const Value& value) {
    return (*this)(value).as<T>();
  }

 private:
  AnyVal emit(const Node& node);
  AnyVal fused_add(uint32_t a, uint32_t b, bool subtract);
  const Tape* graph_;
  Type type_;
  Leaf leaf_;
  std::vector<AnyVal> memo_;
};

// ── topology ──

/// The key by which expressions share kernels: their structure without the identities of leaves and the values of
/// constants.
struct Topology {
  std::vector<uint8_t> bytes;     // serialised nodes; equal bytes mean the same topology
  std::vector<uint32_t> leaves;   // leaf number of this instance, by canonical number (first visit)
  std::vector<double> constants;  // this instance's constants, by canonical number (one for each use)
  uint64_t hash = 0;              // of the bytes; an index only
};
/// Leaves are numbered by first visit, depth first. Operands of commutative operations are ordered by a hash that
/// depends on leaf classes but not on leaf identities.
Topology topology(std::span<const Value> outputs);
/// Builds the expression of a topology in `graph`, with leaves[k] as leaf k and constants[k] as constant k. Returns the
/// outputs.
std::vector<Value> instantiate(const Topology& shape, Tape& graph, std::span<const Value> leaves,
                               std::span<const Value> constants);

}  // namespace lockstep::autodiff
