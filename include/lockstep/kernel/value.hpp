// Values of the kernel language: Val<T> (an immutable value of a lane), Var<T> (a mutable one) and their operators.
// They exist while a kernel is traced (kernel.hpp); host loops and `if constexpr` around them run during tracing.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <source_location>
#include <type_traits>
#include <utility>

#include "lockstep/ir/builder.hpp"
#include "lockstep/types.hpp"

namespace lockstep {

namespace detail {

/// The builder of the kernel that this thread is tracing. Throws InputError outside a trace.
ir::Builder& builder();
/// Makes `builder` the current one for a scope.
class TraceScope {
 public:
  explicit TraceScope(ir::Builder& builder);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  ir::Builder* outer_;
  uint32_t outer_trace_;
};

/// The trace that created a handle of the language. Numbers of arrays, buffers and values are valid in their own trace
/// only.
class OfTrace {
 public:
  OfTrace();
  /// Throws InputError, naming `what`, while another kernel or function is traced.
  void check(const char* what) const;

 private:
  uint32_t trace_;
};

/// Base of the C++ variables of the language: the number of a value in the trace that created it. A value is valid in
/// that trace only. A C++ variable may be assigned only in the block where it was created, because inside an if_ or a
/// loop the assignment would affect the rest of the trace instead of the branch or the iterations.
class Traced {
 public:
  Traced() = default;  // empty
  explicit Traced(ir::Id id);
  Traced(const Traced& other);
  /// Throws InputError inside a block nested in that of this variable.
  Traced& operator=(const Traced& other);
  /// Throws InputError while another kernel is traced, or if there is no value.
  ir::Id id() const;
  bool empty() const { return id_ == ir::kNone; }

 private:
  ir::Id id_ = ir::kNone;
  uint32_t trace_ = 0, block_ = 0;
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

/// C++ types of values: bool, f32, f64, i32, u32, i64, u64.
template <class T>
concept Value = kType<T> != Type::none;

/// C++ types of elements that kernels load.
template <class E>
concept Stored = Element<E> && is_device_storage(kStorageOf<E>);
/// Storage of an element type that kernels load; any other type does not compile.
template <Stored E>
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

/// True if T can represent a number: integers exactly; numbers with a fraction are rounded to a float as in C++, but
/// neither truncated to an integer nor converted to an infinity.
template <class T, class C>
constexpr bool holds(C number) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::same_as<T, C> || std::same_as<C, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<C>) {
    const bool finite = number - number == 0;
    return !finite || sizeof(T) >= sizeof(C) || (number <= C(Limits::max()) && number >= C(Limits::lowest()));
  } else if constexpr (std::is_floating_point_v<T>) {
    const uint64_t size = number < 0 ? 0 - uint64_t(number) : uint64_t(number);
    return size == 0 || std::bit_width(size) - std::countr_zero(size) <= Limits::digits;
  } else if constexpr (std::is_floating_point_v<C>) {
    constexpr C kEnd = C(Limits::max() / 2 + 1) * 2;
    return number >= C(Limits::min()) && number < kEnd && number == C(T(number));
  } else {
    return number < 0 ? std::is_signed_v<T> && int64_t(number) >= int64_t(Limits::min())
                      : uint64_t(number) <= uint64_t(Limits::max());
  }
}
/// Throws InputError naming the kernel that is being traced, the number and the type.
[[noreturn]] void refuse_number(Type type, double number);
[[noreturn]] void refuse_number(Type type, int64_t number);
[[noreturn]] void refuse_number(Type type, uint64_t number);
/// Throws InputError: a floating-point number with integers, which C++ computes in floating point.
[[noreturn]] void refuse_floating(Type type, double number);
/// Throws InputError: a shift by a number of bits that the type does not have.
[[noreturn]] void refuse_shift(Type type, int64_t count);

/// A C++ number as an operand of type T.
template <class T, class C>
T operand(C number) {
  using Widest = std::conditional_t<std::is_floating_point_v<C>, double,
                                    std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>>;
  if (!holds<T>(number)) refuse_number(kType<T>, Widest(number));
  return static_cast<T>(number);
}
/// A C++ number combined with an operand of type T. The same as `operand`, except that a floating-point number is not
/// converted to an integer, because in C++ the operation would be in floating point (i / 2.0).
template <class T, class C>
T number_beside(C number) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) refuse_floating(kType<T>, number);
  return operand<T>(number);
}

}  // namespace detail

