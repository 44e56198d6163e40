#include "device/webgpu/native.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "core/dynamic_library.hpp"
#include "device/webgpu/memory/vulkan_memory.hpp"

namespace lockstep::device::webgpu {

namespace {

struct Loaded {
  Native native;
  bool ok = false;
  std::string reason;
};

Loaded load() {
  Loaded loaded;
  const LibrarySearch search{{"libwgpu_native-release.so", "libwgpu_native.so"}, {"wgpu/resources"}};
  std::string why;
  static DynamicLibrary library = search.load(&why);
  if (!library) {
    loaded.reason = fmt::format(
        "wgpu-native was not found ({}); `pip install wgpu` has it, or $LOCKSTEP_LIBRARY_PATH names its "
        "folder",
        why);
    return loaded;
  }
  // Asked before any Vulkan call, so that the reason names what is missing.
  if (!vulkan_loader()) {
    loaded.reason = "the Vulkan loader libvulkan.so.1 was not found";
    return loaded;
  }
  const char* missing = nullptr;
#define LOCKSTEP_WGPU_LOAD(name)                                                                \
  loaded.native.name = reinterpret_cast<decltype(&::wgpu##name)>(library.symbol("wgpu" #name)); \
  if (!loaded.native.name) missing = "wgpu" #name;
  LOCKSTEP_WGPU_FUNCTIONS(LOCKSTEP_WGPU_LOAD)
#undef LOCKSTEP_WGPU_LOAD
  if (missing) {
    loaded.reason = fmt::format("{} has no function {}: wgpu-native 29 is needed", library.path(), missing);
    return loaded;
  }
  // The descriptors' layout changes between major versions.
  const uint32_t major = loaded.native.GetVersion() >> 24;
  if (major != 29) {
    loaded.reason = fmt::format("{} is wgpu-native {}: version 29 is needed", library.path(), major);
    return loaded;
  }
  loaded.native.path = library.path();
  loaded.ok = true;
  return loaded;
}

WGPUInstance make_instance(const Native& native) {
  // Mesa's layer that orders adapters asks the display server, and complains on stderr where there is none.
  if (!std::getenv("XDG_RUNTIME_DIR")) ::setenv("NODEVICE_SELECT", "1", 0);
  WGPUInstanceExtras extras{};
  extras.chain.sType = WGPUSType(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Vulkan;
  extras.flags = WGPUInstanceFlag_Empty;
  WGPUInstanceDescriptor descriptor{};
  descriptor.nextInChain = &extras.chain;
  return native.CreateInstance(&descriptor);
}

struct Enumerated {
  std::vector<Adapter> adapters;
  std::string reason;
};

Enumerated enumerate() {
  Enumerated all;
  const Native* n = native(&all.reason);
  if (!n) return all;
  static const WGPUInstance instance = make_instance(*n);
  if (!instance) {
    all.reason = "wgpu-native could not make an instance";
    return all;
  }
  WGPUInstanceEnumerateAdapterOptions options{};
  options.backends = WGPUInstanceBackend_Vulkan;
  std::vector<WGPUAdapter> handles(n->InstanceEnumerateAdapters(instance, &options, nullptr));
  if (!handles.empty()) n->InstanceEnumerateAdapters(instance, &options, handles.data());
  for (WGPUAdapter handle : handles) {
    Adapter adapter;
    adapter.handle = handle;
    WGPUAdapterInfo info{};
    if (n->AdapterGetInfo(handle, &info) != WGPUStatus_Success) continue;
    adapter.name = text(info.device);
    adapter.driver = text(info.description);
    adapter.vendor = info.vendorID;
    adapter.number = info.deviceID;
    adapter.type = info.adapterType;
    n->AdapterInfoFreeMembers(info);
    if (n->AdapterGetLimits(handle, &adapter.limits) != WGPUStatus_Success) continue;
    adapter.timestamps =
        n->AdapterHasFeature(handle, WGPUFeatureName_TimestampQuery) &&
        n->AdapterHasFeature(handle, WGPUFeatureName(WGPUNativeFeature_TimestampQueryInsideEncoders));
    all.adapters.push_back(std::move(adapter));
  }
  const auto rank = [](const Adapter& a) {
    switch (a.type) {
      case WGPUAdapterType_DiscreteGPU: return 0;
      case WGPUAdapterType_IntegratedGPU: return 1;
      case WGPUAdapterType_CPU: return 3;
      default: return 2;
    }
  };
  std::stable_sort(all.adapters.begin(), all.adapters.end(),
                   [&](const Adapter& a, const Adapter& b) { return rank(a) < rank(b); });
  if (all.adapters.empty())
    all.reason = "the Vulkan loader shows no adapter (a driver such as mesa-vulkan-drivers is missing)";
  return all;
}

}  // namespace

const Native* native(std::string* reason) {
  static const Loaded loaded = load();
  if (!loaded.ok && reason) *reason = loaded.reason;
  return loaded.ok ? &loaded.native : nullptr;
}

const std::vector<Adapter>& adapters(std::string* reason) {
  static const Enumerated all = enumerate();
  if (all.adapters.empty() && reason) *reason = all.reason;
  return all.adapters;
}

std::string text(WGPUStringView view) {
  if (!view.data) return {};
  return view.length == WGPU_STRLEN ? std::string(view.data) : std::string(view.data, view.length);
}

}  // namespace lockstep::device::webgpu
