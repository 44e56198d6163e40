// Networks in plain C++: the loss of a description at given parameters, one example after the other. S is double, or
// std::complex<double> for derivatives by complex step. Oracle of tests and cases; no engine.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "lockstep/nn/network.hpp"

namespace lockstep::nn::reference {

using Complex = std::complex<double>;
inline double real(double x) { return x; }
inline double real(const Complex& x) { return x.real(); }

/// erf of a complex number whose imaginary part is so small that its square counts for nothing.
inline double error_function(double x) { return std::erf(x); }
inline Complex error_function(const Complex& x) {
  return {std::erf(x.real()), x.imag() * std::exp(-x.real() * x.real()) * 2 / std::sqrt(std::acos(-1.0))};
}

template <class S>
S activation(Activation f, const S& x) {
  switch (f) {
    case Activation::tanh: return std::tanh(x);
    case Activation::relu: return real(x) > 0 ? x : S(0);
    case Activation::sigmoid: return 1.0 / (1.0 + std::exp(-x));
    case Activation::gelu: return 0.5 * x * (1.0 + error_function(x / std::sqrt(2.0)));
    default: return x;
  }
}

/// Takes parameters in the order of the flat buffer.
template <class S>
struct Cursor {
  std::span<const S> parameters;
  size_t at = 0;
  std::span<const S> take(int64_t count) {
    const auto part = parameters.subspan(at, size_t(count));
    at += size_t(count);
    return part;
  }
};

/// What flows between layers: examples of one shape.
template <class S>
struct Activations {
  int64_t examples = 0;
  Shape shape;
  std::vector<S> values;
  int64_t columns() const { return shape[shape.rank() - 1]; }
  int64_t rows() const { return examples * (shape.elements() / columns()); }
};

template <class S>
void apply(const Dense& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t in = x.columns(), out = layer.units, rows = x.rows();
  const auto weight = cursor.take(in * out);
  const auto bias = layer.bias ? cursor.take(out) : std::span<const S>{};
  std::vector<S> y(static_cast<size_t>(rows * out));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < out; ++j) {
      S sum = layer.bias ? bias[size_t(j)] : S(0);
      for (int64_t k = 0; k < in; ++k) sum += x.values[size_t(r * in + k)] * weight[size_t(k * out + j)];
      y[size_t(r * out + j)] = activation(layer.activation, sum);
    }
  x.values = std::move(y);
  x.shape[x.shape.rank() - 1] = out;
}

template <class S>
Activations<S> outputs(const NetworkSpec& spec, std::span<const S> parameters,
                       std::span<const double> inputs) {
  Activations<S> x{
      int64_t(inputs.size()) / spec.input.elements(), spec.input, {inputs.begin(), inputs.end()}};
  Cursor<S> cursor{parameters};
  for (const LayerSpec& layer : spec.layers)
    std::visit([&](const auto& l) { apply(l, x, cursor); }, static_cast<const LayerSpec::variant&>(layer));
  if (cursor.at != parameters.size()) throw std::logic_error("parameters left over");
  return x;
}

/// Classes are whole numbers here.
template <class S>
S loss(const NetworkSpec& spec, std::span<const S> parameters, std::span<const double> inputs,
       std::span<const double> targets) {
  const Activations<S> y = outputs<S>(spec, parameters, inputs);
  const int64_t columns = y.columns(), rows = y.rows();
  S sum = 0;
  if (spec.loss == Loss::mean_squared) {
    for (size_t i = 0; i < y.values.size(); ++i)
      sum += (y.values[i] - targets[i]) * (y.values[i] - targets[i]);
    return sum / double(y.values.size());
  }
  for (int64_t r = 0; r < rows; ++r) {
    S total = 0;
    for (int64_t j = 0; j < columns; ++j) total += std::exp(y.values[size_t(r * columns + j)]);
    sum += std::log(total) - y.values[size_t(r * columns + int64_t(targets[size_t(r)]))];
  }
  return sum / double(rows);
}

/// Gradient by complex step: one evaluation a parameter, no cancellation.
inline std::vector<double> gradient(const NetworkSpec& spec, std::span<const double> parameters,
                                    std::span<const double> inputs, std::span<const double> targets) {
  constexpr double kStep = 1e-100;
  std::vector<Complex> p(parameters.begin(), parameters.end());
  std::vector<double> g(p.size());
  for (size_t k = 0; k < p.size(); ++k) {
    p[k] += Complex(0, kStep);
    g[k] = loss<Complex>(spec, p, inputs, targets).imag() / kStep;
    p[k] = parameters[k];
  }
  return g;
}

}  // namespace lockstep::nn::reference
