// Products and transforms for `lockstep tune`.
#include <cmath>

#include "primitives/fft/plan.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/products.hpp"
#include "verify/inputs.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;
using variants::VariantMemory;

Buffer random_square(const Device& device, Storage storage, int64_t n, uint64_t seed) {
  return device.upload(Array::of(cases::uniform<float>(n * n, seed), {n, n}).to(storage));
}

CaseRun square_product(const Device& device, Storage storage, int64_t n, std::string_view variant) {
  const std::array<Buffer, 3> abc{random_square(device, storage, n, 1), random_square(device, storage, n, 2),
                                  device.allocate(storage, {n, n})};
  const primitives::ProductOptions options{.library = variant == "library"};
  const std::string how = variant == "kernels" ? "" : std::string(variant);
  primitives::multiply_by(device, {}, {abc[0], abc[1], abc[2]}, options,
                          how);  // one that does not apply throws here
  return {[=] { primitives::multiply_by(device, {}, {abc[0], abc[1], abc[2]}, options, how); },
          [=] { return std::vector<Array>{device.download(abc[2])}; }};
}

Subject product_subject(Storage storage) {
  Subject s;
  s.computation = &primitives::matmul_computation();
  s.of = name(storage);
  s.host = {"least_side", {16, 24, 32, 40, 48, 64, 96, 192}};
  s.gpu = {"waves", {64, 128, 256, 512, 768, 1024, 1280, 1408, 1536, 1792, 2048, 3072}};
  s.small = {4, 20, 64};
  s.position = [=](const Device& device, int64_t n) {
    if (capabilities_of(device).host_memory) return double(n);
    const double side = double(n) / primitives::product_tile(primitives::Product::wide, storage).rows;
    return side * side / std::max(2, device.info().multiprocessors);
  };
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    return square_product(device, storage, n, variant);
  };
  s.memory = [=](const Device&, int64_t n, std::string_view variant) {
    const auto form = primitives::Product(primitives::matmul_computation().number(variant));
    return VariantMemory{3 * size_of(storage) * n * n,
                         primitives::plain_scratch(form, storage, {n, n}, {n, n})};
  };
  return s;
}

Subject narrow_subject() {
  Subject s;
  s.computation = &primitives::narrow_computation();
  s.host = {"least_side", {16, 24, 32, 48, 64, 96, 128, 256}};
  s.gpu = {"terms", s.host.sizes};
  s.small = {5, 50};
  s.position = [](const Device&, int64_t n) { return double(n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    return square_product(device, Storage::bf16, n, variant);
  };
  s.memory = [](const Device& device, int64_t n, std::string_view variant) {
    const Shape square{n, n};
    return VariantMemory{
        6 * n * n,
        variant == "copies" ? primitives::copies_scratch(device, square, square, square, Storage::bf16) : 0};
  };
  return s;
}

Subject library_subject(Storage storage, const char* of) {
  Subject s;
  s.computation = &primitives::library_computation();
  s.of = of;
  s.gpu = {"operations", {16, 24, 32, 48, 64, 80, 96, 128, 256}};
  s.small = {32};
  s.fast_only = true;
  s.position = [](const Device&, int64_t n) { return double(n * n * n); };
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    return square_product(device, storage, n, variant);
  };
  s.no_memory = "the vendor's library allocates for itself, kernels as their own computations say";
  return s;
}

FftOptions transform_of(int64_t n, std::string_view variant) {
  FftOptions options;
  options.lengths = {n, n};
  options.variant = variant;
  return options;
}

Subject transform_subject() {
  Subject s;
  s.computation = &primitives::fft::fft_computation();
  s.host = s.gpu = {"points", {16, 32, 64, 128, 256, 512, 1024}};
  s.small = {4, 15, 32};
  s.position = [](const Device&, int64_t n) { return double(n * n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    const Fft plan(device, transform_of(n, variant));
    const Buffer x = device.upload(Array::of(cases::uniform<float>(2 * n * n, 3), {n, n, 2})),
                 y = device.allocate<float>({n, n, 2});
    return CaseRun{[=] { plan.execute(x, y); }, [=] { return std::vector<Array>{device.download(y)}; }};
  };
  s.memory = [](const Device& device, int64_t n, std::string_view variant) {
    const auto form = primitives::fft::Form(primitives::fft::fft_computation().number(variant));
    return VariantMemory{16 * n * n,
                         primitives::fft::plan_bytes(transform_of(n, variant), {form, device.info().limits})};
  };
  return s;
}

}  // namespace

void add_primitive_variants(std::vector<Subject>& subjects) {
  subjects.push_back(product_subject(Storage::f32));
  subjects.push_back(product_subject(Storage::f64));
  subjects.push_back(narrow_subject());
  subjects.push_back(library_subject(Storage::f32, "f32"));
  subjects.push_back(library_subject(Storage::f64, "f64"));
  subjects.push_back(library_subject(Storage::f16, "narrow"));
  subjects.push_back(transform_subject());
}

}  // namespace lockstep
