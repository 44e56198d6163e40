#include "compile/llvm/code_unit.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using llvm::Value;

CodeUnit::CodeUnit(llvm::Module& module, const ir::Function& function, const VectorTarget& target, int width,
                   std::unordered_set<ir::Id> parts)
    : module_(module),
      f_(function),
      target_(target),
      width_(width),
      parts_(std::move(parts)),
      builder_(module.getContext()),
      interleaved_(function) {
  if (f_.domain == ir::Domain::values)
    declare_function();
  else
    declare_kernel();
  function_->setDoesNotThrow();
  entry_ = llvm::BasicBlock::Create(context(), "entry", function_);
  first_ = llvm::BasicBlock::Create(context(), "start", function_);
  llvm::IRBuilder<>(entry_).CreateBr(first_);
  builder_.SetInsertPoint(first_);

  used_.resize(f_.instructions.size());
  for (const ir::Block& block : f_.blocks)
    for (ir::Id id : block)
      for (int k = 0; k < f_[id].arg_count(); ++k) used_[f_[id].args[k]] = true;

  llvm::MDBuilder metadata(context());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("arrays");
  const size_t arrays = f_.buffers.size() + f_.shared.size();
  std::vector<llvm::Metadata*> all;
  for (size_t k = 0; k < arrays; ++k) all.push_back(metadata.createAnonymousAliasScope(domain));
  for (size_t k = 0; k < arrays; ++k) {
    std::vector<llvm::Metadata*> others = all;
    others.erase(others.begin() + long(k));
    scopes_.push_back(llvm::MDNode::get(context(), {all[k]}));
    disjoint_.push_back(llvm::MDNode::get(context(), others));
  }
  static_assert(kPadding <= kScratchAlignment);
  for (const ir::ArrayDecl& array : f_.shared)
    shared_bases_.push_back(scratch(array.count * size_of(array.storage) + kPadding));
}

void CodeUnit::declare_kernel() {
  llvm::Type* pointer = llvm::PointerType::get(context(), 0);
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "lockstep_kernel", module_);
  for (unsigned k = 0; k < 3; ++k) function_->addParamAttr(k, llvm::Attribute::NoAlias);
  const uint64_t bytes[] = {sizeof(Frame), sizeof(Box)};
  for (unsigned k = 0; k < 2; ++k) {
    function_->addParamAttr(k, llvm::Attribute::ReadOnly);
    function_->addDereferenceableParamAttr(k, bytes[k]);
  }
  function_->addParamAttr(2, llvm::Attribute::getWithAlignment(context(), llvm::Align(kScratchAlignment)));
}

void CodeUnit::declare_function() {
  const auto vector = [&](Type type) -> llvm::Type* {
    return llvm::FixedVectorType::get(lane_type(context(), type), unsigned(width_));
  };
  std::vector<llvm::Type*> taken;
  for (const ir::ScalarParam& p : f_.scalars) taken.push_back(vector(p.type));
  taken.push_back(vector(Type::boolean));
  const ir::Instruction& given = result_of(f_);
  llvm::Type* one = vector(f_[given.args[0]].type);
  llvm::Type* all = given.arg_count() == 1
                        ? one
                        : static_cast<llvm::Type*>(llvm::ArrayType::get(one, uint64_t(given.arg_count())));
  function_ = llvm::Function::Create(llvm::FunctionType::get(all, taken, false),
                                     llvm::Function::InternalLinkage, f_.name, module_);
  function_->addFnAttr(llvm::Attribute::NoInline);
}

Value* CodeUnit::frame_word(int64_t offset, llvm::Type* type) {
  Value*& word = words_[{offset, type}];
  if (word) return word;
  llvm::IRBuilder<> entry(entry_->getTerminator());
  auto* load = entry.CreateLoad(
      type, entry.CreateConstInBoundsGEP1_64(entry.getInt8Ty(), function_->getArg(0), uint64_t(offset)));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
  return word = load;
}

Value* CodeUnit::box_word(int word) {
  Value*& value = box_words_[word];
  if (value) return value;
  llvm::IRBuilder<> entry(entry_->getTerminator());
  return value = entry.CreateLoad(
             entry.getInt32Ty(),
             entry.CreateConstInBoundsGEP1_64(entry.getInt32Ty(), function_->getArg(1), uint64_t(word)));
}

