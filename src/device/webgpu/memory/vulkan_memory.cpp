#include "device/webgpu/memory/vulkan_memory.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace lockstep::device::webgpu {

namespace {

// The few declarations of Vulkan 1.1 that are needed, in its own layout, so that the build needs no headers
// of it.
using Handle = void*;
constexpr int32_t kSuccess = 0;
constexpr uint32_t kMaxHeaps = 16, kMaxTypes = 32, kDeviceLocal = 1;

struct ApplicationInfo {
  uint32_t type = 0;
  const void* next = nullptr;
  const char* application = "lockstep";
  uint32_t application_version = 0;
  const char* engine = nullptr;
  uint32_t engine_version = 0;
  uint32_t api_version = (1u << 22) | (1u << 12);  // 1.1
};
struct InstanceCreateInfo {
  uint32_t type = 1;
  const void* next = nullptr;
  uint32_t flags = 0;
  const ApplicationInfo* application = nullptr;
  uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  uint32_t extension_count = 0;
  const char* const* extensions = nullptr;
};
struct DeviceProperties {
  uint32_t api_version, driver_version, vendor, device, type;
  char name[256];
  uint8_t uuid[16];
  alignas(8) uint8_t limits_and_more[1024];  // 504 bytes of limits, 20 of sparse properties
};
struct Heap {
  uint64_t size;
  uint32_t flags;
};
struct MemoryProperties {
  uint32_t type_count;
  struct {
    uint32_t flags, heap;
  } types[kMaxTypes];
  uint32_t heap_count;
  Heap heaps[kMaxHeaps];
};
struct MemoryBudget {  // VK_EXT_memory_budget; left as it is by a driver that does not know it
  uint32_t type = 1000237000;
  void* next = nullptr;
  uint64_t budget[kMaxHeaps]{};
  uint64_t usage[kMaxHeaps]{};
};
struct MemoryProperties2 {
  uint32_t type = 1000059006;
  void* next = nullptr;
  MemoryProperties properties{};
};

using GetInstanceProcAddr = void (*(*)(Handle, const char*))();

struct Vulkan {
  Handle instance = nullptr;
  int32_t (*enumerate)(Handle, uint32_t*, Handle*) = nullptr;
  void (*properties)(Handle, DeviceProperties*) = nullptr;
  void (*memory)(Handle, MemoryProperties2*) = nullptr;
};

/// One instance for the process, made when first requested.
const Vulkan& vulkan() {
  static const Vulkan loaded = [] {
    Vulkan v;
    const DynamicLibrary& library = vulkan_loader();
    if (!library) return v;
    const auto get = library.function<std::remove_pointer_t<GetInstanceProcAddr>>("vkGetInstanceProcAddr");
    if (!get) return v;
    const auto create = reinterpret_cast<int32_t (*)(const InstanceCreateInfo*, const void*, Handle*)>(
        get(nullptr, "vkCreateInstance"));
    const ApplicationInfo application;
    InstanceCreateInfo info;
    info.application = &application;
    Handle instance = nullptr;
    if (!create || create(&info, nullptr, &instance) != kSuccess) return v;
    v.enumerate = reinterpret_cast<decltype(v.enumerate)>(get(instance, "vkEnumeratePhysicalDevices"));
    v.properties = reinterpret_cast<decltype(v.properties)>(get(instance, "vkGetPhysicalDeviceProperties"));
    v.memory = reinterpret_cast<decltype(v.memory)>(get(instance, "vkGetPhysicalDeviceMemoryProperties2"));
    if (v.enumerate && v.properties && v.memory) v.instance = instance;
    return v;
  }();
  return loaded;
}

}  // namespace

const DynamicLibrary& vulkan_loader() {
  static const DynamicLibrary& library = *new DynamicLibrary(LibrarySearch{{"libvulkan.so.1"}, {}}.load());
  return library;
}

MemoryInfo vulkan_memory(uint32_t vendor, uint32_t device, const std::string& name) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  MemoryInfo info;
  const Vulkan& v = vulkan();
  uint32_t count = 0;
  if (!v.instance || v.enumerate(v.instance, &count, nullptr) != kSuccess) return info;
  std::vector<Handle> devices(count);
  if (v.enumerate(v.instance, &count, devices.data()) < kSuccess) return info;
  for (uint32_t d = 0; d < count; ++d) {
    DeviceProperties properties{};
    v.properties(devices[d], &properties);
    if (properties.vendor != vendor || properties.device != device || name != properties.name) continue;
    MemoryBudget budget;
    MemoryProperties2 memory;
    memory.next = &budget;
    v.memory(devices[d], &memory);
    for (uint32_t h = 0; h < std::min(memory.properties.heap_count, kMaxHeaps); ++h) {
      const Heap& heap = memory.properties.heaps[h];
      if (!(heap.flags & kDeviceLocal) || int64_t(heap.size) <= info.total_bytes) continue;
      info.total_bytes = int64_t(heap.size);
      info.free_bytes = budget.budget[h] == 0
                            ? info.total_bytes
                            : int64_t(budget.budget[h] - std::min(budget.budget[h], budget.usage[h]));
    }
    return info;
  }
  return info;
}

}  // namespace lockstep::device::webgpu
