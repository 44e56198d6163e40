// A GRU over a sequence in plain C++, for numbers S that may be complex: derivatives by complex steps check the adjoint.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "lockstep/forecast/gru.hpp"

namespace lockstep::forecast::reference {

template <class S>
struct SequenceProblem {
  GruShape shape;
  std::vector<S> w, u, b, rb, x, h0;  // as GruWeights and GruSequence have them; rb empty or (3 D)
};

/// States (T + 1, B, D) that begin with h0.
template <class S>
std::vector<S> sequence(const SequenceProblem<S>& p) {
  const GruForm form = p.shape.form;
  const int64_t steps = p.shape.steps, batch = p.shape.batch, inputs = p.shape.inputs, d = p.shape.hidden;
  std::vector<S> states = p.h0;
  const auto sigmoid = [](const S& a) { return S(1) / (S(1) + std::exp(-a)); };
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t i = 0; i < batch; ++i) {
      const std::vector<S> h(states.begin() + (t * batch + i) * d, states.begin() + (t * batch + i + 1) * d);
      const auto input = [&](int64_t column) {
        S sum = p.b[size_t(column)];
        for (int64_t k = 0; k < inputs; ++k)
          sum += p.x[size_t((t * batch + i) * inputs + k)] * p.w[size_t(k * 3 * d + column)];
        return sum;
      };
      const auto recurrent = [&](int64_t column, const std::vector<S>& from) {
        S sum = p.rb.empty() ? S(0) : p.rb[size_t(column)];
        for (int64_t k = 0; k < d; ++k) sum += from[size_t(k)] * p.u[size_t(k * 3 * d + column)];
        return sum;
      };
      std::vector<S> z, r, rh;
      for (int64_t j = 0; j < d; ++j) {
        z.push_back(sigmoid(input(j) + recurrent(j, h)));
        r.push_back(sigmoid(input(d + j) + recurrent(d + j, h)));
        rh.push_back(r.back() * h[size_t(j)]);
      }
      for (int64_t j = 0; j < d; ++j) {
        const auto k = size_t(j);
        if (form == GruForm::reset_before) {
          const S n = std::tanh(input(2 * d + j) + recurrent(2 * d + j, rh));
          states.push_back((S(1) - z[k]) * h[k] + z[k] * n);
        } else {
          const S n = std::tanh(input(2 * d + j) + r[k] * recurrent(2 * d + j, h));
          states.push_back((S(1) - z[k]) * n + z[k] * h[k]);
        }
      }
    }
  return states;
}

/// Derivatives of sum of states[t + 1] d_states[t] by every element of `part` of the problem, by complex steps.
inline std::vector<double> derivatives(
    const SequenceProblem<double>& p, std::vector<double> SequenceProblem<double>::* part,
    std::vector<std::complex<double>> SequenceProblem<std::complex<double>>::* complex_part,
    const std::vector<double>& d_states) {
  const auto wide = [](const std::vector<double>& v) {
    return std::vector<std::complex<double>>(v.begin(), v.end());
  };
  SequenceProblem<std::complex<double>> c{p.shape,    wide(p.w), wide(p.u), wide(p.b),
                                          wide(p.rb), wide(p.x), wide(p.h0)};
  const auto skip = size_t(p.shape.batch * p.shape.hidden);
  std::vector<double> result;
  for (size_t i = 0; i < (p.*part).size(); ++i) {
    (c.*complex_part)[i] += std::complex<double>(0, 1e-30);
    const auto states = sequence(c);
    double sum = 0;
    for (size_t k = 0; k < d_states.size(); ++k) sum += states[skip + k].imag() * d_states[k];
    result.push_back(sum / 1e-30);
    (c.*complex_part)[i] = (p.*part)[i];
  }
  return result;
}

}  // namespace lockstep::forecast::reference
