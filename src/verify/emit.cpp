#include "lockstep/emit.hpp"

#include <fmt/format.h>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/nvrtc.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/llvm/emit.hpp"

namespace lockstep {

namespace {

constexpr int kDefaultCudaArch = 90;

int cuda_arch(std::string_view arch) { return arch.empty() ? kDefaultCudaArch : clike::parse_arch(arch); }

}  // namespace

std::string emit(const Kernel& kernel, std::string_view target, Numerics numerics, std::string_view arch) {
  const ir::Function& function = kernel.function();
  if (target == "ir") return ir::print(function);
  if (target == "llvm" || target == "asm")
    return compile::emit_llvm(function, numerics, target == "asm", std::string(arch));
  if (target == "wgsl") return clike::emit_wgsl(function, numerics);
  if (target == "cuda") return clike::emit_cuda(function, numerics, cuda_arch(arch));
  if (target == "ptx") return clike::emit_ptx(function, numerics, cuda_arch(arch));
  if (target == "cubin") {
    const std::vector<std::byte> code = clike::emit_cubin(function, numerics, cuda_arch(arch));
    return {reinterpret_cast<const char*>(code.data()), code.size()};
  }
  throw InputError(fmt::format("target '{}'", target), "lockstep::emit",
                   "ir, llvm, asm, cuda, ptx, cubin or wgsl");
}

std::string emit(const Kernel& kernel, const Device& device) {
  switch (device.info().kind) {
    case DeviceKind::cpu: return emit(kernel, "llvm", device.numerics());
    case DeviceKind::cuda: return emit(kernel, "cuda", device.numerics(), device.info().architecture);
    case DeviceKind::webgpu: return emit(kernel, "wgsl", device.numerics());
    case DeviceKind::interp: break;
  }
  return emit(kernel, "ir", device.numerics());
}

}  // namespace lockstep
