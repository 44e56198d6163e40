// Gather over rows in compressed form: one lane a row (and column), entries in stored order.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/tree.hpp"

namespace lockstep::primitives {

namespace {

/// Calls `add` for the entries of a row in order, four at a time so that their loads overlap.
template <class Load, class Add>
void for_each_entry(const Val<i32>& begin, const Val<i32>& end, Load load, Add add) {
  for_(begin, end - 3, 4, [&](Val<i32> e) {
    const decltype(load(e)) loaded[] = {load(e), load(e + 1), load(e + 2), load(e + 3)};
    for (const auto& one : loaded) add(one);
  });
  for_(begin + (end - begin) / 4 * 4, end, [&](Val<i32> e) { add(load(e)); });
}

template <class T>
struct Entry {
  Val<T> weight, value;
};

}  // namespace

template <class T>
const Kernel& gather_rows_kernel(bool weighted) {
  static const Kernel plain =
      kernel(kernel_name<T>("gather_rows"),
             [](At<2> at, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 2> x, Out<T, 2> y) {
               Var<T> sum = T(0);
               const Val<i32> row = at.y;
               for_each_entry(
                   first[row], first[row + 1], [&](Val<i32> e) { return Val<T>(x(columns[e], at.x)); },
                   [&](const Val<T>& value) { sum = sum + value; });
               y(at.y, at.x) = sum;
             });
  static const Kernel with_weights = kernel(
      kernel_name<T>("gather_rows.weighted"),
      [](At<2> at, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 1> weights, Grid<T, 2> x, Out<T, 2> y) {
        Var<T> sum = T(0);
        const Val<i32> row = at.y;
        for_each_entry(
            first[row], first[row + 1], [&](Val<i32> e) { return Entry<T>{weights[e], x(columns[e], at.x)}; },
            [&](const Entry<T>& entry) { sum = multiply_add(entry.weight, entry.value, Val<T>(sum)); });
        y(at.y, at.x) = sum;
      });
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
  if (entries > INT32_MAX || count > INT32_MAX)
    throw InputError(fmt::format("{} rows with {} entries", count, entries), where,
                     "fewer than 2^31 of each");
  if (rows.weights) expect_flat(rows.weights, x.storage(), entries, where);
  const Buffer from = x.reshape({x.shape()[0], width}), to = y.reshape({count, width});
  with_element(x.storage(), where, [&]<class T>(T) {
    if (rows.weights)
      device.launch_on(stream, gather_rows_kernel<T>(true), {count, width}, rows.first, rows.columns,
                       rows.weights, from, to);
    else
      device.launch_on(stream, gather_rows_kernel<T>(false), {count, width}, rows.first, rows.columns, from,
                       to);
  });
}

template const Kernel& gather_rows_kernel<f32>(bool);
template const Kernel& gather_rows_kernel<f64>(bool);
template const Kernel& gather_rows_kernel<i32>(bool);
template const Kernel& gather_rows_kernel<u32>(bool);

}  // namespace lockstep::primitives
