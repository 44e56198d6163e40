// The part of the CUDA driver API that Lockstep uses, loaded at run time. Types and values as the API defines
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/dynamic_library.hpp"

namespace lockstep::device::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using PoolHandle = struct PoolTag*;
using GraphHandle = struct GraphTag*;
using GraphExecHandle = struct GraphExecTag*;
using NodeHandle = struct NodeTag*;

inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4,
                        kNotReady = 600;

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMultiprocessors = 16,
  kComputeMode = 20,
  kMultiprocessorThreads = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedOptIn = 97,
  kMemoryPools = 115,
};
inline constexpr int kComputeModeProhibited = 2;
inline constexpr unsigned kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kFunctionShared = 1, kFunctionLocal = 3, kFunctionRegisters = 4,
                     kFunctionMaxDynamicShared = 8, kFunctionLargeClusters = 14;
inline constexpr int kPoolReleaseThreshold = 4, kPoolReservedCurrent = 5, kPoolUsedCurrent = 7;

inline void* const kLaunchBuffer = reinterpret_cast<void*>(1);
inline void* const kLaunchBufferSize = reinterpret_cast<void*>(2);

struct MemoryLocation {
  int type = 1;  // device
  int id = 0;
};
struct PoolProperties {
  int allocation_type = 1;  // pinned
  int handle_types = 0;
  MemoryLocation location;
  void* security = nullptr;
  size_t max_size = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(PoolProperties) == 88);
/// A launch in a graph.
struct KernelNode {
  FunctionHandle function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};
static_assert(sizeof(KernelNode) == 56);

// name in Driver, symbol, parameters
#define LOCKSTEP_CUDA_DRIVER(F)                                                                          \
  F(init, cuInit, (unsigned))                                                                            \
  F(driver_version, cuDriverGetVersion, (int*))                                                          \
  F(error_name, cuGetErrorName, (Result, const char**))                                                  \
  F(error_string, cuGetErrorString, (Result, const char**))                                              \
  F(device_count, cuDeviceGetCount, (int*))                                                              \
  F(device_get, cuDeviceGet, (DeviceNumber*, int))                                                       \
  F(device_name, cuDeviceGetName, (char*, int, DeviceNumber))                                            \
  F(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceNumber))                                   \
  F(device_memory, cuDeviceTotalMem_v2, (size_t*, DeviceNumber))                                         \
  F(primary_retain, cuDevicePrimaryCtxRetain, (ContextHandle*, DeviceNumber))                            \
  F(primary_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber))                                       \
  F(primary_reset, cuDevicePrimaryCtxReset_v2, (DeviceNumber))                                           \
  F(context_current, cuCtxGetCurrent, (ContextHandle*))                                                  \
  F(context_set, cuCtxSetCurrent, (ContextHandle))                                                       \
  F(memory_info, cuMemGetInfo_v2, (size_t*, size_t*))                                                    \
  F(allocate, cuMemAlloc_v2, (Address*, size_t))                                                         \
  F(free, cuMemFree_v2, (Address))                                                                       \
  F(pool_create, cuMemPoolCreate, (PoolHandle*, const PoolProperties*))                                  \
  F(pool_destroy, cuMemPoolDestroy, (PoolHandle))                                                        \
  F(pool_set, cuMemPoolSetAttribute, (PoolHandle, int, void*))                                           \
  F(pool_get, cuMemPoolGetAttribute, (PoolHandle, int, void*))                                           \
  F(pool_trim, cuMemPoolTrimTo, (PoolHandle, size_t))                                                    \
  F(allocate_from_pool, cuMemAllocFromPoolAsync, (Address*, size_t, PoolHandle, StreamHandle))           \
  F(free_async, cuMemFreeAsync, (Address, StreamHandle))                                                 \
  F(host_allocate, cuMemHostAlloc, (void**, size_t, unsigned))                                           \
  F(host_free, cuMemFreeHost, (void*))                                                                   \
  F(copy_to_device, cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, StreamHandle))                  \
  F(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, Address, size_t, StreamHandle))                          \
  F(copy_device, cuMemcpyDtoDAsync_v2, (Address, Address, size_t, StreamHandle))                         \
  F(fill_bytes, cuMemsetD8Async, (Address, unsigned char, size_t, StreamHandle))                         \
  F(stream_create, cuStreamCreate, (StreamHandle*, unsigned))                                            \
  F(stream_destroy, cuStreamDestroy_v2, (StreamHandle))                                                  \
  F(stream_synchronize, cuStreamSynchronize, (StreamHandle))                                             \
  F(stream_wait, cuStreamWaitEvent, (StreamHandle, EventHandle, unsigned))                               \
  F(begin_capture, cuStreamBeginCapture_v2, (StreamHandle, int))                                         \
  F(end_capture, cuStreamEndCapture, (StreamHandle, GraphHandle*))                                       \
  F(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExecHandle*, GraphHandle, unsigned long long)) \
  F(capture_info, cuStreamGetCaptureInfo_v2,                                                             \
    (StreamHandle, int*, unsigned long long*, GraphHandle*, const NodeHandle**, size_t*))                \
  F(graph_set_kernel, cuGraphExecKernelNodeSetParams, (GraphExecHandle, NodeHandle, const KernelNode*))  \
  F(graph_upload, cuGraphUpload, (GraphExecHandle, StreamHandle))                                        \
  F(graph_launch, cuGraphLaunch, (GraphExecHandle, StreamHandle))                                        \
  F(graph_destroy, cuGraphDestroy, (GraphHandle))                                                        \
  F(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle))                                           \
  F(event_create, cuEventCreate, (EventHandle*, unsigned))                                               \
  F(event_record, cuEventRecord, (EventHandle, StreamHandle))                                            \
  F(event_synchronize, cuEventSynchronize, (EventHandle))                                                \
  F(event_elapsed, cuEventElapsedTime, (float*, EventHandle, EventHandle))                               \
  F(event_destroy, cuEventDestroy_v2, (EventHandle))                                                     \
  F(module_load, cuModuleLoadData, (ModuleHandle*, const void*))                                         \
  F(module_unload, cuModuleUnload, (ModuleHandle))                                                       \
  F(module_function, cuModuleGetFunction, (FunctionHandle*, ModuleHandle, const char*))                  \
  F(function_set, cuFuncSetAttribute, (FunctionHandle, int, int))                                        \
  F(function_get, cuFuncGetAttribute, (int*, int, FunctionHandle))                                       \
  F(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, FunctionHandle, int, size_t))         \
  F(launch, cuLaunchKernel,                                                                              \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, \
     void**, void**))

struct Driver {
  DynamicLibrary library;
  int version = 0;  // 13000 for CUDA 13.0
#define LOCKSTEP_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  LOCKSTEP_CUDA_DRIVER(LOCKSTEP_CUDA_MEMBER)
#undef LOCKSTEP_CUDA_MEMBER

  /// The process's own, initialised; null with the reason where there is no driver or no device answers.
  static const Driver* find(std::string* reason = nullptr);
  /// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  std::string describe(Result result) const;
};

/// Release of the kernel module ("580.159.04"), or empty.
std::string driver_release();

}  // namespace lockstep::device::cuda
