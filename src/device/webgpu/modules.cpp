#include "device/webgpu/modules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/webgpu/memory/windows.hpp"

namespace lockstep::device::webgpu {

WebgpuModule::WebgpuModule(std::shared_ptr<Core> core, ir::Function lowered, clike::WgslOptions options)
    : core_(std::move(core)), lowered_(std::move(lowered)), options_(std::move(options)) {
  group = clike::wgsl_group(lowered_, options_.group_lanes);
  lanes_ = group[0] * group[1] * group[2];
  const clike::PointsPlan plan = clike::wgsl_points(lowered_);
  group[size_t(plan.axis)] *= plan.points;
  folds = lowered_.rank == 1;
}

WebgpuModule::~WebgpuModule() {
  std::lock_guard lock(core_->mutex);
  for (auto& [key, variant] : variants_) core_->n.ComputePipelineRelease(variant->pipeline.handle);
}

const Variant& WebgpuModule::variant(const std::vector<clike::WgslBuffer>& buffers) {
  for (auto& [key, variant] : variants_)
    if (key == buffers) return *variant;
  clike::WgslOptions options = options_;
  options.buffers = buffers;
  auto made = std::make_unique<Variant>();
  made->source = clike::print_wgsl(lowered_, options);
  std::vector<bool> writable;
  for (const clike::WgslBinding& b : made->source.bindings) writable.push_back(b.writable);
  made->pipeline =
      core_->make_pipeline(made->source.text, lowered_.name, writable, !made->source.words.empty());
  return *variants_.emplace_back(buffers, std::move(made)).second;
}

Prepared prepare(WebgpuModule& module, const Dispatch& d, int64_t window_bytes, int64_t max_bindings,
                 WGPUBuffer loop_flag) {
  const ir::Function& f = module.function();
  std::vector<clike::WgslBuffer> how(d.buffers.size());
  std::vector<Windows> places(d.buffers.size());
  int64_t bindings = 0;
  for (size_t b = 0; b < d.buffers.size(); ++b) {
    const Binding& binding = d.buffers[b];
    const auto& memory = static_cast<const WebgpuMemory&>(*binding.memory);
    places[b] = windows_of(binding.offset_bytes, binding.span_bytes, window_bytes, memory.chunk_bytes());
    how[b].windows = places[b].count;
    how[b].has_base = places[b].base_bytes != 0;
    bindings += how[b].windows;
    // One dispatch may bind a buffer for reading or for writing, not both.
    if (f.buffers[b].access == ir::Access::read)
      for (size_t k = 0; k < d.buffers.size(); ++k)
        if (f.buffers[k].access != ir::Access::read && d.buffers[k].memory == binding.memory)
          how[b].writable = true;
  }
  if (bindings > max_bindings)
    throw DeviceError(
        DeviceFault::launch,
        fmt::format("kernel {} needs {} bindings of {} bytes for its buffers, the adapter has {}", f.name,
                    bindings, window_bytes, max_bindings));
  Prepared ready;
  ready.variant = &module.variant(how);
  const clike::WgslSource& source = ready.variant->source;
  for (const clike::WgslBinding& binding : source.bindings) {
    if (binding.buffer == clike::kLoopFlag) {
      ready.ranges.push_back({loop_flag, 0, 16});
      continue;
    }
    const Binding& b = d.buffers[binding.buffer];
    const auto& memory = static_cast<const WebgpuMemory&>(*b.memory);
    const int64_t begin = places[binding.buffer].first + binding.window * window_bytes;
    const int64_t end = std::min(b.offset_bytes + b.span_bytes, begin + window_bytes);
    ready.ranges.push_back(memory.range(begin, std::max<int64_t>(end - begin, 4)));
  }
  for (const clike::WgslWord& w : source.words) {
    using Kind = clike::WgslWord::Kind;
    switch (w.kind) {
      case Kind::extent: ready.words.push_back(uint32_t(d.extent[w.axis])); break;
      case Kind::offset: ready.words.push_back(uint32_t(d.offset[w.axis])); break;
      case Kind::shape: ready.words.push_back(uint32_t(d.buffers[w.index].shape[w.axis])); break;
      case Kind::stride: ready.words.push_back(uint32_t(d.buffers[w.index].strides[w.axis])); break;
      case Kind::scalar: ready.words.push_back(uint32_t(d.scalars[w.index])); break;
      case Kind::base:
        ready.words.push_back(uint32_t(places[w.index].base_bytes / size_of(f.buffers[w.index].storage)));
        break;
      case Kind::zero: ready.words.push_back(0); break;
      case Kind::row:
        ready.words.push_back(uint32_t(d.count[0] * (f.domain == ir::Domain::points ? module.group[0] : 1)));
        break;
    }
  }
  if (ready.words.size() * 4 > kArgumentBytes)
    throw DeviceError(DeviceFault::launch, fmt::format("kernel {} needs {} words of arguments: at most {}",
                                                       f.name, ready.words.size(), kArgumentBytes / 4));
  return ready;
}

Support wgsl_support(const ir::Function& f, const Limits& limits, const WGPULimits& hardware, int levels) {
  if (std::string refusal = clike::wgsl_refusal(f); !refusal.empty()) return {false, refusal};
  if (std::string refusal = clike::deeper_than(levels, f); !refusal.empty()) return {false, refusal};
  if (int64_t(f.buffers.size()) > limits.bindings)
    return {false,
            fmt::format("{} buffers: the adapter binds {} at once", f.buffers.size(), limits.bindings)};
  const auto group = clike::wgsl_group(f, limits.group_lanes);
  const int64_t lanes = int64_t(group[0]) * group[1] * group[2];
  if (lanes > limits.group_lanes)
    return {false, fmt::format("groups of {} lanes: the adapter has {}", lanes, limits.group_lanes)};
  const std::array<uint32_t, 3> most{hardware.maxComputeWorkgroupSizeX, hardware.maxComputeWorkgroupSizeY,
                                     hardware.maxComputeWorkgroupSizeZ};
  for (size_t a = 0; a < 3; ++a)
    if (uint32_t(group[a]) > most[a])
      return {false, fmt::format("{} lanes along {}: the adapter has {}", group[a], "xyz"[a], most[a])};
  const int64_t shared = clike::wgsl_shared_bytes(f, limits.group_lanes);
  if (shared > limits.shared_bytes)
    return {false, fmt::format("{} bytes of shared arrays: the adapter has {}", shared, limits.shared_bytes)};
  return {};
}

}  // namespace lockstep::device::webgpu
