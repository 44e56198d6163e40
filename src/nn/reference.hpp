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

/// Values between layers: examples of one shape.
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
void apply(const Conv2d& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t h = x.shape[0], w = x.shape[1], c = x.shape[2], out = layer.channels;
  const int64_t oh = (h + 2 * layer.padding - layer.height) / layer.stride + 1;
  const int64_t ow = (w + 2 * layer.padding - layer.width) / layer.stride + 1;
  const auto weight = cursor.take(layer.height * layer.width * c * out), bias = cursor.take(out);
  std::vector<S> y;
  for (int64_t b = 0; b < x.examples; ++b)
    for (int64_t py = 0; py < oh; ++py)
      for (int64_t px = 0; px < ow; ++px)
        for (int64_t o = 0; o < out; ++o) {
          S sum = bias[size_t(o)];
          for (int64_t ky = 0; ky < layer.height; ++ky)
            for (int64_t kx = 0; kx < layer.width; ++kx) {
              const int64_t iy = py * layer.stride + ky - layer.padding,
                            ix = px * layer.stride + kx - layer.padding;
              if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
              for (int64_t i = 0; i < c; ++i)
                sum += x.values[size_t(((b * h + iy) * w + ix) * c + i)] *
                       weight[size_t(((ky * layer.width + kx) * c + i) * out + o)];
            }
          y.push_back(activation(layer.activation, sum));
        }
  x.values = std::move(y);
  x.shape = {oh, ow, out};
}

template <class S>
void apply(const MaxPool2d& layer, Activations<S>& x, Cursor<S>&) {
  const int64_t h = x.shape[0], w = x.shape[1], c = x.shape[2];
  const int64_t oh = (h - layer.size) / layer.stride + 1, ow = (w - layer.size) / layer.stride + 1;
  std::vector<S> y;
  for (int64_t b = 0; b < x.examples; ++b)
    for (int64_t py = 0; py < oh; ++py)
      for (int64_t px = 0; px < ow; ++px)
        for (int64_t i = 0; i < c; ++i) {
          S most = -1e300;
          for (int64_t ky = 0; ky < layer.size; ++ky)
            for (int64_t kx = 0; kx < layer.size; ++kx) {
              const S v =
                  x.values[size_t(((b * h + py * layer.stride + ky) * w + px * layer.stride + kx) * c + i)];
              if (real(v) > real(most)) most = v;
            }
          y.push_back(most);
        }
  x.values = std::move(y);
  x.shape = {oh, ow, c};
}

template <class S>
void apply(const Flatten&, Activations<S>& x, Cursor<S>&) {
  x.shape = {x.shape.elements()};
}

template <class S>
void apply(const LayerNorm& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t n = x.columns();
  const auto gain = cursor.take(n), bias = cursor.take(n);
  for (int64_t r = 0; r < x.rows(); ++r) {
    S* row = x.values.data() + r * n;
    S mean = 0, variance = 0;
    for (int64_t j = 0; j < n; ++j) mean += row[j] / double(n);
    for (int64_t j = 0; j < n; ++j) variance += (row[j] - mean) * (row[j] - mean) / double(n);
    for (int64_t j = 0; j < n; ++j)
      row[j] = (row[j] - mean) / std::sqrt(variance + layer.epsilon) * gain[size_t(j)] + bias[size_t(j)];
  }
}

template <class S>
void apply(const Embedding& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t t = x.shape[0], n = layer.width;
  const auto table = cursor.take(layer.vocabulary * n);
  const auto places = layer.positions ? cursor.take(t * n) : std::span<const S>{};
  std::vector<S> y;
  for (int64_t r = 0; r < x.examples * t; ++r)
    for (int64_t j = 0; j < n; ++j)
      y.push_back(table[size_t(int64_t(real(x.values[size_t(r)])) * n + j)] +
                  (layer.positions ? places[size_t(r % t * n + j)] : S(0)));
  x.values = std::move(y);
  x.shape = {t, n};
}

/// Without training: the identity.
template <class S>
void apply(const Dropout&, Activations<S>&, Cursor<S>&) {}

