// Atomic operations, lane by lane.
#include "compile/llvm/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

namespace {
llvm::AtomicRMWInst::BinOp atomic_operation(ir::AtomicOp op, bool sgn) {
  using llvm::AtomicRMWInst;
  switch (op) {
    case ir::AtomicOp::add: return AtomicRMWInst::Add;
    case ir::AtomicOp::min: return sgn ? AtomicRMWInst::Min : AtomicRMWInst::UMin;
    case ir::AtomicOp::max: return sgn ? AtomicRMWInst::Max : AtomicRMWInst::UMax;
    case ir::AtomicOp::and_: return AtomicRMWInst::And;
    case ir::AtomicOp::or_: return AtomicRMWInst::Or;
    case ir::AtomicOp::xor_: return AtomicRMWInst::Xor;
    default: return AtomicRMWInst::Xchg;
  }
}
Value* combine(llvm::IRBuilder<>& b, ir::AtomicOp op, Type type, Value* old, Value* value) {
  switch (op) {
    case ir::AtomicOp::add: return b.CreateAdd(old, value);
    case ir::AtomicOp::min: return lower_op(b, Op::imin, type, old, value, nullptr);
    case ir::AtomicOp::max: return lower_op(b, Op::imax, type, old, value, nullptr);
    case ir::AtomicOp::and_: return b.CreateAnd(old, value);
    case ir::AtomicOp::or_: return b.CreateOr(old, value);
    case ir::AtomicOp::xor_: return b.CreateXor(old, value);
    default: return value;
  }
}
/// The neutral value of an operation that may be folded over the lanes first, or null.
Value* neutral(ir::AtomicOp op, llvm::Type* type, bool sgn) {
  const unsigned bits = type->getIntegerBitWidth();
  switch (op) {
    case ir::AtomicOp::add:
    case ir::AtomicOp::or_:
    case ir::AtomicOp::xor_: return llvm::ConstantInt::get(type, 0);
    case ir::AtomicOp::and_: return llvm::Constant::getAllOnesValue(type);
    case ir::AtomicOp::min:
      return llvm::ConstantInt::get(
          type, sgn ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
    case ir::AtomicOp::max:
      return llvm::ConstantInt::get(
          type, sgn ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits));
    default: return nullptr;
  }
}
Value* fold_lanes(llvm::IRBuilder<>& b, ir::AtomicOp op, bool sgn, Value* v) {
  switch (op) {
    case ir::AtomicOp::add: return b.CreateAddReduce(v);
    case ir::AtomicOp::and_: return b.CreateAndReduce(v);
    case ir::AtomicOp::or_: return b.CreateOrReduce(v);
    case ir::AtomicOp::xor_: return b.CreateXorReduce(v);
    case ir::AtomicOp::min: return b.CreateIntMinReduce(v, sgn);
    default: return b.CreateIntMaxReduce(v, sgn);
  }
}
}  // namespace

/// One lane after the other, in order. A group runs on one thread, so its shared arrays need no atomic
/// instruction.
Slot LaneCode::atomic(Id id) {
  const Instruction& i = f_[id];
  const ir::AtomicTarget target = ir::AtomicTarget::from_bits(i.imm);
  const MemoryPlace place = target.shared ? u_.shared(target.array) : u_.buffer(target.array);
  const bool sgn = is_signed(i.type), exchange = target.op == ir::AtomicOp::compare_exchange;
  llvm::Type* type = lane_type(u_.context(), i.type);
  const llvm::Align align(uint64_t(size_of(place.storage)));
  const auto one = [&](Value* index, Value* value, Value* compare) -> Value* {
    Value* pointer = address(place, index);
    const auto plain = [&]() -> Value* {
      llvm::LoadInst* old = b_.CreateAlignedLoad(type, pointer, align);
      annotate(old, place);
      Value* next = exchange ? b_.CreateSelect(b_.CreateICmpEQ(old, compare), value, old)
                             : combine(b_, target.op, i.type, old, value);
      annotate(b_.CreateAlignedStore(next, pointer, align), place);
      return old;
    };
    if (target.shared) return plain();
    constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;
    return either(u_.alone(), plain, [&]() -> Value* {
      if (exchange)
        return b_.CreateExtractValue(b_.CreateAtomicCmpXchg(pointer, compare, value, align, kOrder, kOrder),
                                     0);
      return b_.CreateAtomicRMW(atomic_operation(target.op, sgn), pointer, value, align, kOrder);
    });
  };

  if (Value* nothing = neutral(target.op, type, sgn); nothing && !u_.used(id) && shapes_.uniform(i.args[0])) {
    Value* values = vector(i.args[1]);
    if (mask_) values = b_.CreateSelect(mask_, values, splat(nothing));
    one(scalar(i.args[0]), fold_lanes(b_, target.op, sgn, values), nullptr);
    return {llvm::PoisonValue::get(vector_type(type))};
  }

  Value* operands[3] = {};
  for (int k = 0; k < i.arg_count(); ++k)
    operands[k] = shapes_.uniform(i.args[k]) ? scalar(i.args[k]) : vector(i.args[k]);
  llvm::AllocaInst* result = u_.local(vector_type(type), "old");
  Value* bits = mask_bits();
  llvm::BasicBlock *from = b_.GetInsertBlock(), *body = u_.new_block("lane"),
                   *done = u_.new_block("lanes_done");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* left = b_.CreatePHI(bits->getType(), 2);
  left->addIncoming(bits, from);
  Value* lane = b_.CreateZExtOrTrunc(
      b_.CreateIntrinsic(llvm::Intrinsic::cttz, {bits->getType()}, {left, b_.getTrue()}), b_.getInt32Ty());
  const auto of_lane = [&](Value* v) {
    return v && v->getType()->isVectorTy() ? b_.CreateExtractElement(v, lane) : v;
  };
  Value* old = one(of_lane(operands[0]), of_lane(operands[1]), of_lane(operands[2]));
  if (u_.used(id)) b_.CreateStore(old, b_.CreateGEP(type, result, b_.CreateZExt(lane, b_.getInt64Ty())));
  Value* rest = b_.CreateAnd(left, b_.CreateSub(left, llvm::ConstantInt::get(bits->getType(), 1)));
  left->addIncoming(rest, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(rest, llvm::ConstantInt::get(bits->getType(), 0)), body, done);
  b_.SetInsertPoint(done);
  return {b_.CreateLoad(vector_type(type), result)};
}

}  // namespace lockstep::compile::simd
