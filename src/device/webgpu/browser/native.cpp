// The functions of webgpu.h by those of the page.
#include "device/webgpu/native.hpp"

#include <map>

#include "core/platform/system.hpp"
#include "device/webgpu/browser/imports.hpp"
#include "device/webgpu/memory/vulkan_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::webgpu {

namespace {

using namespace page;

template <class Handle>
uint32_t number(Handle handle) {
  return uint32_t(reinterpret_cast<uintptr_t>(handle));
}
template <class Handle>
Handle object(uint32_t number) {
  return reinterpret_cast<Handle>(uintptr_t(number));
}

double limit(std::string_view name) { return gpu_number(name.data(), uint32_t(name.size())); }
std::string said(std::string_view name) {
  std::string text(600, '\0');
  text.resize(gpu_text(name.data(), uint32_t(name.size()), text.data(), uint32_t(text.size())));
  return text;
}

// ── devices and what they report ──

struct Reports {
  WGPUDeviceLostCallbackInfo lost;
  WGPUUncapturedErrorCallbackInfo error;
};
std::map<uint32_t, Reports>& reports() {
  static std::map<uint32_t, Reports> all;
  return all;
}

WGPUFuture request_device(WGPUAdapter, const WGPUDeviceDescriptor* wanted,
                          WGPURequestDeviceCallbackInfo then) {
  const uint32_t device = gpu_may_wait() ? gpu_device() : 0;
  if (device) reports()[device] = {wanted->deviceLostCallbackInfo, wanted->uncapturedErrorCallbackInfo};
  const std::string reason = device ? "" : said("reason");
  then.callback(device ? WGPURequestDeviceStatus_Success : WGPURequestDeviceStatus_Error,
                object<WGPUDevice>(device), view(reason), then.userdata1, then.userdata2);
  return {};
}
void release_device(WGPUDevice device) {
  reports().erase(number(device));
  gpu_release(number(device));
}

// ── objects ──

WGPUBuffer create_buffer(WGPUDevice device, const WGPUBufferDescriptor* wanted) {
  constexpr uint64_t kLarge = uint64_t(16) << 20;  // may fail for want of memory
  const uint32_t buffer = gpu_buffer(number(device), double(wanted->size), uint32_t(wanted->usage));
  if (wanted->size >= kLarge && gpu_may_wait()) gpu_wait(number(device), 0);
  return object<WGPUBuffer>(buffer);
}
WGPUBindGroupLayout create_layout(WGPUDevice device, const WGPUBindGroupLayoutDescriptor* wanted) {
  std::vector<uint32_t> kinds;
  for (size_t k = 0; k < wanted->entryCount; ++k)
    kinds.push_back(wanted->entries[k].buffer.type == WGPUBufferBindingType_Storage           ? 0
                    : wanted->entries[k].buffer.type == WGPUBufferBindingType_ReadOnlyStorage ? 1
                                                                                              : 2);
  return object<WGPUBindGroupLayout>(gpu_layout(number(device), kinds.data(), uint32_t(kinds.size())));
}
WGPUBindGroup create_group(WGPUDevice device, const WGPUBindGroupDescriptor* wanted) {
  std::vector<uint32_t> words;
  for (size_t k = 0; k < wanted->entryCount; ++k) {
    const WGPUBindGroupEntry& entry = wanted->entries[k];
    words.insert(words.end(), {number(entry.buffer), uint32_t(entry.offset), uint32_t(entry.size)});
  }
  return object<WGPUBindGroup>(
      gpu_group(number(device), number(wanted->layout), words.data(), uint32_t(wanted->entryCount)));
}
WGPUPipelineLayout create_pipeline_layout(WGPUDevice device, const WGPUPipelineLayoutDescriptor* wanted) {
  std::vector<uint32_t> layouts;
  for (size_t k = 0; k < wanted->bindGroupLayoutCount; ++k)
    layouts.push_back(number(wanted->bindGroupLayouts[k]));
  return object<WGPUPipelineLayout>(
      gpu_pipeline_layout(number(device), layouts.data(), uint32_t(layouts.size())));
}
/// The browser checks accesses and loops, regardless of the request.
WGPUShaderModule create_shader(WGPUDevice device, const WGPUShaderModuleDescriptor* wanted,
                               WGPUShaderRuntimeChecks) {
  const WGPUStringView code = reinterpret_cast<const WGPUShaderSourceWGSL*>(wanted->nextInChain)->code;
  return object<WGPUShaderModule>(gpu_shader(number(device), code.data, uint32_t(code.length),
                                             wanted->label.data, uint32_t(wanted->label.length)));
}
WGPUComputePipeline create_pipeline(WGPUDevice device, const WGPUComputePipelineDescriptor* wanted) {
  const uint32_t pipeline =
      gpu_pipeline(number(device), number(wanted->layout), number(wanted->compute.module), wanted->label.data,
                   uint32_t(wanted->label.length));
  if (gpu_may_wait()) gpu_wait(number(device), 0);
  return object<WGPUComputePipeline>(pipeline);
}
WGPUQuerySet create_queries(WGPUDevice, const WGPUQuerySetDescriptor*) { return nullptr; }  // no timestamps

template <class Handle>
void keep(Handle handle) {
  gpu_keep(number(handle));
}
template <class Handle>
void release(Handle handle) {
  gpu_release(number(handle));
}

// ── commands ──

WGPUCommandEncoder create_encoder(WGPUDevice device, const WGPUCommandEncoderDescriptor*) {
  return object<WGPUCommandEncoder>(gpu_encoder(number(device)));
}
WGPUComputePassEncoder begin_pass(WGPUCommandEncoder encoder, const WGPUComputePassDescriptor*) {
  return object<WGPUComputePassEncoder>(gpu_pass(number(encoder)));
}
void set_pipeline(WGPUComputePassEncoder pass, WGPUComputePipeline pipeline) {
  gpu_set_pipeline(number(pass), number(pipeline));
}
void set_group(WGPUComputePassEncoder pass, uint32_t place, WGPUBindGroup group, size_t offsets,
               const uint32_t* offset) {
  gpu_set_group(number(pass), place, number(group), offsets ? double(*offset) : -1);
}
void dispatch(WGPUComputePassEncoder pass, uint32_t x, uint32_t y, uint32_t z) {
  gpu_dispatch(number(pass), x, y, z);
}
void end_pass(WGPUComputePassEncoder pass) { gpu_end_pass(number(pass)); }
void copy(WGPUCommandEncoder encoder, WGPUBuffer from, uint64_t from_at, WGPUBuffer to, uint64_t to_at,
          uint64_t bytes) {
  gpu_copy(number(encoder), number(from), double(from_at), number(to), double(to_at), double(bytes));
}
void clear(WGPUCommandEncoder encoder, WGPUBuffer buffer, uint64_t at, uint64_t bytes) {
  gpu_clear(number(encoder), number(buffer), double(at), double(bytes));
}
WGPUCommandBuffer finish(WGPUCommandEncoder encoder, const WGPUCommandBufferDescriptor*) {
  return object<WGPUCommandBuffer>(gpu_finish(number(encoder)));
}
WGPUSubmissionIndex submit(WGPUQueue queue, size_t count, const WGPUCommandBuffer* commands) {
  return gpu_submit(number(queue), count ? number(*commands) : 0);
}
void write(WGPUQueue queue, WGPUBuffer buffer, uint64_t at, const void* data, size_t bytes) {
  gpu_write(number(queue), number(buffer), double(at), data, uint32_t(bytes));
}

// ── reads ──

struct Mapping {
  WGPUBufferMapCallbackInfo then;
  std::vector<char> bytes;
  bool waiting = true;
};
std::map<uint32_t, Mapping>& mappings() {
  static std::map<uint32_t, Mapping> all;
  return all;
}
void ended(Mapping& mapping, bool well) {
  mapping.waiting = false;
  mapping.then.callback(well ? WGPUMapAsyncStatus_Success : WGPUMapAsyncStatus_Error, {},
                        mapping.then.userdata1, mapping.then.userdata2);
}

/// A call of the page that cannot wait reads nothing.
WGPUFuture map(WGPUBuffer buffer, WGPUMapMode, size_t, size_t bytes, WGPUBufferMapCallbackInfo then) {
  Mapping& mapping = mappings()[number(buffer)] = {then, std::vector<char>(bytes)};
  if (!gpu_may_wait()) return ended(mapping, false), WGPUFuture{};
  gpu_map(number(buffer), uint32_t(bytes));
  return {};
}
const void* mapped_range(WGPUBuffer buffer, size_t, size_t bytes) {
  std::vector<char>& copy = mappings().at(number(buffer)).bytes;
  gpu_read(number(buffer), copy.data(), uint32_t(bytes));
  return copy.data();
}
void unmap(WGPUBuffer buffer) {
  mappings().erase(number(buffer));
  gpu_unmap(number(buffer));
}
/// Where the call cannot wait, work continues in the browser's queue all the same.
WGPUBool poll(WGPUDevice device, WGPUBool wait, const WGPUSubmissionIndex* submission) {
  if (!wait || !gpu_may_wait()) return true;
  gpu_wait(number(device), submission ? uint32_t(*submission) : UINT32_MAX);
  for (auto& [buffer, mapping] : mappings())
    if (const uint32_t state = mapping.waiting ? gpu_mapped(buffer) : 0) ended(mapping, state == 1);
  return true;
}

Native functions() {
  Native n;
  n.path = "the browser";
  n.AdapterRequestDevice = request_device;
  n.DeviceGetQueue = [](WGPUDevice device) { return object<WGPUQueue>(number(device)); };
  n.QueueRelease = [](WGPUQueue) {};
  n.DeviceDestroy = n.DeviceRelease = release_device;
  n.DevicePoll = poll;
  n.DeviceCreateBuffer = create_buffer;
  n.DeviceCreateBindGroup = create_group;
  n.DeviceCreateBindGroupLayout = create_layout;
  n.DeviceCreatePipelineLayout = create_pipeline_layout;
  n.DeviceCreateComputePipeline = create_pipeline;
  n.DeviceCreateShaderModuleTrusted = create_shader;
  n.DeviceCreateCommandEncoder = create_encoder;
  n.DeviceCreateQuerySet = create_queries;
  n.QueueSubmitForIndex = submit;
  n.QueueWriteBuffer = write;
  n.CommandEncoderBeginComputePass = begin_pass;
  n.CommandEncoderCopyBufferToBuffer = copy;
  n.CommandEncoderClearBuffer = clear;
  n.CommandEncoderFinish = finish;
  n.ComputePassEncoderSetPipeline = set_pipeline;
  n.ComputePassEncoderSetBindGroup = set_group;
  n.ComputePassEncoderDispatchWorkgroups = dispatch;
  n.ComputePassEncoderEnd = end_pass;
  n.BufferMapAsync = map;
  n.BufferGetConstMappedRange = mapped_range;
  n.BufferUnmap = unmap;
  n.BindGroupAddRef = keep<WGPUBindGroup>;
  n.ComputePipelineAddRef = keep<WGPUComputePipeline>;
  n.CommandEncoderRelease = release<WGPUCommandEncoder>;
  n.ComputePassEncoderRelease = release<WGPUComputePassEncoder>;
  n.CommandBufferRelease = release<WGPUCommandBuffer>;
  n.BufferDestroy = n.BufferRelease = release<WGPUBuffer>;
  n.BindGroupRelease = release<WGPUBindGroup>;
  n.BindGroupLayoutRelease = release<WGPUBindGroupLayout>;
  n.PipelineLayoutRelease = release<WGPUPipelineLayout>;
  n.ComputePipelineRelease = release<WGPUComputePipeline>;
  n.ShaderModuleRelease = release<WGPUShaderModule>;
  n.QuerySetRelease = release<WGPUQuerySet>;
  return n;
}

Adapter described() {
  Adapter adapter;
  adapter.handle = object<WGPUAdapter>(1);
  adapter.name = said("name");
  adapter.driver = said("driver");
  adapter.interface = "browser";
  adapter.type = limit("software") != 0 ? WGPUAdapterType_CPU : WGPUAdapterType_Unknown;
  WGPULimits& l = adapter.limits;
  const auto take = [](auto& to, std::string_view name) { to = std::decay_t<decltype(to)>(limit(name)); };
  take(l.maxBufferSize, "maxBufferSize");
  take(l.maxStorageBufferBindingSize, "maxStorageBufferBindingSize");
  take(l.maxStorageBuffersPerShaderStage, "maxStorageBuffersPerShaderStage");
  take(l.maxComputeInvocationsPerWorkgroup, "maxComputeInvocationsPerWorkgroup");
  take(l.maxComputeWorkgroupSizeX, "maxComputeWorkgroupSizeX");
  take(l.maxComputeWorkgroupSizeY, "maxComputeWorkgroupSizeY");
  take(l.maxComputeWorkgroupSizeZ, "maxComputeWorkgroupSizeZ");
  take(l.maxComputeWorkgroupStorageSize, "maxComputeWorkgroupStorageSize");
  take(l.maxComputeWorkgroupsPerDimension, "maxComputeWorkgroupsPerDimension");
  take(l.minUniformBufferOffsetAlignment, "minUniformBufferOffsetAlignment");
  return adapter;
}

}  // namespace