Value* CodeUnit::param(uint64_t index) {
  if (f_.domain == ir::Domain::values) return function_->getArg(unsigned(index));
  const Type type = f_.scalars[index].type;
  const int64_t at = int64_t(offsetof(Frame, scalars) + index * sizeof(uint64_t));
  if (type != Type::boolean) return frame_word(at, lane_type(context(), type));
  Value* word = frame_word(at, builder_.getInt8Ty());
  Value*& flag = words_[{at, builder_.getInt1Ty()}];
  if (!flag) flag = llvm::IRBuilder<>(entry_->getTerminator()).CreateTrunc(word, builder_.getInt1Ty());
  return flag;
}
// Little-endian: the low half of a 64-bit word is first.
Value* CodeUnit::shape(uint64_t imm) {
  const uint64_t at = offsetof(Frame, buffers) + (imm / 8) * sizeof(Frame::Buffer) +
                      offsetof(Frame::Buffer, shape) + (imm % 8) * sizeof(int64_t);
  return frame_word(int64_t(at), lane_type(context(), f_.index_type));
}
Value* CodeUnit::stride(uint64_t imm) {
  const uint64_t at = offsetof(Frame, buffers) + (imm / 8) * sizeof(Frame::Buffer) +
                      offsetof(Frame::Buffer, strides) + (imm % 8) * sizeof(int64_t);
  return frame_word(int64_t(at), lane_type(context(), f_.index_type));
}
Value* CodeUnit::extent(uint64_t axis) {
  return frame_word(int64_t(offsetof(Frame, extent) + axis * sizeof(int32_t)), builder_.getInt32Ty());
}

Value* CodeUnit::alone() {
  Value* word = frame_word(int64_t(offsetof(Frame, alone)), builder_.getInt32Ty());
  Value*& flag = words_[{int64_t(offsetof(Frame, alone)), builder_.getInt1Ty()}];
  if (!flag) flag = llvm::IRBuilder<>(entry_->getTerminator()).CreateICmpNE(word, builder_.getInt32(0));
  return flag;
}

Value* CodeUnit::large(uint64_t buffer) {
  Value* bits = frame_word(int64_t(offsetof(Frame, large)), builder_.getInt32Ty());
  Value*& flag = large_[buffer];
  if (!flag) {
    llvm::IRBuilder<> entry(entry_->getTerminator());
    flag =
        entry.CreateICmpNE(entry.CreateAnd(bits, entry.getInt32(uint32_t(1) << buffer)), entry.getInt32(0));
  }
  return flag;
}

MemoryPlace CodeUnit::place(Value* base, Storage storage, size_t number) {
  return {base, storage, scopes_[number], disjoint_[number]};
}
MemoryPlace CodeUnit::buffer(uint64_t index) {
  const uint64_t at =
      offsetof(Frame, buffers) + index * sizeof(Frame::Buffer) + offsetof(Frame::Buffer, data);
  MemoryPlace found =
      place(frame_word(int64_t(at), llvm::PointerType::get(context(), 0)), f_.buffers[index].storage, index);
  if (target_.x86 && f_.buffers[index].access == ir::Access::write) found.large = large(index);
  return found;
}
MemoryPlace CodeUnit::shared(uint64_t index) {
  return place(shared_bases_[index], f_.shared[index].storage, f_.buffers.size() + index);
}

llvm::AllocaInst* CodeUnit::local(llvm::Type* type, const std::string& name) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  return entry.CreateAlloca(type, nullptr, name);
}

Value* CodeUnit::scratch(int64_t bytes) {
  llvm::IRBuilder<> entry(entry_->getTerminator());
  Value* at =
      entry.CreateConstInBoundsGEP1_64(entry.getInt8Ty(), function_->getArg(2), uint64_t(scratch_bytes_));
  // One unit between arrays: lane variables of equal, round sizes would share sets of the first cache.
  scratch_bytes_ += ((bytes + kScratchAlignment - 1) / kScratchAlignment + 1) * kScratchAlignment;
  return at;
}

void CodeUnit::finish(Value* result) {
  if (streams && target_.x86) builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  if (result)
    builder_.CreateRet(result);
  else
    builder_.CreateRetVoid();
}

}  // namespace lockstep::compile::simd
