#include "compile/llvm/lower_op.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "lockstep/error.hpp"

namespace lockstep::compile::simd {

namespace {

using llvm::IRBuilderBase;
using llvm::Value;

llvm::Type* with_lanes_of(Value* like, llvm::Type* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType()))
    return llvm::VectorType::get(scalar, vector->getElementCount());
  return scalar;
}
Value* number(Value* like, uint64_t v) { return llvm::ConstantInt::get(like->getType(), v); }
unsigned width(Value* x) { return x->getType()->getScalarSizeInBits(); }

template <class... Operand>
Value* call_intrinsic(IRBuilderBase& b, llvm::Intrinsic::ID id, Value* x, Operand... rest) {
  return b.CreateIntrinsic(id, {x->getType()}, {x, rest...});
}
// ops.def names an intrinsic by its LLVM identifier.
#define intrinsic(b, name, ...) call_intrinsic(b, llvm::Intrinsic::name, __VA_ARGS__)

Value* infinity(Value* x) { return llvm::ConstantFP::getInfinity(x->getType()); }
Value* is_inf(IRBuilderBase& b, Value* x) { return b.CreateFCmpOEQ(intrinsic(b, fabs, x), infinity(x)); }
Value* is_finite(IRBuilderBase& b, Value* x) { return b.CreateFCmpOLT(intrinsic(b, fabs, x), infinity(x)); }

Value* count_zeros(IRBuilderBase& b, llvm::Intrinsic::ID id, Value* x) {
  return b.CreateIntrinsic(id, {x->getType()}, {x, b.getFalse()});
}
Value* int_abs(IRBuilderBase& b, Value* x, bool sgn) {
  return sgn ? b.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b.getFalse()}) : x;
}
Value* int_min(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  return sgn ? intrinsic(b, smin, x, y) : intrinsic(b, umin, x, y);
}
Value* int_max(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  return sgn ? intrinsic(b, smax, x, y) : intrinsic(b, umax, x, y);
}
Value* umul_high(IRBuilderBase& b, Value* x, Value* y) {
  const unsigned bits = width(x);
  llvm::Type* twice = with_lanes_of(x, b.getIntNTy(2 * bits));
  Value* product = b.CreateMul(b.CreateZExt(x, twice), b.CreateZExt(y, twice));
  return b.CreateTrunc(b.CreateLShr(product, number(product, bits)), x->getType());
}
Value* shift(IRBuilderBase& b, llvm::Instruction::BinaryOps op, Value* x, Value* y) {
  return b.CreateBinOp(op, x, b.CreateAnd(y, number(y, width(x) - 1)));
}

/// A divisor that the instruction takes: not 0, and not -1 for signed types (whose quotient is the negation).
bool divides_safely(Value* y, bool sgn) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(y);
  if (!constant) return false;
  if (y->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return integer && !integer->isZero() && !(sgn && integer->isMinusOne());
}
/// Quotient of 32-bit lanes in f64: the rounded quotient never crosses a whole number.
Value* divide_in_f64(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  llvm::Type* f64 = with_lanes_of(x, b.getDoubleTy());
  Value *xf = sgn ? b.CreateSIToFP(x, f64) : b.CreateUIToFP(x, f64),
        *yf = sgn ? b.CreateSIToFP(y, f64) : b.CreateUIToFP(y, f64);
  Value* q = b.CreateFDiv(xf, yf);
  return sgn ? b.CreateFPToSI(q, x->getType()) : b.CreateFPToUI(q, x->getType());
}
Value* divide(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  if (x->getType()->isVectorTy() && width(x) == 32 && !llvm::isa<llvm::Constant>(y))
    return divide_in_f64(b, x, y, sgn);
  return sgn ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
}
Value* safe_div(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  if (divides_safely(y, sgn)) return sgn ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  Value *one = number(y, 1), *zero = number(y, 0), *by_zero = b.CreateICmpEQ(y, zero);
  if (!sgn) return b.CreateSelect(by_zero, zero, divide(b, x, b.CreateSelect(by_zero, one, y), false));
  Value* by_minus = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType()));
  Value* q = divide(b, x, b.CreateSelect(b.CreateOr(by_zero, by_minus), one, y), true);
  return b.CreateSelect(by_zero, zero, b.CreateSelect(by_minus, b.CreateNeg(x), q));
}
Value* safe_rem(IRBuilderBase& b, Value* x, Value* y, bool sgn) {
  if (divides_safely(y, sgn)) return sgn ? b.CreateSRem(x, y) : b.CreateURem(x, y);
  Value *one = number(y, 1), *zero = number(y, 0);
  Value* trivial = b.CreateICmpEQ(y, zero);
  if (sgn) trivial = b.CreateOr(trivial, b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType())));
  Value* d = b.CreateSelect(trivial, one, y);
  Value* r = b.CreateSub(x, b.CreateMul(divide(b, x, d, sgn), d));
  return b.CreateSelect(trivial, zero, r);
}

}  // namespace

