// Gather over rows in compressed form: one lane adds a row's entries in stored order.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "device/capabilities.hpp"
#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/sums/tree.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kGatherTile = 2048;  // values of a component in shared memory, over the components of a lane
constexpr int64_t kGatherAlong = 16;
constexpr int kMaxComponents = 4;  // columns of x that a lane adds up side by side

/// Elements from one record to the next if the components of a lane are adjacent in one array.
int record_of(int components) { return components == 2 ? 2 : 4; }

int tile_of(int components) {
  return components == 1 ? kGatherTile : components == 2 ? kGatherTile / 2 : kGatherTile / 4;
}

/// Rows r … r + 255 by a group: all lanes fetch the group's entries tile by tile into shared memory, where
/// each lane adds those of its row in order. So loads run along the entries and overlap, however long the
/// rows are, and the components next to each other are fetched together. `records`: x has just these
/// components, and they are adjacent in shared memory too.
template <class T>
void gather(const Group<2>& g, const Grid<i32, 1>& first, const Grid<i32, 1>& columns,
            const Grid<T, 1>* weights, const Grid<T, 2>& x, const Out<T, 2>& y, int components,
            bool records) {
  const int tile_size = tile_of(components);
  const Val<i32> lane = g.lane(), rows = y.size(0), width = y.size(1);
  const Val<i32> first_component = g.id(1) * components;
  const auto component = [&](int k) {
    return records ? Val<i32>(k) : k == 0 ? first_component : min(first_component + k, width - 1);
  };
  const Val<i32> first_row = g.id(0) * kLanes, row = first_row + lane;
  const Val<i32> begin = uniform(first[first_row]), end = uniform(first[min(first_row + kLanes, rows)]);
  Var<i32> own_begin = 0, own_end = 0;
  if_(row < rows, [&] {
    own_begin = first[row];
    own_end = first[row + 1];
  });
  const int record = records ? record_of(components) : 1;
  std::deque<SharedArray<T>> values;
  std::deque<Var<T>> sums;
  for (int k = 0; k < components; ++k) {
    if (!records || k == 0) values.emplace_back(tile_size * record);
    sums.emplace_back(T(0));
  }
  const auto value_at = [&](const Val<i32>& at, int k) {
    return records ? values[0][at * record + k] : values[size_t(k)][at];
  };
  std::optional<SharedArray<T>> factors;
  if (weights) factors.emplace(tile_size);
  for_(begin, end, tile_size, [&](Val<i32> tile) {
    for (int k = 0; k < tile_size; k += kLanes) {
      const Val<i32> entry = tile + lane + k;
      if_(entry < end, [&] {
        const Val<i32> column = columns[entry];
        for (int c = 0; c < components; ++c) value_at(lane + k, c) = x(column, component(c));
        for (int c = components; c < record; ++c) value_at(lane + k, c) = T(0);
        if (weights) (*factors)[lane + k] = (*weights)[entry];
      });
    }
    barrier();
    for_(max(own_begin, tile), min(own_end, tile + tile_size), [&](Val<i32> entry) {
      const Val<i32> at = entry - tile;
      for (int c = 0; c < components; ++c) {
        Var<T>& sum = sums[size_t(c)];
        const Val<T> value = value_at(at, c);
        sum = weights ? multiply_add(Val<T>((*factors)[at]), value, Val<T>(sum)) : sum + value;
      }
    });
    barrier();
  });
  if_(row < rows, [&] {
    y(row, first_component) = sums[0];
    for (int c = 1; c < components; ++c) {
      if (records)
        y(row, component(c)) = sums[size_t(c)];
      else
        if_(first_component + c < width, [&] { y(row, first_component + c) = sums[size_t(c)]; });
    }
  });
}

/// Many components: a lane has one of a row, so loads run along the components.
template <class T>
void gather_along(const At<2>& at, const Grid<i32, 1>& first, const Grid<i32, 1>& columns,
                  const Grid<T, 1>* weights, const Grid<T, 2>& x, const Out<T, 2>& y) {
  const Val<i32> row = at.y, component = at.x;
  Var<T> sum = T(0);
  for_(first[row], first[row + 1], [&](Val<i32> entry) {
    const Val<T> value = x(columns[entry], component);
    sum = weights ? multiply_add(Val<T>((*weights)[entry]), value, Val<T>(sum)) : sum + value;
  });
  y[at] = sum;
}

}  // namespace

