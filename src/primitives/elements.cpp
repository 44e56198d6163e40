// fill, copy, vector updates, transpose.
#include <fmt/format.h>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

namespace {

template <class T>
const Kernel& copy_kernel(int rank) {
  static const Kernel one =
      kernel(kernel_name<T>("copy1"), [](At<1> at, Grid<T, 1> x, Out<T, 1> r) { r[at] = x[at]; });
  static const Kernel two =
      kernel(kernel_name<T>("copy2"), [](At<2> at, Grid<T, 2> x, Out<T, 2> r) { r[at] = x[at]; });
  static const Kernel three =
      kernel(kernel_name<T>("copy3"), [](At<3> at, Grid<T, 3> x, Out<T, 3> r) { r[at] = x[at]; });
  return rank == 1 ? one : rank == 2 ? two : three;
}

constexpr int kCorner = 32, kCornerRows = 8;

}  // namespace

template <class T>
const Kernel& fill_kernel() {
  static const Kernel k =
      kernel(kernel_name<T>("fill"), [](At<2> at, Out<T, 2> x, Param<T> value) { x[at] = value; });
  return k;
}
template <class T>
const Kernel& scale_kernel() {
  static const Kernel k =
      kernel(kernel_name<T>("scale"), [](At<2> at, InOut<T, 2> x, Param<T> a) { x[at] = a * x[at]; });
  return k;
}
template <class T>
const Kernel& axpy_kernel() {
  static const Kernel k = kernel(kernel_name<T>("axpy"), [](At<2> at, Grid<T, 2> x, InOut<T, 2> y,
                                                            Param<T> a) { y[at] = fma(a, x[at], y[at]); });
  return k;
}
template <class T>
const Kernel& axpby_kernel() {
  static const Kernel k =
      kernel(kernel_name<T>("axpby"), [](At<2> at, Grid<T, 2> x, InOut<T, 2> y, Param<T> a, Param<T> b) {
        y[at] = fma(a, x[at], b * y[at]);
      });
  return k;
}
template <class T>
const Kernel& multiply_kernel() {
  static const Kernel k = kernel(kernel_name<T>("multiply"), [](At<2> at, Grid<T, 2> x, Grid<T, 2> y,
                                                                Out<T, 2> r) { r[at] = x[at] * y[at]; });
  return k;
}
template <class T>
const Kernel& transpose_kernel() {
  // A tile goes through shared memory, so that reads and writes both run along rows. The odd row length keeps
  // the column reads of a warp in different banks.
  static const Kernel k = kernel(
      kernel_name<T>("transpose"),
      [](Group<2> g, Grid<T, 2> from, Out<T, 2> to) {
        const SharedArray<T> tile(kCorner * (kCorner + 1));
        const Val<i32> x = g.local(0), y = g.local(1);
        const Val<i32> rows = from.size(0), columns = from.size(1);
        const Val<i32> column = g.id(0) * kCorner + x, first_row = g.id(1) * kCorner + y;
        for (int r = 0; r < kCorner; r += kCornerRows)
          if_(column < columns && first_row + r < rows,
              [&] { tile[(y + r) * (kCorner + 1) + x] = from(first_row + r, column); });
        barrier();
        const Val<i32> row = g.id(1) * kCorner + x, first_column = g.id(0) * kCorner + y;
        for (int r = 0; r < kCorner; r += kCornerRows)
          if_(row < rows && first_column + r < columns,
              [&] { to(first_column + r, row) = tile[x * (kCorner + 1) + y + r]; });
      },
      KernelOptions{{kCorner, kCornerRows, 1}, 0});
  return k;
}

void fill(const Device& device, const Buffer& x, double value, const Stream& stream) {
  expect_flat(x, "primitives::fill");
  with_element(x.storage(), "primitives::fill", [&]<class T>(T) {
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, fill_kernel<T>(), shape, view(x, first, shape), value);
    });
  });
}