llvm::Type* lane_type(llvm::LLVMContext& context, Type type) {
  switch (type) {
    case Type::boolean: return llvm::Type::getInt1Ty(context);
    case Type::i32:
    case Type::u32: return llvm::Type::getInt32Ty(context);
    case Type::i64:
    case Type::u64: return llvm::Type::getInt64Ty(context);
    case Type::f32: return llvm::Type::getFloatTy(context);
    case Type::f64: return llvm::Type::getDoubleTy(context);
    case Type::none: break;
  }
  return llvm::Type::getVoidTy(context);
}

llvm::Type* element_type(llvm::LLVMContext& context, Storage storage) {
  switch (storage) {
    case Storage::f16:
    case Storage::bf16: return llvm::Type::getInt16Ty(context);
    case Storage::u8: return llvm::Type::getInt8Ty(context);
    default: return lane_type(context, value_type(storage));
  }
}

Value* lower_op(IRBuilderBase& b, ir::Op op, Type operand, Value* x, Value* y, Value* z) {
  const bool sgn = is_signed(operand);
  switch (op) {
#define LOCKSTEP_OP(name, arity, domain, result, meaning, cuda, wgsl, llvm_form) \
  case ir::Op::name: return llvm_form;
#include "lockstep/ir/ops.def"
    default: break;
  }
  throw InternalError("an operation without an LLVM form", ir::name(op), "a row LOCKSTEP_OP");
}

Value* lower_convert(IRBuilderBase& b, Type from, Type to, Value* x) {
  if (from == to) return x;
  llvm::Type* target = with_lanes_of(x, lane_type(b.getContext(), to));
  if (to == Type::boolean)
    return is_float(from) ? b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()))
                          : b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  if (from == Type::boolean) return is_float(to) ? b.CreateUIToFP(x, target) : b.CreateZExt(x, target);
  if (is_float(from)) {
    if (is_float(to)) return is_wide(to) ? b.CreateFPExt(x, target) : b.CreateFPTrunc(x, target);
    const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {target, x->getType()}, {x});
  }
  if (is_float(to)) return is_signed(from) ? b.CreateSIToFP(x, target) : b.CreateUIToFP(x, target);
  return is_signed(from) ? b.CreateSExtOrTrunc(x, target) : b.CreateZExtOrTrunc(x, target);
}

Value* widen(IRBuilderBase& b, Storage storage, Value* x) {
  llvm::Type* target = with_lanes_of(x, lane_type(b.getContext(), value_type(storage)));
  switch (storage) {
    case Storage::f16: return b.CreateFPExt(b.CreateBitCast(x, with_lanes_of(x, b.getHalfTy())), target);
    case Storage::bf16: {
      Value* bits = b.CreateZExt(x, with_lanes_of(x, b.getInt32Ty()));
      return b.CreateBitCast(b.CreateShl(bits, number(bits, 16)), target);
    }
    case Storage::u8: return b.CreateZExt(x, target);
    default: return x;
  }
}

Value* narrow(IRBuilderBase& b, Storage storage, Value* x) {
  llvm::Type* target = with_lanes_of(x, element_type(b.getContext(), storage));
  switch (storage) {
    case Storage::f16: return b.CreateBitCast(b.CreateFPTrunc(x, with_lanes_of(x, b.getHalfTy())), target);
    case Storage::bf16: {
      Value* bits = b.CreateBitCast(x, with_lanes_of(x, b.getInt32Ty()));
      Value* high = b.CreateLShr(bits, number(bits, 16));
      Value* even = b.CreateAdd(b.CreateAnd(high, number(bits, 1)), number(bits, 0x7fff));
      Value* rounded = b.CreateLShr(b.CreateAdd(bits, even), number(bits, 16));
      Value* quiet = b.CreateOr(high, number(bits, 0x40));
      return b.CreateTrunc(b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded), target);
    }
    case Storage::u8: return b.CreateTrunc(x, target);
    default: return x;
  }
}

llvm::Value* next_counter(llvm::IRBuilderBase& b, const ir::Function& function, const ir::Instruction& loop,
                          llvm::Value* now, llvm::Value* step) {
  if (!ir::may_overstep(function, loop)) return b.CreateAdd(now, step);
  const ir::Instruction& constant = function[loop.args[2]];
  const bool down = is_wide(constant.type) ? int64_t(constant.imm) < 0 : int32_t(constant.imm) < 0;
  if (is_signed(constant.type)) return b.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, now, step);
  return down ? b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, now, b.CreateNeg(step))
              : b.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, now, step);
}

Value* lower_reduction(IRBuilderBase& b, ir::Reduction reduction, Type type, Value* x, Value* y) {
  using ir::Op;
  const bool f = is_float(type);
  switch (reduction) {
    case ir::Reduction::add: return lower_op(b, f ? Op::fadd : Op::iadd, type, x, y, nullptr);
    case ir::Reduction::min: return lower_op(b, f ? Op::fmin : Op::imin, type, x, y, nullptr);
    case ir::Reduction::max: break;
  }
  return lower_op(b, f ? Op::fmax : Op::imax, type, x, y, nullptr);
}

}  // namespace lockstep::compile::simd