template <class S>
void apply(const Gru& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t steps = x.shape[0], in = x.shape[1], n = layer.units;
  const bool after = layer.form == GruForm::reset_after;
  const auto weight = cursor.take(in * 3 * n), bias = cursor.take(3 * n), recurrent = cursor.take(n * 3 * n);
  const auto inner = after ? cursor.take(3 * n) : std::span<const S>{};
  std::vector<S> y;
  for (int64_t b = 0; b < x.examples; ++b) {
    std::vector<S> h(static_cast<size_t>(n), S(0));
    for (int64_t t = 0; t < steps; ++t) {
      const auto from_input = [&](int64_t column) {
        S sum = bias[size_t(column)];
        for (int64_t i = 0; i < in; ++i)
          sum += x.values[size_t((b * steps + t) * in + i)] * weight[size_t(i * 3 * n + column)];
        return sum;
      };
      const auto from_state = [&](int64_t column, const std::vector<S>& state) {
        S sum = after ? inner[size_t(column)] : S(0);
        for (int64_t i = 0; i < n; ++i) sum += state[size_t(i)] * recurrent[size_t(i * 3 * n + column)];
        return sum;
      };
      std::vector<S> z, r, kept, next;
      for (int64_t j = 0; j < n; ++j) {
        z.push_back(activation<S>(Activation::sigmoid, from_input(j) + from_state(j, h)));
        r.push_back(activation<S>(Activation::sigmoid, from_input(n + j) + from_state(n + j, h)));
        kept.push_back(r.back() * h[size_t(j)]);
      }
      for (int64_t j = 0; j < n; ++j) {
        const S candidate = after ? r[size_t(j)] * from_state(2 * n + j, h) : from_state(2 * n + j, kept);
        const S value = std::tanh(from_input(2 * n + j) + candidate);
        const S keep = after ? z[size_t(j)] : 1.0 - z[size_t(j)];
        next.push_back(keep * h[size_t(j)] + (1.0 - keep) * value);
      }
      h = next;
      y.insert(y.end(), h.begin(), h.end());
    }
  }
  x.values = std::move(y);
  x.shape = {steps, n};
}

template <class S>
void apply(const Attention& layer, Activations<S>& x, Cursor<S>& cursor) {
  const int64_t t = x.shape[0], c = x.shape[1], depth = c / layer.heads;
  apply(Dense{3 * c}, x, cursor);
  std::vector<S> mixed(static_cast<size_t>(x.examples * t * c));
  for (int64_t b = 0; b < x.examples; ++b)
    for (int64_t head = 0; head < layer.heads; ++head)
      for (int64_t i = 0; i < t; ++i) {
        const auto at = [&](int64_t place, int64_t which, int64_t k) {
          return x.values[size_t(((b * t + place) * 3 + which) * c + head * depth + k)];
        };
        const int64_t seen = layer.causal ? i + 1 : t;
        std::vector<S> share;
        S total = 0;
        for (int64_t j = 0; j < seen; ++j) {
          S score = 0;
          for (int64_t k = 0; k < depth; ++k) score += at(i, 0, k) * at(j, 1, k);
          share.push_back(std::exp(score / std::sqrt(double(depth))));
          total += share.back();
        }
        for (int64_t k = 0; k < depth; ++k)
          for (int64_t j = 0; j < seen; ++j)
            mixed[size_t((b * t + i) * c + head * depth + k)] += share[size_t(j)] / total * at(j, 2, k);
      }
  x.values = std::move(mixed);
  x.shape = {t, c};
  apply(Dense{c}, x, cursor);
}

template <class S>
void apply(const Residual& layer, Activations<S>& x, Cursor<S>& cursor);

template <class S>
void apply(const LayerSpec& layer, Activations<S>& x, Cursor<S>& cursor) {
  std::visit([&](const auto& l) { apply(l, x, cursor); }, layer.variant());
}

template <class S>
void apply(const Residual& layer, Activations<S>& x, Cursor<S>& cursor) {
  const std::vector<S> before = x.values;
  for (const LayerSpec& inner : layer.layers) apply<S>(inner, x, cursor);
  for (size_t i = 0; i < before.size(); ++i) x.values[i] += before[i];
}

template <class S>
Activations<S> outputs(const NetworkSpec& spec, std::span<const S> parameters,
                       std::span<const double> inputs) {
  Activations<S> x{
      int64_t(inputs.size()) / spec.input.elements(), spec.input, {inputs.begin(), inputs.end()}};
  Cursor<S> cursor{parameters};
  for (const LayerSpec& layer : spec.layers) apply<S>(layer, x, cursor);
  if (cursor.at != parameters.size()) throw std::logic_error("parameters left over");
  return x;
}

/// Shape of the output for one example.
inline Shape output_shape(const NetworkSpec& spec) {
  const std::vector<double> parameters = initial_parameters(spec, 1), inputs(size_t(spec.input.elements()));
  return outputs<double>(spec, parameters, inputs).shape;
}

/// Bin n of a two-hot distribution, evenly spaced from -20 to 20 before symexp.
template <class T = double>
T two_hot_bin(int64_t n, int64_t bins) {
  const T position = T(-20) + T(40) * T(n) / T(bins - 1);
  return std::copysign(std::expm1(std::abs(position)), position);
}
/// The weight of bin n in a number: 1 at the bin, falling along a line to 0 at its neighbours.
inline double two_hot_weight(double number, int64_t n, int64_t bins) {
  const double t = std::clamp(number, two_hot_bin(0, bins), two_hot_bin(bins - 1, bins)),
               here = two_hot_bin(n, bins);
  const int64_t next = t < here ? n - 1 : n + 1;
  if (t == here || next < 0 || next == bins) return t == here;
  return std::max(0.0, 1 - (t - here) / (two_hot_bin(next, bins) - here));
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
    if (spec.loss == Loss::two_hot) {
      for (int64_t j = 0; j < columns; ++j)
        sum += two_hot_weight(targets[size_t(r)], j, columns) *
               (std::log(total) - y.values[size_t(r * columns + j)]);
      continue;
    }
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