/// A value of one lane. Its C++ variable may be assigned again in the block where it was created. Use a Var for
/// variables that if_ and loops change.
template <class T>
class Val {
  static_assert(detail::Value<T>, "a value is bool, f32, f64, i32, u32, i64 or u64");

 public:
  using value_type = T;
  /// A constant. Throws InputError if T cannot represent the number (0.5 or 5000000000 as an i32, 16777217 as an
  /// f32); 0.1 as an f32 is rounded.
  template <class C>
    requires std::is_arithmetic_v<C>
  Val(C constant)
      : traced_(
            detail::builder().constant(detail::kType<T>, detail::bits_of<T>(detail::operand<T>(constant)))) {}
  Val(const Val&) = default;
  Val& operator=(const Val&) & =  // lvalues only: an element of a read-only buffer cannot be assigned
      default;
  static Val from(ir::Id id) { return Val(detail::Traced(id)); }
  ir::Id id() const { return traced_.id(); }

  explicit operator bool() const = delete;  // not known while tracing: use if_, select or sort(array, less)

 private:
  explicit Val(const detail::Traced& traced) : traced_(traced) {}
  detail::Traced traced_;
};

namespace detail {
/// A C++ number. Operators take it by value, so that a local `constexpr` needs no capture.
template <class C>
concept Number = std::is_arithmetic_v<C>;
/// An integer of the host that is known during tracing: a step, a shift, a size. Throws InputError for a fraction and
/// for numbers that I cannot represent. Passed by value, as Number is.
template <class I>
class Whole {
 public:
  template <class C>
    requires std::convertible_to<C, I>
  Whole(C number) : number_(of(number)) {}
  operator I() const { return number_; }

 private:
  template <class C>
  static I of(const C& number) {
    if constexpr (Number<C>)
      return operand<I>(number);
    else
      return static_cast<I>(number);
  }
  I number_;
};
/// Anything that converts to a value, such as a Param, a coordinate or an element, but neither a value nor a number.
template <class X, class T>
concept Gives = std::convertible_to<const X&, T> && !std::same_as<X, T> && !Number<X>;
}  // namespace detail

/// A mutable variable of one lane. Reading it gives its current value. A copy, also by a C++ move, is a separate
/// variable, so std::swap, std::exchange and the standard algorithms work as for T.
template <class T>
class Var {
 public:
  using value_type = T;
  Var(Val<T> initial, std::source_location where = std::source_location::current())
      : traced_(start(initial, where)) {}
  template <detail::Number C>
  Var(C initial, std::source_location where = std::source_location::current())
      : traced_(start(initial, where)) {}
  template <detail::Gives<Val<T>> X>
    requires(!std::same_as<X, Var>)
  Var(const X& initial, std::source_location where = std::source_location::current())
      : traced_(start(initial, where)) {}
  Var(const Var& other) : Var(Val<T>(other)) {}
  Var& operator=(const Var& other) { return *this = Val<T>(other); }
  Var& operator=(Val<T> value) {
    detail::builder().set(id(), value.id());
    return *this;
  }
  template <detail::Number C>
  Var& operator=(C value) {
    return *this = Val<T>(value);
  }
  template <detail::Gives<Val<T>> X>
    requires(!std::same_as<X, Var>)
  Var& operator=(const X& value) {
    return *this = static_cast<Val<T>>(value);
  }
  operator Val<T>() const { return Val<T>::from(detail::builder().get(id())); }
  ir::Id id() const { return traced_.id(); }
  Var& operator++()
    requires(!std::same_as<T, bool>)
  {
    return *this += 1;
  }
  Var& operator--()
    requires(!std::same_as<T, bool>)
  {
    return *this -= 1;
  }

