// Values: scalars for what the lanes share, vectors for the rest.
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::Value;

LaneCode::LaneCode(CodeUnit& unit, const Divergence& divergence, const Assumptions* assumptions, int width)
    : u_(unit),
      b_(unit.b()),
      f_(unit.f()),
      divergence_(divergence),
      assumptions_(assumptions),
      width_(width),
      slots_(unit.f().instructions.size()) {}

Slot LaneCode::import(Id id) {
  throw InternalError("a value used before its definition", f_.name, ir::print(f_, id));
}

Slot& LaneCode::slot(Id id) {
  if (!slots_[id][0]) slots_[id] = import(id);
  return slots_[id];
}

Value* LaneCode::scalar(Id id) {
  Value* v = slot(id)[0];
  // A value that its author declares uniform may have been computed by lane.
  return v->getType()->isVectorTy() ? b_.CreateExtractElement(v, first_active()) : v;
}

Value* LaneCode::vector(Id id, int component) {
  Value* v = slot(id)[component];
  if (v->getType()->isVectorTy()) return v;
  Value* all = splat(v);
  const Form& form = divergence_[id];
  if (form.kind != Form::linear) return all;
  return b_.CreateAdd(all, iota(v->getType(), form.stride));
}

Value* LaneCode::splat(Value* v) { return b_.CreateVectorSplat(unsigned(width_), v); }

Value* LaneCode::iota(llvm::Type* type, int64_t stride) {
  std::vector<llvm::Constant*> lanes;
  for (int l = 0; l < width_; ++l) lanes.push_back(llvm::ConstantInt::get(type, uint64_t(stride * l), true));
  return llvm::ConstantVector::get(lanes);
}

Value* LaneCode::full_mask() { return llvm::Constant::getAllOnesValue(vector_type(b_.getInt1Ty())); }

Value* LaneCode::mask_bits() {
  return b_.CreateBitCast(mask_ ? mask_ : full_mask(), b_.getIntNTy(unsigned(width_)));
}

Value* LaneCode::first_active() {
  if (!mask_) return b_.getInt32(0);
  Value* bits = mask_bits();
  Value* lane = b_.CreateIntrinsic(llvm::Intrinsic::cttz, {bits->getType()}, {bits, b_.getTrue()});
  return b_.CreateZExtOrTrunc(lane, b_.getInt32Ty());
}

Value* LaneCode::lane_number() { return b_.CreateAdd(splat(first_lane), iota(b_.getInt32Ty())); }

Slot LaneCode::position(Id id) {
  const Instruction& i = f_[id];
  if (i.op == Op::coord) return {coord[i.imm]};
  const bool vector = divergence_[id].is_varying();
  Value* lane = vector ? lane_number() : first_lane;
  if (i.op == Op::lane) return {lane};
  if (f_.group[i.imm] == 1) return {vector ? splat(b_.getInt32(0)) : b_.getInt32(0)};
  const auto constant = [&](int64_t v) { return llvm::ConstantInt::get(lane->getType(), uint64_t(v)); };
  const int64_t x = f_.group[0], y = f_.group[1];
  switch (i.imm) {
    case 0: return {f_.group_lanes() == x ? lane : b_.CreateURem(lane, constant(x))};
    case 1: return {b_.CreateURem(b_.CreateUDiv(lane, constant(x)), constant(y))};
    default: return {b_.CreateUDiv(lane, constant(x * y))};
  }
}

Value* LaneCode::apply(const Instruction& i, bool scalars, Value* x, Value* y, Value* z) {
  switch (i.op) {
    case Op::select: return b_.CreateSelect(x, y, z);
    case Op::convert: return lower_convert(b_, f_[i.args[0]].type, i.type, x);
    case Op::bitcast: {
      llvm::Type* type = lane_type(u_.context(), i.type);
      return b_.CreateBitCast(x, scalars ? type : vector_type(type));
    }
    case Op::clamp_index: {
      Value* one = llvm::ConstantInt::get(x->getType(), 1);
      Value* low = b_.CreateIntrinsic(llvm::Intrinsic::smin, {x->getType()}, {x, b_.CreateSub(y, one)});
      return b_.CreateIntrinsic(llvm::Intrinsic::smax, {x->getType()},
                                {low, llvm::Constant::getNullValue(x->getType())});
    }
    default: break;
  }
  if (ir::is_math(i.op))
    throw InternalError("an elementary function that no pass expanded", f_.name,
                        "compile::lower before code generation");
  // Scalar index arithmetic of a full vector: every lane counts, so the engine's promise holds for the
  // scalar.
  if (scalars && !mask_ && (i.flags & ir::kNoWrap) && is_signed(i.type)) {
    if (i.op == Op::iadd) return b_.CreateNSWAdd(x, y);
    if (i.op == Op::isub) return b_.CreateNSWSub(x, y);
    if (i.op == Op::imul) return b_.CreateNSWMul(x, y);
  }
  return lower_op(b_, i.op, f_[i.args[0]].type, x, y, z);
}

Slot LaneCode::call(Id id) {
  const Instruction& i = f_[id];
  std::vector<Value*> taken;
  for (int k = 0; k < i.arg_count(); ++k) taken.push_back(vector(i.args[size_t(k)]));
  taken.push_back(mask_ ? mask_ : full_mask());
  Value* given = b_.CreateCall(u_.called[i.imm], taken);
  Slot slot{};
  for (unsigned k = 0; k < i.lanes; ++k) {
    slot[k] = i.lanes == 1 ? given : b_.CreateExtractValue(given, k);
    if (!divergence_[id].is_varying()) slot[k] = b_.CreateExtractElement(slot[k], first_active());
  }
  return slot;
}

Slot LaneCode::pure(Id id) {
  const Instruction& i = f_[id];
  switch (i.op) {
    case Op::constant: {
      llvm::Type* type = lane_type(u_.context(), i.type);
      const unsigned bits = type->getPrimitiveSizeInBits();
      const llvm::APInt value(bits, bits == 64 ? i.imm : i.imm & ((uint64_t(1) << bits) - 1));
      if (is_float(i.type)) {
        const auto& semantics =
            i.type == Type::f32 ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble();
        return {llvm::ConstantFP::get(u_.context(), llvm::APFloat(semantics, value))};
      }
      return {llvm::ConstantInt::get(u_.context(), value)};
    }
    case Op::param: return {u_.param(i.imm)};
    case Op::shape: return {u_.shape(i.imm)};
    case Op::stride: return {u_.stride(i.imm)};
    case Op::extent: return {u_.extent(i.imm)};
    case Op::coord:
    case Op::local_id:
    case Op::lane: return position(id);
    case Op::extract: return {slot(i.args[0])[i.imm]};
    default: break;
  }
  if (assumptions_) {
    if (const int operand = assumptions_->operand(f_, id); operand >= 0) return slot(i.args[operand]);
    if (const auto known = assumptions_->settled.find(id); known != assumptions_->settled.end())
      return {b_.getInt1(known->second)};
  }
  if (i.op == Op::uniform) return slot(i.args[0]);  // by lane where its operand is; scalar() takes one
  const int count = i.arg_count();
  const bool scalars = !divergence_[id].is_varying();
  Value* x[3] = {};
  for (int k = 0; k < count; ++k) {
    const bool scalar_condition = i.op == Op::select && k == 0 && divergence_[i.args[0]].is_uniform();
    x[k] = scalars || scalar_condition ? scalar(i.args[k]) : vector(i.args[k]);
  }
  return {apply(i, scalars, x[0], x[1], x[2])};
}

}  // namespace lockstep::compile::simd
