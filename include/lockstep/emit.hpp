// The generated code of a kernel for a target.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/device.hpp"

namespace lockstep {

/// The kernel as `ir` (as traced), `llvm` or `asm` (CPU), `cuda` (CUDA C++), `ptx`, `cubin` (bytes) or `wgsl`. `arch`
/// is a CUDA architecture (default: sm_90) or an LLVM processor (default: that of this computer).
/// Throws InputError for another target and UnsupportedError, with the reason, if the kernel or this build does not
/// support the target.
std::string emit(const Kernel& kernel, std::string_view target, Numerics numerics = Numerics::exact,
                 std::string_view arch = {});
/// The kernel in the form that the device compiles, with its numerics and architecture: llvm, cuda, wgsl, or ir for the
/// interpreter. Throws as above.
std::string emit(const Kernel& kernel, const Device& device);

class CaseRegistry;
/// The `main` of a program with its own cases. It has the commands verify, bench, emit and list:
///   program [verify [PREFIX]] [--device NAMES] [--against cpu|interp|reference]   every device if none is named
///   program bench [PREFIX] [--device NAMES] [--size SIZE]
///   program emit KERNEL [--target TARGET] [--arch ARCH]
///   program list
/// Returns the exit code: 0, 1 if a result differs, 2 for invalid usage or input, 3 if a device fails.
/// Writes to stdout, and errors to stderr.
int run_cases(int argc, const char* const* argv, const CaseRegistry& cases);

}  // namespace lockstep
