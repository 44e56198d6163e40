// The rollout in plain C++, sums in their natural order, functions of libm: the oracle. Classic heads are the published
// RSSMLite to the letter; T is float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/numbers/random.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "nn/reference.hpp"

namespace lockstep::forecast::reference {

/// One member's weights: rows of gates z, r, h.
template <class T>
struct Gru {
  int64_t hidden = 0, inputs = 0;
  GruForm form = GruForm::reset_before;
  std::array<std::span<const T>, 3> w, u, b, rb;  // rb may be empty

  T row(std::span<const T> matrix, int64_t i, std::span<const T> x) const {
    T sum = 0;
    for (size_t k = 0; k < x.size(); ++k) sum += matrix[size_t(i) * x.size() + k] * x[k];
    return sum;
  }
  static T sigmoid(T a) { return T(1) / (T(1) + std::exp(-a)); }

  std::vector<T> step(std::span<const T> x, std::span<const T> h) const {
    const size_t n = size_t(hidden);
    std::vector<T> z(n), r(n), rh(n), next(n);
    const auto recurrent_bias = [&](int gate, size_t i) {
      return rb[size_t(gate)].empty() ? T(0) : rb[size_t(gate)][i];
    };
    for (size_t i = 0; i < n; ++i) {
      z[i] = sigmoid(row(w[0], int64_t(i), x) + b[0][i] + row(u[0], int64_t(i), h) + recurrent_bias(0, i));
      r[i] = sigmoid(row(w[1], int64_t(i), x) + b[1][i] + row(u[1], int64_t(i), h) + recurrent_bias(1, i));
      rh[i] = r[i] * h[i];
    }
    for (size_t i = 0; i < n; ++i) {
      const T input = row(w[2], int64_t(i), x) + b[2][i];
      if (form == GruForm::reset_before)
        next[i] = (1 - z[i]) * h[i] + z[i] * std::tanh(input + row(u[2], int64_t(i), std::span<const T>(rh)));
      else
        next[i] = (1 - z[i]) * std::tanh(input + r[i] * (row(u[2], int64_t(i), h) + recurrent_bias(2, i))) +
                  z[i] * h[i];
    }
    return next;
  }
};

/// Softmax of h[floor(i D / S)] for i = 0 … S - 1, and its entropy.
template <class T>
std::vector<T> state_softmax(std::span<const T> h, int64_t states, T* entropy = nullptr) {
  std::vector<T> s(static_cast<size_t>(states));
  T top = h[0], sum = 0;
  for (int64_t i = 0; i < states; ++i) {
    s[size_t(i)] = h[size_t(i * int64_t(h.size()) / states)];
    top = i == 0 ? s[0] : std::max(top, s[size_t(i)]);
  }
  for (T& v : s) sum += v = std::exp(v - top);
  T e = 0;
  for (T& v : s) {
    v /= sum;
    if (v > 0) e -= v * std::log(v);
  }
  if (entropy) *entropy = e;
  return s;
}

template <class T>
T classic_loss(std::span<const T> head, std::span<const T> h, std::span<const T> s) {
  T sum = 0;
  for (size_t i = 0; i < h.size(); ++i) sum += head[i] * h[i];
  for (size_t i = 0; i < s.size(); ++i) sum += head[h.size() + i] * s[i];
  return std::max(std::exp(std::clamp(sum, T(-10), T(10))), T(1e-6));
}

/// Losses, norms of h, entropies and last states of every member and batch entry.
template <class T>
struct Raw {
  std::vector<T> losses, norms, entropies, states, variances;
};

template <class T>
Gru<T> member_of(const RolloutModel& model, GruForm form, int64_t m) {
  const int64_t d = model.hidden(), inputs = model.inputs();
  Gru<T> gru{d, inputs, form, {}, {}, {}, {}};
  for (size_t g = 0; g < 3; ++g) {
    gru.w[g] = model.w[g].template as<T>().subspan(size_t(m * d * inputs), size_t(d * inputs));
    gru.u[g] = model.u[g].template as<T>().subspan(size_t(m * d * d), size_t(d * d));
    gru.b[g] = model.b[g].template as<T>().subspan(size_t(m * d), size_t(d));
    if (!model.rb[g].empty()) gru.rb[g] = model.rb[g].template as<T>().subspan(size_t(m * d), size_t(d));
  }
  return gru;
}

/// The heads' results from h.
template <class T>
struct HeadResult {
  T loss, entropy, variance;
};

template <class T>
HeadResult<T> classic_heads(const RolloutModel& model, std::span<const T> h) {
  const auto head = model.head.as<T>();
  HeadResult<T> r{};
  const std::vector<T> s = state_softmax<T>(h, int64_t(head.size() - h.size()), &r.entropy);
  r.loss = classic_loss<T>(head, h, s);
  return r;
}

/// In place.
template <class T>
void softmax(std::span<T> v) {
  const T top = *std::max_element(v.begin(), v.end());
  T sum = 0;
  for (T& x : v) sum += x = std::exp(x - top);
  for (T& x : v) x /= sum;
}

template <class T>
HeadResult<T> two_hot_heads(const RolloutModel& model, std::span<const T> h, uint64_t seed, int64_t group,
                            int64_t step) {
  const auto p = model.projection.as<T>(), p_bias = model.projection_bias.as<T>();
  const auto v = model.bins.as<T>(), v_bias = model.bins_bias.as<T>();
  const int64_t d = int64_t(h.size()), count = model.projection.size(0), classes = model.projection.size(1);
  const int64_t bins = model.bins.size(0), width = model.bins.size(1);
  HeadResult<T> r{};
  std::vector<T> s(size_t(count * classes), T(0)), weights(v_bias.begin(), v_bias.end()), values;
  for (int64_t c = 0; c < count; ++c) {
    std::vector<T> probability(size_t(classes), T(0));
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t row = c * classes + k;
      probability[size_t(k)] = p_bias[size_t(row)];
      for (int64_t i = 0; i < d; ++i) probability[size_t(k)] += p[size_t(row * d + i)] * h[size_t(i)];
    }
    softmax<T>(probability);
    const double draw = random_unit(uint32_t(step * count + c), uint32_t(group), random_key(seed));
    T before = 0;
    int64_t choice = -1;
    for (int64_t k = 0; k < classes; ++k) {
      const T mixed = T(0.99) * probability[size_t(k)] + T(0.01) / T(classes);
      r.entropy -= mixed * std::log(mixed) / T(count);
      before += mixed;
      if (choice < 0 && draw < double(before)) choice = k;
    }
    s[size_t(c * classes + (choice < 0 ? classes - 1 : choice))] = 1;
  }
  for (int64_t n = 0; n < bins; ++n) {
    for (int64_t i = 0; i < d; ++i) weights[size_t(n)] += v[size_t(n * width + i)] * h[size_t(i)];
    for (int64_t i = 0; i < count * classes; ++i)
      weights[size_t(n)] += v[size_t(n * width + d + i)] * s[size_t(i)];
    values.push_back(nn::reference::two_hot_bin<T>(n, bins));
  }
  softmax<T>(weights);
  for (size_t n = 0; n < values.size(); ++n) r.loss += weights[n] * values[n];
  for (size_t n = 0; n < values.size(); ++n)
    r.variance += weights[n] * (values[n] - r.loss) * (values[n] - r.loss);
  return r;
}

