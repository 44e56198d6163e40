#include "device/cuda/libraries/nvtx.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "core/dynamic_library.hpp"
#include "core/reports/log.hpp"
#include "core/reports/trace.hpp"

namespace lockstep::device::cuda::nvtx {

namespace {

// The program's side of NVTX 3, as NVIDIA's headers have it: the tool's entry point requests a table of
// callbacks, asks that for the slots of each module, and writes its functions into them.
using Slot = void (*)();

template <int kFunctions>
struct Module {
  Slot slots[kFunctions] = {};
  Slot* table[kFunctions + 1] = {};  // number 0 is no function; a null ends it
  Module() {
    for (int k = 1; k < kFunctions; ++k) table[k] = &slots[k];
  }
};
struct Modules {
  Module<16> core;
  Module<9> cuda;
  Module<15> opencl;
  Module<7> runtime;
  Module<16> domains;
  Module<7> sync;
};
Modules& modules() {
  static auto* all = new Modules;  // a tool may call at exit
  return *all;
}
constexpr int kPush = 9, kPop = 11;  // nvtxRangePushA, nvtxRangePop

int function_table(int module, Slot*** table, unsigned* size) {
  Modules& all = modules();
  const auto give = [&](auto& m) {
    if (table) *table = m.table;
    if (size) *size = unsigned(std::size(m.slots));
    return 1;
  };
  switch (module) {
    case 1: return give(all.core);
    case 2: return give(all.cuda);
    case 3: return give(all.opencl);
    case 4: return give(all.runtime);
    case 5: return give(all.domains);
    case 6: return give(all.sync);
    default: return 0;
  }
}

struct Callbacks {
  size_t bytes;
  int (*function_table)(int module, Slot*** table, unsigned* size);
};
struct Version {
  size_t bytes;
  uint32_t version, reserved;
  void (*set_tool_version)(uint32_t);
};

const void* export_table(uint32_t number) {
  static const Callbacks callbacks{sizeof(Callbacks), function_table};
  static const Version version{sizeof(Version), 3, 0, [](uint32_t) {}};
  return number == 1 ? static_cast<const void*>(&callbacks) : number == 3 ? &version : nullptr;
}

int (*range_push)(const char*) = nullptr;
int (*range_pop)() = nullptr;

void load() {
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path || !*path || std::string_view(path) == "./.") return;  // the last one means none
  std::string reason;
  // Never freed: the tool may still be at work when static objects go.
  static const DynamicLibrary& library = *new DynamicLibrary(LibrarySearch{{path}, {}}.load(&reason));
  auto* initialise =
      library ? library.function<int(const void* (*)(uint32_t))>("InitializeInjectionNvtx2") : nullptr;
  if (!initialise || !initialise(export_table)) {
    logging::warning("no NVTX ranges: NVTX_INJECTION64_PATH={} {}", path,
                     library ? "did not take the program" : "cannot be loaded: " + reason);
    return;
  }
  const Slot* slots = modules().core.slots;
  if (!slots[kPush] || !slots[kPop]) return;
  range_pop = reinterpret_cast<int (*)()>(slots[kPop]);
  range_push = reinterpret_cast<int (*)(const char*)>(slots[kPush]);
  static const ScopeListener listener{push, pop};
  TimedScope::listen(&listener);
}

}  // namespace

void attach() {
  static std::once_flag once;
  std::call_once(once, load);
}

void push(const char* name) {
  if (range_push) range_push(name);
}
void pop() {
  if (range_pop) range_pop();
}

}  // namespace lockstep::device::cuda::nvtx
