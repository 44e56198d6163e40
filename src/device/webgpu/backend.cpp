#include "device/webgpu/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compile/lower.hpp"
#include "device/webgpu/adapters.hpp"
#include "device/webgpu/memory/windows.hpp"

namespace lockstep::device {

namespace webgpu {

namespace {
const WebgpuMemory& own(const Memory& memory) { return static_cast<const WebgpuMemory&>(memory); }

/// Below it a dispatch takes longer than the driver's copy.
constexpr uint64_t kLeastQuadBytes = uint64_t(1) << 20;
}  // namespace

WebgpuBackend::WebgpuBackend(const Native& native, const Adapter& adapter, int number)
    : core_(std::make_shared<Core>(native, adapter)),
      info_(device_info(adapter, number)),
      transfer_(core_),
      byte_kernels_(core_),
      events_(std::make_shared<EventPool>(core_)) {
  set_limits(info_.limits);
}

WebgpuBackend::~WebgpuBackend() = default;

void WebgpuBackend::set_limits(const Limits& limits) {
  info_.limits = limits;
  window_bytes_ = std::max<int64_t>(limits.binding_bytes & ~int64_t(255), 256);
  // A window never crosses the border of two of the adapter's buffers: each holds whole windows, as many as
  // it would without lowered limits.
  const WGPULimits& hardware = core_->adapter.limits;
  const auto per_buffer =
      int64_t(std::max<uint64_t>(hardware.maxBufferSize / hardware.maxStorageBufferBindingSize, 1));
  chunk_bytes_ = per_buffer * window_bytes_;
}

MemoryInfo WebgpuBackend::memory() const { return memory_info(core_->adapter); }

std::shared_ptr<Memory> WebgpuBackend::allocate(int64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  core_->n.DevicePoll(core_->device, false, nullptr);  // frees what finished work held
  return std::make_shared<WebgpuMemory>(core_, bytes, chunk_bytes_);
}

void WebgpuBackend::upload(Queue*, Memory& to, int64_t offset, const void* data, int64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  const auto* source = static_cast<const char*>(data);
  // WebGPU writes whole words: a kernel puts the bytes of a ragged end between those that stay.
  const int64_t head = std::min(bytes, -offset & 3), tail = (bytes - head) & 3;
  const auto put_bytes = [&](int64_t from, int64_t count) {
    if (count == 0) return;
    uint32_t word = 0;
    std::memcpy(&word, source + from, size_t(count));
    WebgpuMemory part(core_, sizeof word, chunk_bytes_);
    transfer_.upload(part, 0, &word, sizeof word);
    move_bytes(nullptr, &part, 0, own(to), offset + from, count);
  };
  put_bytes(0, head);
  if (bytes > head + tail)
    transfer_.upload(static_cast<WebgpuMemory&>(to), offset + head, source + head, bytes - head - tail);
  put_bytes(bytes - tail, tail);
}

void WebgpuBackend::download(Queue*, Memory& from, int64_t offset, void* data, int64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  core_->check_loops();
  if (bytes > 0) transfer_.download(own(from), offset, data, bytes);
}

void WebgpuBackend::copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
                         int64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  if (bytes <= 0) return;
  const bool whole_words = from_offset % 4 == 0 && to_offset % 4 == 0;
  const int64_t words = whole_words && &from != &to ? bytes & ~int64_t(3) : 0;
  own(from).for_each_part(from_offset, words, [&](WGPUBuffer source, int64_t at, int64_t done, int64_t part) {
    own(to).for_each_part(to_offset + done, part,
                          [&](WGPUBuffer target, int64_t place, int64_t inner, int64_t piece) {
                            copy_part(queue, {source, uint64_t(at + inner), uint64_t(piece)},
                                      {target, uint64_t(place), uint64_t(piece)});
                          });
  });
  if (words < bytes)
    move_bytes(queue, &own(from), from_offset + words, own(to), to_offset + words, bytes - words);
}

void WebgpuBackend::copy_part(Queue* queue, BufferRange from, BufferRange to) {
  uint64_t bytes = from.size;
  const auto window = uint64_t(window_bytes_);
  while (bytes >= kLeastQuadBytes && window >= kLeastQuadBytes && from.offset % 256 == 0 &&
         to.offset % 256 == 0) {
    from.size = to.size = std::min(bytes, window) & ~uint64_t(255);
    const auto step = byte_kernels_.make_quads(from, to, uint32_t(from.size / 16));
    run(queue, *step.pipeline, step.group, step.arguments, step.groups);
    from.offset += from.size;
    to.offset += from.size;
    bytes -= from.size;
  }
  if (bytes > 0)
    copy_words(queue, from.buffer, int64_t(from.offset), to.buffer, int64_t(to.offset), int64_t(bytes));
}

void WebgpuBackend::clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  if (bytes <= 0) return;
  const int64_t words = offset % 4 == 0 ? bytes & ~int64_t(3) : 0;
  own(memory).for_each_part(offset, words, [&](WGPUBuffer buffer, int64_t at, int64_t, int64_t part) {
    clear_words(queue, buffer, at, part);
  });
  if (words < bytes) move_bytes(queue, nullptr, 0, own(memory), offset + words, bytes - words);
}