  explicit operator bool() const = delete;  // not known while tracing: use if_, select or sort(array, less)

 private:
  static detail::Traced start(const Val<T>& initial, const std::source_location& where) {
    detail::builder().at(where);
    return detail::Traced(detail::builder().variable(initial.id()));
  }
  detail::Traced traced_;
};

namespace detail {

/// A value to be assigned, with the source line of the assignment.
template <class T>
class Located {
 public:
  template <Number C>
  Located(C value, std::source_location where = std::source_location::current()) : value_(value) {
    builder().at(where);
  }
  template <class X>
    requires(std::convertible_to<const X&, Val<T>> && !Number<X>)
  Located(const X& value, std::source_location where = std::source_location::current()) : value_(value) {
    builder().at(where);
  }
  const Val<T>& value() const { return value_; }

 private:
  Val<T> value_;
};

template <class X>
concept HasValue = Value<typename std::remove_cvref_t<X>::value_type> &&
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

template <class A, class B, class C>
struct Common3 : Common<A, B> {};
template <class A, class B, HasValue C>
struct Common3<A, B, C> {
  using type = expr_t<C>;
};
template <class A, class B, class C>
using common3_t = typename Common3<A, B, C>::type;

template <class T, class X>
ir::Id id_of(const X& x) {
  if constexpr (std::is_arithmetic_v<X>)
    return Val<T>(number_beside<T>(x)).id();
  else
    return static_cast<Val<T>>(x).id();
}

/// The operation that a function name denotes on operands of type T; `none` if it does not accept them.
template <class T>
constexpr ir::Op op_on(ir::Op floats, ir::Op integers) {
  const ir::Op op = std::is_floating_point_v<T> ? floats : integers;
  return ir::takes(op, kType<T>) ? op : ir::Op::none;
}
template <class T, ir::Op kFloats, ir::Op kIntegers>
concept Takes = op_on<T>(kFloats, kIntegers) != ir::Op::none;
template <class T, ir::Op kFloats, ir::Op kIntegers>
using Result = Val<
    std::conditional_t<ir::result_type(op_on<T>(kFloats, kIntegers), kType<T>) == Type::boolean, bool, T>>;

/// Throws InputError for a shift by a C++ number that is negative or at least the width of the type. Traced shift counts
/// are taken modulo the width.
template <ir::Op kOp, class T, class B>
void check_shift(const B& count) {
  if constexpr (std::is_arithmetic_v<B> && (kOp == ir::Op::shl || kOp == ir::Op::shr))
    if (int64_t(count) < 0 || int64_t(count) >= int64_t(8 * sizeof(T)))
      refuse_shift(kType<T>, int64_t(count));
}

template <ir::Op kFloats, ir::Op kIntegers, class T>
auto apply(std::initializer_list<ir::Id> operands) {
  return Result<T, kFloats, kIntegers>::from(builder().op(op_on<T>(kFloats, kIntegers), operands));
}

}  // namespace detail

// The rows of ir/ops.def that define the syntax of kernels become functions of one, two or three operands.
#define LOCKSTEP_KERNEL_WORD1(word, floats, integers)                    \
  template <detail::HasValue A>                                          \
    requires detail::Takes<detail::expr_t<A>, floats, integers>          \
  detail::Result<detail::expr_t<A>, floats, integers> word(const A& a) { \
    using T = detail::expr_t<A>;                                         \
    return detail::apply<floats, integers, T>({detail::id_of<T>(a)});    \
  }
