#include "solve/datasets/faddeeva.hpp"

#include <array>
#include <numbers>

namespace lockstep::solve {
namespace {

constexpr double kScale = 5.3182958969449885;  // L = sqrt(N / sqrt(2)), N = 40
/// Fourier coefficients of (L^2 + t^2) exp(-t^2), t = L tan(angle / 2), from the first harmonic on: by the trapezoidal rule with
/// 4 N points.
constexpr std::array kCoefficients = {
    2.8996245093897053,      2.61605415276186,        2.201513794878312,       1.7253830848179779,
    1.2563815675765133,      0.8472174576593818,      0.5266528988277086,      0.29989437996150065,
    0.15504263802479495,     0.07182361779074337,     0.029202916471241867,    0.010048186242783424,
    0.0027054056330737914,   0.0004398070159869668,   -3.939363145489569e-05,  -5.591309264248318e-05,
    -1.8007447144750956e-05, -1.0660138984947143e-06, 1.483566113220078e-06,   5.912136951899494e-07,
    1.4198642399935674e-08,  -6.35177348504429e-08,   -1.8315616783040462e-08, 3.2497465180436973e-09,
    3.0177805400090707e-09,  2.1086006347066517e-10,  -3.5632339865976533e-10, -9.055124450928292e-11,
    3.47272670930455e-11,    1.7714495214011192e-11,  -2.7276023158200452e-12, -2.907688342182867e-12,
    1.2031458219387989e-13,  4.5329666782606727e-13,  1.37256205867155e-14,    -7.074086260286855e-14,
    -5.409310282882142e-15,  1.1357687198999241e-14,  1.128073562364402e-15,   -1.899694947394927e-15};

}  // namespace

autodiff::Value real_faddeeva(const autodiff::Value& x, const autodiff::Value& y) {
  using autodiff::Value;
  // With q = 1 / (L - iz), Z = (L + iz) q and z = x + iy: w = 2 q^2 p(Z) + q / sqrt(pi).
  const Value height = abs(y), a = height + kScale, size = 1.0 / (a * a + x * x);
  const Value qr = a * size, qi = x * size;
  const Value zr = (kScale - height) * qr - x * qi, zi = x * qr + (kScale - height) * qi;
  Value pr = x.graph().constant(kCoefficients.back()), pi = x.graph().constant(0);
  for (int n = int(kCoefficients.size()) - 2; n >= 0; --n) {
    const Value next = pr * zr - pi * zi + kCoefficients[size_t(n)];
    pi = pr * zi + pi * zr, pr = next;
  }
  return 2.0 * ((qr * qr - qi * qi) * pr - 2.0 * (qr * qi) * pi) + qr * std::numbers::inv_sqrtpi;
}

}  // namespace lockstep::solve
