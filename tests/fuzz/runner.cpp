#include "runner.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#ifdef LOCKSTEP_HAS_CUDA
#include "device/cuda/testing.hpp"
#endif
#include "device/interp/testing.hpp"

namespace lockstep::fuzz {

Runner::Runner(const std::string& device) : name_(device) {
  const bool passes = device == "interp+passes", points = device == "cuda+points";
  device_ = Device::open(passes ? "interp" : points ? "cuda" : device);
  if (passes) interp::run_all_passes(device_.backend(), true);
#ifdef LOCKSTEP_HAS_CUDA
  if (points) device::cuda::always_several_points(true);
#endif
}

namespace {
View whole_view(int rank, int64_t elements) {
  View view;
  const Shape shape = shape_of(rank, elements);
  int64_t stride = 1;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    view.shape[size_t(a)] = shape[a];
    view.strides[size_t(a)] = stride;
    stride *= shape[a];
  }
  return view;
}
}  // namespace

Contents Runner::run(const Program& p) {
  device::Backend& backend = device_.backend();
  device::CompileOptions options;
  options.windows.assign(p.buffers.size(), 1);
  const auto module = backend.compile(p.function, options);
  std::vector<device::Binding> bindings;
  memory_.resize(std::max(memory_.size(), p.buffers.size()));
  for (size_t k = 0; k < p.buffers.size(); ++k) {
    const int64_t bytes = int64_t(p.buffers[k].size()),
                  elements = bytes / size_of(p.function.buffers[k].storage);
    if (!memory_[k] || memory_[k]->bytes < bytes)
      memory_[k] = backend.allocate((bytes + 65535) / 65536 * 65536);
    backend.upload(nullptr, *memory_[k], 0, p.buffers[k].data(), bytes);
    device::Binding b;
    b.memory = memory_[k].get();
    const View view = p.views.empty() ? whole_view(p.function.buffers[k].rank, elements) : p.views[k];
    b.shape = view.shape;
    b.strides = view.strides;
    b.offset_bytes = view.offset * size_of(p.function.buffers[k].storage);
    b.span_bytes = bytes - b.offset_bytes;
    bindings.push_back(b);
  }
  device::Dispatch d;
  d.module = module.get();
  d.extent = p.extent;
  for (int a = 0; a < 3; ++a)
    d.count[a] = p.function.domain == ir::Domain::groups
                     ? p.extent[a]
                     : (p.extent[a] + module->group[a] - 1) / module->group[a];
  d.buffers = bindings;
  d.scalars = p.scalars;
  backend.dispatch(d);
  backend.synchronize(nullptr);
  Contents result(p.buffers.size());
  for (size_t k = 0; k < p.buffers.size(); ++k) {
    result[k].resize(p.buffers[k].size());
    backend.download(nullptr, *memory_[k], 0, result[k].data(), int64_t(result[k].size()));
  }
  return result;
}

namespace {

bool is_nan(Storage storage, uint64_t bits) {
  switch (storage) {
    case Storage::f32: return std::isnan(std::bit_cast<float>(uint32_t(bits)));
    case Storage::f64: return std::isnan(std::bit_cast<double>(bits));
    case Storage::f16: return (bits & 0x7fff) > 0x7c00;
    case Storage::bf16: return (bits & 0x7fff) > 0x7f80;
    default: return false;
  }
}

}  // namespace

std::string difference(const Program& p, const Contents& a, const Contents& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k]) continue;
    const Storage storage = p.function.buffers[k].storage;
    const size_t size = size_t(size_of(storage));
    for (size_t e = 0; e * size < a[k].size(); ++e) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, a[k].data() + e * size, size);
      std::memcpy(&y, b[k].data() + e * size, size);
      if (x == y || (is_nan(storage, x) && is_nan(storage, y))) continue;
      if (p.function.name.ends_with(".webgpu") && storage == Storage::f32 && ((x | y) & 0x7fffffffu) == 0)
        continue;
      return fmt::format("buffer {} ({}) element {}: {:#x} and {:#x}", p.function.buffers[k].name,
                         lockstep::name(storage), e, x, y);
    }
  }
  return {};
}

}  // namespace lockstep::fuzz
