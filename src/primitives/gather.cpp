// Gather over rows in compressed form: one lane adds a row's entries in stored order.
#include <fmt/format.h>

#include <optional>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/tree.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kTile = 2048;  // entries in shared memory

/// Rows r … r + 255 by a group: all lanes fetch the group's entries tile by tile into shared memory, where
/// each lane adds those of its row in order. So loads run along the entries and overlap, however long the
/// rows are.
template <class T>
void gather(const Group<2>& g, const Grid<i32, 1>& first, const Grid<i32, 1>& columns,
            const Grid<T, 1>* weights, const Grid<T, 2>& x, const Out<T, 2>& y) {
  const Val<i32> lane = g.lane(), rows = y.size(0), component = g.id(1);
  const Val<i32> first_row = g.id(0) * kLanes, row = first_row + lane;
  const Val<i32> begin = uniform(first[first_row]), end = uniform(first[min(first_row + kLanes, rows)]);
  Var<i32> own_begin = 0, own_end = 0;
  if_(row < rows, [&] {
    own_begin = first[row];
    own_end = first[row + 1];
  });
  const SharedArray<T> values(kTile);
  std::optional<SharedArray<T>> factors;
  if (weights) factors.emplace(kTile);
  Var<T> sum = T(0);
  for_(begin, end, kTile, [&](Val<i32> tile) {
    for (int k = 0; k < kTile; k += kLanes) {
      const Val<i32> entry = tile + lane + k;
      if_(entry < end, [&] {
        values[lane + k] = x(columns[entry], component);
        if (weights) (*factors)[lane + k] = (*weights)[entry];
      });
    }
    barrier();
    for_(max(own_begin, tile), min(own_end, tile + kTile), [&](Val<i32> entry) {
      const Val<T> value = values[entry - tile];
      sum = weights ? multiply_add(Val<T>((*factors)[entry - tile]), value, Val<T>(sum)) : sum + value;
    });
    barrier();
  });
  if_(row < rows, [&] { y(row, component) = sum; });
}

}  // namespace

template <class T>
const Kernel& gather_rows_kernel(bool weighted) {
  static const KernelOptions options{{kLanes, 1, 1}, 0};
  static const Kernel plain = kernel(
      kernel_name<T>("gather_rows"),
      [](Group<2> g, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 2> x, Out<T, 2> y) {
        gather<T>(g, first, columns, nullptr, x, y);
      },
      options);
  static const Kernel with_weights = kernel(
      kernel_name<T>("gather_rows.weighted"),
      [](Group<2> g, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 1> weights, Grid<T, 2> x,
         Out<T, 2> y) { gather<T>(g, first, columns, &weights, x, y); },
      options);
  return weighted ? with_weights : plain;
}

void gather_rows(const Device& device, const Rows& rows, const Buffer& x, const Buffer& y,
                 const Stream& stream) {
  const auto where = "primitives::gather_rows";
  expect_flat(x, where);
  const int rank = x.shape().rank();
  if (rank > 2 || !y || y.shape().rank() != rank || (rank == 2 && y.shape()[1] != x.shape()[1]))
    throw InputError(fmt::format("x {} and y {}", to_string(x.shape()), to_string(y.shape())), where,
                     "rank 1 or 2, as many columns as each other");
  const int64_t width = rank == 2 ? x.shape()[1] : 1, count = y.shape()[0], entries = rows.columns.elements();
  expect_flat(y, x.storage(), count * width, where);
  expect_flat(rows.first, Storage::i32, count + 1, where);
  expect_flat(rows.columns, Storage::i32, entries, where);
  if (entries > INT32_MAX - kTile || count > INT32_MAX - kLanes)
    throw InputError(fmt::format("{} rows with {} entries", count, entries), where,
                     "fewer than 2^31 - 2048 of each");
  if (rows.weights) expect_flat(rows.weights, x.storage(), entries, where);
  const Buffer from = x.reshape({x.shape()[0], width}), to = y.reshape({count, width});
  if (y.elements() == 0) return;
  const Extent groups{width, divide_up(count, kLanes)};
  with_element(x.storage(), where, [&]<class T>(T) {
    if (rows.weights)
      device.launch_on(stream, gather_rows_kernel<T>(true), groups, rows.first, rows.columns, rows.weights,
                       from, to);
    else
      device.launch_on(stream, gather_rows_kernel<T>(false), groups, rows.first, rows.columns, from, to);
  });
}

template const Kernel& gather_rows_kernel<f32>(bool);
template const Kernel& gather_rows_kernel<f64>(bool);
template const Kernel& gather_rows_kernel<i32>(bool);
template const Kernel& gather_rows_kernel<u32>(bool);

}  // namespace lockstep::primitives
