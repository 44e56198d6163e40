// Host<T>: a number on the host with the operators and functions of Val<T>, so that one body of an elementary
// function serves both the IR and plain C++. Each operation means what ops.def says.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lockstep/kernel/value.hpp"

namespace lockstep::math {

template <class T>
struct Host {
  using value_type = T;
  T v;

  Host() = default;
  template <class C>
    requires std::is_arithmetic_v<C>
  Host(C constant) : v(static_cast<T>(constant)) {}

  friend Host operator+(Host a, Host b) {
    return wrap([](auto x, auto y) { return x + y; }, a, b);
  }
  friend Host operator-(Host a, Host b) {
    return wrap([](auto x, auto y) { return x - y; }, a, b);
  }
  friend Host operator*(Host a, Host b) {
    return wrap([](auto x, auto y) { return x * y; }, a, b);
  }
  friend Host operator/(Host a, Host b)
    requires std::is_floating_point_v<T>
  {
    return Host(a.v / b.v);
  }
  friend Host operator-(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host(-a.v);
  }
  friend Host operator&(Host a, Host b)
    requires std::is_integral_v<T>
  {
    return Host(T(a.v & b.v));
  }
  friend Host operator|(Host a, Host b)
    requires std::is_integral_v<T>
  {
    return Host(T(a.v | b.v));
  }
  friend Host operator^(Host a, Host b)
    requires std::is_integral_v<T>
  {
    return Host(T(a.v ^ b.v));
  }
  friend Host operator<<(Host a, Host b)
    requires std::is_integral_v<T>
  {
    return Host(T(bits(a) << amount(b)));
  }
  friend Host operator>>(Host a, Host b)
    requires std::is_integral_v<T>
  {
    return Host(T(a.v >> amount(b)));
  }
  friend Host operator~(Host a)
    requires std::is_integral_v<T>
  {
    if constexpr (std::same_as<T, bool>)
      return Host(!a.v);
    else
      return Host(T(~a.v));
  }
  friend Host<bool> operator!(Host a)
    requires std::same_as<T, bool>
  {
    return Host<bool>(!a.v);
  }
  friend Host<bool> operator&&(Host a, Host b)
    requires std::same_as<T, bool>
  {
    return Host<bool>(a.v && b.v);
  }
  friend Host<bool> operator||(Host a, Host b)
    requires std::same_as<T, bool>
  {
    return Host<bool>(a.v || b.v);
  }
  friend Host<bool> operator==(Host a, Host b) { return a.v == b.v; }
  friend Host<bool> operator!=(Host a, Host b) { return a.v != b.v; }
  friend Host<bool> operator<(Host a, Host b) { return a.v < b.v; }
  friend Host<bool> operator<=(Host a, Host b) { return a.v <= b.v; }
  friend Host<bool> operator>(Host a, Host b) { return b.v < a.v; }
  friend Host<bool> operator>=(Host a, Host b) { return b.v <= a.v; }

  friend Host fma(Host a, Host b, Host c)
    requires std::is_floating_point_v<T>
  {
    return Host(std::fma(a.v, b.v, c.v));
  }
  friend Host abs(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host(std::fabs(a.v));
  }
  friend Host sqrt(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host(std::sqrt(a.v));
  }
  friend Host rint(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host(std::nearbyint(a.v));
  }
  friend Host trunc(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host(std::trunc(a.v));
  }
  friend Host copysign(Host a, Host b)
    requires std::is_floating_point_v<T>
  {
    return Host(std::copysign(a.v, b.v));
  }
  friend Host<bool> isnan(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host<bool>(std::isnan(a.v));
  }
  friend Host<bool> isinf(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host<bool>(std::isinf(a.v));
  }
  friend Host<bool> isfinite(Host a)
    requires std::is_floating_point_v<T>
  {
    return Host<bool>(std::isfinite(a.v));
  }
  friend Host min(Host a, Host b) { return b.v < a.v ? b : a; }
  friend Host max(Host a, Host b) { return a.v < b.v ? b : a; }
  friend Host clz(Host a)
    requires std::unsigned_integral<T>
  {
    return Host(T(std::countl_zero(a.v)));
  }
  friend Host umulhi(Host a, Host b)
    requires std::unsigned_integral<T>
  {
    __extension__ using Wide = unsigned __int128;
    return Host(T(Wide(a.v) * b.v >> (8 * sizeof(T))));
  }
  friend Host select(Host<bool> condition, Host yes, Host no) { return condition.v ? yes : no; }

 private:
  static auto bits(Host a) { return std::make_unsigned_t<T>(a.v); }
  static int amount(Host b) { return int(std::make_unsigned_t<T>(b.v) % (8 * sizeof(T))); }
  template <class F>
  static Host wrap(F f, Host a, Host b) {
    if constexpr (std::is_floating_point_v<T>)
      return Host(f(a.v, b.v));
    else
      return Host(T(f(bits(a), bits(b))));
  }
};

/// As ops.def's convert: float to integer truncates and saturates, NaN gives 0.
template <class To, class T>
Host<To> cast(Host<T> a) {
  if constexpr (std::is_floating_point_v<T> && std::is_integral_v<To>) {
    constexpr T kTop = T(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (std::isnan(a.v)) return Host<To>(0);
    if (a.v >= kTop) return Host<To>(std::numeric_limits<To>::max());
    if (a.v <= T(std::numeric_limits<To>::min())) return Host<To>(std::numeric_limits<To>::min());
  }
  return Host<To>(static_cast<To>(a.v));
}
template <class To, class T>
Host<To> bitcast(Host<T> a) {
  return Host<To>(std::bit_cast<To>(a.v));
}

}  // namespace lockstep::math
