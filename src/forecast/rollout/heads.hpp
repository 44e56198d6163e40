// The heads inside a kernel: from h to loss, norm, entropy and variance, by all lanes of a group. Lanes beyond the first
// 32 help where rows are many; no bit depends on them.
#pragma once

#include <functional>
#include <vector>

#include "core/numbers/random.hpp"
#include "forecast/rollout/kernels.hpp"
#include "lockstep/kernel/vec.hpp"
#include "nn/two_hot.hpp"

namespace lockstep::forecast {

/// An element of h, r h or z by its row.
template <class T>
using Read = std::function<Val<T>(const Val<i32>& row)>;

/// v[0] combined with the others by halves; v has 2^n elements.
template <class T, class Combine>
Val<T> tree(std::vector<Val<T>> v, Combine combine) {
  for (size_t half = v.size() / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) v[k] = combine(v[k], v[k + half]);
    v.erase(v.begin() + int64_t(half), v.end());
  }
  return v[0];
}

/// Rows of `count` matrices times a vector of `columns` elements, a multiple of kChains; kAtOnce chains at a time, so that
/// their sums stay in registers, in the order in which the columns are packed (chain_place).
template <class T>
std::vector<Val<T>> chain_products(int count, const Val<i32>& columns,
                                   const std::function<Val<T>(int matrix, const Val<i32>& place)>& weight,
                                   const Read<T>& x) {
  const auto add = [](const Val<T>& a, const Val<T>& b) { return a + b; };
  const auto chains_from = [&](int first) {
    VarArray<T, 2 * kAtOnce> sum(T(0));
    const Val<i32> begin = columns * first / kChains;
    for_(0, columns / (kChains / kAtOnce), kAtOnce, [&](Val<i32> k) {
      for (int j = 0; j < kAtOnce; ++j) {
        const Val<T> v = x(k * (kChains / kAtOnce) + (first + j));
        for (int c = 0; c < count; ++c)
          sum[c * kAtOnce + j] = fma(weight(c, begin + k + j), v, Val<T>(sum[c * kAtOnce + j]));
      }
    });
    std::vector<Val<T>> values;
    for (int k = 0; k < count * kAtOnce; ++k) values.push_back(sum[k]);
    return values;
  };
  // Of the chains first + j after those at distances 16 … `distance` were added.
  const std::function<std::vector<Val<T>>(int, int)> added = [&](int first, int distance) {
    if (distance == kChains) return chains_from(first);
    std::vector<Val<T>> a = added(first, 2 * distance), b = added(first + distance, 2 * distance);
    for (size_t k = 0; k < a.size(); ++k) a[k] = a[k] + b[k];
    return a;
  };
  const std::vector<Val<T>> last = added(0, kAtOnce);
  std::vector<Val<T>> products;
  for (int c = 0; c < count; ++c)
    products.push_back(tree<T>({last.begin() + c * kAtOnce, last.begin() + (c + 1) * kAtOnce}, add));
  return products;
}

/// Input of a head. h is visible to all lanes.
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

/// Combines the values at `first` … `first` + 31, all lanes alike.
template <class T, class Combine>
Val<T> chain_tree(const SharedArray<T>& s, int first, Combine combine) {
  std::vector<Val<T>> v;
  for (int k = 0; k < kChains; ++k) v.push_back(s[first + k]);
  return tree<T>(std::move(v), combine);
}
template <class T>
Val<T> chain_sum(const SharedArray<T>& s, int number) {
  return chain_tree<T>(s, number * kChains, [](const Val<T>& a, const Val<T>& b) { return a + b; });
}
template <class T>
Val<T> chain_max(const SharedArray<T>& s, int number) {
  return chain_tree<T>(s, number * kChains, [](const Val<T>& a, const Val<T>& b) { return max(a, b); });
}

