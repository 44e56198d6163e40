// Products of 16-bit matrices: a sum is an f32 by fma in the order of k, rounded once, if at all. Small ones by one
// kernel; others from copies in f32, whose products have the same bits.
#include <fmt/format.h>

#include "device/variants/memory.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/column_product.hpp"
#include "primitives/products/products.hpp"

namespace lockstep::primitives {

namespace {

template <class E, int R>
Kernel make_copy(bool widen) {
  const std::string ending(name(kStorageOf<E>));
  if (widen)
    return kernel(fmt::format("primitives.matmul.widen{}.{}", R == 3 ? ".batch" : "", ending),
                  [](At<R> at, Grid<E, R> from, Out<f32, R> to) { to[at] = Val<f32>(from[at]); });
  return kernel(fmt::format("primitives.matmul.round{}.{}", R == 3 ? ".batch" : "", ending),
                [](At<R> at, Grid<f32, R> from, Out<E, R> to) { to[at] = Val<f32>(from[at]); });
}

template <class E, class C, int R>
Kernel make_product() {
  const auto result = std::is_same_v<C, f32> ? ".f32" : "";
  return kernel(fmt::format("primitives.matmul{}.{}{}", R == 3 ? ".batch" : "", name(kStorageOf<E>), result),
                [](At<R> at, Grid<E, R> a, Grid<E, R> b, Out<C, R> c) { column_product<f32>(at, a, b, c); });
}

template <class F>
Kernel by_storage(Storage narrow, F make) {
  return narrow == Storage::f16 ? make(f16{}) : make(bf16{});
}

bool by_copies(const Device& device, const Factors& abc, std::string_view asked) {
  const Shape &a = abc.a.shape(), &c = abc.c.shape();
  const int r = c.rank();
  const variants::Axis axes[] = {{"least_side", double(std::min({c[r - 2], c[r - 1], a[r - 1]}))},
                                 {"terms", double(a[r - 1])}};
  const auto scratch = [&](int variant) {
    return variant == 0 ? 0 : copies_scratch(device, a, abc.b.shape(), c, abc.c.storage());
  };
  return variants::choose(
             narrow_computation(), device, {.axes = axes}, asked,
             variants::with_memory(narrow_computation(), device, variants::AlwaysApplies(), scratch))
             .variant == 1;
}

}  // namespace

int64_t copies_scratch(const Device& device, const Shape& a, const Shape& b, const Shape& c,
                       Storage storage) {
  const int64_t sums = storage == Storage::f32 ? 0 : c.elements();
  return size_of(Storage::f32) * (a.elements() + b.elements() + sums) +
         plain_scratch(device, Storage::f32, a, c);
}

const variants::Computation& narrow_computation() {
  static const variants::Computation computation({.name = "primitives.matmul.narrow",
                                                  .variants = {"columns", "copies"},
                                                  .axes = {"least_side", "terms"}});
  return computation;
}

Kernel narrow_copy_kernel(Storage narrow, bool widen, bool batch) {
  static Memo<std::tuple<Storage, bool, bool>, Kernel> kernels;
  return kernels.get({narrow, widen, batch}, [&] {
    return by_storage(narrow,
                      [&]<class E>(E) { return batch ? make_copy<E, 3>(widen) : make_copy<E, 2>(widen); });
  });
}

Kernel narrow_matmul_kernel(Storage narrow, Storage result, bool batch) {
  static Memo<std::tuple<Storage, bool, bool>, Kernel> kernels;
  const bool wide = result == Storage::f32;
  return kernels.get({narrow, wide, batch}, [&] {
    return by_storage(narrow, [&]<class E>(E) {
      if (batch) return wide ? make_product<E, f32, 3>() : make_product<E, E, 3>();
      return wide ? make_product<E, f32, 2>() : make_product<E, E, 2>();
    });
  });
}

void multiply_narrow(const Device& device, const Stream& stream, const Factors& abc,
                     std::string_view variant) {
  const auto& [a, b, c] = abc;
  const int r = c.shape().rank();
  if (!by_copies(device, abc, variant)) {
    Shape extent = c.shape();
    extent[r - 2] = divide_up(extent[r - 2], kMatmulRows);
    return device.launch_on(stream, narrow_matmul_kernel(a.storage(), c.storage(), r == 3), extent, a, b, c);
  }
  const auto widened = [&](const Buffer& x) {
    const Buffer wide = device.allocate<f32>(x.shape());
    device.launch_on(stream, narrow_copy_kernel(x.storage(), true, r == 3), x.shape(), x, wide);
    return wide;
  };
  const Buffer left = widened(a), right = widened(b);
  if (c.storage() == Storage::f32) return multiply_plain(device, stream, {left, right, c});
  const Buffer sums = device.allocate<f32>(c.shape());
  multiply_plain(device, stream, {left, right, sums});
  device.launch_on(stream, narrow_copy_kernel(c.storage(), false, r == 3), c.shape(), sums, c);
}

std::string narrow_product_name(const Device& device, const Factors& abc) {
  if (by_copies(device, abc, {})) return copied_product_name(device, abc);
  return narrow_matmul_kernel(abc.a.storage(), abc.c.storage(), abc.c.shape().rank() == 3).name();
}

}  // namespace lockstep::primitives