void copy(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream) {
  const auto where = "primitives::copy";
  if (!from || !to || from.shape() != to.shape() || from.storage() != to.storage())
    throw InputError(fmt::format("{} {} to {} {}", name(from.storage()), to_string(from.shape()),
                                 name(to.storage()), to_string(to.shape())),
                     where, "buffers of one storage and shape");
  if (from.contiguous() && to.contiguous()) return device.copy(from, to, stream);
  const int rank = from.shape().rank();
  if (rank > 3)
    throw InputError(fmt::format("windows of rank {}", rank), where, "rank 1 to 3, or contiguous buffers");
  with_element(from.storage(), where,
               [&]<class T>(T) { device.launch_on(stream, copy_kernel<T>(rank), from.shape(), from, to); });
}

void scale(const Device& device, double a, const Buffer& x, const Stream& stream) {
  expect_flat(x, "primitives::scale");
  with_float(x.storage(), "primitives::scale", [&]<class T>(T) {
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, scale_kernel<T>(), shape, view(x, first, shape), a);
    });
  });
}

void axpy(const Device& device, double a, const Buffer& x, const Buffer& y, const Stream& stream) {
  expect_flat(x, "primitives::axpy");
  expect_flat(y, x.storage(), x.elements(), "primitives::axpy");
  with_float(x.storage(), "primitives::axpy", [&]<class T>(T) {
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, axpy_kernel<T>(), shape, view(x, first, shape), view(y, first, shape), a);
    });
  });
}

void axpby(const Device& device, double a, const Buffer& x, double b, const Buffer& y, const Stream& stream) {
  expect_flat(x, "primitives::axpby");
  expect_flat(y, x.storage(), x.elements(), "primitives::axpby");
  with_float(x.storage(), "primitives::axpby", [&]<class T>(T) {
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, axpby_kernel<T>(), shape, view(x, first, shape), view(y, first, shape), a, b);
    });
  });
}

void multiply(const Device& device, const Buffer& x, const Buffer& y, const Buffer& r, const Stream& stream) {
  expect_flat(x, "primitives::multiply");
  expect_flat(y, x.storage(), x.elements(), "primitives::multiply");
  expect_flat(r, x.storage(), x.elements(), "primitives::multiply");
  with_element(x.storage(), "primitives::multiply", [&]<class T>(T) {
    for_each_view(x.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, multiply_kernel<T>(), shape, view(x, first, shape), view(y, first, shape),
                       view(r, first, shape));
    });
  });
}

void transpose(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream) {
  const auto where = "primitives::transpose";
  if (!from || !to || from.shape().rank() != 2 || to.shape() != Shape{from.shape()[1], from.shape()[0]} ||
      from.storage() != to.storage())
    throw InputError(fmt::format("{} {} to {} {}", name(from.storage()), to_string(from.shape()),
                                 name(to.storage()), to_string(to.shape())),
                     where, "rank 2, one storage and transposed shapes");
  if (from.elements() == 0) return;
  with_element(from.storage(), where, [&]<class T>(T) {
    device.launch_on(stream, transpose_kernel<T>(),
                     {divide_up(from.shape()[0], kCorner), divide_up(from.shape()[1], kCorner)}, from, to);
  });
}

#define LOCKSTEP_INSTANCE(T)                   \
  template const Kernel& fill_kernel<T>();     \
  template const Kernel& multiply_kernel<T>(); \
  template const Kernel& transpose_kernel<T>();
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
LOCKSTEP_INSTANCE(i32)
LOCKSTEP_INSTANCE(u32)
#undef LOCKSTEP_INSTANCE
#define LOCKSTEP_INSTANCE(T)                \
  template const Kernel& scale_kernel<T>(); \
  template const Kernel& axpy_kernel<T>();  \
  template const Kernel& axpby_kernel<T>();
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
#undef LOCKSTEP_INSTANCE

}  // namespace lockstep::primitives
