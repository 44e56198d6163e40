// Replacement for builds without LLVM.
#include "compile/llvm/emit.hpp"
#include "compile/native/native.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile {

namespace simd {
std::string native_unavailable() { return "built without LLVM (LOCKSTEP_LLVM)"; }
std::string native_processor() { return ""; }
int native_lanes() { return 0; }
std::string_view generator_hash() { return ""; }
std::shared_ptr<NativeKernel> compile_native(const ir::Function& traced, Numerics, std::string_view) {
  throw UnsupportedError(native_unavailable(), traced.name, "a build with LLVM 19");
}
}  // namespace simd

std::string emit_llvm(const ir::Function& function, Numerics, bool, const std::string&) {
  throw UnsupportedError(simd::native_unavailable(), function.name, "a build with LLVM 19");
}
BlockLengths block_lengths(const ir::Function& function, Numerics, const std::string&) {
  throw UnsupportedError(simd::native_unavailable(), function.name, "a build with LLVM 19");
}

}  // namespace lockstep::compile
