#include "compile/wasm/emit.hpp"

#include <fmt/format.h>

#include "compile/wasm/kernel_code.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::wasm {

namespace {

// V8's limits, the smallest of the engines'.
constexpr size_t kMostLocals = 50000, kMostBytes = 7600000;

[[noreturn]] void refuse(const ir::Function& f, size_t count, std::string_view what, size_t most) {
  throw DeviceError(DeviceFault::compile, fmt::format("kernel {} as WebAssembly: {} {}; engines take {}",
                                                      f.name, count, what, most));
}

}  // namespace

KernelModule emit(const ir::Function& lowered, const Engine& engine) {
  Unit unit(lowered, engine);
  if (lowered.domain == ir::Domain::points)
    emit_points(unit);
  else
    emit_groups(unit);
  if (unit.body().locals() > kMostLocals) refuse(lowered, unit.body().locals(), "locals", kMostLocals);
  KernelModule result{unit.finish(), unit.scratch_bytes(), unit.take_accesses()};
  if (result.bytes.size() > kMostBytes) refuse(lowered, result.bytes.size(), "bytes of code", kMostBytes);
  return result;
}

std::string fault_text(std::string_view kernel, const std::vector<CheckedAccess>& accesses,
                       const simd::Frame& frame) {
  const CheckedAccess& access = accesses.at(size_t(frame.fault >> 32) - 1);
  const int64_t elements =
      access.buffer == kNoBuffer ? access.size : frame.buffers[access.buffer].bytes / access.size;
  return fmt::format("kernel {}: element {} of {}, which has {}{}{}", kernel, int32_t(frame.fault),
                     access.array, elements, access.line.empty() ? "" : ", near ", access.line);
}

}  // namespace lockstep::compile::wasm