/// The rollout in plain C++. Options used: form, heads, steps and seed.
template <class T>
Raw<T> rollout(const RolloutModel& model, const RolloutOptions& options) {
  Raw<T> raw;
  const int64_t d = model.hidden(), inputs = model.inputs();
  for (int64_t m = 0; m < model.members(); ++m)
    for (int64_t entry = 0; entry < model.batch(); ++entry) {
      const Gru<T> gru = member_of<T>(model, options.form, m);
      const auto features = model.features.as<T>().subspan(size_t(entry * inputs), size_t(inputs));
      std::vector<T> x(features.begin(), features.end()), h(size_t(d), T(0));
      if (!model.h0.empty()) {
        const auto start = model.h0.as<T>().subspan(size_t(m * d), size_t(d));
        h.assign(start.begin(), start.end());
      }
      for (int64_t t = 0; t < options.steps; ++t) {
        h = gru.step(x, h);
        T norm = 0;
        for (const T v : h) norm += v * v;
        const HeadResult<T> r = options.heads == Heads::classic
                                    ? classic_heads<T>(model, h)
                                    : two_hot_heads<T>(model, h, options.seed, m * model.batch() + entry, t);
        x[0] = r.loss;
        raw.losses.push_back(r.loss);
        raw.norms.push_back(std::sqrt(norm));
        raw.entropies.push_back(r.entropy);
        raw.variances.push_back(r.variance);
      }
      raw.states.insert(raw.states.end(), h.begin(), h.end());
    }
  return raw;
}

}  // namespace lockstep::forecast::reference
