// The meaning of each operation on the host: what the interpreter executes and the constant folder computes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/numbers/half.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::ir::meaning {

// ── integers ──
template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr int kBits = int(sizeof(T) * 8);

template <class T>
constexpr T wrap_add(T a, T b) {
  return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
constexpr T wrap_sub(T a, T b) {
  return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
constexpr T wrap_mul(T a, T b) {
  return T(Unsigned<T>(a) * Unsigned<T>(b));
}
template <class T>
constexpr T wrap_abs(T a) {
  return a < 0 ? wrap_sub(T(0), a) : a;
}
/// Truncating; 0 where b = 0; the least value divided by -1 gives itself.
template <class T>
constexpr T safe_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return wrap_sub(T(0), a);
  return a / b;
}
/// Sign of the dividend; 0 where b = 0.
template <class T>
constexpr T safe_rem(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
}
template <class T>
constexpr T mul_high(T a, T b) {
  __extension__ using Wide = unsigned __int128;
  return T(Wide(Unsigned<T>(a)) * Wide(Unsigned<T>(b)) >> kBits<T>);
}
template <class T>
constexpr T bit_not(T a) {
  if constexpr (std::is_same_v<T, bool>)
    return !a;
  else
    return T(~a);
}
template <class T>
constexpr T shift_left(T a, T b) {
  return T(Unsigned<T>(a) << (Unsigned<T>(b) & (kBits<T> - 1)));
}
template <class T>
constexpr T shift_right(T a, T b) {
  return T(a >> (Unsigned<T>(b) & (kBits<T> - 1)));
}
template <class T>
constexpr T pop_count(T a) {
  return T(std::popcount(Unsigned<T>(a)));
}
template <class T>
constexpr T leading_zeros(T a) {
  return T(std::countl_zero(Unsigned<T>(a)));
}
template <class T>
constexpr T trailing_zeros(T a) {
  return T(std::countr_zero(Unsigned<T>(a)));
}

// ── one function per row: op_fadd(a, b, c) … ──
#define LOCKSTEP_OP(name, arity, domain, result, meaning, ...)                              \
  template <class T>                                                                        \
  inline auto op_##name([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { \
    return meaning;                                                                         \
  }
#include "lockstep/ir/ops.def"

// ── values as bits: 32-bit types and bool in the low bits, zeros above ──
template <class T>
constexpr T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(uint32_t(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else
    return T(bits);
}
template <class T>
constexpr uint64_t to_bits(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else if constexpr (std::is_same_v<T, bool>)
    return v;
  else
    return uint64_t(Unsigned<T>(v));
}

// ── conversions ──
/// Float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to float rounds to
/// nearest even.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    constexpr From above =
        From(std::numeric_limits<To>::max() / 2 + 1) * 2;  // first value above the range; exact
    if (v != v) return 0;
    if (v >= above) return std::numeric_limits<To>::max();
    if (v < From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return To(v);
  } else {
    return To(v);
  }
}

/// Calls f with a value of the C++ type of `type`.
template <class F>
auto with_type(Type type, F f) {
  switch (type) {
    case Type::boolean: return f(bool());
    case Type::i32: return f(int32_t());
    case Type::u32: return f(uint32_t());
    case Type::i64: return f(int64_t());
    case Type::u64: return f(uint64_t());
    case Type::f64: return f(double());
    default: return f(float());
  }
}

// ── evaluation by operation number ──
/// Value of an elementary row, select, convert or bitcast for operands given as bits. `operand` is the type
/// of the operands (of the values for select), `result` that of the result.
uint64_t evaluate(Op op, Type operand, Type result, const uint64_t* args);

}  // namespace lockstep::ir::meaning
