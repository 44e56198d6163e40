#include "device/webgpu/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep::device::webgpu {

namespace {

// Callbacks run inside calls of the library: they only take notes.
void on_error(const WGPUDevice*, WGPUErrorType type, WGPUStringView message, void* user, void*) noexcept {
  auto& sink = *static_cast<ErrorSink*>(user);
  try {
    std::lock_guard lock(sink.mutex);
    if (sink.failed) return;  // the first one is the cause
    sink.failed = true;
    sink.type = type;
    sink.message = text(message);
  } catch (...) {}
}
void on_lost(const WGPUDevice*, WGPUDeviceLostReason, WGPUStringView message, void* user, void*) noexcept {
  auto& sink = *static_cast<ErrorSink*>(user);
  try {
    std::lock_guard lock(sink.mutex);
    sink.lost = true;
    if (!sink.failed) sink.message = text(message);
  } catch (...) {}
}

struct DeviceRequest {
  WGPUDevice device = nullptr;
  std::string message;
};
void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void* user,
               void*) noexcept {
  auto& request = *static_cast<DeviceRequest*>(user);
  if (status == WGPURequestDeviceStatus_Success) {
    request.device = device;
    return;
  }
  try {
    request.message = text(message);
  } catch (...) {}
}

struct MapState {
  bool done = false, ok = false;
};
void on_mapped(WGPUMapAsyncStatus status, WGPUStringView, void* user, void*) noexcept {
  auto& state = *static_cast<MapState*>(user);
  state.ok = status == WGPUMapAsyncStatus_Success;
  state.done = true;
}

/// One line of at most 600 characters.
std::string one_line(std::string_view message) {
  std::string line;
  bool space = false;
  for (char c : message) {
    if (c == '\n' || c == '\r' || c == '\t' || c == ' ') {
      space = !line.empty();
      continue;
    }
    if (space) line += ' ';
    space = false;
    line += c;
  }
  if (line.size() > 600) line.resize(600);
  return line;
}

}  // namespace

Core::Core(const Native& native, const Adapter& chosen) : n(native), adapter(chosen) {
  std::vector<WGPUFeatureName> features;
  if (adapter.timestamps)
    features = {WGPUFeatureName_TimestampQuery,
                WGPUFeatureName(WGPUNativeFeature_TimestampQueryInsideEncoders)};
  WGPULimits limits = adapter.limits;
  limits.nextInChain = nullptr;
  WGPUDeviceDescriptor descriptor{};
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = on_lost;
  descriptor.deviceLostCallbackInfo.userdata1 = &sink_;
  descriptor.uncapturedErrorCallbackInfo.callback = on_error;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = &sink_;
  DeviceRequest request;
  WGPURequestDeviceCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.callback = on_device;
  callback.userdata1 = &request;
  n.AdapterRequestDevice(adapter.handle, &descriptor, callback);
  if (!request.device)
    throw DeviceError(DeviceFault::launch,
                      fmt::format("{} could not be opened: {}", adapter.name, one_line(request.message)));
  device = request.device;
  queue = n.DeviceGetQueue(device);
  // Timestamps of software adapters tell when a command was recorded rather than run: the wall clock serves
  // better.
  if (adapter.timestamps && !adapter.software())
    seconds_per_tick = double(n.QueueGetTimestampPeriod(queue)) * 1e-9;

  argument_stride_ = std::max<uint64_t>(adapter.limits.minUniformBufferOffsetAlignment, 64);
  WGPUBindGroupLayoutEntry entry{};
  entry.binding = 0;
  entry.visibility = WGPUShaderStage_Compute;
  entry.buffer.type = WGPUBufferBindingType_Uniform;
  entry.buffer.hasDynamicOffset = true;
  WGPUBindGroupLayoutDescriptor layout_descriptor{};
  layout_descriptor.entryCount = 1;
  layout_descriptor.entries = &entry;
  argument_layout_ = n.DeviceCreateBindGroupLayout(device, &layout_descriptor);
  argument_buffer_ = make_buffer(kBatchArguments + kArgumentBytes,
                                 WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, DeviceFault::allocation);
  argument_group_ = argument_group(argument_buffer_);
  // Mesa's llvmpipe ends every loop of a lane after 65535 turns in all, without a word.
  if (adapter.name.rfind("llvmpipe", 0) == 0) {
    loop_flag_ = make_buffer(16, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
                             DeviceFault::allocation);
    loop_flag_staging_ =
        make_buffer(16, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, DeviceFault::allocation);
  }
  check(DeviceFault::launch, "opening the device");
}