const Native* native(std::string*) {
  static const Native all = functions();
  return &all;
}

const std::vector<Adapter>& adapters(std::string* reason) {
  static std::vector<Adapter> all;
  if (gpu_may_wait()) all = gpu_adapter() ? std::vector{described()} : std::vector<Adapter>{};
  if (all.empty() && reason) *reason = said("reason");
  return all;
}

std::string text(WGPUStringView view) { return {view.data, view.length}; }

/// A browser does not say what an adapter has. The core's own memory bounds what a page can hold.
MemoryInfo vulkan_memory(uint32_t, uint32_t, const std::string&) {
  const platform::SystemMemory memory = platform::system_memory();
  return {memory.total_bytes, memory.free_bytes};
}

}  // namespace lockstep::device::webgpu

/// The page reports an error of a device, or (type 0) its end. Also while the core is suspended: it only takes notes.
extern "C" [[clang::export_name("lockstep_gpu_report")]] void lockstep_gpu_report(uint32_t device,
                                                                                  uint32_t type,
                                                                                  const char* text,
                                                                                  uint32_t size) {
  using namespace lockstep::device::webgpu;
  const auto found = reports().find(device);
  if (found == reports().end()) return;
  const auto handle = object<WGPUDevice>(device);
  const auto& [lost, error] = found->second;
  if (type == 0)
    lost.callback(&handle, WGPUDeviceLostReason_Unknown, {text, size}, lost.userdata1, lost.userdata2);
  else
    error.callback(&handle, WGPUErrorType(type), {text, size}, error.userdata1, error.userdata2);
}
