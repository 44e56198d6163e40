#include "primitives/products/cases.hpp"

#include <cmath>

#include "core/numbers/half.hpp"
#include "lockstep/primitives.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/products.hpp"
#include "primitives/products/tensor/tensor.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace primitives {

struct ProductSizes {
  int64_t count = 1, rows = 0, depth = 0, columns = 0;
  bool batch = false;
  Shape shape(int64_t i, int64_t j) const { return batch ? Shape{count, i, j} : Shape{i, j}; }
};

}  // namespace primitives

namespace {

namespace prim = primitives;

template <class E>
using SumOf = std::conditional_t<std::is_same_v<E, f64>, f64, f32>;

template <class E>
E rounded(SumOf<E> v) {
  if constexpr (std::is_same_v<E, f16>)
    return {f32_to_f16(v)};
  else if constexpr (std::is_same_v<E, bf16>)
    return {f32_to_bf16(v)};
  else
    return v;
}
float widened(f16 v) { return f16_to_f32(v.bits); }
float widened(bf16 v) { return bf16_to_f32(v.bits); }
float widened(float v) { return v; }
double widened(double v) { return v; }

template <class E>
std::vector<E> random_elements(int64_t count, uint64_t seed) {
  std::vector<E> data(static_cast<size_t>(count));
  cases::Random random(seed);
  for (E& v : data) v = rounded<E>(SumOf<E>(random.uniform(-1, 1)));
  return data;
}

prim::ProductSizes sizes_of(const std::string& text) {
  const std::vector<int64_t> n = parse_size(text);
  if (n.size() != 3 && n.size() != 4)
    throw InputError("size " + text, "primitives.matmul", "m x k x n, with a count before them or without");
  const bool batch = n.size() == 4;
  return {batch ? n[0] : 1, n[batch], n[size_t(batch) + 1], n[size_t(batch) + 2], batch};
}

template <class E, class C>
std::vector<C> reference_product(const std::vector<E>& a, const std::vector<E>& b,
                                 const prim::ProductSizes& s) {
  std::vector<C> c(size_t(s.count * s.rows * s.columns));
  std::vector<SumOf<E>> sums(static_cast<size_t>(s.columns));
  for (int64_t n = 0; n < s.count; ++n)
    for (int64_t i = 0; i < s.rows; ++i) {
      std::fill(sums.begin(), sums.end(), SumOf<E>(0));
      for (int64_t k = 0; k < s.depth; ++k) {
        const SumOf<E> left = widened(a[size_t((n * s.rows + i) * s.depth + k)]);
        const E* right = b.data() + (n * s.depth + k) * s.columns;
        for (size_t j = 0; j < sums.size(); ++j) sums[j] = std::fma(left, widened(right[j]), sums[j]);
      }
      for (size_t j = 0; j < sums.size(); ++j)
        c[size_t((n * s.rows + i) * s.columns) + j] = rounded<C>(sums[j]);
    }
  return c;
}

/// `multiply(device, a, b, c)` launches it.
template <class E, class C, class Multiply>
CaseProblem make_problem(const prim::ProductSizes& s, uint64_t seed, Multiply multiply) {
  using Elements = std::shared_ptr<const std::vector<E>>;
  const Elements x = std::make_shared<std::vector<E>>(random_elements<E>(s.count * s.rows * s.depth, seed)),
                 y = std::make_shared<std::vector<E>>(
                     random_elements<E>(s.count * s.depth * s.columns, seed + 1));
  CaseProblem p;
  p.reference = [=] {
    return std::vector{Array::of(reference_product<E, C>(*x, *y, s), s.shape(s.rows, s.columns))};
  };
  p.bind = [=](const Device& device) {
    const Buffer a = device.upload(std::span<const E>(*x), s.shape(s.rows, s.depth)),
                 b = device.upload(std::span<const E>(*y), s.shape(s.depth, s.columns)),
                 c = device.allocate<C>(s.shape(s.rows, s.columns));
    return CaseRun{[=] { multiply(device, a, b, c); }, [=] { return std::vector{device.download(c)}; }};
  };
  const double inputs = double(s.count) * double(s.rows * s.depth + s.depth * s.columns);
  p.bytes = inputs * sizeof(E) + double(s.count * s.rows * s.columns) * sizeof(C);
  p.flops = 2.0 * double(s.count) * double(s.rows) * double(s.depth) * double(s.columns);
  return p;
}

/// `E` times `E` to `C`; by the vendor's library in fast numerics where there is one.
template <class E, class C>
Case product_case(const std::string& ending, bool tf32 = false) {
  Case c;
  c.name = "primitives.matmul." + ending;
  c.dtype = std::string(name(kStorageOf<E>));
  c.small = {"1x1x1", "17x5x33", "64x64x64", "100x130x75", "3x40x20x70", "2x50x49x60"};
  c.full = {"300x257x301", "512x512x512"};
  c.bench = {"1024x1024x1024", "4096x4096x4096"};
  // A sum that is rounded differently in f32 may fall to the other side of a 16-bit number.
  const bool narrow = sizeof(C) == 2;
  c.webgpu = Bound::relative(narrow ? 1e-3 : 1e-5);
  c.needs_f64 = sizeof(C) == 8;
  // tf32: both factors lose up to 2^-11.
  c.fast = Bound::relative(tf32 || narrow ? 1e-3 : sizeof(C) == 8 ? 1e-13 : 1e-5);
  c.kernels = [] {
    constexpr Storage kFrom = kStorageOf<E>, kTo = kStorageOf<C>;
    if constexpr (std::is_same_v<E, C> && sizeof(E) >= 4)
      return std::vector{prim::matmul_kernel<E>(prim::Product::columns, false)};
    else
      return std::vector{
          prim::narrow_matmul_kernel(kFrom, kTo, false), prim::narrow_matmul_kernel(kFrom, kTo, true),
          prim::narrow_copy_kernel(kFrom, true, false),  prim::narrow_copy_kernel(kFrom, true, true),
          prim::narrow_copy_kernel(kFrom, false, false), prim::narrow_copy_kernel(kFrom, false, true)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    return make_problem<E, C>(sizes_of(size), seed,
                              [=](const Device& d, const Buffer& a, const Buffer& b, const Buffer& to) {
                                prim::matmul(d, a, b, to, {}, {.library = true, .tf32 = tf32});
                              });
  };
  return c;
}

}  // namespace

template <class T>
Case primitives::matmul_case(std::optional<Product> form) {
  const bool wide = form == Product::wide_64 || form == Product::wide || form == Product::slim_wide;
  const char* endings[] = {"", "", ".tiles", ".wide", ".wide_64", "", "", ".slim", ".slim_wide"};
  Case c;
  c.dtype = std::string(name(kStorageOf<T>));
  c.name = std::string("primitives.matmul") + (form ? endings[size_t(*form)] : "") +
           (std::is_same_v<T, f32> ? "" : "." + c.dtype);
  c.needs_f64 = sizeof(T) == 8;
  c.small = {"1x1x1", "17x5x33", "64x64x64", "100x130x75", "3x40x20x70"};
  c.full = {"300x257x301"};
  if (wide) {
    c.small = {"4x4x4", "17x20x36", "140x64x132", "2x40x24x72"};
    c.full = {"300x260x304"};
  }
  c.bench = {"1024x1024x1024", "64x128x128x128"};
  c.webgpu = Bound::relative(1e-5);
  c.fast = Bound::relative(sizeof(T) == 4 ? 1e-5 : 1e-13);
  c.kernels = [=] {
    const auto own = form.value_or(Product::columns);
    std::vector all{matmul_kernel<T>(own, false), matmul_kernel<T>(own, true)};
    if (!form)
      all.insert(all.end(),
                 {matmul_kernel<T>(Product::packed, true), pack_kernel<T>(true), pack_kernel<T>(false)});
    return all;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const ProductSizes s = sizes_of(size);
    return make_problem<T, T>(
        s, seed, [=](const Device& d, const Buffer& a, const Buffer& b, const Buffer& to) {
          if (!form) return matmul(d, a, b, to);
          const auto [down, across] = product_tile(*form, to.storage());
          d.launch(matmul_kernel<T>(*form, s.batch),
                   s.shape((s.rows + down - 1) / down, (s.columns + across - 1) / across), a, b, to);
        });
  };
  return c;
}
template Case primitives::matmul_case<f32>(std::optional<Product>);
template Case primitives::matmul_case<f64>(std::optional<Product>);

/// By tensor cores where the device has them, else by columns.
Case primitives::tensor_case(Product form) {
  Case c;
  c.dtype = std::string(name(Storage::f64));
  c.name =
      form == Product::tensor_64 ? "primitives.matmul.tensor_64.f64" : "primitives.matmul.tensor_128.f64";
  c.needs_f64 = true;
  c.small = {"1x1x1", "17x5x33", "64x64x64", "100x130x75", "140x66x132", "3x40x20x70", "2x7x9x5"};
  c.full = {"300x257x301", "512x512x512", "4x257x128x384"};
  c.bench = {"1024x1024x1024", "4096x4096x4096"};
  c.fast = Bound::relative(1e-13);
  c.kernels = [] {
    return std::vector{matmul_kernel<f64>(Product::columns, false),
                       matmul_kernel<f64>(Product::columns, true)};
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    return make_problem<f64, f64>(
        sizes_of(size), seed, [=](const Device& d, const Buffer& a, const Buffer& b, const Buffer& to) {
          const bool applies = no_tensor_cores(d, Storage::f64).empty();
          multiply_by(d, {}, {a, b, to}, {},
                      matmul_computation().variant(int(applies ? form : Product::columns)));
        });
  };
  return c;
}

void add_product_cases(CaseRegistry& registry) {
  registry.add(primitives::tensor_case(primitives::Product::tensor_64));
  registry.add(primitives::tensor_case(primitives::Product::tensor_128));
  registry.add(product_case<bf16, bf16>("bf16"));
  registry.add(product_case<bf16, f32>("bf16.f32"));
  registry.add(product_case<f16, f16>("f16"));
  registry.add(product_case<f16, f32>("f16.f32"));
  registry.add(product_case<f32, f32>("tf32", true));
  registry.add(product_case<f32, f32>("library"));
  registry.add(product_case<f64, f64>("library.f64"));
}

}  // namespace lockstep