Core::~Core() {
  if (pass_) n.ComputePassEncoderRelease(pass_);
  if (encoder_) n.CommandEncoderRelease(encoder_);
  for (auto& [key, cached] : groups_) n.BindGroupRelease(cached.group);
  for (auto& [key, handle] : layouts_) n.BindGroupLayoutRelease(handle);
  if (argument_group_) n.BindGroupRelease(argument_group_);
  if (argument_layout_) n.BindGroupLayoutRelease(argument_layout_);
  for (WGPUBuffer buffer : {argument_buffer_, loop_flag_, loop_flag_staging_})
    if (buffer) n.BufferRelease(buffer);
  if (queue) n.QueueRelease(queue);
  if (device) n.DeviceRelease(device);
}

bool Core::lost() {
  std::lock_guard lock(sink_.mutex);
  return sink_.lost;
}

void Core::check_alive() {
  std::lock_guard lock(sink_.mutex);
  if (sink_.lost)
    throw DeviceError(DeviceFault::device_lost,
                      fmt::format("{} was lost: {}", adapter.name, one_line(sink_.message)));
}

void Core::check(DeviceFault fault, std::string_view doing) {
  check_alive();
  std::lock_guard lock(sink_.mutex);
  if (!sink_.failed) return;
  sink_.failed = false;
  if (sink_.type == WGPUErrorType_OutOfMemory) fault = DeviceFault::allocation;
  throw DeviceError(fault, fmt::format("{}: {}", doing, one_line(sink_.message)));
}

// ── commands
// ────────────────────────────────────────────────────────────────────────────────────────────────────────

WGPUCommandEncoder Core::encoder() {
  end_pass();
  if (!encoder_) encoder_ = n.DeviceCreateCommandEncoder(device, nullptr);
  return encoder_;
}

void Core::begin_pass() {
  if (pass_) return;
  if (!encoder_) encoder_ = n.DeviceCreateCommandEncoder(device, nullptr);
  pass_ = n.CommandEncoderBeginComputePass(encoder_, nullptr);
}

void Core::end_pass() {
  if (!pass_) return;
  n.ComputePassEncoderEnd(pass_);
  n.ComputePassEncoderRelease(pass_);
  pass_ = nullptr;
}

void Core::encode(const Pipeline& pipeline, WGPUBindGroup group, const std::vector<uint32_t>& arguments,
                  const std::array<uint32_t, 3>& groups) {
  const uint64_t stride_words = argument_stride_ / 4;
  const uint64_t blocks = (arguments.size() + stride_words - 1) / stride_words;
  if ((batch_arguments_.size() + blocks * stride_words) * 4 > kBatchArguments) flush();
  const uint64_t at = batch_arguments_.size();
  batch_arguments_.insert(batch_arguments_.end(), arguments.begin(), arguments.end());
  batch_arguments_.resize(at + blocks * stride_words);
  encode_at(pipeline, group, argument_group_, uint32_t(at * 4), groups);
}

void Core::encode_at(const Pipeline& pipeline, WGPUBindGroup group, WGPUBindGroup arguments,
                     uint32_t argument_offset, const std::array<uint32_t, 3>& groups) {
  begin_pass();
  n.ComputePassEncoderSetPipeline(pass_, pipeline.handle);
  if (group) n.ComputePassEncoderSetBindGroup(pass_, 0, group, 0, nullptr);
  if (pipeline.has_arguments) n.ComputePassEncoderSetBindGroup(pass_, 1, arguments, 1, &argument_offset);
  n.ComputePassEncoderDispatchWorkgroups(pass_, groups[0], groups[1], groups[2]);
  if (++batch_dispatches_ >= kBatchDispatches) flush();
}

void Core::copy(WGPUBuffer from, uint64_t from_offset, WGPUBuffer to, uint64_t to_offset, uint64_t bytes) {
  n.CommandEncoderCopyBufferToBuffer(encoder(), from, from_offset, to, to_offset, bytes);
}

void Core::clear(WGPUBuffer buffer, uint64_t offset, uint64_t bytes) {
  n.CommandEncoderClearBuffer(encoder(), buffer, offset, bytes);
}

void Core::write(WGPUBuffer buffer, uint64_t offset, const void* data, uint64_t bytes) {
  // Writes of the queue run before the next submission: what is encoded already must go first.
  if (encoder_) flush();
  // Each write holds staging memory of its size until the device has copied it.
  constexpr uint64_t kPiece = 16 << 20, kMostWaiting = 64 << 20;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t part = std::min(kPiece, bytes - done);
    n.QueueWriteBuffer(queue, buffer, offset + done, static_cast<const char*>(data) + done, part);
    done += part;
    waiting_upload_ += part;
    if (waiting_upload_ > kMostWaiting) {
      flush(true);
      if (done < bytes) wait(last_);
    }
  }
}

