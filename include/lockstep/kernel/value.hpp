// Values of the kernel language: Val<T> (an immutable value of a lane), Var<T> (a mutable one) and their
// operators. They exist while a kernel is traced (kernel.hpp); host loops and `if constexpr` around them run
// at trace time.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "lockstep/ir/builder.hpp"
#include "lockstep/types.hpp"

namespace lockstep {

namespace detail {

/// The builder of the kernel that this thread traces now. Throws InputError outside of a trace.
ir::Builder& builder();
/// Makes `builder` the current one for a scope.
class TraceScope {
 public:
  explicit TraceScope(ir::Builder& builder);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  ir::Builder* outer_;
};

template <class T>
inline constexpr Type kType = Type::none;
template <>
inline constexpr Type kType<bool> = Type::boolean;
template <>
inline constexpr Type kType<f32> = Type::f32;
template <>
inline constexpr Type kType<f64> = Type::f64;
template <>
inline constexpr Type kType<i32> = Type::i32;
template <>
inline constexpr Type kType<u32> = Type::u32;
template <>
inline constexpr Type kType<i64> = Type::i64;
template <>
inline constexpr Type kType<u64> = Type::u64;

/// Storage of an element type that kernels load; any other type does not compile.
template <Element E>
  requires(is_device_storage(kStorageOf<E>))
inline constexpr Storage kStorage = kStorageOf<E>;

/// Value type of an element: f16 and bf16 load as f32, u8 as u32.
template <class E>
struct ValueOf {
  using type = E;
};
template <>
struct ValueOf<f16> {
  using type = f32;
};
template <>
struct ValueOf<bf16> {
  using type = f32;
};
template <>
struct ValueOf<uint8_t> {
  using type = u32;
};
template <class E>
using value_of = typename ValueOf<E>::type;

template <class T>
uint64_t bits_of(T v) {
  if constexpr (std::same_as<T, f32>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::same_as<T, f64>)
    return std::bit_cast<uint64_t>(v);
  else if constexpr (sizeof(T) == 4)
    return uint32_t(v);
  else
    return uint64_t(v);
}

}  // namespace detail

/// A value of one lane.
template <class T>
class Val {
 public:
  using value_type = T;
  /// A constant.
  template <class C>
    requires std::is_arithmetic_v<C>
  Val(C constant)
      : id_(detail::builder().constant(detail::kType<T>, detail::bits_of<T>(static_cast<T>(constant)))) {}
  static Val from(ir::Id id) { return Val(id, 0); }
  ir::Id id() const { return id_; }

  explicit operator bool() const = delete;  // a lane's value is not known at trace time: use if_ or select

 private:
  Val(ir::Id id, int) : id_(id) {}
  ir::Id id_;
};

/// A mutable variable of one lane. Reading it gives its value at that moment.
template <class T>
class Var {
 public:
  using value_type = T;
  Var(Val<T> initial) : id_(detail::builder().variable(initial.id())) {}
  template <class C>
    requires std::is_arithmetic_v<C>
  Var(C constant) : Var(Val<T>(constant)) {}
  Var(const Var& other) : Var(Val<T>(other)) {}
  Var& operator=(const Var& other) { return *this = Val<T>(other); }
  Var& operator=(Val<T> value) {
    detail::builder().set(id_, value.id());
    return *this;
  }
  template <class C>
    requires std::is_arithmetic_v<C>
  Var& operator=(C constant) {
    return *this = Val<T>(constant);
  }
  operator Val<T>() const { return Val<T>::from(detail::builder().get(id_)); }
  ir::Id id() const { return id_; }

 private:
  ir::Id id_;
};

namespace detail {

template <class X>
concept HasValue = requires { typename std::remove_cvref_t<X>::value_type; } &&
                   std::convertible_to<X, Val<typename std::remove_cvref_t<X>::value_type>>;
template <class X>
using expr_t = typename std::remove_cvref_t<X>::value_type;

template <class A, class B>
struct Common {};
template <HasValue A, HasValue B>
  requires std::same_as<expr_t<A>, expr_t<B>>
struct Common<A, B> {
  using type = expr_t<A>;
};
template <HasValue A, class B>
  requires std::is_arithmetic_v<std::remove_cvref_t<B>>
struct Common<A, B> {
  using type = expr_t<A>;
};
template <class A, HasValue B>
  requires std::is_arithmetic_v<std::remove_cvref_t<A>>
struct Common<A, B> {
  using type = expr_t<B>;
};
/// Type that two operands share: both kernel expressions of one type, or one of them a C++ number.
template <class A, class B>
using common_t = typename Common<A, B>::type;

template <class T, class X>
ir::Id id_of(const X& x) {
  if constexpr (std::is_arithmetic_v<X>)
    return Val<T>(x).id();
  else
    return static_cast<Val<T>>(x).id();
}

template <class R, class T, class A, class B>
Val<R> binary(ir::Op f, ir::Op i, const A& a, const B& b, bool swap = false) {
  const ir::Id x = id_of<T>(a), y = id_of<T>(b);
  const ir::Op op = std::is_floating_point_v<T> ? f : i;
  return Val<R>::from(swap ? builder().op(op, {y, x}) : builder().op(op, {x, y}));
}

}  // namespace detail

#define LOCKSTEP_ARITHMETIC(symbol, float_op, int_op)                        \
  template <class A, class B>                                                \
  Val<detail::common_t<A, B>> operator symbol(const A & a, const B & b) {    \
    using T = detail::common_t<A, B>;                                        \
    return detail::binary<T, T>(ir::Op::float_op, ir::Op::int_op, a, b);     \
  }                                                                          \
  template <class T, class B>                                                \
    requires requires { typename detail::common_t<Var<T>, B>; }              \
  Var<T>& operator symbol##=(Var<T>& a, const B & b) {                       \
    return a = detail::binary<T, T>(ir::Op::float_op, ir::Op::int_op, a, b); \
  }