// One overload for each operand that may be a C++ number (see detail::Number).
#define LOCKSTEP_KERNEL_WORD2(word, floats, integers)                                      \
  LOCKSTEP_KERNEL_WORD2_OF(word, floats, integers, HasValue, const A&, HasValue, const B&) \
  LOCKSTEP_KERNEL_WORD2_OF(word, floats, integers, HasValue, const A&, Number, B)          \
  LOCKSTEP_KERNEL_WORD2_OF(word, floats, integers, Number, A, HasValue, const B&)
#define LOCKSTEP_KERNEL_WORD2_OF(word, floats, integers, KindA, TakenA, KindB, TakenB) \
  template <detail::KindA A, detail::KindB B>                                          \
    requires detail::Takes<detail::common_t<A, B>, floats, integers>                   \
  detail::Result<detail::common_t<A, B>, floats, integers> word(TakenA a, TakenB b) {  \
    using T = detail::common_t<A, B>;                                                  \
    const ir::Id x = detail::id_of<T>(a), y = detail::id_of<T>(b);                     \
    detail::check_shift<integers, T>(b);                                               \
    return detail::apply<floats, integers, T>({x, y});                                 \
  }
#define LOCKSTEP_KERNEL_WORD3(word, floats, integers)                                                 \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, HasValue, const A&, HasValue, const B&, HasValue,  \
                           const C&)                                                                  \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, HasValue, const A&, HasValue, const B&, Number, C) \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, HasValue, const A&, Number, B, HasValue, const C&) \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, HasValue, const A&, Number, B, Number, C)          \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, Number, A, HasValue, const B&, HasValue, const C&) \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, Number, A, HasValue, const B&, Number, C)          \
  LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, Number, A, Number, B, HasValue, const C&)
#define LOCKSTEP_KERNEL_WORD3_OF(word, floats, integers, KindA, TakenA, KindB, TakenB, KindC, TakenC) \
  template <detail::KindA A, detail::KindB B, detail::KindC C>                                        \
    requires detail::Takes<detail::common3_t<A, B, C>, floats, integers>                              \
  detail::Result<detail::common3_t<A, B, C>, floats, integers> word(TakenA a, TakenB b, TakenC c) {   \
    using T = detail::common3_t<A, B, C>;                                                             \
    const ir::Id x = detail::id_of<T>(a), y = detail::id_of<T>(b), z = detail::id_of<T>(c);           \
    return detail::apply<floats, integers, T>({x, y, z});                                             \
  }

#define LOCKSTEP_INFIX(symbol, floats, integers)                                          \
  LOCKSTEP_KERNEL_WORD2(operator symbol, ir::Op::floats, ir::Op::integers)                \
  template <class T, detail::HasValue B>                                                  \
    requires detail::Takes<detail::common_t<Var<T>, B>, ir::Op::floats, ir::Op::integers> \
  Var<T>& operator symbol##=(Var<T>& a, const B & b) {                                    \
    return a = a symbol b;                                                                \
  }                                                                                       \
  template <class T, detail::Number B>                                                    \
    requires detail::Takes<T, ir::Op::floats, ir::Op::integers>                           \
  Var<T>& operator symbol##=(Var<T>& a, B b) {                                            \
    return a = a symbol b;                                                                \
  }
#define LOCKSTEP_PREFIX(symbol, floats, integers) \
  LOCKSTEP_KERNEL_WORD1(operator symbol, ir::Op::floats, ir::Op::integers)
#define LOCKSTEP_COMPARE(symbol, floats, integers, swapped)                                      \
  LOCKSTEP_COMPARE_OF(symbol, floats, integers, swapped, HasValue, const A&, HasValue, const B&) \
  LOCKSTEP_COMPARE_OF(symbol, floats, integers, swapped, HasValue, const A&, Number, B)          \
  LOCKSTEP_COMPARE_OF(symbol, floats, integers, swapped, Number, A, HasValue, const B&)
