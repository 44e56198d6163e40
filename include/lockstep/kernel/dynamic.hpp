// Kernels whose buffers, types and number of parameters are known only during tracing. Parameters are declared by
// name inside the lambda, and a launch passes arguments by name.
//
//   const auto scale = kernel("scale", [&](At<1> at, Parameters& p) {
//     const AnyGrid from = p.read("from", storage, 1), to = p.write("to", storage, 1);
//     const AnyVal factor = p.scalar("factor", value_type(storage));
//     to.store({at.x}, factor * from.load({at.x}));
//   });
//   device.launch(scale, {n}, Arguments().set("from", a).set("to", b).set("factor", 0.5));
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

class AnyVal;
class AnyVar;

namespace detail {
/// Conversion between values and the IR, for the layers that lower expressions.
AnyVal any_value(ir::Id id);
ir::Id id_of(const AnyVal& value);
}  // namespace detail

/// A value of one lane whose type is known only during tracing. The type is one of Val, or kIndexType. Operators and
/// functions are those of Val. A C++ number takes the type of the other operand; operands of different types throw
/// InputError. A default-constructed AnyVal is empty until it is assigned.
class AnyVal {
 public:
  AnyVal() = default;
  template <detail::HasValue X>
  AnyVal(const X& value) : traced_(detail::id_of<detail::expr_t<X>>(value)) {}
  AnyVal(const AnyVar& variable);
  AnyVal(const AnyVal&) = default;
  AnyVal& operator=(const AnyVal&) & = default;
  /// A constant. Throws InputError if the type cannot represent the number, as for constants of Val.
  template <class C>
    requires std::is_arithmetic_v<C>
  static AnyVal number(Type type, C value) {
    switch (type) {
      case Type::f32: return constant(type, detail::bits_of(detail::operand<f32>(value)));
      case Type::f64: return constant(type, detail::bits_of(detail::operand<f64>(value)));
      case Type::i32: return constant(type, detail::bits_of(detail::operand<i32>(value)));
      case Type::u32: return constant(type, detail::bits_of(detail::operand<u32>(value)));
      case Type::u64: return constant(type, detail::bits_of(detail::operand<u64>(value)));
      case Type::boolean: return constant(type, detail::operand<bool>(value));
      default: return constant(type, detail::bits_of(detail::operand<i64>(value)));  // i64 and kIndexType
    }
  }

  bool empty() const { return traced_.empty(); }
  Type type() const;
  /// The value with its static type. Throws InputError, with the kernel and both types, if they differ.
  template <class T>
  Val<T> as() const {
    require(detail::kType<T>);
    return Val<T>::from(traced_.id());
  }
  /// The value converted as by cast<To>: float to integer truncates and saturates, NaN gives 0.
  AnyVal convert(Type to) const;
  /// The same bits as another type of the same size.
  AnyVal bitcast(Type to) const;

  explicit operator bool() const = delete;  // a lane's value is not known at trace time: use if_ or select

 private:
  friend class AnyVar;
  friend AnyVal detail::any_value(ir::Id id);
  friend ir::Id detail::id_of(const AnyVal& value);
  static AnyVal constant(Type type, uint64_t bits);
  void require(Type type) const;
  detail::Traced traced_;
};

/// A mutable variable of one lane whose type is known only during tracing. A copy, also by a C++ move, is a separate
/// variable.
class AnyVar {
 public:
  AnyVar(const AnyVal& initial);
  AnyVar(const AnyVar& other) : AnyVar(AnyVal(other)) {}
  AnyVar& operator=(const AnyVal& value);
  AnyVar& operator=(const AnyVar& other) { return *this = AnyVal(other); }
  template <class C>
    requires std::is_arithmetic_v<C>
  AnyVar& operator=(C constant) {
    return *this = AnyVal::number(type(), constant);
  }
  Type type() const;

 private:
  friend class AnyVal;
  detail::Traced traced_;
};

