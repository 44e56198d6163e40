// wgpu-native, loaded at run time: its functions by name, its one instance, its adapters.
#pragma once

#include <webgpu.h>
#include <wgpu.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::device::webgpu {

// Functions of webgpu.h and wgpu.h that the back end calls, without the prefix wgpu.
// clang-format off
#define LOCKSTEP_WGPU_FUNCTIONS(X) \
  X(CreateInstance) X(InstanceEnumerateAdapters) X(GetVersion) X(AdapterGetInfo) \
  X(AdapterInfoFreeMembers) X(AdapterGetLimits) X(AdapterHasFeature) X(AdapterRequestDevice) \
  X(DeviceGetQueue) X(DevicePoll) X(DeviceDestroy) X(DeviceRelease) X(DeviceCreateBuffer) \
  X(DeviceCreateBindGroup) X(DeviceCreateBindGroupLayout) X(DeviceCreatePipelineLayout) \
  X(DeviceCreateComputePipeline) X(DeviceCreateShaderModule) X(DeviceCreateShaderModuleTrusted) \
  X(DeviceCreateCommandEncoder) X(DeviceCreateQuerySet) X(QueueSubmitForIndex) X(QueueWriteBuffer) \
  X(QueueGetTimestampPeriod) X(QueueRelease) X(CommandEncoderBeginComputePass) \
  X(CommandEncoderCopyBufferToBuffer) X(CommandEncoderClearBuffer) X(CommandEncoderWriteTimestamp) \
  X(CommandEncoderResolveQuerySet) X(CommandEncoderFinish) X(CommandEncoderRelease) \
  X(ComputePassEncoderSetPipeline) X(ComputePassEncoderSetBindGroup) \
  X(ComputePassEncoderDispatchWorkgroups) X(ComputePassEncoderEnd) X(ComputePassEncoderRelease) \
  X(CommandBufferRelease) X(BufferMapAsync) X(BufferGetConstMappedRange) X(BufferUnmap) X(BufferDestroy) \
  X(BufferRelease) X(BindGroupAddRef) X(BindGroupRelease) X(BindGroupLayoutRelease) \
  X(PipelineLayoutRelease) X(ComputePipelineAddRef) X(ComputePipelineRelease) X(ShaderModuleRelease) \
  X(QuerySetRelease)
// clang-format on

/// The functions, e.g. `native.DeviceGetQueue(device)`.
struct Native {
#define LOCKSTEP_WGPU_POINTER(name) decltype(&::wgpu##name) name = nullptr;
  LOCKSTEP_WGPU_FUNCTIONS(LOCKSTEP_WGPU_POINTER)
#undef LOCKSTEP_WGPU_POINTER
  std::string path;
};

/// Null with the reason where the library or the Vulkan loader is missing. Loaded once, never closed (its
/// threads run on).
const Native* native(std::string* reason);

/// One adapter of the process's instance. `software` is an adapter that runs on the CPU.
struct Adapter {
  WGPUAdapter handle = nullptr;
  std::string name, driver;
  std::string interface = "Vulkan";  // by which it is reached
  uint32_t vendor = 0, number = 0;   // as Vulkan has them
  WGPUAdapterType type = WGPUAdapterType_Unknown;
  WGPULimits limits{};
  bool timestamps = false;
  bool software() const { return type == WGPUAdapterType_CPU; }
};
/// Vulkan adapters, hardware before software; empty with the reason where there is none. Enumerated once.
const std::vector<Adapter>& adapters(std::string* reason);

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }
std::string text(WGPUStringView view);

}  // namespace lockstep::device::webgpu