void WebgpuBackend::move_bytes(Queue* queue, const WebgpuMemory* from, int64_t from_offset,
                               const WebgpuMemory& to, int64_t to_offset, int64_t bytes) {
  // Each piece is in one binding of the source and one of the target, alignment included.
  const int64_t piece_bytes = std::max<int64_t>(window_bytes_ - 256, 4);
  for (int64_t done = 0; done < bytes;) {
    int64_t part = std::min(bytes - done, piece_bytes);
    part = std::min(part, to.chunk_bytes() - (to_offset + done) % to.chunk_bytes());
    if (from) part = std::min(part, from->chunk_bytes() - (from_offset + done) % from->chunk_bytes());
    const auto bind = [&](const WebgpuMemory& memory, int64_t at, int64_t& inside) {
      inside = at & 255;
      return memory.range(at - inside, inside + part);
    };
    int64_t to_inside = 0, from_inside = 0;
    const BufferRange target = bind(to, to_offset + done, to_inside);
    const BufferRange source = from ? bind(*from, from_offset + done, from_inside) : BufferRange{};
    const auto step = byte_kernels_.make(from ? &source : nullptr, uint32_t(from_inside), target,
                                         uint32_t(to_inside), uint32_t(part));
    run(queue, *step.pipeline, step.group, step.arguments, step.groups);
    done += part;
  }
}

Support WebgpuBackend::supports(const ir::Function& function) const {
  return wgsl_support(function, info_.limits, core_->adapter.limits,
                      core_->loop_flag() ? kLlvmpipeLevels : clike::kWgslLevels);
}

std::shared_ptr<Module> WebgpuBackend::compile(const ir::Function& function, const CompileOptions& options) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  if (Support s = supports(function); !s.ok)
    throw DeviceError(DeviceFault::compile, fmt::format("kernel {}: {}", function.name, s.reason));
  clike::WgslOptions how;
  how.numerics = options.numerics;
  how.window_bytes = window_bytes_;
  how.group_lanes = info_.limits.group_lanes;
  // Vulkan on a CPU divides and takes roots with the processor's own instructions.
  how.native_division = core_->adapter.software();
  how.watch_loops = core_->loop_flag() != nullptr;
  how.branches = how.watch_loops;  // llvmpipe
  how.native_fma = !core_->adapter.software();
  auto module = std::make_shared<WebgpuModule>(
      core_, compile::lower(function, {compile::Target::wgsl, options.numerics}), how);
  std::vector<clike::WgslBuffer> buffers(function.buffers.size());
  for (size_t b = 0; b < buffers.size() && b < options.windows.size(); ++b)
    buffers[b].windows = options.windows[b];
  if (options.windows.empty()) module->variant(buffers);  // the usual one, so that errors show here
  return module;
}

void WebgpuBackend::dispatch(const Dispatch& whole) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  auto& module = *static_cast<WebgpuModule*>(const_cast<Module*>(whole.module));
  Dispatch d = whole;
  if (module.folds) {
    const Folded folded = fold(d.count[0], info_.limits.groups[0]);
    d.count = {folded.x, folded.y, 1};
  }
  const Prepared ready = prepare(module, d, window_bytes_, info_.limits.bindings, core_->loop_flag());
  if (!ready.ranges.empty() && core_->loop_flag() && ready.ranges.back().buffer == core_->loop_flag())
    core_->mark_loops();
  if (d.variable) note_scalars(d.queue, ready.variant->source);
  const WGPUBindGroup group = core_->bind_group(ready.variant->pipeline.layout, ready.ranges);
  run(d.queue, ready.variant->pipeline, group, ready.words,
      {uint32_t(d.count[0]), uint32_t(d.count[1]), uint32_t(d.count[2])});
}

void WebgpuBackend::synchronize_all() {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  core_->finish();
  core_->check_loops();
}

std::shared_ptr<Event> WebgpuBackend::record_event(Queue*) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  return events_->record();
}

double WebgpuBackend::elapsed(Event& from, Event& to) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  return events_->elapsed(static_cast<WebgpuEvent&>(from), static_cast<WebgpuEvent&>(to));
}

void WebgpuBackend::compile_wgsl(const std::string& wgsl, const std::string& label) {
  std::lock_guard lock(core_->mutex);
  core_->n.ComputePipelineRelease(core_->make_pipeline(wgsl, label, {}, false).handle);
}

void WebgpuBackend::lose_device() {
  std::lock_guard lock(core_->mutex);
  core_->finish();
  core_->n.DeviceDestroy(core_->device);
  core_->n.DevicePoll(core_->device, true, nullptr);
}

}  // namespace webgpu

const BackendKind& webgpu_backend() {
  static const BackendKind kind{DeviceKind::webgpu, [] { return webgpu::list_adapters(); },
                                [](int number, const DeviceOptions&) -> std::shared_ptr<Backend> {
                                  std::string reason;
                                  const auto& all = webgpu::adapters(&reason);
                                  if (all.empty()) throw UnsupportedError(reason, "webgpu", "an adapter");
                                  if (number < 0 || size_t(number) >= all.size())
                                    throw UnsupportedError(fmt::format("no adapter {}", number), "webgpu",
                                                           fmt::format("0 to {}", all.size() - 1));
                                  return std::make_shared<webgpu::WebgpuBackend>(*webgpu::native(nullptr),
                                                                                 all[size_t(number)], number);
                                }};
  return kind;
}

}  // namespace lockstep::device
