// Which products the vendor's library computes, and the choice between it and the kernels.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "core/reports/log.hpp"
#include "core/reports/telemetry.hpp"
#include "lockstep/native.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/products.hpp"

namespace lockstep::primitives {

namespace {

constexpr const char* kCaller = "primitives::matmul";

Kernel library_kernel(Storage from, Storage to, bool batch, bool tf32) {
  static Memo<std::tuple<Storage, Storage, bool, bool>, Kernel> kernels;
  return kernels.get({from, to, batch, tf32}, [&] {
    const Kernel portable = is_narrow(from)        ? narrow_matmul_kernel(from, to, batch)
                            : from == Storage::f64 ? matmul_kernel<f64>(Product::columns, batch)
                                                   : matmul_kernel<f32>(Product::columns, batch);
    return native_kernel(portable, {.product = LibraryProduct{.tf32 = tf32}});
  });
}

/// Long sums, however few, pay for the library's call as many operations do. Of sums of f32 that are shorter than a tile is
/// wide, in whole tiles, the kernel is faster.
bool library_pays(const Device& device, const Buffer& a, const Buffer& c, bool tf32, std::string& reason) {
  constexpr int64_t kTile = 128;
  const int r = c.shape().rank();
  const int64_t depth = a.shape()[r - 1], least = std::min(c.shape()[r - 2], c.shape()[r - 1]);
  const double sums = double(depth);
  const variants::Axis axis{"operations", std::max(sums * sums * sums, double(c.elements()) * sums)};
  const std::string_view of = is_narrow(a.storage()) ? "narrow" : name(a.storage());
  const bool is_short = a.storage() == Storage::f32 && !tf32 && depth < kTile && least >= kTile;
  const variants::Choice choice = variants::choose(
      library_computation(), device, {.of = of, .axes = {&axis, 1}}, {},
      [&](int variant) { return std::string(variant == 1 && is_short ? "short sums" : ""); });
  if (choice.variant == 1) return true;
  reason = choice.refused.empty() ? "a small product" : choice.refused.front().reason;
  return false;
}

/// The library counts in 32 bits.
bool counts_fit(const Buffer& x) {
  const int r = x.shape().rank();
  bool fit = r < 3 || x.shape()[0] <= INT32_MAX;
  for (const int64_t n : {x.shape()[r - 2], x.shape()[r - 1], x.strides()[size_t(r - 2)]})
    fit &= n <= INT32_MAX;
  return fit;
}

bool fits(const Buffer& a, const Buffer& b, const Buffer& c) {
  if (!a || !b || !c || a.storage() != b.storage()) return false;
  if (c.storage() != a.storage() && !(is_narrow(a.storage()) && c.storage() == Storage::f32)) return false;
  const Shape &x = a.shape(), &y = b.shape(), &z = c.shape();
  const int r = x.rank();
  if ((r != 2 && r != 3) || y.rank() != r || z.rank() != r) return false;
  if (r == 3 && (x[0] != y[0] || x[0] != z[0])) return false;
  return x[r - 1] == y[r - 2] && x[r - 2] == z[r - 2] && y[r - 1] == z[r - 1];
}

/// Once: who multiplies. That the library is missing no level of logging hides.
void tell(const Device& device, const Support& support) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const std::string& name = device.info().name;
  if (support.ok)
    logging::info("{} on {}: cuBLAS multiplies (fast numerics)", kCaller, name);
  else
    logging::line(
        fmt::format("[lockstep] {} on {}: {}; kernels of Lockstep multiply", kCaller, name, support.reason));
  Telemetry::global().event(kCaller, {{"device", name},
                                      {"by", support.ok ? "cuBLAS" : "kernels"},
                                      {"reason", support.ok ? "fast numerics" : support.reason}});
}

void expect_product(const Buffer& a, const Buffer& b, const Buffer& c) {
  if (!fits(a, b, c))
    throw InputError(
        fmt::format("{} {} times {} {} to {} {}", name(a.storage()), to_string(a.shape()), name(b.storage()),
                    to_string(b.shape()), name(c.storage()), to_string(c.shape())),
        kCaller,
        "one storage, or f32 for the product of f16 or bf16; m x k, k x n and m x n, each with the same "
        "count "
        "before it or none");
  if (!is_narrow(a.storage())) with_float(a.storage(), kCaller, [](auto) {});
}

}  // namespace

const variants::Computation& library_computation() {
  static const variants::Computation computation({.name = "primitives.matmul.library",
                                                  .variants = {"kernels", "library"},
                                                  .axes = {"operations"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

std::optional<Kernel> library_product(const Device& device, const Factors& abc, const ProductOptions& options,
                                      std::string_view variant, std::string& reason) {
  const auto& [a, b, c] = abc;
  const auto not_taken = [&](std::string why) {
    reason = std::move(why);
    return std::nullopt;
  };
  const bool asked = variant == "library";
  if (!options.library || (!asked && !variant.empty())) return not_taken("the library was not requested");
  if (capabilities_of(device).compute_capability == 0)
    return not_taken("no library on " + device.info().name);
  if (device.numerics() == Numerics::exact) return not_taken("exact numerics");
  const bool tf32 = a.storage() == Storage::f32 && options.tf32;
  if (!asked && !library_pays(device, a, c, tf32, reason)) return std::nullopt;
  if (!counts_fit(a) || !counts_fit(b) || !counts_fit(c)) return not_taken("sizes beyond 2^31 - 1");
  const Kernel k = library_kernel(a.storage(), c.storage(), c.shape().rank() == 3, tf32);
  const Support support = device.supports(k);
  tell(device, support);
  if (!support.ok) return not_taken(support.reason);
  return k;
}

void multiply_by(const Device& device, const Stream& stream, const Factors& abc,
                 const ProductOptions& options, std::string_view variant) {
  const auto& [a, b, c] = abc;
  std::string reason;
  if (const auto library = library_product(device, abc, options, variant, reason)) {
    const Shape once = c.shape().rank() == 3 ? Shape{1, 1, 1} : Shape{1, 1};
    return device.launch_on(stream, *library, once, a, b, c);
  }
  if (variant == "library") variants::refuse(library_computation(), variant, reason);
  if (is_narrow(a.storage())) return multiply_narrow(device, stream, abc, variant);
  multiply_plain(device, stream, abc, variant);
}

void matmul(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c, const Stream& stream,
            const ProductOptions& options) {
  expect_product(a, b, c);
  if (c.elements() == 0) return;
  if (a.elements() == 0) return device.clear(c, stream);
  multiply_by(device, stream, {a, b, c}, options, {});
}

ProductPath matmul_path(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
                        const ProductOptions& options) {
  expect_product(a, b, c);
  ProductPath path;
  if (c.elements() == 0 || a.elements() == 0) return path;
  if (const auto library = library_product(device, {a, b, c}, options, {}, path.reason))
    path.kernel = library->name();
  else
    path.kernel = is_narrow(a.storage()) ? narrow_product_name(device, {a, b, c})
                                         : plain_product_name(device, {a, b, c});
  return path;
}

}  // namespace lockstep::primitives
