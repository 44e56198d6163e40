// Kernels as WebAssembly modules for the CPU device of a web page. The host instantiates them in addition to the core.
#include "compile/native/native.hpp"

#include "compile/lower.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "compile/wasm/emit.hpp"
#include "core/platform/parallel.hpp"
#include "lockstep/error.hpp"

extern "C" {
/// 1 where relaxed SIMD's madd rounds once.
[[clang::import_module("lockstep"), clang::import_name("fuses")]] uint32_t lockstep_fuses();
/// Instantiates a module with the core's memory and `fma`, and puts its "kernel" into the core's table. Gives the place there,
/// which is the function's address, or 0 where the engine refuses the module.
[[clang::import_module("lockstep"), clang::import_name("instantiate")]] uint32_t lockstep_instantiate(
    const void* bytes, uint32_t size, double (*fma)(double, double, double));
[[clang::import_module("lockstep"), clang::import_name("release")]] void lockstep_release(uint32_t kernel);
/// Runs a kernel over boxes on all threads; the module's bytes are still where lockstep_instantiate took them from.
[[clang::import_module("lockstep"), clang::import_name("run")]] void lockstep_run(
    uint32_t kernel, const void* frame, const void* boxes, uint32_t count, void* scratch,
    uint32_t scratch_each);
}

namespace lockstep::compile::simd {

namespace {

/// For the lanes whose exponents generated code does not handle itself.
double core_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

struct Instantiated : NativeKernel {
  ~Instantiated() override {
    if (number) lockstep_release(number);
  }
  std::string fault_text(const Frame& frame) const override {
    return wasm::fault_text(name, module.accesses, frame);
  }
  std::string name;
  wasm::KernelModule module;
  uint32_t number = 0;
};

}  // namespace

std::string native_unavailable() { return ""; }
std::string native_processor() { return "wasm-simd128"; }
int native_lanes() { return 4; }
std::string_view generator_hash() { return ""; }

std::shared_ptr<NativeKernel> compile_native(const ir::Function& traced, Numerics numerics,
                                             std::string_view) {
  ir::Function lowered = lower(traced, {Target::cpu, numerics});
  inline_all_calls(lowered);
  auto kernel = std::make_shared<Instantiated>();
  kernel->name = traced.name;
  const bool workers = platform::available_threads() > 1;
  kernel->module = wasm::emit(lowered, {lockstep_fuses() != 0, workers});
  const wasm::Bytes& bytes = kernel->module.bytes;
  kernel->number = lockstep_instantiate(bytes.data(), uint32_t(bytes.size()), core_fma);
  if (!kernel->number)
    throw DeviceError(DeviceFault::compile,
                      "kernel " + traced.name + " on cpu: the WebAssembly engine rejects it");
  if (!workers) kernel->module.bytes = {};  // nobody instantiates it again
  kernel->function = reinterpret_cast<KernelFunction>(uintptr_t(kernel->number));
  kernel->scratch_bytes = kernel->module.scratch_bytes;
  return kernel;
}

void run_on_workers(KernelFunction function, const Frame& frame, std::span<const Box> boxes,
                    std::byte* scratch, int64_t scratch_each) {
  lockstep_run(uint32_t(reinterpret_cast<uintptr_t>(function)), &frame, boxes.data(), uint32_t(boxes.size()),
               scratch, uint32_t(scratch_each));
}

}  // namespace lockstep::compile::simd
