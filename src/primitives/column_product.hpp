// The simplest form of a product, for elements of any floating-point storage.
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "lockstep/kernel/vec.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

/// Of a batch (R = 3) or of one matrix (R = 2), which may be a window.
template <int R, class G>
auto element(const G& matrix, const Val<i32>& batch, const Val<i32>& row, const Val<i32>& column) {
  if constexpr (R == 3)
    return matrix(batch, row, column);
  else
    return matrix(row, column);
}

/// A lane has a column of kMatmulRows rows: a vector of lanes reads b in rows and a as single numbers. `T` is the
/// type of the sums.
template <class T, int R, class E, class C>
void column_product(const At<R>& at, const Grid<E, R>& a, const Grid<E, R>& b, const Out<C, R>& c) {
  const Val<i32> rows = a.size(R - 2), row0 = Val<i32>(at.y) * kMatmulRows;
  const Val<i32> column = at.x, batch = R == 3 ? Val<i32>(at.z) : column;
  VarArray<T, kMatmulRows> sum(T(0));
  for_(0, a.size(R - 1), [&](Val<i32> k) {
    const Val<T> right = element<R>(b, batch, k, column);
    for (int i = 0; i < kMatmulRows; ++i)
      sum[i] = fma(Val<T>(element<R>(a, batch, min(row0 + i, rows - 1), k)), right, sum[i]);
  });
  for (int i = 0; i < kMatmulRows; ++i)
    if_(row0 + i < rows, [&] { element<R>(c, batch, row0 + i, column) = sum[i]; });
}

}  // namespace lockstep::primitives