void Core::flush(bool uploads) {
  if (!encoder_ && !(uploads && waiting_upload_ > 0)) return;
  check_alive();
  WGPUCommandBuffer commands = nullptr;
  if (encoder_) {
    end_pass();
    if (!batch_arguments_.empty())
      n.QueueWriteBuffer(queue, argument_buffer_, 0, batch_arguments_.data(), batch_arguments_.size() * 4);
    commands = n.CommandEncoderFinish(encoder_, nullptr);
    n.CommandEncoderRelease(encoder_);
    encoder_ = nullptr;
    batch_arguments_.clear();
    batch_dispatches_ = 0;
    try {
      check(DeviceFault::launch,
            "recording commands");  // submitting a broken recording would end the process
    } catch (...) {
      if (commands) n.CommandBufferRelease(commands);
      throw;
    }
  }
  last_ = n.QueueSubmitForIndex(queue, commands ? 1 : 0, &commands);
  if (commands) n.CommandBufferRelease(commands);
  waiting_upload_ = 0;
  check(DeviceFault::launch, "submitting commands");
  in_flight_.push_back(last_);
  if (in_flight_.size() > kMaxInFlight) {
    const WGPUSubmissionIndex oldest = in_flight_.front();
    in_flight_.pop_front();
    wait(oldest);
  }
}

void Core::wait(WGPUSubmissionIndex index) {
  check_alive();
  n.DevicePoll(device, true, &index);
  check(DeviceFault::launch, "waiting for the device");
  while (!in_flight_.empty() && in_flight_.front() <= index) in_flight_.pop_front();
}

void Core::read_mapped(WGPUBuffer staging, uint64_t bytes, WGPUSubmissionIndex submission,
                       const std::function<void(const char*)>& use) {
  check_alive();
  MapState state;
  WGPUBufferMapCallbackInfo callback{};
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.callback = on_mapped;
  callback.userdata1 = &state;
  n.BufferMapAsync(staging, WGPUMapMode_Read, 0, bytes, callback);
  check(DeviceFault::launch, "mapping a buffer");
  while (!state.done) wait(submission);
  const auto* mapped =
      state.ok ? static_cast<const char*>(n.BufferGetConstMappedRange(staging, 0, bytes)) : nullptr;
  if (mapped) use(mapped);
  if (state.ok) n.BufferUnmap(staging);
  if (!mapped) throw DeviceError(DeviceFault::launch, "a staging buffer could not be read");
}

void Core::check_loops() {
  if (!loops_ran_) return;
  loops_ran_ = false;
  copy(loop_flag_, 0, loop_flag_staging_, 0, 16);
  clear(loop_flag_, 0, 16);
  flush();
  uint32_t cut = 0;
  read_mapped(loop_flag_staging_, 16, last_, [&](const char* bytes) { std::memcpy(&cut, bytes, 4); });
  if (cut)
    throw DeviceError(
        DeviceFault::launch,
        fmt::format("{} ends the loops of a lane after 65535 iterations in all: the results of a kernel "
                    "are incomplete",
                    adapter.name));
}

void Core::finish() {
  flush(true);
  if (!in_flight_.empty()) wait(in_flight_.back());
}

// ── objects
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WGPUBuffer Core::make_buffer(uint64_t bytes, WGPUBufferUsage usage, DeviceFault fault) {
  check_alive();
  WGPUBufferDescriptor descriptor{};
  descriptor.usage = usage;
  descriptor.size = bytes;
  const WGPUBuffer buffer = n.DeviceCreateBuffer(device, &descriptor);
  try {
    check(fault, fmt::format("a buffer of {} bytes", bytes));
  } catch (...) {
    if (buffer) n.BufferRelease(buffer);
    throw;
  }
  return buffer;
}

WGPUBindGroupLayout Core::layout(const std::vector<bool>& writable) {
  for (auto& [key, handle] : layouts_)
    if (key == writable) return handle;
  std::vector<WGPUBindGroupLayoutEntry> entries(writable.size());
  for (size_t i = 0; i < writable.size(); ++i) {
    entries[i].binding = uint32_t(i);
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type =
        writable[i] ? WGPUBufferBindingType_Storage : WGPUBufferBindingType_ReadOnlyStorage;
  }
  WGPUBindGroupLayoutDescriptor descriptor{};
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  const WGPUBindGroupLayout handle = n.DeviceCreateBindGroupLayout(device, &descriptor);
  check(DeviceFault::compile, "layout of the bindings");
  layouts_.emplace_back(writable, handle);
  return handle;
}

