// The support matrix: what each back end can run; without a GPU.
#include <fmt/format.h>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/lower.hpp"
#include "lockstep/device.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {

namespace {

/// Storage bindings that every WebGPU adapter grants.
constexpr size_t kWebGpuBindings = 8;

std::string cuda_reason(const ir::Function& traced) {
  try {
    clike::print_cuda(compile::lower(traced, {compile::Target::cuda, Numerics::exact}), Numerics::exact, 90);
    return "";
  } catch (const UnsupportedError& error) { return error.what(); }
}

std::string webgpu_reason(const ir::Function& traced) {
  if (std::string reason = clike::wgsl_refusal(traced); !reason.empty()) return reason;
  if (traced.buffers.size() > kWebGpuBindings)
    return fmt::format("{} buffers, some adapters bind {}", traced.buffers.size(), kWebGpuBindings);
  return "";
}

/// Why a device of the host, which every build and machine has the same limits for, does not run the kernel.
std::string host_reason(const Device& device, const Kernel& kernel) {
  const Support support = device.supports(kernel);
  return support.ok ? "" : support.reason;
}

}  // namespace

std::string support_matrix(const CaseRegistry& registry) {
  std::string text =
      "# Support\n\nWhich back end runs which case's kernels. Generated from the case registry; the tests "
      "fail where this file and the\n"
      "code differ (`LOCKSTEP_UPDATE=1 ctest -R support` writes it again).\n\n"
      "| case | kernels | cpu | cuda | webgpu | interp |\n|---|---|---|---|---|---|\n";
  const Device host = Device::open("cpu"), interpreter = Device::open("interp");
  for (const Case& c : registry.all()) {
    std::string kernels, cpu, cuda, webgpu, interp;
    for (const Kernel& kernel : c.kernels ? c.kernels() : std::vector<Kernel>{}) {
      if (kernels.find(kernel.name()) == std::string::npos)
        kernels += (kernels.empty() ? "" : ", ") + kernel.name();
      if (cpu.empty()) cpu = host_reason(host, kernel);
      if (interp.empty()) interp = host_reason(interpreter, kernel);
      if (cuda.empty()) cuda = cuda_reason(kernel.function());
      if (webgpu.empty()) webgpu = webgpu_reason(kernel.function());
    }
    const auto cell = [](const std::string& reason) {
      return reason.empty() ? std::string("yes") : "no: " + reason;
    };
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", c.name, kernels, cell(cpu), cell(cuda),
                        cell(webgpu), cell(interp));
  }
  return text;
}

}  // namespace lockstep
