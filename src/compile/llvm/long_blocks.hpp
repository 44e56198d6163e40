// Code of thousands of instructions without a branch. LLVM's code generator takes time that grows with the square of
// the length of a block, of the number of constants in a function and of what it moves out of a loop at a time.
#pragma once

#include <cstddef>

namespace llvm {
class FunctionPass;
class Module;
}  // namespace llvm

namespace lockstep::compile::simd {

/// Longer blocks are compiled in pieces. docs/design/cpu.md says which kernels have blocks of about that length.
inline constexpr size_t kLongBlock = 3500;
/// Least length of a piece; none is twice as long.
inline constexpr size_t kPiece = 500;

/// Instructions of the module's longest block.
size_t longest_block(const llvm::Module& module);

/// For functions with long blocks: cuts these where the fewest values are alive, and loads floating-point constants
/// from an array, since LLVM searches its own table of constants from the start for each. Every operation stays as it
/// is and in its order. Runs behind the passes that would join the pieces again.
llvm::FunctionPass* make_long_block_pass();

}  // namespace lockstep::compile::simd
