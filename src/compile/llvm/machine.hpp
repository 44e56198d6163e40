// The target processor and the passes that make an object of a kernel for it.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "compile/llvm/code_unit.hpp"

namespace lockstep::compile::simd {

struct HostProcessor {
  std::string name, features;
};
/// Needs no target to be initialised.
const HostProcessor& host_processor();

/// `cpu` empty: the host. Throws InputError for a processor that LLVM does not know.
/// LOCKSTEP_CPU_CODE=quick: code of the same bits that takes less time to compile and more to run.
bool quick_code();
std::unique_ptr<llvm::TargetMachine> make_machine(const std::string& cpu);
VectorTarget vector_target(const llvm::TargetMachine& machine);

struct GeneratedModule {
  std::unique_ptr<llvm::Module> module;
  int64_t scratch_bytes = 0;
};
/// LLVM IR of a lowered kernel, verified and optimised.
GeneratedModule generate(llvm::LLVMContext& context, const ir::Function& lowered,
                         llvm::TargetMachine& machine);
/// Object file or assembly text.
llvm::SmallVector<char, 0> emit_file(llvm::Module& module, llvm::TargetMachine& machine, bool assembly);

}  // namespace lockstep::compile::simd
