// Sums by the lanes of a group, a chain each, in the order of kernels.hpp, of any number of columns.
#pragma once

#include <functional>
#include <vector>

#include "forecast/rollout/kernels.hpp"

namespace lockstep::forecast {

/// Of element k of number `which` of several rows of weights or of several vectors.
template <class T>
using NumberedRead = std::function<Val<T>(int which, const Val<i32>& k)>;

/// Of `rows` rows of weights, each with `vectors` vectors: number row * vectors + vector; all lanes get all of them.
/// `rest`: columns need not be a multiple of kChains.
template <class T>
std::vector<Val<T>> lane_chain_sums(int rows, int vectors, const Val<i32>& columns, bool rest,
                                    const Val<i32>& lane, const NumberedRead<T>& weight,
                                    const NumberedRead<T>& x) {
  const auto count = size_t(rows) * size_t(vectors);
  std::vector<Var<T>> sums;
  sums.reserve(count);
  for (size_t s = 0; s < count; ++s) sums.emplace_back(T(0));
  const auto add = [&](const Val<i32>& k, auto put) {
    std::vector<Val<T>> v;
    for (int i = 0; i < vectors; ++i) v.push_back(x(i, k));
    size_t s = 0;
    for (int r = 0; r < rows; ++r) {
      const Val<T> w = weight(r, k);
      for (int i = 0; i < vectors; ++i, ++s) put(sums[s], fma(w, v[size_t(i)], Val<T>(sums[s])));
    }
  };
  const Val<i32> whole = rest ? columns / kChains * kChains : columns;
  for_(0, whole, kChains,
       [&](Val<i32> first) { add(first + lane, [](Var<T>& sum, const Val<T>& v) { sum = v; }); });
  if (rest)
    if_(whole < columns, [&] {
      const Val<i32> k = whole + lane;
      add(min(k, columns - 1),
          [&](Var<T>& sum, const Val<T>& v) { sum = select(k < columns, v, Val<T>(sum)); });
    });
  std::vector<Val<T>> totals;
  for (const Var<T>& sum : sums) totals.push_back(group_sum(Val<T>(sum)));
  return totals;
}

}  // namespace lockstep::forecast
