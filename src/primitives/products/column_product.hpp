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

/// `lanes` elements of such a matrix to shared memory.
template <int lanes, int R, class T>
void copy_element(const Grid<T, R>& from, const SharedArray<T>& to, const Val<i32>& at, const Val<i32>& batch,
                  const Val<i32>& row, const Val<i32>& column) {
  if constexpr (R == 3)
    from.template copy_async<lanes>(to, at, batch, row, column);
  else
    from.template copy_async<lanes>(to, at, row, column);
}

/// Of a column and Rows rows from row0 on, as far as there are: the sums of left(row, k) right(k) in the order of k,
/// given to `put`. `T` is the type of the sums.
template <class T, int Rows, class Left, class Right, class Put>
void column_sums(const Val<i32>& row0, const Val<i32>& rows, const Val<i32>& terms, Left left, Right right,
                 Put put) {
  VarArray<T, Rows> sum(T(0));
  for_(0, terms, [&](Val<i32> k) {
    const Val<T> factor = right(k);
    for (int i = 0; i < Rows; ++i) sum[i] = fma(left(min(row0 + i, rows - 1), k), factor, sum[i]);
  });
  for (int i = 0; i < Rows; ++i) if_(row0 + i < rows, [&] { put(row0 + i, Val<T>(sum[i])); });
}

/// A lane has a column of kMatmulRows rows: a vector of lanes reads b in rows and a as single numbers.
template <class T, int R, class E, class C>
void column_product(const At<R>& at, const Grid<E, R>& a, const Grid<E, R>& b, const Out<C, R>& c) {
  const Val<i32> rows = a.size(R - 2), row0 = Val<i32>(at.y) * kMatmulRows;
  const Val<i32> column = at.x, batch = R == 3 ? Val<i32>(at.z) : column;
  column_sums<T, kMatmulRows>(
      row0, rows, a.size(R - 1),
      [&](const Val<i32>& row, const Val<i32>& k) { return Val<T>(element<R>(a, batch, row, k)); },
      [&](const Val<i32>& k) { return Val<T>(element<R>(b, batch, k, column)); },
      [&](const Val<i32>& row, const Val<T>& sum) { element<R>(c, batch, row, column) = sum; });
}

}  // namespace lockstep::primitives
