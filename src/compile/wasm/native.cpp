// Kernels as WebAssembly modules that the host instantiates beside the core, for the CPU device of a page.
#include "compile/native/native.hpp"

#include "compile/lower.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "compile/wasm/emit.hpp"
#include "lockstep/error.hpp"

extern "C" {
/// Instantiates a module with the core's memory and `fma`, and puts its "kernel" into the core's table. Gives the place there,
/// which is the function's address, or 0 where the engine refuses the module.
[[clang::import_module("lockstep"), clang::import_name("instantiate")]] uint32_t lockstep_instantiate(
    const void* bytes, uint32_t size, double (*fma)(double, double, double));
[[clang::import_module("lockstep"), clang::import_name("release")]] void lockstep_release(uint32_t kernel);
}

namespace lockstep::compile::simd {

namespace {

/// For the lanes whose exponents generated code does not handle itself.
double core_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

struct Instantiated : NativeKernel {
  ~Instantiated() override {
    if (number) lockstep_release(number);
  }
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
  const wasm::KernelModule module = wasm::emit(lowered);
  auto kernel = std::make_shared<Instantiated>();
  kernel->number = lockstep_instantiate(module.bytes.data(), uint32_t(module.bytes.size()), core_fma);
  if (!kernel->number)
    throw DeviceError(DeviceFault::compile,
                      "kernel " + traced.name + " on cpu: the WebAssembly engine refuses it");
  kernel->function = reinterpret_cast<KernelFunction>(uintptr_t(kernel->number));
  kernel->scratch_bytes = module.scratch_bytes;
  return kernel;
}

}  // namespace lockstep::compile::simd
