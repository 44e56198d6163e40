// Atomic operations, lane by lane.
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

namespace {
llvm::AtomicRMWInst::BinOp atomic_operation(ir::AtomicOp op, Type type) {
  using llvm::AtomicRMWInst;
  if (is_float(type)) return AtomicRMWInst::FAdd;
  const bool sgn = is_signed(type);
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
    case ir::AtomicOp::add: return is_float(type) ? b.CreateFAdd(old, value) : b.CreateAdd(old, value);
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
  if (!type->isIntegerTy()) return nullptr;
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
/// instruction; buffers need none where the launch runs alone.
Slot LaneCode::atomic(Id id) {
  const Instruction& i = f_[id];
  const ir::AtomicTarget target = ir::AtomicTarget::from_bits(i.imm);
  const AtomicAccess access{target.shared ? u_.shared(target.array) : u_.buffer(target.array), target.op,
                            i.type};
  const auto either_way = [&](const std::function<Value*(bool)>& emit) {
    if (target.shared) return emit(true);
    return either(u_.alone(), [&] { return emit(true); }, [&] { return emit(false); });
  };

  llvm::Type* type = lane_type(u_.context(), i.type);
  const bool sgn = is_signed(i.type);
  if (Value* nothing = neutral(target.op, type, sgn);
      nothing && !u_.used(id) && divergence_.uniform(i.args[0])) {
    Value* values = vector(i.args[1]);
    if (mask_) values = b_.CreateSelect(mask_, values, splat(nothing));
    Value *all = fold_lanes(b_, target.op, sgn, values), *index = scalar(i.args[0]);
    either_way([&](bool plain) { return atomic_once(access, index, all, nullptr, plain); });
    return {llvm::PoisonValue::get(vector_type(type))};
  }

  std::array<Value*, 3> operands{};
  for (int k = 0; k < i.arg_count(); ++k)
    operands[k] = divergence_.uniform(i.args[k]) ? scalar(i.args[k]) : vector(i.args[k]);
  return {either_way([&](bool plain) { return atomic_loop(access, operands, plain); })};
}

/// One lane's operation; gives the old value.
Value* LaneCode::atomic_once(const AtomicAccess& access, Value* index, Value* value, Value* compare,
                             bool plain) {
  Value* pointer = address(access.place, index);
  const llvm::Align align(uint64_t(size_of(access.place.storage)));
  const bool exchange = access.op == ir::AtomicOp::compare_exchange;
  if (plain) {
    llvm::LoadInst* old = b_.CreateAlignedLoad(lane_type(u_.context(), access.type), pointer, align);
    annotate(old, access.place);
    Value* next = exchange ? b_.CreateSelect(b_.CreateICmpEQ(old, compare), value, old)
                           : combine(b_, access.op, access.type, old, value);
    annotate(b_.CreateAlignedStore(next, pointer, align), access.place);
    return old;
  }
  constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;
  if (exchange)
    return b_.CreateExtractValue(b_.CreateAtomicCmpXchg(pointer, compare, value, align, kOrder, kOrder), 0);
  return b_.CreateAtomicRMW(atomic_operation(access.op, access.type), pointer, value, align, kOrder);
}

/// The lanes one by one, or those of the mask. A loop rather than sixteen copies: processors predict by the
/// instruction's address which store a load depends on, and do so better with one.
Value* LaneCode::atomic_loop(const AtomicAccess& access, const std::array<Value*, 3>& operands, bool plain) {
  llvm::Type* type = lane_type(u_.context(), access.type);
  // Lanes are picked by number: through memory.
  std::array<Value*, 3> memory = operands;
  for (Value*& v : memory) {
    if (!v || !v->getType()->isVectorTy()) continue;
    Value* stored = u_.local(v->getType());
    b_.CreateStore(v, stored);
    v = stored;
  }
  llvm::AllocaInst* result = u_.local(vector_type(type), "old");
  const auto number = [&](llvm::Type* integer, uint64_t v) { return llvm::ConstantInt::get(integer, v); };
  // The lane's number where all run, else the bits of the lanes still to come.
  Value* begin = mask_ ? mask_bits() : b_.getInt64(0);
  llvm::BasicBlock *from = b_.GetInsertBlock(), *body = u_.new_block("lane"),
                   *done = u_.new_block("lanes_done");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* state = b_.CreatePHI(begin->getType(), 2);
  state->addIncoming(begin, from);
  Value* lane = state;
  if (mask_)
    lane = b_.CreateZExtOrTrunc(
        b_.CreateIntrinsic(llvm::Intrinsic::cttz, {begin->getType()}, {state, b_.getTrue()}),
        b_.getInt64Ty());
  const auto of_lane = [&](int k) -> Value* {
    if (memory[k] == operands[k]) return operands[k];
    llvm::Type* element = operands[k]->getType()->getScalarType();
    return b_.CreateLoad(element, b_.CreateGEP(element, memory[k], lane));
  };
  b_.CreateStore(atomic_once(access, of_lane(0), of_lane(1), of_lane(2), plain),
                 b_.CreateGEP(type, result, lane));
  Value* next = mask_ ? b_.CreateAnd(state, b_.CreateSub(state, number(begin->getType(), 1)))
                      : b_.CreateAdd(state, b_.getInt64(1));
  state->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(next, number(begin->getType(), mask_ ? 0 : uint64_t(width_))), body, done);
  b_.SetInsertPoint(done);
  return b_.CreateLoad(vector_type(type), result);
}

}  // namespace lockstep::compile::simd