namespace detail {

template <class X>
concept Any = std::same_as<X, AnyVal> || std::same_as<X, AnyVar>;
template <class X>
concept AnyOperand = Any<X> || HasValue<X> || std::is_arithmetic_v<X>;
template <class A, class B>
concept AnyPair = (Any<A> || Any<B>) && AnyOperand<A> && AnyOperand<B>;

/// A function of ir/ops.def on operands of one type. Throws InputError, naming the kernel, if it does not accept the
/// operands.
AnyVal any_op(ir::Op floats, ir::Op integers, std::initializer_list<AnyVal> operands);
AnyVal any_select(const AnyVal& condition, const AnyVal& yes, const AnyVal& no);
AnyVal any_reduce(ir::Reduction how, const AnyVal& a);

/// Result of tests such as isnan: Val<bool>.
template <ir::Op kFloats>
using AnyResult =
    std::conditional_t<kFloats != ir::Op::none && ir::result_type(kFloats, Type::f32) == Type::boolean,
                       Val<bool>, AnyVal>;
template <ir::Op kFloats, ir::Op kIntegers>
AnyResult<kFloats> any_word(std::initializer_list<AnyVal> operands) {
  if constexpr (std::same_as<AnyResult<kFloats>, AnyVal>)
    return any_op(kFloats, kIntegers, operands);
  else
    return any_op(kFloats, kIntegers, operands).template as<bool>();
}

/// The type of the first operand that is a value.
template <class X, class... More>
Type first_type(const X& x, const More&... more) {
  if constexpr (Any<X>)
    return x.type();
  else if constexpr (HasValue<X>)
    return kType<expr_t<X>>;
  else
    return first_type(more...);
}
template <class X>
AnyVal any_operand(Type type, const X& x) {
  if constexpr (std::is_floating_point_v<X>)
    if (!is_float(type)) refuse_floating(type, x);
  if constexpr (std::is_arithmetic_v<X>)
    return AnyVal::number(type, x);
  else
    return x;
}

}  // namespace detail

// These are templates so that no Val converts implicitly to AnyVal to call them: Val has functions of its own.
#define LOCKSTEP_ANY1(word, floats, integers)               \
  template <detail::Any A>                                  \
  detail::AnyResult<floats> word(const A& a) {              \
    return detail::any_word<floats, integers>({AnyVal(a)}); \
  }
#define LOCKSTEP_ANY2(word, floats, integers)                                                                \
  template <class A, class B>                                                                                \
    requires detail::AnyPair<A, B>                                                                           \
  detail::AnyResult<floats> word(const A& a, const B& b) {                                                   \
    const Type type = detail::first_type(a, b);                                                              \
    return detail::any_word<floats, integers>({detail::any_operand(type, a), detail::any_operand(type, b)}); \
  }
#define LOCKSTEP_ANY3(word, floats, integers)                                                        \
  template <class A, class B, class C>                                                               \
    requires(detail::Any<A> || detail::Any<B> || detail::Any<C>)                                     \
  detail::AnyResult<floats> word(const A& a, const B& b, const C& c) {                               \
    const Type type = detail::first_type(a, b, c);                                                   \
    return detail::any_word<floats, integers>(                                                       \
        {detail::any_operand(type, a), detail::any_operand(type, b), detail::any_operand(type, c)}); \
  }
#define LOCKSTEP_WORD(word, arity, floats, integers) \
  LOCKSTEP_ANY##arity(word, ir::Op::floats, ir::Op::integers)
#define LOCKSTEP_MATH(name, arity, ...) LOCKSTEP_ANY##arity(name, ir::Op::name, ir::Op::none)
#define LOCKSTEP_INFIX(symbol, floats, integers)                   \
  LOCKSTEP_ANY2(operator symbol, ir::Op::floats, ir::Op::integers) \
  template <class B>                                               \
    requires detail::AnyOperand<B>                                 \
  AnyVar& operator symbol##=(AnyVar & a, const B & b) {            \
    return a = a symbol b;                                         \
  }
#define LOCKSTEP_PREFIX(symbol, floats, integers) \
  LOCKSTEP_ANY1(operator symbol, ir::Op::floats, ir::Op::integers)