LOCKSTEP_ARITHMETIC(+, fadd, iadd)
LOCKSTEP_ARITHMETIC(-, fsub, isub)
LOCKSTEP_ARITHMETIC(*, fmul, imul)
LOCKSTEP_ARITHMETIC(/, fdiv, idiv)
LOCKSTEP_ARITHMETIC(%, count_, irem)
LOCKSTEP_ARITHMETIC(&, count_, band)
LOCKSTEP_ARITHMETIC(|, count_, bor)
LOCKSTEP_ARITHMETIC(^, count_, bxor)
LOCKSTEP_ARITHMETIC(<<, count_, shl)
LOCKSTEP_ARITHMETIC(>>, count_, shr)
#undef LOCKSTEP_ARITHMETIC

#define LOCKSTEP_COMPARISON(symbol, float_op, int_op, swap)                                            \
  template <class A, class B>                                                                          \
  Val<bool> operator symbol(const A & a, const B & b)                                                  \
    requires requires { typename detail::common_t<A, B>; }                                             \
  {                                                                                                    \
    return detail::binary<bool, detail::common_t<A, B>>(ir::Op::float_op, ir::Op::int_op, a, b, swap); \
  }
LOCKSTEP_COMPARISON(==, feq, ieq, false)
LOCKSTEP_COMPARISON(!=, fne, ine, false)
LOCKSTEP_COMPARISON(<, flt, ilt, false)
LOCKSTEP_COMPARISON(<=, fle, ile, false)
LOCKSTEP_COMPARISON(>, flt, ilt, true)
LOCKSTEP_COMPARISON(>=, fle, ile, true)
#undef LOCKSTEP_COMPARISON

/// Both sides are evaluated: there is no short circuit. Use nested if_ where the right side must not run.
template <class A, class B>
  requires std::same_as<detail::common_t<A, B>, bool>
Val<bool> operator&&(const A& a, const B& b) {
  return a & b;
}
template <class A, class B>
  requires std::same_as<detail::common_t<A, B>, bool>
Val<bool> operator||(const A& a, const B& b) {
  return a | b;
}

template <detail::HasValue A>
Val<detail::expr_t<A>> operator-(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(
      detail::builder().op(std::is_floating_point_v<T> ? ir::Op::fneg : ir::Op::ineg, {detail::id_of<T>(a)}));
}
template <detail::HasValue A>
Val<detail::expr_t<A>> operator~(const A& a) {
  using T = detail::expr_t<A>;
  return Val<T>::from(detail::builder().op(ir::Op::bnot, {detail::id_of<T>(a)}));
}
template <detail::HasValue A>
  requires std::same_as<detail::expr_t<A>, bool>
Val<bool> operator!(const A& a) {
  return ~a;
}

/// Conversion between number types. Float to integer truncates and saturates, NaN gives 0; bool gives 0 or 1.
template <class To, detail::HasValue A>
Val<To> cast(const A& a) {
  return Val<To>::from(detail::builder().convert(detail::kType<To>, detail::id_of<detail::expr_t<A>>(a)));
}
/// The same bits as another type of the same size.
template <class To, detail::HasValue A>
Val<To> bitcast(const A& a) {
  return Val<To>::from(detail::builder().bitcast(detail::kType<To>, detail::id_of<detail::expr_t<A>>(a)));
}
/// `yes` where `condition`, else `no`; both are evaluated.
template <class C, class A, class B>
  requires std::same_as<detail::expr_t<C>, bool>
Val<detail::common_t<A, B>> select(const C& condition, const A& yes, const B& no) {
  using T = detail::common_t<A, B>;
  return Val<T>::from(
      detail::builder().select(detail::id_of<bool>(condition), detail::id_of<T>(yes), detail::id_of<T>(no)));
}

}  // namespace lockstep