int gather_components(int64_t width) {
  return width >= kGatherAlong ? kMaxComponents + 1 : int(std::clamp<int64_t>(width, 1, kMaxComponents));
}

template <class T>
Kernel gather_rows_kernel(bool weighted, int components, bool records) {
  static Memo<std::tuple<bool, int, bool>, Kernel> kernels;
  return kernels.get({weighted, components, records}, [&] {
    const KernelOptions options{{kLanes, 1, 1}, 0};
    const bool along = components > kMaxComponents;
    const std::string name = kernel_name<T>("gather_rows") + (weighted ? ".weighted." : ".") +
                             (along ? "along" : std::to_string(components)) + (records ? ".records" : "");
    if (along && weighted)
      return kernel(name,
                    [](At<2> at, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 1> weights, Grid<T, 2> x,
                       Out<T, 2> y) { gather_along<T>(at, first, columns, &weights, x, y); });
    if (along)
      return kernel(name, [](At<2> at, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 2> x, Out<T, 2> y) {
        gather_along<T>(at, first, columns, nullptr, x, y);
      });
    if (weighted)
      return kernel(
          name,
          [=](Group<2> g, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 1> weights, Grid<T, 2> x,
              Out<T, 2> y) { gather<T>(g, first, columns, &weights, x, y, components, records); },
          options);
    return kernel(
        name,
        [=](Group<2> g, Grid<i32, 1> first, Grid<i32, 1> columns, Grid<T, 2> x, Out<T, 2> y) {
          gather<T>(g, first, columns, nullptr, x, y, components, records);
        },
        options);
  });
}

void gather_rows(const Device& device, const Rows& rows, const Buffer& x, const Buffer& y,
                 const Stream& stream) {
  const auto where = "primitives::gather_rows";
  expect_flat(x, where);
  const int rank = x.shape().rank();
  if (rank > 2 || !y || y.shape().rank() != rank || (rank == 2 && y.shape()[1] != x.shape()[1]))
    throw InputError(fmt::format("x {} and y {}", to_string(x.shape()), to_string(y.shape())), where,
                     "rank 1 or 2 with the same number of columns");
  const int64_t width = rank == 2 ? x.shape()[1] : 1, count = y.shape()[0], entries = rows.columns.elements();
  expect_flat(y, x.storage(), count * width, where);
  expect_flat(rows.first, Storage::i32, count + 1, where);
  expect_flat(rows.columns, Storage::i32, entries, where);
  if (entries > INT32_MAX - kGatherTile || count > INT32_MAX - kLanes)
    throw InputError(fmt::format("{} rows with {} entries", count, entries), where,
                     "fewer than 2^31 - 2048 of each");
  if (rows.weights) expect_flat(rows.weights, x.storage(), entries, where);
  const Buffer from = x.reshape({x.shape()[0], width}), to = y.reshape({count, width});
  if (y.elements() == 0) return;
  const int components = gather_components(width);
  const Shape extent = components > kMaxComponents
                           ? Shape{count, width}
                           : Shape{divide_up(width, components), divide_up(count, kLanes)};
  // A CPU fetches a record with one load a lane.
  const bool records = capabilities_of(device).vectors && components > 1 && components == width;
  with_element(x.storage(), where, [&]<class T>(T) {
    const Kernel kernel = gather_rows_kernel<T>(bool(rows.weights), components, records);
    if (rows.weights)
      device.launch_on(stream, kernel, extent, rows.first, rows.columns, rows.weights, from, to);
    else
      device.launch_on(stream, kernel, extent, rows.first, rows.columns, from, to);
  });
}

template Kernel gather_rows_kernel<f32>(bool, int, bool);
template Kernel gather_rows_kernel<f64>(bool, int, bool);
template Kernel gather_rows_kernel<i32>(bool, int, bool);
template Kernel gather_rows_kernel<u32>(bool, int, bool);

}  // namespace lockstep::primitives