#define LOCKSTEP_COMPARE(symbol, floats, integers, swapped)                                        \
  template <class A, class B>                                                                      \
    requires detail::AnyPair<A, B>                                                                 \
  Val<bool> operator symbol(const A & a, const B & b) {                                            \
    const Type type = detail::first_type(a, b);                                                    \
    const AnyVal x = detail::any_operand(type, a), y = detail::any_operand(type, b);               \
    return detail::any_word<ir::Op::floats, ir::Op::integers>({swapped ? y : x, swapped ? x : y}); \
  }
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_ANY1
#undef LOCKSTEP_ANY2
#undef LOCKSTEP_ANY3

/// a to an integer power, as powi of Val: by squaring up to |n| = 64, by pow beyond.
AnyVal powi(const AnyVal& a, detail::Whole<int> n);
/// To the nearest integer, halves away from zero.
AnyVal round(const AnyVal& a);
template <class L, class H>
  requires detail::AnyOperand<L> && detail::AnyOperand<H>
AnyVal clamp(const AnyVal& a, const L& low, const H& high) {
  return min(max(a, low), high);
}
/// x rounded before it is used: a product x is not contracted with a sum into an fma.
AnyVal rounded(const AnyVal& x);
template <class A, class B>
  requires detail::AnyPair<A, B>
AnyVal rounded_product(const A& a, const B& b) {
  return rounded(a * b);
}
/// `yes` if `condition` is true, otherwise `no`; both are evaluated.
template <class A, class B>
  requires detail::AnyPair<A, B>
AnyVal select(const AnyVal& condition, const A& yes, const B& no) {
  const Type type = detail::first_type(yes, no);
  const AnyVal x = detail::any_operand(type, yes), y = detail::any_operand(type, no);
  return detail::any_select(condition, x, y);
}
template <class To>
Val<To> cast(const AnyVal& a) {
  return a.convert(detail::kType<To>).template as<To>();
}
/// Asserts that all lanes of a group have the same value, so that a back end may compute it once.
AnyVal uniform(const AnyVal& a);
/// Sum, minimum or maximum over the lanes of the group along a balanced tree, as for Val.
inline AnyVal group_sum(const AnyVal& a) { return detail::any_reduce(ir::Reduction::add, a); }
inline AnyVal group_min(const AnyVal& a) { return detail::any_reduce(ir::Reduction::min, a); }
inline AnyVal group_max(const AnyVal& a) { return detail::any_reduce(ir::Reduction::max, a); }

/// An integer that is far from overflow: a coordinate, a count or an array index (i32), or an element offset
/// (kIndexType). Sums, differences and products are marked for the back ends as free of overflow. The result of one i32
/// operand and one offset is an offset.
class Index {
 public:
  Index() = default;  // empty
  Index(int constant);
  template <detail::HasValue X>
    requires std::same_as<detail::expr_t<X>, i32>
  Index(const X& value) : value_(value) {}
  /// Throws InputError unless the type is i32 or kIndexType.
  Index(const AnyVal& value);
  Index(const AnyVar& variable) : Index(AnyVal(variable)) {}
  operator AnyVal() const { return value_; }
  const AnyVal& value() const { return value_; }
  bool empty() const { return value_.empty(); }
  /// Converted to an element offset.
  Index offset() const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, const Index& b);
  friend Index operator+(const Index& a, int b) { return b == 0 ? a : a + Index(b); }
  friend Index operator-(const Index& a, int b) { return a + -b; }
  friend Index operator*(const Index& a, int b) { return a * Index(b); }
  friend Index operator+(int a, const Index& b) { return Index(a) + b; }
  friend Index operator-(int a, const Index& b) { return Index(a) - b; }
  friend Index operator*(int a, const Index& b) { return Index(a) * b; }
  /// Truncating; x / 0 and x % 0 are 0.
  friend Index operator/(const Index& a, const Index& b) { return Index(a.value_ / b.value_); }
  friend Index operator%(const Index& a, const Index& b) { return Index(a.value_ % b.value_); }
  friend Index min(const Index& a, const Index& b) { return Index(lockstep::min(a.value_, b.value_)); }
  friend Index max(const Index& a, const Index& b) { return Index(lockstep::max(a.value_, b.value_)); }
  friend Val<bool> operator==(const Index& a, const Index& b) { return a.value_ == b.value_; }
  friend Val<bool> operator!=(const Index& a, const Index& b) { return a.value_ != b.value_; }
  friend Val<bool> operator<(const Index& a, const Index& b) { return a.value_ < b.value_; }
  friend Val<bool> operator<=(const Index& a, const Index& b) { return a.value_ <= b.value_; }
  friend Val<bool> operator>(const Index& a, const Index& b) { return a.value_ > b.value_; }
  friend Val<bool> operator>=(const Index& a, const Index& b) { return a.value_ >= b.value_; }
  friend Index select(const Val<bool>& condition, const Index& yes, const Index& no) {
    return Index(lockstep::select(AnyVal(condition), yes.value_, no.value_));
  }
  /// max(0, min(a, n - 1)): a coordinate clamped to an axis of n cells. Fast if most lanes are inside.
  friend Index clamp_index(const Index& a, const Index& n);

 private:
  AnyVal value_;
};

