// Results of each operation of a Value graph on the host, for float, double and std::complex<double>: the
// column `host` of ops.def. Complex versions continue the real function analytically around the real part, so
// that f(x + ih) = f(x) + ih f'(x) to first order.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lockstep/autodiff.hpp"
#include "lockstep/kernel/math.hpp"

namespace lockstep::autodiff::host {

using Complex = std::complex<double>;

// The functions that rows may use, unqualified, on real and complex numbers.
using std::acos, std::asin, std::atan, std::atan2, std::cbrt, std::ceil, std::cos, std::cosh, std::erf,
    std::exp, std::exp2, std::expm1, std::floor, std::fmod, std::hypot, std::log, std::log10, std::log1p,
    std::imag, std::log2, std::pow, std::real, std::rint, std::signbit, std::sin, std::sinh, std::sqrt,
    std::tan, std::tanh, std::trunc;

inline Complex cbrt(Complex a) { return real(a) < 0 ? -pow(-a, 1.0 / 3) : pow(a, 1.0 / 3); }
inline Complex exp2(Complex a) { return exp(a * 0.693147180559945309417); }
inline Complex expm1(Complex a) { return exp(a) - 1.0; }
inline Complex log2(Complex a) { return log(a) * 1.44269504088896340736; }
inline Complex log1p(Complex a) { return log(1.0 + a); }
inline Complex hypot(Complex a, Complex b) { return sqrt(a * a + b * b); }
/// The whole quotient from the exact remainder: real(a) / real(b) may round up to the next one.
inline Complex fmod(Complex a, Complex b) {
  const double rest = std::fmod(real(a), real(b)), quotient = std::rint((real(a) - rest) / real(b));
  return {rest, imag(a) - quotient * imag(b)};
}
inline Complex erf(Complex a) {
  // 2/sqrt(pi) exp(-a^2) sum 2^n a^(2n+1) / (2n+1)!!: all terms of one sign on the real axis.
  if (std::abs(real(a)) > 6) return {std::copysign(1.0, real(a)), 0};
  Complex term = a, total = a;
  for (int n = 1; n < 400 && std::abs(term.real()) + std::abs(term.imag()) > 1e-300; ++n) {
    term *= 2.0 * a * a / double(2 * n + 1);
    total += term;
  }
  return 1.12837916709551257390 * exp(-a * a) * total;
}
inline Complex atan2(Complex y, Complex x) {
  const double base = std::atan2(real(y), real(x));
  // atan of a small angle measured from the real direction.
  const Complex c(std::cos(base)), s(std::sin(base));
  return base + atan((y * c - x * s) / (x * c + y * s));
}

template <class T>
T power_whole(const T& base, int64_t n) {
  if (n == 0) return T(1);
  const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
  const T power =
      lockstep::detail::power_by_squaring(base, size, [](const T& x, const T& y) { return x * y; });
  return n < 0 ? T(1) / power : power;
}
inline Complex pow(Complex a, Complex b) {
  const bool whole = b.imag() == 0 && b.real() == std::trunc(b.real()) && std::abs(b.real()) < 1e6;
  return whole ? power_whole(a, int64_t(b.real())) : std::pow(a, b);
}

/// A condition as a number.
template <class T>
T truth(bool condition) {
  return T(condition ? 1 : 0);
}

/// A row of ops.def on its operands; b is not read where it has one operand.
template <class T>
T elementary(Op op, const T& a, const T& b) {
  switch (op) {
#define LOCKSTEP_NODE(name, word, kind, arity, op, host, ...) \
  case Op::name: return host;
#define LOCKSTEP_MATH(name, arity, cuda, wgsl, host, ...) \
  case Op::name: return host;
#include "lockstep/ir/ops.def"
    default: throw InternalError("not an elementary operation", std::string(name(op)), "a row of ops.def");
  }
}

/// Value of an operation for values of its operands; `imm` as a node has it. Conditions are 0 or 1.
template <class T>
T apply(Op op, uint64_t imm, std::span<const T> a) {
  switch (op) {
    case Op::sum: {
      T total = a[0];
      for (size_t k = 1; k < a.size(); ++k) total = total + a[k];
      return total;
    }
    case Op::powi: return power_whole(a[0], int64_t(imm));
    case Op::sign: return T(real(a[0]) > 0 ? 1 : real(a[0]) < 0 ? -1 : 0);
    case Op::stop: return T(real(a[0]));
    case Op::select: return real(a[0]) != 0 ? a[1] : a[2];
    default: return elementary(op, a[0], a[a.size() > 1 ? 1 : 0]);
  }
}

}  // namespace lockstep::autodiff::host
