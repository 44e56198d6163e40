// What each operation computes on the host, for float, double and std::complex<double>. Complex versions
// continue the real function analytically around the real part, so that f(x + ih) = f(x) + ih f'(x) to first
// order.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff::scalar {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using real_of = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, real_of<T>>;

template <class T>
real_of<T> re(const T& a) {
  if constexpr (kComplex<T>)
    return a.real();
  else
    return a;
}
/// f of the real part: the derivative is zero.
template <class T, class F>
T by_real(F f, const T& a) {
  return T(f(re(a)));
}

template <class T>
T power_whole(T base, int64_t n) {
  T result = T(1);
  bool any = false;
  for (uint64_t k = uint64_t(n < 0 ? -n : n); k; k >>= 1) {
    if (k & 1) result = any ? result * base : base, any = true;
    if (k > 1) base = base * base;
  }
  return n < 0 ? T(1) / result : result;
}

inline std::complex<double> erf_series(std::complex<double> z) {
  // erf z = 2/sqrt(pi) exp(-z^2) sum 2^n z^(2n+1) / (2n+1)!!: all terms of one sign on the real axis.
  if (std::abs(z.real()) > 6) return {std::copysign(1.0, z.real()), 0};
  std::complex<double> term = z, total = z;
  for (int n = 1; n < 400 && std::abs(term.real()) + std::abs(term.imag()) > 1e-300; ++n) {
    term *= 2.0 * z * z / double(2 * n + 1);
    total += term;
  }
  return 1.12837916709551257390 * std::exp(-z * z) * total;
}

template <class T>
T atan2_of(const T& y, const T& x) {
  if constexpr (!kComplex<T>)
    return std::atan2(y, x);
  else {
    const double base = std::atan2(y.real(), x.real());
    // atan of a small angle measured from the real direction.
    const std::complex<double> c(std::cos(base)), s(std::sin(base));
    return base + std::atan((y * c - x * s) / (x * c + y * s));
  }
}

template <class T>
T unary(Op op, const T& a) {
  using R = real_of<T>;
  switch (op) {
    case Op::neg: return -a;
    case Op::abs: return std::signbit(re(a)) ? -a : a;
    case Op::sign: return T(re(a) > 0 ? R(1) : re(a) < 0 ? R(-1) : R(0));
    case Op::floor: return by_real([](R r) { return std::floor(r); }, a);
    case Op::ceil: return by_real([](R r) { return std::ceil(r); }, a);
    case Op::trunc: return by_real([](R r) { return std::trunc(r); }, a);
    case Op::rint: return by_real([](R r) { return std::nearbyint(r); }, a);
    case Op::stop: return T(re(a));
    case Op::sqrt: return std::sqrt(a);
    case Op::rsqrt: return R(1) / std::sqrt(a);
    case Op::exp: return std::exp(a);
    case Op::log: return std::log(a);
    case Op::sin: return std::sin(a);
    case Op::cos: return std::cos(a);
    case Op::tan: return std::tan(a);
    case Op::asin: return std::asin(a);
    case Op::acos: return std::acos(a);
    case Op::atan: return std::atan(a);
    case Op::sinh: return std::sinh(a);
    case Op::cosh: return std::cosh(a);
    case Op::tanh: return std::tanh(a);
    case Op::sigmoid: return re(a) >= 0 ? R(1) / (R(1) + std::exp(-a)) : std::exp(a) / (R(1) + std::exp(a));
    default: break;
  }
  if constexpr (kComplex<T>) {
    switch (op) {
      case Op::cbrt: return re(a) < 0 ? -std::pow(-a, R(1) / 3) : std::pow(a, R(1) / 3);
      case Op::exp2: return std::exp(a * R(0.693147180559945309417));
      case Op::expm1: return std::exp(a) - R(1);
      case Op::log2: return std::log(a) * R(1.44269504088896340736);
      case Op::log10: return std::log10(a);
      case Op::log1p: return std::log(R(1) + a);
      case Op::softplus: return re(a) > 0 ? a + std::log(R(1) + std::exp(-a)) : std::log(R(1) + std::exp(a));
      case Op::erf: return erf_series(a);
      default: break;
    }
  } else {
    switch (op) {
      case Op::cbrt: return std::cbrt(a);
      case Op::exp2: return std::exp2(a);
      case Op::expm1: return std::expm1(a);
      case Op::log2: return std::log2(a);
      case Op::log10: return std::log10(a);
      case Op::log1p: return std::log1p(a);
      case Op::softplus: return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
      case Op::erf: return std::erf(a);
      default: break;
    }
  }
  throw InternalError("not a unary operation", std::string(name(op)), "a unary operation");
}

template <class T>
T binary(Op op, const T& a, const T& b) {
  using R = real_of<T>;
  switch (op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::min: return re(b) < re(a) ? b : a;
    case Op::max: return re(a) < re(b) ? b : a;
    case Op::copysign: return std::signbit(re(a)) == std::signbit(re(b)) ? a : -a;
    case Op::fmod:
      if constexpr (kComplex<T>)
        return a - b * std::trunc(a.real() / b.real());
      else
        return std::fmod(a, b);
    case Op::hypot:
      if constexpr (kComplex<T>)
        return std::sqrt(a * a + b * b);
      else
        return std::hypot(a, b);
    case Op::pow:
      if constexpr (kComplex<T>) {
        if (b.imag() == 0 && b.real() == std::trunc(b.real()) && std::abs(b.real()) < 1e6)
          return power_whole(a, int64_t(b.real()));
      }
      return std::pow(a, b);
    case Op::atan2: return atan2_of(a, b);
    case Op::less: return T(R(re(a) < re(b)));
    case Op::less_equal: return T(R(re(a) <= re(b)));
    case Op::equal: return T(R(re(a) == re(b)));
    case Op::not_equal: return T(R(re(a) != re(b)));
    case Op::logical_and: return T(R(re(a) != 0 && re(b) != 0));
    case Op::logical_or: return T(R(re(a) != 0 || re(b) != 0));
    default: throw InternalError("not a binary operation", std::string(name(op)), "a binary operation");
  }
}

/// Value of a node for values of its operands. Conditions are 0 or 1.
template <class T>
T apply(const Node& node, std::span<const T> a) {
  switch (node.op) {
    case Op::sum: {
      T total = a[0];
      for (size_t k = 1; k < a.size(); ++k) total = total + a[k];
      return total;
    }
    case Op::powi: return power_whole(a[0], int64_t(node.imm));
    case Op::select: return re(a[0]) != 0 ? a[1] : a[2];
    case Op::logical_not: return T(real_of<T>(re(a[0]) == 0));
    default: return a.size() == 1 ? unary(node.op, a[0]) : binary(node.op, a[0], a[1]);
  }
}

}  // namespace lockstep::autodiff::scalar