namespace detail {
void for_index(const Index& begin, const Index& end, int step, const std::function<void(const Index&)>& body);
}
/// The same as for_ with values; the counter is an Index.
template <class A, class B, class Body>
  requires(std::same_as<A, Index> || std::same_as<B, Index>)
void for_(const A& begin, const B& end, detail::Whole<int> step, Body body,
          std::source_location where = std::source_location::current()) {
  detail::builder().at(where);
  detail::for_index(begin, end, step, [&](const Index& at) { body(at); });
}

/// Array of one lane or of a group whose type is known only during tracing. Its initial contents are undefined.
class AnyArray {
 public:
  Type type() const { return value_type(storage_); }
  int64_t count() const { return count_; }
  AnyVal load(const Index& at) const;
  /// Throws InputError if the value has another type.
  void store(const Index& at, const AnyVal& value) const;

 protected:
  AnyArray(bool shared, Storage storage, int64_t count);
  /// Number of the array in its kernel. Throws InputError while another kernel is traced.
  uint32_t array() const {
    made_.check("an array");
    return array_;
  }

 private:
  bool shared_;
  uint32_t array_;
  Storage storage_;
  int64_t count_;
  detail::OfTrace made_;
};
/// Array of one lane.
class AnyLocal : public AnyArray {
 public:
  AnyLocal(Storage storage, detail::Whole<int64_t> count) : AnyArray(false, storage, count) {}
};
/// Array shared by the lanes of a group. Groups kernels only.
class AnyShared : public AnyArray {
 public:
  AnyShared(Storage storage, detail::Whole<int64_t> count) : AnyArray(true, storage, count) {}
  /// Adds to an element of i32 or u32; returns the old value.
  AnyVal atomic_add(const Index& at, const AnyVal& value) const;
  uint32_t id() const { return array(); }
};

/// A buffer whose element type and rank are known only during tracing. The slowest coordinate comes first. Coordinates
/// must be inside the buffer.
class AnyGrid : public detail::BufferRef {
 public:
  Storage storage() const { return storage_; }
  /// Type of a loaded value: f32 for f16 and bf16, u32 for u8.
  Type type() const { return value_type(storage_); }
  int rank() const { return rank_; }

  AnyVal load(std::initializer_list<Index> at) const { return load_at(place(at)); }
  AnyVal load_as(Type type, std::initializer_list<Index> at) const { return load(at).convert(type); }
  /// Loads by element offset, for kernels whose buffers are contiguous and have the same layout.
  AnyVal load_at(const Index& offset) const;
  /// Converts the value to the buffer's type.
  void store(std::initializer_list<Index> at, const AnyVal& value) const { store_at(place(at), value); }
  void store_at(const Index& offset, const AnyVal& value) const;
  /// Element offset of coordinates.
  Index place(std::initializer_list<Index> at) const;
  /// Starts an asynchronous copy of `lanes` elements (4, 8 or 16 bytes in all) from an element offset to shared[to].
  /// async_commit() and async_wait() complete it.
  void copy_async(const AnyShared& shared, const Index& to, const Index& offset, int lanes = 1) const;