/// Words of shared memory that the head needs in addition to h.
inline int64_t head_words(const HeadShape& shape) {
  return shape.heads == Heads::classic ? 6 * kChains
                                       : 6 * kChains + shape.classes() + shape.bins + shape.categoricals;
}

/// Subtracted from logits: their greatest, where it is far from 0. Else no exponential overflows and the sum is no less than
/// e^-8; what is known to keep within it need not look for the greatest (cluster/head.cu).
template <class T>
Val<T> softmax_shift(const Val<T>& greatest) {
  return select(abs(greatest) <= T(8), T(0), greatest);
}

/// Ends with a barrier before what it wrote is read, none after.
template <class T>
HeadValues<T> classic_head(const HeadInput<T>& in) {
  const SharedArray<T> s(6 * kChains);
  const Val<i32>& lane = in.lane;
  const auto logit = [&](const Val<i32>& i) { return in.h(i * in.hidden / in.states); };
  if_(lane < kChains, [&] {
    Var<T> dot = T(0), square = T(0), top = logit(0);
    for_(0, in.rows, kChains, [&](Val<i32> first) {
      const Val<i32> i = first + lane;
      const Val<T> v = in.h(i);
      dot = fma(v, in.head[i], Val<T>(dot));
      square = fma(v, v, Val<T>(square));
    });
    for_(0, in.states, kChains,
         [&](Val<i32> first) { top = max(top, logit(min(first + lane, in.states - 1))); });
    s[lane] = Val<T>(dot);
    s[lane + kChains] = Val<T>(square);
    s[lane + 2 * kChains] = Val<T>(top);
  });
  barrier();
  const Val<T> top = softmax_shift<T>(chain_max<T>(s, 2));
  if_(lane < kChains, [&] {
    Var<T> sum = T(0), weighted = T(0), logs = T(0);
    for_(0, in.states, kChains, [&](Val<i32> first) {
      const Val<i32> i = first + lane;
      if_(i < in.states, [&] {
        const Val<T> below = logit(i) - top, e = exp(below);
        sum += e;
        weighted = fma(e, in.head[in.rows + i], Val<T>(weighted));
        logs = fma(e, below, Val<T>(logs));
      });
    });
    s[lane + 3 * kChains] = Val<T>(sum);
    s[lane + 4 * kChains] = Val<T>(weighted);
    s[lane + 5 * kChains] = Val<T>(logs);
  });
  barrier();
  const Val<T> sum = chain_sum<T>(s, 3), activation = fma(chain_sum<T>(s, 4), T(1) / sum, chain_sum<T>(s, 0));
  return {max(exp(clamp(activation, T(-10), T(10))), T(1e-6)), sqrt(chain_sum<T>(s, 1)),
          log(sum) - chain_sum<T>(s, 5) / sum, T(0)};
}

/// The same by a group of 32 lanes, without shared memory of its own.
template <class T>
HeadValues<T> classic_head_of_chains(const HeadInput<T>& in) {
  const Val<i32>& lane = in.lane;
  const auto logit = [&](const Val<i32>& i) { return in.h(i * in.hidden / in.states); };
  Var<T> dot = T(0), square = T(0), greatest = logit(0);
  for_(0, in.rows, kChains, [&](Val<i32> first) {
    const Val<i32> i = first + lane;
    const Val<T> v = in.h(i);
    dot = fma(v, in.head[i], Val<T>(dot));
    square = fma(v, v, Val<T>(square));
  });
  for_(0, in.states, kChains,
       [&](Val<i32> first) { greatest = max(Val<T>(greatest), logit(min(first + lane, in.states - 1))); });
  const Val<T> top = softmax_shift<T>(group_max(Val<T>(greatest)));
  Var<T> sum = T(0), weighted = T(0), logs = T(0);
  for_(0, in.states, kChains, [&](Val<i32> first) {
    const Val<i32> i = first + lane;
    if_(i < in.states, [&] {
      const Val<T> below = logit(i) - top, e = exp(below);
      sum += e;
      weighted = fma(e, in.head[in.rows + i], Val<T>(weighted));
      logs = fma(e, below, Val<T>(logs));
    });
  });
  const Val<T> all = group_sum(Val<T>(sum)),
               activation = fma(group_sum(Val<T>(weighted)), T(1) / all, group_sum(Val<T>(dot)));
  return {max(exp(clamp(activation, T(-10), T(10))), T(1e-6)), sqrt(group_sum(Val<T>(square))),
          log(all) - group_sum(Val<T>(logs)) / all, T(0)};
}