#define LOCKSTEP_COMPARE_OF(symbol, floats, integers, swapped, KindA, TakenA, KindB, TakenB)       \
  template <detail::KindA A, detail::KindB B>                                                      \
    requires detail::Takes<detail::common_t<A, B>, ir::Op::floats, ir::Op::integers>               \
  Val<bool> operator symbol(TakenA a, TakenB b) {                                                  \
    using T = detail::common_t<A, B>;                                                              \
    const ir::Id x = detail::id_of<T>(a), y = detail::id_of<T>(b);                                 \
    return detail::apply<ir::Op::floats, ir::Op::integers, T>({swapped ? y : x, swapped ? x : y}); \
  }
#include "lockstep/ir/ops.def"
#undef LOCKSTEP_COMPARE_OF

/// Both operands are always evaluated. Use a nested if_ for an operand that must be evaluated conditionally.
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
  requires std::same_as<detail::expr_t<A>, bool>
Val<bool> operator!(const A& a) {
  return detail::apply<ir::Op::none, ir::Op::bnot, bool>({detail::id_of<bool>(a)});
}
template <detail::HasValue A>
  requires detail::Takes<detail::expr_t<A>, ir::Op::none, ir::Op::bnot> &&
               std::same_as<detail::expr_t<A>, bool>
Val<bool> operator~(const A&) = delete;  // in C++, ~true is -2: write !a

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
/// `yes` if `condition` is true, otherwise `no`; both are evaluated.
#define LOCKSTEP_SELECT(KindA, TakenA, KindB, TakenB)                                                   \
  template <class C, detail::KindA A, detail::KindB B>                                                  \
    requires std::same_as<detail::expr_t<C>, bool>                                                      \
  Val<detail::common_t<A, B>> select(const C& condition, TakenA yes, TakenB no) {                       \
    using T = detail::common_t<A, B>;                                                                   \
    return Val<T>::from(detail::builder().select(detail::id_of<bool>(condition), detail::id_of<T>(yes), \
                                                 detail::id_of<T>(no)));                                \
  }
LOCKSTEP_SELECT(HasValue, const A&, HasValue, const B&)
LOCKSTEP_SELECT(HasValue, const A&, Number, B)
LOCKSTEP_SELECT(Number, A, HasValue, const B&)
#undef LOCKSTEP_SELECT
/// A choice between two C++ numbers of one type: f32 for `select(c, 1.0f, 0.0f)`, i32 for `select(c, 1, 0)`.
template <class C, detail::Value A>
  requires std::same_as<detail::expr_t<C>, bool>
Val<A> select(const C& condition, A yes, A no) {
  return Val<A>::from(
      detail::builder().select(detail::id_of<bool>(condition), detail::id_of<A>(yes), detail::id_of<A>(no)));
}

/// x rounded before it is used: a product x is not contracted with a sum into an fma.
template <detail::HasValue A>
Val<detail::expr_t<A>> rounded(const A& x) {
  using T = detail::expr_t<A>;
  static_assert(std::is_floating_point_v<T>, "rounded(x) of an f32 or f64");
  return Val<T>::from(detail::builder().keep(ir::Op::rounded, detail::id_of<T>(x)));
}

namespace detail {

/// A coordinate or an array index: a C++ number, or anything that converts to Val<i32>, which id() reads.
class Coord {
 public:
  template <Number C>
  Coord(C number) : number_(number_beside<i32>(number)) {}
  template <class X>
    requires(std::convertible_to<const X&, Val<i32>> && !Number<X>)
  Coord(const X& x)
      : from_(&x), read_([](const void* from) { return id_of<i32>(*static_cast<const X*>(from)); }) {}
  ir::Id id() const { return from_ ? read_(from_) : Val<i32>(number_).id(); }

 private:
  const void* from_ = nullptr;
  ir::Id (*read_)(const void*) = nullptr;
  i32 number_ = 0;
};

}  // namespace detail

}  // namespace lockstep