  /// Atomic operations on i32 and u32 at an element offset; each returns the old value.
  AnyVal atomic_add(const Index& offset, const AnyVal& v) const {
    return atomic(ir::AtomicOp::add, offset, v);
  }
  AnyVal atomic_min(const Index& offset, const AnyVal& v) const {
    return atomic(ir::AtomicOp::min, offset, v);
  }
  AnyVal atomic_max(const Index& offset, const AnyVal& v) const {
    return atomic(ir::AtomicOp::max, offset, v);
  }
  AnyVal atomic_or(const Index& offset, const AnyVal& v) const {
    return atomic(ir::AtomicOp::or_, offset, v);
  }
  AnyVal atomic_and(const Index& offset, const AnyVal& v) const {
    return atomic(ir::AtomicOp::and_, offset, v);
  }

  /// The same buffer with accesses that bypass the caches, for data that is used once.
  AnyGrid streaming(bool on = true) const;

 private:
  friend class Parameters;
  AnyGrid(uint32_t buffer, Storage storage, int rank) : BufferRef(buffer, rank), storage_(storage) {}
  AnyVal atomic(ir::AtomicOp op, const Index& offset, const AnyVal& value) const;
  Storage storage_;
  uint8_t flags_ = 0;
};

/// The parameters of the kernel that is being traced. Names consist of letters, digits and underscores. Throws
/// InputError for other names and for a name that is declared twice.
class Parameters {
 public:
  explicit Parameters(ir::Builder& builder) : builder_(builder) {}
  Parameters(const Parameters&) = delete;

  using Where = std::source_location;
  AnyGrid read(const std::string& name, Storage storage, int rank, const Where& where = Where::current()) {
    return {declare(name, storage, rank, ir::Access::read, where), storage, rank};
  }
  AnyGrid write(const std::string& name, Storage storage, int rank, const Where& where = Where::current()) {
    return {declare(name, storage, rank, ir::Access::write, where), storage, rank};
  }
  AnyGrid read_write(const std::string& name, Storage storage, int rank,
                     const Where& where = Where::current()) {
    return {declare(name, storage, rank, ir::Access::read_write, where), storage, rank};
  }
  AnyVal scalar(const std::string& name, Type type, const Where& where = Where::current());

  /// The same with types known at compile time.
  template <detail::Stored E, int R>
  Grid<E, R> read(const std::string& name, const Where& where = Where::current()) {
    return Grid<E, R>(declare(name, detail::kStorage<E>, R, ir::Access::read, where));
  }
  template <detail::Stored E, int R>
  Out<E, R> write(const std::string& name, const Where& where = Where::current()) {
    return Out<E, R>(declare(name, detail::kStorage<E>, R, ir::Access::write, where));
  }
  template <detail::Stored E, int R>
  InOut<E, R> read_write(const std::string& name, const Where& where = Where::current()) {
    return InOut<E, R>(declare(name, detail::kStorage<E>, R, ir::Access::read_write, where));
  }
  template <class T>
  Val<T> scalar(const std::string& name, const Where& where = Where::current()) {
    return scalar(name, detail::kType<T>, where).template as<T>();
  }
  /// A registered struct (structure.hpp).
  template <detail::Structure S>
  Param<S> structure(const std::string& name, const Where& where = Where::current()) {
    check_name(name);
    builder_.at(where);
    return Param<S>(detail::bind_struct<S>(builder_, name));
  }

 private:
  uint32_t declare(const std::string& name, Storage storage, int rank, ir::Access access, const Where& where);
  void check_name(const std::string& name) const;
  ir::Builder& builder_;
};

namespace detail {
template <class Body, class First>
First place_of(void (Body::*)(First, Parameters&) const);
template <class L>
using NamedPlace = decltype(place_of(&L::operator()));
}  // namespace detail

/// Traces `body`, whose arguments are a position (At or Group) and Parameters&.
template <class L>
  requires requires { typename detail::NamedPlace<L>; }
Kernel kernel(std::string name, L body, KernelOptions options = {},
              std::source_location where = std::source_location::current()) {
  using Place = detail::NamedPlace<L>;
  using Domain = detail::Domain<Place>;
  const auto trace = [&](ir::Builder& b) {
    Parameters parameters(b);
    body(Place(), parameters);
  };
  return Kernel::trace(std::move(name), Domain::kKind, Domain::kRank, options, trace, where);
}

}  // namespace lockstep
