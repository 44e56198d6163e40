// The text of a kernel for a target: to read it, to keep it, to hand it to another program.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/device.hpp"

namespace lockstep {

/// The kernel as `ir` (as traced), `llvm` or `asm` (the CPU), `cuda` (CUDA C++), `ptx`, `cubin` (bytes) or `wgsl`.
/// `arch` is a CUDA architecture such as sm_90 (that without one), or an LLVM processor (this machine's without
/// one). Throws InputError for another target and UnsupportedError, with the reason, where the kernel or this
/// build cannot be had in that form.
std::string emit(const Kernel& kernel, std::string_view target, Numerics numerics = Numerics::exact,
                 std::string_view arch = {});
/// In the form that the device compiles, with its numerics and architecture: llvm, cuda, wgsl, or ir for the
/// interpreter.
std::string emit(const Kernel& kernel, const Device& device);

class CaseRegistry;
/// `main` of a program with cases of its own, as `lockstep` has verify, bench and emit:
///   program [verify [PREFIX]] [--device NAMES] [--against cpu|interp|reference]   every device if none is named
///   program bench [PREFIX] [--device NAMES] [--size SIZE]
///   program emit KERNEL [--target TARGET] [--arch ARCH]
///   program list
/// Gives the exit code: 0, 1 where a result differs, 2 for bad usage and bad input, 3 where a device fails.
/// Writes to stdout, and errors to stderr.
int run_cases(int argc, const char* const* argv, const CaseRegistry& cases);

}  // namespace lockstep
