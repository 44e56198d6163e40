// The LLVM function under construction and what all its parts share.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <unordered_set>

#include "compile/llvm/analysis/interleaved.hpp"
#include "compile/native/abi.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile::simd {

/// Processor properties that decide the form of the code. Its features are in the function's attributes.
struct VectorTarget {
  int lanes = 4;       // 32-bit lanes of the widest vector
  int registers = 32;  // vectors that the processor holds
  bool x86 = false;
  bool permutes = false;  // a vector of 32-bit lanes can be permuted by a vector of indices (AVX2, AVX-512)
  bool scatters =
      false;  // lanes at places of their own are stored, and loaded under a mask, by one instruction
};

/// An array that generated code reads and writes.
struct MemoryPlace {
  llvm::Value* base = nullptr;
  Storage storage = Storage::f32;
  llvm::MDNode* scope = nullptr;     // !alias.scope
  llvm::MDNode* disjoint = nullptr;  // !noalias: all other arrays
  llvm::Value* large = nullptr;  // i1: only written, and larger than the caches; null where that cannot be
};

class CodeUnit {
 public:
  /// `parts`: loops that distribution made. A kernel becomes "lockstep_kernel"; a function of values takes one vector
  /// for each of its scalars and the mask of the lanes that call it.
  CodeUnit(llvm::Module& module, const ir::Function& function, const VectorTarget& target, int width,
           std::unordered_set<ir::Id> parts = {});

  llvm::IRBuilder<>& b() { return builder_; }
  llvm::LLVMContext& context() { return module_.getContext(); }
  llvm::Module& module() { return module_; }
  const ir::Function& f() const { return f_; }
  const VectorTarget& target() const { return target_; }
  /// Lanes of a vector.
  int width() const { return width_; }
  /// Loops that were split off the one before them.
  const std::unordered_set<ir::Id>& parts() const { return parts_; }

  /// Some instruction takes this value.
  bool used(ir::Id id) const { return used_[id]; }
  const InterleavedTable& interleaved() const { return interleaved_; }

  llvm::Function* function() const { return function_; }
  /// By number in f().functions.
  std::vector<llvm::Function*> called;

  /// Words of the launch, loaded once in the entry block; of a function what it takes.
  llvm::Value* param(uint64_t index);
  llvm::Value* shape(uint64_t imm);
  llvm::Value* stride(uint64_t imm);
  llvm::Value* extent(uint64_t axis);
  llvm::Value* alone();                 // i1, Frame::alone
  llvm::Value* large(uint64_t buffer);  // i1, a bit of Frame::large
  MemoryPlace buffer(uint64_t index);
  MemoryPlace shared(uint64_t index);
  /// Bounds of the box along an axis, i32.
  llvm::Value* box_low(int axis) { return box_word(axis); }
  llvm::Value* box_high(int axis) { return box_word(3 + axis); }

  /// Memory of one activation; a register where it is only loaded and stored.
  llvm::AllocaInst* local(llvm::Type* type, const std::string& name = "");
  /// Memory of the scratch area, aligned to kScratchAlignment.
  llvm::Value* scratch(int64_t bytes);
  int64_t scratch_bytes() const { return scratch_bytes_; }

  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(context(), name, function_);
  }
  /// Ends the function.
  void finish(llvm::Value* result = nullptr);
  bool streams = false;  // a store past the caches was emitted

 private:
  void declare_kernel();
  void declare_function();
  llvm::Value* frame_word(int64_t offset, llvm::Type* type);
  llvm::Value* box_word(int word);
  MemoryPlace place(llvm::Value* base, Storage storage, size_t number);

  llvm::Module& module_;
  const ir::Function& f_;
  const VectorTarget target_;
  const int width_;
  const std::unordered_set<ir::Id> parts_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock *entry_ = nullptr, *first_ = nullptr;
  llvm::IRBuilder<> builder_;
  std::map<std::pair<int64_t, llvm::Type*>, llvm::Value*> words_;
  std::map<int, llvm::Value*> box_words_;
  std::map<uint64_t, llvm::Value*> large_;
  std::vector<llvm::MDNode*> scopes_, disjoint_;
  std::vector<llvm::Value*> shared_bases_;
  std::vector<bool> used_;
  const InterleavedTable interleaved_;
  int64_t scratch_bytes_ = kScratchAlignment;  // padding before the first array
};

}  // namespace lockstep::compile::simd