Pipeline Core::make_pipeline(const std::string& wgsl, const std::string& label,
                             const std::vector<bool>& writable, bool has_arguments) {
  check_alive();
  check(DeviceFault::launch, "earlier work");
  Pipeline pipeline;
  pipeline.has_arguments = has_arguments;
  pipeline.layout = layout(writable);
  WGPUShaderSourceWGSL source{};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view(wgsl);
  WGPUShaderModuleDescriptor module_descriptor{};
  module_descriptor.nextInChain = &source.chain;
  module_descriptor.label = view(label);
  // Kernels index inside their buffers and their loops end: the language says so, the interpreter checks it.
  const WGPUShaderModule module =
      n.DeviceCreateShaderModuleTrusted(device, &module_descriptor, WGPUShaderRuntimeChecks_None);
  try {
    check(DeviceFault::compile, fmt::format("kernel {}", label));
  } catch (...) {
    if (module) n.ShaderModuleRelease(module);
    throw;
  }
  const WGPUBindGroupLayout layouts[] = {pipeline.layout, argument_layout_};
  WGPUPipelineLayoutDescriptor layout_descriptor{};
  layout_descriptor.bindGroupLayoutCount = has_arguments ? 2 : 1;
  layout_descriptor.bindGroupLayouts = layouts;
  const WGPUPipelineLayout pipeline_layout = n.DeviceCreatePipelineLayout(device, &layout_descriptor);
  WGPUComputePipelineDescriptor descriptor{};
  descriptor.label = view(label);
  descriptor.layout = pipeline_layout;
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view("main");
  pipeline.handle = n.DeviceCreateComputePipeline(device, &descriptor);
  n.PipelineLayoutRelease(pipeline_layout);
  n.ShaderModuleRelease(module);
  try {
    check(DeviceFault::compile, fmt::format("kernel {}", label));
  } catch (...) {
    if (pipeline.handle) n.ComputePipelineRelease(pipeline.handle);
    throw;
  }
  return pipeline;
}

WGPUBindGroup Core::bind_group(WGPUBindGroupLayout layout, const std::vector<BufferRange>& ranges) {
  uint64_t key = reinterpret_cast<uintptr_t>(layout);
  const auto mix = [&](uint64_t v) { key = (key ^ v) * 0x9e3779b97f4a7c15u, key ^= key >> 29; };
  for (const BufferRange& r : ranges) mix(reinterpret_cast<uintptr_t>(r.buffer)), mix(r.offset), mix(r.size);
  auto [first, last] = groups_.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (it->second.layout == layout && it->second.ranges == ranges) return it->second.group;
  constexpr size_t kMostCached = 1024;
  if (groups_.size() >= kMostCached) {
    flush();
    for (auto& [k, cached] : groups_) n.BindGroupRelease(cached.group);
    groups_.clear();
  }
  std::vector<WGPUBindGroupEntry> entries(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    entries[i].binding = uint32_t(i);
    entries[i].buffer = ranges[i].buffer;
    entries[i].offset = ranges[i].offset;
    entries[i].size = ranges[i].size;
  }
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = layout;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  const WGPUBindGroup group = n.DeviceCreateBindGroup(device, &descriptor);
  try {
    check(DeviceFault::launch, "binding buffers");
  } catch (...) {
    if (group) n.BindGroupRelease(group);
    throw;
  }
  groups_.emplace(key, CachedGroup{layout, ranges, group});
  return group;
}

WGPUBindGroup Core::argument_group(WGPUBuffer buffer) {
  WGPUBindGroupEntry entry{};
  entry.buffer = buffer;
  entry.size = kArgumentBytes;
  WGPUBindGroupDescriptor descriptor{};
  descriptor.layout = argument_layout_;
  descriptor.entryCount = 1;
  descriptor.entries = &entry;
  return n.DeviceCreateBindGroup(device, &descriptor);
}

void Core::forget(WGPUBuffer buffer) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    const bool uses = std::any_of(it->second.ranges.begin(), it->second.ranges.end(),
                                  [&](const BufferRange& r) { return r.buffer == buffer; });
    if (uses) n.BindGroupRelease(it->second.group);
    it = uses ? groups_.erase(it) : std::next(it);
  }
}

}  // namespace lockstep::device::webgpu
