// Products with few results, on GPUs: a lane has one column and few rows, and groups are small, so that many of them share
// the work. A sum in the order of k takes as long as its additions wait for each other; shared memory is filled ahead.
#pragma once

#include <vector>

#include "lockstep/kernel/kernel.hpp"
#include "lockstep/kernel/wide.hpp"
#include "primitives/products/column_product.hpp"

namespace lockstep::primitives {

/// A group has `kRows` rows by `kColumns` columns of c, a line of 32 lanes `kOwnRows` rows, for each of which it reads b once;
/// `kStages` pieces of `kDepth` terms are in shared memory or on their way.
template <class T>
struct SlimTile {
  static constexpr int kLines = 4, kOwnRows = 2, kColumns = 32, kLanes = kLines * kColumns,
                       kRows = kLines * kOwnRows;
  static constexpr int kAhead = 32;  // terms that a lane reads before it adds them
  static constexpr int kQuad = 16 / int(sizeof(T)), kDepth = 256 / int(sizeof(T)), kStages = 4;
  static constexpr int kPitch = kDepth + kQuad, kLeft = kRows * kPitch, kRight = kDepth * kColumns;
  static constexpr int kBytes = kStages * (kLeft + kRight) * int(sizeof(T));
};

/// `Quads`: by copies of 16 bytes, of rows that consist of them.
template <class T, int R, bool Quads>
void slim_product(const Group<R>& g, const Grid<T, R>& a, const Grid<T, R>& b, const Out<T, R>& c) {
  using Tile = SlimTile<T>;
  constexpr int Rows = Tile::kOwnRows, kOne = Quads ? Tile::kQuad : 1;
  constexpr int kAcross = Tile::kDepth / kOne,
                kWide = Tile::kColumns / kOne;  // copies in a row of a and of b
  const SharedArray<T> as(Tile::kStages * Tile::kLeft), bs(Tile::kStages * Tile::kRight);
  const Val<i32> column = g.local(0), line = g.local(1), lane = g.lane(), batch = g.id(R - 1);
  const Val<i32> row0 = g.id(1) * Tile::kRows, column0 = g.id(0) * Tile::kColumns;
  const Val<i32> rows = a.size(R - 2), depth = a.size(R - 1), columns = b.size(R - 1);
  const Val<i32> own_row = row0 + line * Rows, pieces = (depth + (Tile::kDepth - 1)) / Tile::kDepth;
  // Elements beyond an edge are copies of those at it and never used.
  const Val<i32> left0 = lane / kAcross, left_k = lane % kAcross * kOne, right_k = lane / kWide,
                 right0 = lane % kWide * kOne, from = min(column0 + right0, columns - kOne);
  const auto fetch_terms = [&](const Val<i32>& k0, const Val<i32>& stage, const auto& within) {
    const Val<i32> left = stage * Tile::kLeft + left0 * Tile::kPitch + left_k,
                   right = stage * Tile::kRight + right_k * Tile::kColumns + right0;
    for (int i = 0; i < Tile::kRows; i += Tile::kLanes / kAcross)
      copy_element<kOne>(a, as, left + i * Tile::kPitch, batch, min(row0 + left0 + i, rows - 1),
                         within(k0 + left_k, kOne));
    for (int k = 0; k < Tile::kDepth; k += Tile::kLanes / kWide)
      copy_element<kOne>(b, bs, right + k * Tile::kColumns, batch, within(k0 + right_k + k, 1), from);
  };
  const auto fetch = [&](const Val<i32>& piece) {
    const Val<i32> k0 = piece * Tile::kDepth, stage = piece % Tile::kStages;
    if_(
        uniform(k0 <= depth - Tile::kDepth),
        [&] { fetch_terms(k0, stage, [](const Val<i32>& k, int) { return k; }); },
        [&] { fetch_terms(k0, stage, [&](const Val<i32>& k, int count) { return min(k, depth - count); }); });
  };
  VarArray<T, Rows> sum(T(0));
  for_(0, Tile::kStages - 1, [&](Val<i32> piece) {
    if_(piece < pieces, [&] { fetch(piece); });
    async_commit();
  });
  for_(0, pieces, [&](Val<i32> piece) {
    async_wait(Tile::kStages - 2);
    barrier();
    if_(piece + (Tile::kStages - 1) < pieces, [&] { fetch(piece + (Tile::kStages - 1)); });
    async_commit();
    if_(own_row < rows, [&] {
      const Val<i32> stage = piece % Tile::kStages, terms = min(depth - piece * Tile::kDepth, Tile::kDepth);
      const Val<i32> left = stage * Tile::kLeft + line * (Rows * Tile::kPitch),
                     right = stage * Tile::kRight + column, whole = terms - terms % Tile::kAhead;
      for_(0, whole, Tile::kAhead, [&](Val<i32> k) {
        std::vector<Val<T>> factor;
        for (int n = 0; n < Tile::kAhead; ++n)
          factor.push_back(bs[right + k * Tile::kColumns + n * Tile::kColumns]);
        std::vector<std::vector<Wide<T, Tile::kQuad>>> own(Rows);
        for (int n = 0; n < Tile::kAhead; n += Tile::kQuad)
          for (int i = 0; i < Rows; ++i)
            own[size_t(i)].push_back(wide<Tile::kQuad>(as, left + k + (i * Tile::kPitch + n)));
        for (int n = 0; n < Tile::kAhead; ++n)
          for (int i = 0; i < Rows; ++i)
            sum[i] = fma(own[size_t(i)][size_t(n / Tile::kQuad)][n % Tile::kQuad], factor[size_t(n)], sum[i]);
      });
      for_(whole, terms, [&](Val<i32> k) {
        const Val<T> factor = bs[right + k * Tile::kColumns];
        for (int i = 0; i < Rows; ++i) sum[i] = fma(Val<T>(as[left + k + i * Tile::kPitch]), factor, sum[i]);
      });
    });
  });
  for (int i = 0; i < Rows; ++i)
    if_(own_row + i < rows && column0 + column < columns,
        [&] { element<R>(c, batch, own_row + i, column0 + column) = sum[i]; });
}

}  // namespace lockstep::primitives
