// Products of matrices. Both forms add the products of an element in the order of k, so they give the same bits.
#include <fmt/format.h>

#include "lockstep/kernel/vec.hpp"
#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kTile = kMatmulTile, kDepth = 16, kBlock = 4, kSide = kTile / kBlock,
              kTileLanes = kSide * kSide;

/// Of a batch (R = 3) or of one matrix (R = 2), which may be a window.
template <int R, class G>
auto element(const G& matrix, const Val<i32>& batch, const Val<i32>& row, const Val<i32>& column) {
  if constexpr (R == 3)
    return matrix(batch, row, column);
  else
    return matrix(row, column);
}

/// A group has a tile of c, a lane 4 rows by 4 columns of it: columns side by side belong to lanes side by side.
template <class T, int R>
void tile_product(const Group<R>& g, const Grid<T, R>& a, const Grid<T, R>& b, const Out<T, R>& c) {
  const SharedArray<T> as(kTile * kDepth), bs(kDepth * kTile);
  const Val<i32> tx = g.local(0), ty = g.local(1), lane = g.lane(), batch = g.id(R - 1);
  const Val<i32> row0 = g.id(1) * kTile, column0 = g.id(0) * kTile;
  const Val<i32> rows = a.size(R - 2), depth = a.size(R - 1), columns = b.size(R - 1);
  VarArray<T, kBlock * kBlock> sum(T(0));
  for_(0, depth, kDepth, [&](Val<i32> k0) {
    for (int p = 0; p < kTile * kDepth; p += kTileLanes) {
      const Val<i32> e = lane + p, i = e / kDepth, k = e % kDepth;
      // Rows and columns beyond the edge are computed from what stands at it and never stored.
      as[k * kTile + i] = element<R>(a, batch, min(row0 + i, rows - 1), min(k0 + k, depth - 1));
    }
    for (int p = 0; p < kDepth * kTile; p += kTileLanes) {
      const Val<i32> e = lane + p, k = e / kTile, j = e % kTile;
      bs[k * kTile + j] = element<R>(b, batch, min(k0 + k, depth - 1), min(column0 + j, columns - 1));
    }
    barrier();
    for_(0, min(depth - k0, kDepth), [&](Val<i32> k) {
      std::vector<Val<T>> left, right;
      for (int i = 0; i < kBlock; ++i) left.push_back(as[k * kTile + ty * kBlock + i]);
      for (int j = 0; j < kBlock; ++j) right.push_back(bs[k * kTile + tx + j * kSide]);
      for (int i = 0; i < kBlock; ++i)
        for (int j = 0; j < kBlock; ++j)
          sum[i * kBlock + j] = fma(left[size_t(i)], right[size_t(j)], sum[i * kBlock + j]);
    });
    barrier();
  });
  for (int i = 0; i < kBlock; ++i)
    for (int j = 0; j < kBlock; ++j) {
      const Val<i32> row = row0 + ty * kBlock + i, column = column0 + tx + j * kSide;
      if_(row < rows && column < columns, [&] { element<R>(c, batch, row, column) = sum[i * kBlock + j]; });
    }
}

/// A lane has a column of kMatmulRows rows: a vector of lanes reads b in rows and a as single numbers.
template <class T, int R>
void column_product(const At<R>& at, const Grid<T, R>& a, const Grid<T, R>& b, const Out<T, R>& c) {
  const Val<i32> rows = a.size(R - 2), row0 = Val<i32>(at.y) * kMatmulRows;
  const Val<i32> column = at.x, batch = R == 3 ? Val<i32>(at.z) : column;
  VarArray<T, kMatmulRows> sum(T(0));
  for_(0, a.size(R - 1), [&](Val<i32> k) {
    const Val<T> right = element<R>(b, batch, k, column);
    for (int i = 0; i < kMatmulRows; ++i)
      sum[i] = fma(element<R>(a, batch, min(row0 + i, rows - 1), k), right, sum[i]);
  });
  for (int i = 0; i < kMatmulRows; ++i)
    if_(row0 + i < rows, [&] { element<R>(c, batch, row0 + i, column) = sum[i]; });
}

template <class T, int R>
const Kernel& product_kernel(bool groups) {
  const std::string word = R == 3 ? "matmul.batch" : "matmul";
  static const Kernel tiles =
      kernel(kernel_name<T>(word + ".tiles"),
             [](Group<R> g, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { tile_product<T, R>(g, a, b, c); },
             {.group = {kSide, kSide, 1}});
  static const Kernel columns =
      kernel(kernel_name<T>(word),
             [](At<R> at, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { column_product<T, R>(at, a, b, c); });
  return groups ? tiles : columns;
}

bool fits(const Buffer& a, const Buffer& b, const Buffer& c) {
  if (!a || !b || !c || a.storage() != b.storage() || a.storage() != c.storage()) return false;
  const Shape &x = a.shape(), &y = b.shape(), &z = c.shape();
  const int r = x.rank();
  if ((r != 2 && r != 3) || y.rank() != r || z.rank() != r) return false;
  if (r == 3 && (x[0] != y[0] || x[0] != z[0])) return false;
  return x[r - 1] == y[r - 2] && x[r - 2] == z[r - 2] && y[r - 1] == z[r - 1];
}

}  // namespace

template <class T>
const Kernel& matmul_kernel(bool groups, bool batch) {
  return batch ? product_kernel<T, 3>(groups) : product_kernel<T, 2>(groups);
}
template const Kernel& matmul_kernel<f32>(bool, bool);
template const Kernel& matmul_kernel<f64>(bool, bool);

void matmul(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c, const Stream& stream) {
  const auto where = "primitives::matmul";
  if (!fits(a, b, c))
    throw InputError(
        fmt::format("{} {} times {} {} to {} {}", name(a.storage()), to_string(a.shape()), name(b.storage()),
                    to_string(b.shape()), name(c.storage()), to_string(c.shape())),
        where, "one storage; m x k, k x n and m x n, each with the same count before it or none");
  if (c.elements() == 0) return;
  with_float(a.storage(), where, [&]<class T>(T) {
    if (a.elements() == 0) return device.clear(c, stream);
    const bool groups = device.info().kind == DeviceKind::cuda || device.info().kind == DeviceKind::webgpu;
    Extent extent = c.shape();
    const int r = extent.rank();
    extent[r - 2] = divide_up(extent[r - 2], groups ? kTile : kMatmulRows);
    if (groups) extent[r - 1] = divide_up(extent[r - 1], kTile);
    device.launch_on(stream, matmul_kernel<T>(groups, r == 3), extent, a, b, c);
  });
}

}  // namespace lockstep::primitives
