// The heads inside a kernel: from h to loss, norm, entropy and variance, by all lanes of a group. Sums over rows have
// kHeadChains chains, number j of which takes i = j, j + 32 … in order, added by a tree; products with matrices have
// kRowChains as the rows of U have. Lanes beyond the first 32 help where rows are many; no bit depends on them.
#pragma once

#include <functional>
#include <vector>

#include "core/random.hpp"
#include "forecast/rollout/kernels.hpp"
#include "lockstep/kernel/vec.hpp"

namespace lockstep::forecast {

/// An element of h, r h or z by its row.
template <class T>
using Read = std::function<Val<T>(const Val<i32>& row)>;

/// What a head sees. h is visible to all lanes.
template <class T>
struct HeadInput {
  Val<i32> lane;
  int lanes;
  Read<T> h;
  Val<i32> hidden, states, rows;  // rows: hidden filled up to a multiple of 32
  Val<i32> group, step;           // numbers of the random draws
  Val<u32> key;
  const Grid<T, 1>& head;
};

template <class T>
struct HeadValues {
  Val<T> loss, norm, entropy, variance;
};

/// Of the values at `first` … `first` + 31, all lanes alike.
template <class T, class Combine>
Val<T> chain_tree(const SharedArray<T>& s, int first, Combine combine) {
  std::vector<Val<T>> v;
  for (int k = 0; k < kHeadChains; ++k) v.push_back(s[first + k]);
  for (size_t half = kHeadChains / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) v[k] = combine(v[k], v[k + half]);
    v.erase(v.begin() + int64_t(half), v.end());
  }
  return v[0];
}
template <class T>
Val<T> chain_sum(const SharedArray<T>& s, int number) {
  return chain_tree<T>(s, number * kHeadChains, [](const Val<T>& a, const Val<T>& b) { return a + b; });
}
template <class T>
Val<T> chain_max(const SharedArray<T>& s, int number) {
  return chain_tree<T>(s, number * kHeadChains, [](const Val<T>& a, const Val<T>& b) { return max(a, b); });
}

/// Words of shared memory that the head needs beside h.
inline int64_t head_words(const HeadShape& shape) {
  return shape.heads == Heads::classic ? 6 * kHeadChains
                                       : 6 * kHeadChains + shape.classes() + shape.bins + shape.categoricals;
}

/// Ends with a barrier before what it wrote is read, none after.
template <class T>
HeadValues<T> classic_head(const HeadInput<T>& in) {
  const SharedArray<T> s(6 * kHeadChains);
  const Val<i32>& lane = in.lane;
  const auto logit = [&](const Val<i32>& i) { return in.h(i * in.hidden / in.states); };
  if_(lane < kHeadChains, [&] {
    Var<T> dot = T(0), square = T(0), top = logit(0);
    for_(0, in.rows, kHeadChains, [&](Val<i32> first) {
      const Val<i32> i = first + lane;
      const Val<T> v = in.h(i);
      dot = fma(v, in.head[i], Val<T>(dot));
      square = fma(v, v, Val<T>(square));
    });
    for_(0, in.states, kHeadChains,
         [&](Val<i32> first) { top = max(top, logit(min(first + lane, in.states - 1))); });
    s[lane] = Val<T>(dot);
    s[lane + kHeadChains] = Val<T>(square);
    s[lane + 2 * kHeadChains] = Val<T>(top);
  });
  barrier();
  const Val<T> top = chain_max<T>(s, 2);
  if_(lane < kHeadChains, [&] {
    Var<T> sum = T(0), weighted = T(0), logs = T(0);
    for_(0, in.states, kHeadChains, [&](Val<i32> first) {
      const Val<i32> i = first + lane;
      if_(i < in.states, [&] {
        const Val<T> below = logit(i) - top, e = exp(below);
        sum += e;
        weighted = fma(e, in.head[in.rows + i], Val<T>(weighted));
        logs = fma(e, below, Val<T>(logs));
      });
    });
    s[lane + 3 * kHeadChains] = Val<T>(sum);
    s[lane + 4 * kHeadChains] = Val<T>(weighted);
    s[lane + 5 * kHeadChains] = Val<T>(logs);
  });
  barrier();
  const Val<T> sum = chain_sum<T>(s, 3), activation = chain_sum<T>(s, 0) + chain_sum<T>(s, 4) / sum;
  return {max(exp(clamp(activation, T(-10), T(10))), T(1e-6)), sqrt(chain_sum<T>(s, 1)),
          log(sum) - chain_sum<T>(s, 5) / sum, T(0)};
}

