// Mathematics of poses in terms.
#pragma once

#include <numbers>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// The angle in [-pi, pi); its derivative is 1.
inline Value wrap(const Value& angle) {
  constexpr double turn = 2 * std::numbers::pi;
  return angle - turn * floor((angle + std::numbers::pi) * (1 / turn));
}

/// v turned by the angle with this cosine and sine.
inline autodiff::Vec2 turn(const autodiff::Vec2& v, const Value& cosine, const Value& sine) {
  return {{cosine * v[0] - sine * v[1], sine * v[0] + cosine * v[1]}};
}

/// W e, W upper triangular by rows from data number `first`.
inline std::vector<Value> whitened(const TermArguments& a, int first, const std::vector<Value>& e) {
  std::vector<Value> residual;
  int k = first;
  for (size_t r = 0; r < e.size(); ++r) {
    Value sum = a.data(k++) * e[r];
    for (size_t c = r + 1; c < e.size(); ++c) sum = sum + a.data(k++) * e[c];
    residual.push_back(sum);
  }
  return residual;
}

}  // namespace lockstep::solve