template <class T>
Val<i32> head_columns(const HeadInput<T>& in) {
  return (in.hidden + kChains - 1) / kChains * kChains;
}

/// Row `row` of a matrix stored column by column, `count` rows each, at `base` of the head; times h.
template <class T>
Val<T> head_product(const HeadInput<T>& in, const Val<i32>& base, int count, const Val<i32>& row) {
  return chain_products<T>(
      1, head_columns(in), [&](int, const Val<i32>& k) { return Val<T>(in.head[base + k * count + row]); },
      in.h)[0];
}

/// Offsets in the head of the parts of the two-hot heads: P, P_b, V of h, V of s, V_b.
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

template <class T>
HeadValues<T> two_hot_head(const HeadInput<T>& in, const HeadShape& shape) {
  const SharedArray<T> s(6 * kChains), logits(shape.classes()), bins(shape.bins), entropy(shape.categoricals);
  const SharedArray<i32> chosen(shape.categoricals);
  const TwoHotPlaces at(head_columns(in), shape);
  const nn::TwoHotBins<T> values(shape.bins);
  const Val<i32>& lane = in.lane;
  const auto each = [&](int count, const std::function<void(const Val<i32>&)>& body) {
    for_(0, count, in.lanes, [&](Val<i32> first) { if_(first + lane < count, [&] { body(first + lane); }); });
  };
  // Of `count` values, in 32 chains.
  const auto chains = [&](const Val<i32>& count, const std::function<void(const Val<i32>&)>& body) {
    for_(0, count, kChains, [&](Val<i32> first) { if_(first + lane < count, [&] { body(first + lane); }); });
  };
  each(shape.classes(), [&](const Val<i32>& i) {
    logits[i] = head_product<T>(in, at.projection, shape.classes(), i) + in.head[at.projection_bias + i];
  });
  if_(lane < kChains, [&] {
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
  if_(lane < kChains, [&] {
    Var<T> top = Val<T>(bins[0]), e = T(0);
    chains(shape.bins, [&](const Val<i32>& n) { top = max(Val<T>(top), Val<T>(bins[n])); });
    chains(shape.categoricals, [&](const Val<i32>& c) { e += Val<T>(entropy[c]); });
    s[lane + kChains] = Val<T>(top);
    s[lane + 2 * kChains] = Val<T>(e);
  });
  barrier();
  const Val<T> top = chain_max<T>(s, 1);
  if_(lane < kChains, [&] {
    Var<T> sum = T(0), weighted = T(0);
    chains(shape.bins, [&](const Val<i32>& n) {
      const Val<T> e = exp(Val<T>(bins[n]) - top);
      sum += e;
      weighted = fma(e, values.value(n), Val<T>(weighted));
    });
    s[lane + 3 * kChains] = Val<T>(sum);
    s[lane + 4 * kChains] = Val<T>(weighted);
  });
  barrier();
  const Val<T> sum = chain_sum<T>(s, 3), mean = chain_sum<T>(s, 4) / sum;
  if_(lane < kChains, [&] {
    Var<T> spread = T(0);
    chains(shape.bins, [&](const Val<i32>& n) {
      const Val<T> off = values.value(n) - mean;
      spread = fma(exp(Val<T>(bins[n]) - top), off * off, Val<T>(spread));
    });
    s[lane + 5 * kChains] = Val<T>(spread);
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