/// Row `row` of a matrix that stands column by column, `count` rows each, at `base` of the head; times h.
template <class T>
Val<T> head_product(const HeadInput<T>& in, const Val<i32>& base, int count, const Val<i32>& row) {
  VarArray<T, kRowChains> sum(T(0));
  for_(0, (in.hidden + kRowChains - 1) / kRowChains, [&](Val<i32> block) {
    for (int j = 0; j < kRowChains; ++j) {
      const Val<i32> k = block * kRowChains + j;
      sum[j] = fma(in.head[base + k * count + row], in.h(k), Val<T>(sum[j]));
    }
  });
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Where the parts of the two-hot heads stand in the head: P, P_b, V of h, V of s, V_b.
struct TwoHotPlaces {
  Val<i32> projection, projection_bias, bins, state_bins, bins_bias;
  TwoHotPlaces(const Val<i32>& columns, const HeadShape& shape)
      : projection(Val<i32>(columns) * 0),
        projection_bias(columns * shape.classes()),
        bins(projection_bias + shape.classes()),
        state_bins(bins + columns * shape.bins),
        bins_bias(state_bins + shape.classes() * shape.bins) {}
};

/// Samples a class of each categorical: classes in `chosen`, entropies in `entropy`.
template <class T>
void sample_states(const HeadInput<T>& in, const HeadShape& shape, const SharedArray<T>& logits,
                   const SharedArray<i32>& chosen, const SharedArray<T>& entropy) {
  const int count = shape.categorical_classes;
  for_(0, shape.categoricals, in.lanes, [&](Val<i32> first) {
    const Val<i32> c = first + in.lane;
    if_(c < shape.categoricals, [&] {
      Var<T> top = Val<T>(logits[c * count]), sum = T(0), before = T(0), e = T(0);
      for_(1, count, [&](Val<i32> k) { top = max(Val<T>(top), Val<T>(logits[c * count + k])); });
      for_(0, count, [&](Val<i32> k) { sum += exp(Val<T>(logits[c * count + k]) - top); });
      const Val<u32> bits =
          philox<Val<u32>>(cast<u32>(in.step * shape.categoricals + c), cast<u32>(in.group), in.key,
                           [](const Val<u32>& a, const Val<u32>& b) { return umulhi(a, b); });
      const Val<T> draw = cast<T>(bits >> 8u) * T(0x1p-24);
      Var<i32> choice = Val<i32>(count - 1);
      Var<bool> open = draw >= T(0);
      for_(0, count, [&](Val<i32> k) {
        const Val<T> p = fma(exp(Val<T>(logits[c * count + k]) - top) / sum, T(1 - kUniformShare),
                             T(kUniformShare / count));
        before += p;
        e -= p * log(p);
        if_(open && draw < before, [&] {
          choice = k;
          open = draw < T(0);
        });
      });
      chosen[c] = Val<i32>(choice);
      entropy[c] = Val<T>(e);
    });
  });
}

/// symexp(bin n), bins evenly from -kBinLimit to kBinLimit.
template <class T>
Val<T> bin_value(const Val<i32>& n, int bins) {
  const Val<T> place = cast<T>(n) * T(2.0 * kBinLimit / (bins - 1)) - T(kBinLimit);
  return copysign(expm1(abs(place)), place);
}

template <class T>
HeadValues<T> two_hot_head(const HeadInput<T>& in, const HeadShape& shape) {
  const SharedArray<T> s(6 * kHeadChains), logits(shape.classes()), bins(shape.bins),
      entropy(shape.categoricals);
  const SharedArray<i32> chosen(shape.categoricals);
  const Val<i32> columns = (in.hidden + kRowChains - 1) / kRowChains * kRowChains;
  const TwoHotPlaces at(columns, shape);
  const Val<i32>& lane = in.lane;
  const auto each = [&](int count, const std::function<void(const Val<i32>&)>& body) {
    for_(0, count, in.lanes, [&](Val<i32> first) { if_(first + lane < count, [&] { body(first + lane); }); });
  };
  // Of `count` values, in 32 chains.
  const auto chains = [&](const Val<i32>& count, const std::function<void(const Val<i32>&)>& body) {
    for_(0, count, kHeadChains,
         [&](Val<i32> first) { if_(first + lane < count, [&] { body(first + lane); }); });
  };
  each(shape.classes(), [&](const Val<i32>& i) {
    logits[i] = head_product<T>(in, at.projection, shape.classes(), i) + in.head[at.projection_bias + i];
  });
  if_(lane < kHeadChains, [&] {
    Var<T> square = T(0);
    chains(in.rows, [&](const Val<i32>& i) { square = fma(in.h(i), in.h(i), Val<T>(square)); });
    s[lane] = Val<T>(square);
  });
  barrier();
  sample_states<T>(in, shape, logits, chosen, entropy);
  barrier();
  each(shape.bins, [&](const Val<i32>& n) {
    Var<T> v = head_product<T>(in, at.bins, shape.bins, n) + in.head[at.bins_bias + n];
    for_(0, shape.categoricals, [&](Val<i32> c) {
      const Val<i32> state = c * shape.categorical_classes + Val<i32>(chosen[c]);
      v += in.head[at.state_bins + state * shape.bins + n];
    });
    bins[n] = Val<T>(v);
  });
  barrier();
  if_(lane < kHeadChains, [&] {
    Var<T> top = Val<T>(bins[0]), e = T(0);
    chains(shape.bins, [&](const Val<i32>& n) { top = max(Val<T>(top), Val<T>(bins[n])); });
    chains(shape.categoricals, [&](const Val<i32>& c) { e += Val<T>(entropy[c]); });
    s[lane + kHeadChains] = Val<T>(top);
    s[lane + 2 * kHeadChains] = Val<T>(e);
  });
  barrier();
  const Val<T> top = chain_max<T>(s, 1);
  if_(lane < kHeadChains, [&] {
    Var<T> sum = T(0), weighted = T(0);
    chains(shape.bins, [&](const Val<i32>& n) {
      const Val<T> e = exp(Val<T>(bins[n]) - top);
      sum += e;
      weighted = fma(e, bin_value<T>(n, shape.bins), Val<T>(weighted));
    });
    s[lane + 3 * kHeadChains] = Val<T>(sum);
    s[lane + 4 * kHeadChains] = Val<T>(weighted);
  });
  barrier();
  const Val<T> sum = chain_sum<T>(s, 3), mean = chain_sum<T>(s, 4) / sum;
  if_(lane < kHeadChains, [&] {
    Var<T> spread = T(0);
    chains(shape.bins, [&](const Val<i32>& n) {
      const Val<T> off = bin_value<T>(n, shape.bins) - mean;
      spread = fma(exp(Val<T>(bins[n]) - top), off * off, Val<T>(spread));
    });
    s[lane + 5 * kHeadChains] = Val<T>(spread);
  });
  barrier();
  return {mean, sqrt(chain_sum<T>(s, 0)), chain_sum<T>(s, 2) / T(shape.categoricals),
          chain_sum<T>(s, 5) / sum};
}

template <class T>
HeadValues<T> head_of(const HeadInput<T>& in, const HeadShape& shape) {
  return shape.heads == Heads::classic ? classic_head<T>(in) : two_hot_head<T>(in, shape);
}

/// Losses, norms, entropies and, of two-hot heads, variances, by lane 0.
template <class T, class O>
void put_values(const HeadInput<T>& in, const HeadShape& shape, const HeadValues<T>& v, const O& out,
                const Val<i32>& group) {
  if_(in.lane == 0, [&] {
    out(0, group, in.step) = v.loss;
    out(1, group, in.step) = v.norm;
    out(2, group, in.step) = v.entropy;
    if (shape.heads == Heads::two_hot) out(3, group, in.step) = v.variance;
  });
}

}  // namespace lockstep::forecast
