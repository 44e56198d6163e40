// A row of the recurrence inside a kernel: its inputs, gates and candidate, for any summation of the products.
#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "forecast/rollout/element.hpp"
#include "forecast/rollout/heads.hpp"

namespace lockstep::forecast {

/// The place of a lane in one row.
template <class T>
struct Place {
  Val<i32> weights, scratch, lane, p;  // blocks of the member's weights and of the group's `pre`; P
  Val<T> loss;                         // of the step before
};

template <class T>
struct Weights {
  const Grid<T, 3>&input, &bias;
};

/// W x + b, feature 0 left out.
template <class T, class Pre>
void input_products(const Weights<T>& w, const Place<T>& at, const Grid<T, 2>& features,
                    const Val<i32>& entry, const Pre& pre) {
  VarArray<T, 3> sum(T(0));
  for (int g = 0; g < 3; ++g) sum[g] = w.bias(at.weights, g, at.lane);
  for_(1, features.size(1), [&](Val<i32> i) {
    const Val<T> x = features(entry, i);
    for (int g = 0; g < 3; ++g) sum[g] = fma(w.input(at.weights, i, at.p * g + at.lane), x, Val<T>(sum[g]));
  });
  for (int g = 0; g < 3; ++g) pre(at.scratch, g, at.lane) = Val<T>(sum[g]);
}

template <class T, class Pre>
Val<T> input_sum(const Weights<T>& w, const Place<T>& at, const Pre& pre, int gate) {
  return fma(w.input(at.weights, 0, at.p * gate + at.lane), at.loss, Val<T>(pre(at.scratch, gate, at.lane)));
}

template <class T>
struct Gates {
  Val<T> z, second;  // second: r h, or the next h of reset_after
};

/// Products of a row of U with h, or r h, for `count` gates from `gate` on, of z, r, n.
template <class T>
using Products = std::function<std::vector<Val<T>>(int gate, int count)>;

/// Rows of `bias`: b_z + rb_z, b_r + rb_r, b_h, rb_h, and of fp8 the scales of U_z, U_r, U_h.
template <class W>
inline constexpr int64_t kBiasRows = std::is_same_v<W, uint8_t> ? 7 : 4;
/// A row's product, times its scale, a power of two.
template <class T, class W>
Val<T> scaled(const Val<T>& product, const Grid<T, 3>& bias, const Val<i32>& block, const Val<i32>& lane,
              int gate) {
  if constexpr (std::is_same_v<W, uint8_t>) return product * bias(block, 4 + gate, lane);
  return product;
}
template <class T, class Pre>
Gates<T> gates_of(GruForm form, const Weights<T>& w, const Place<T>& at, const Pre& pre,
                  const Products<T>& products, const Val<T>& own) {
  const auto zr = products(0, 2);
  const Val<T> z = sigmoid(input_sum<T>(w, at, pre, 0) + zr[0]),
               r = sigmoid(input_sum<T>(w, at, pre, 1) + zr[1]);
  if (form == GruForm::reset_before) return {z, r * own};
  const Val<T> a = products(2, 1)[0] + w.bias(at.weights, 3, at.lane);
  const Val<T> n = tanh(fma(r, a, input_sum<T>(w, at, pre, 2)));
  return {z, fma(z, own - n, n)};
}

/// The next h of reset_before.
template <class T, class Pre>
Val<T> candidate_of(const Weights<T>& w, const Place<T>& at, const Pre& pre, const Products<T>& products,
                    const Val<T>& own, const Val<T>& z) {
  const Val<T> product = products(2, 1)[0];
  return fma(z, tanh(input_sum<T>(w, at, pre, 2) + product) - own, own);
}

}  // namespace lockstep::forecast
