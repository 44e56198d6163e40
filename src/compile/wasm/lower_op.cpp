#include "compile/wasm/lower_op.hpp"

#include <bit>

#include "compile/wasm/helpers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::wasm {

namespace {

constexpr uint32_t lanes_op(uint32_t number) { return kVector | number; }
/// Forms by their numbers; those of vectors without the prefix, 0 for none.
constexpr Forms forms(uint32_t narrow, uint32_t wide, uint32_t narrow_lanes, uint32_t wide_lanes) {
  return {narrow, wide, narrow_lanes ? lanes_op(narrow_lanes) : uint32_t(kNone),
          wide_lanes ? lanes_op(wide_lanes) : uint32_t(kNone)};
}

constexpr Forms kFadd = forms(0x92, 0xa0, 0xe4, 0xf0), kFsub = forms(0x93, 0xa1, 0xe5, 0xf1),
                kFmul = forms(0x94, 0xa2, 0xe6, 0xf2), kFdiv = forms(0x95, 0xa3, 0xe7, 0xf3),
                kFneg = forms(0x8c, 0x9a, 0xe1, 0xed), kFabs = forms(0x8b, 0x99, 0xe0, 0xec),
                kFsqrt = forms(0x91, 0x9f, 0xe3, 0xef), kFfloor = forms(0x8e, 0x9c, 0x68, 0x75),
                kFceil = forms(0x8d, 0x9b, 0x67, 0x74), kFtrunc = forms(0x8f, 0x9d, 0x69, 0x7a),
                kFrint = forms(0x90, 0x9e, 0x6a, 0x94), kFeq = forms(0x5b, 0x61, 0x41, 0x47),
                kFne = forms(0x5c, 0x62, 0x42, 0x48), kFlt = forms(0x5d, 0x63, 0x43, 0x49),
                kFle = forms(0x5f, 0x65, 0x45, 0x4b), kPmin = forms(0, 0, 0xea, 0xf6),
                kPmax = forms(0, 0, 0xeb, 0xf7), kCopysign = forms(0x98, 0xa6, 0, 0),
                kIabs = forms(0, 0, 0xa0, 0xc0), kIne = forms(0x47, 0x52, 0x38, 0xd7),
                kPopcount = forms(0x69, 0x7b, 0, 0), kClz = forms(0x67, 0x79, 0, 0),
                kCtz = forms(0x68, 0x7a, 0, 0), kDivS = forms(0x6d, 0x7f, 0, 0),
                kDivU = forms(0x6e, 0x80, 0, 0), kRemS = forms(0x6f, 0x81, 0, 0),
                kRemU = forms(0x70, 0x82, 0, 0), kShl = forms(0x74, 0x86, 0xab, 0xcb),
                kShrS = forms(0x75, 0x87, 0xac, 0xcc), kShrU = forms(0x76, 0x88, 0xad, 0xcd);

Value infinity(const Value& x) { return Builder::like(x, x.wide() ? 0x7ff0000000000000u : 0x7f800000u); }

Value copysign(Builder& b, const Value& x, const Value& y) {
  if (!x.vector) return b.map(kCopysign, {&x, &y});
  Value r{x.type, true, false, 0, {}};
  const Value magnitude = Builder::like(x, x.wide() ? ~(uint64_t(1) << 63) : 0x7fffffffu);
  for (int k = 0; k < r.parts(); ++k) {
    b.push(x, k), b.push(y, k), b.push(magnitude, k);
    b.body().op(kBitselect);
    b.pop_part(r, k);
  }
  return r;
}

// ── integers ──
/// Vectors of 32-bit lanes divide in f64: the rounded quotient never crosses a whole number.
Value divide_in_f64(Builder& b, const Value& x, const Value& y) {
  const Value dividend = lower_convert(b, x, Type::f64), divisor = lower_convert(b, y, Type::f64);
  const Value q = b.map(kFdiv, {&dividend, &divisor});
  return lower_convert(b, q, x.type);
}
/// The instruction traps on 0, and on the least number by -1: neither reaches it.
Value safe_divide(Builder& b, const Value& x, const Value& y, bool remainder) {
  const bool sgn = is_signed(x.type);
  const Value zero = Builder::like(y, 0), one = Builder::like(y, 1), minus = Builder::like(y, ~uint64_t(0));
  const Forms& direct = remainder ? (sgn ? kRemS : kRemU) : (sgn ? kDivS : kDivU);
  if (x.vector && (x.wide() || y.constant))
    return b.by_lane([&](int l) { return safe_divide(b, b.lane(x, l), b.lane(y, l), remainder); });
  if (y.constant && !x.vector) {
    const bool by_minus = sgn && (x.wide() ? int64_t(y.bits) == -1 : int32_t(y.bits) == -1);
    if (y.bits != 0 && !by_minus) return b.map(direct, {&x, &y});
    return y.bits == 0 || remainder ? Builder::like(x, 0) : b.sub(Builder::like(x, 0), x);
  }
  const Value by_zero = b.equal(y, zero);
  Value by_minus, trivial = by_zero;
  if (sgn) trivial = b.or_(by_zero, by_minus = b.equal(y, minus));
  const Value d = b.select(trivial, one, y);
  if (remainder) {
    const Value r = x.vector ? b.sub(x, b.mul(divide_in_f64(b, x, d), d)) : b.map(direct, {&x, &d});
    return b.select(trivial, Builder::like(x, 0), r);
  }
  Value q = x.vector ? divide_in_f64(b, x, d) : b.map(direct, {&x, &d});
  if (sgn) q = b.select(by_minus, b.sub(Builder::like(x, 0), x), q);
  return b.select(by_zero, zero, q);
}

Value shift(Builder& b, ir::Op op, const Value& x, const Value& y) {
  const Forms& f = op == ir::Op::shl ? kShl : is_signed(x.type) ? kShrS : kShrU;
  if (!x.vector) return b.map(f, {&x, &y});
  if (y.vector && !y.constant)
    return b.by_lane([&](int l) { return shift(b, op, b.lane(x, l), b.lane(y, l)); });
  // One amount for all lanes: an i32, counted modulo the width by the instruction.
  Value amount = Builder::constant(Type::i32, uint32_t(y.bits));
  if (!y.constant) amount = y.wide() ? lower_convert(b, y, Type::i32) : y;
  return b.map(f, {&x, &amount});
}

/// The high half of the product, from products of halves.
Value high_of_wide(Builder& b, const Value& x, const Value& y) {
  const Value low = Builder::like(x, 0xffffffffu);
  const Value xl = b.and_(x, low), xh = b.shr(x, 32), yl = b.and_(y, low), yh = b.shr(y, 32);
  const Value cross = b.add(b.mul(xh, yl), b.shr(b.mul(xl, yl), 32));  // below 2^64
  const Value other = b.add(b.mul(xl, yh), b.and_(cross, low));
  return b.add(b.add(b.mul(xh, yh), b.shr(cross, 32)), b.shr(other, 32));
}
Value mul_high(Builder& b, const Value& x, const Value& y) {
  if (x.wide()) return high_of_wide(b, x, y);
  if (!x.vector) {
    const Value product = b.mul(lower_convert(b, x, Type::u64), lower_convert(b, y, Type::u64));
    return lower_convert(b, b.shr(product, 32), x.type);
  }
  constexpr Opcode kLow = Opcode(kVector | 0xde), kHigh = Opcode(kVector | 0xdf);
  for (const Opcode half : {kLow, kHigh}) {
    b.push(x), b.push(y);
    b.body().op(half);
  }
  b.body().shuffle({4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31});
  return b.pop(x.type, true);
}

Value pop_count(Builder& b, const Value& x) {
  if (!x.vector || x.wide()) return b.map(kPopcount, {&x});
  b.push(x);
  for (const uint32_t step : {0x62u, 0x7du, 0x7fu}) b.body().op(Opcode(lanes_op(step)));
  return b.pop(x.type, true);
}

Value absolute(Builder& b, const Value& x) {
  if (!is_signed(x.type)) return x;
  if (x.vector) return b.map(kIabs, {&x});
  const Value zero = Builder::like(x, 0);
  return b.select(b.less(x, zero), b.sub(zero, x), x);
}

// ── conversions ──
constexpr uint32_t saturating(uint32_t number) { return kSaturating | number; }

/// The one instruction for scalars, or kNone where none is needed or two are.
uint32_t scalar_conversion(Type from, Type to) {
  const bool sgn = is_signed(is_float(to) ? from : to);
  if (is_float(from) && is_float(to)) return is_wide(to) ? 0xbb : 0xb6;
  if (is_float(from)) {
    const uint32_t base = (is_wide(to) ? 4 : 0) + (is_wide(from) ? 2 : 0);
    return saturating(base + (sgn ? 0 : 1));
  }
  if (is_float(to)) return (is_wide(to) ? 0xb7u : 0xb2u) + (is_wide(from) ? 2 : 0) + (sgn ? 0 : 1);
  if (is_wide(to)) return is_signed(from) ? 0xac : 0xad;
  return 0xa7;
}

/// Lanes of 32 bits from `x`, by an instruction that reads the low half of a vector: once for each half.
Value extend(Builder& b, const Value& x, Type to, Opcode opcode) {
  Value r{to, true, false, 0, {}};
  for (int k = 0; k < 2; ++k) {
    b.push(x);
    if (k == 1) {
      b.push(x);
      b.body().shuffle({8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15});
    }
    b.body().op(opcode);
    b.pop_part(r, k);
  }
  return r;
}
/// Both halves of `x` by an instruction that gives two lanes and zeros above.
Value shrink(Builder& b, const Value& x, Type to, Opcode opcode) {
  for (int k = 0; k < 2; ++k) {
    b.push(x, k);
    b.body().op(opcode);
  }
  b.body().shuffle({0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23});
  return b.pop(to, true);
}

Value convert_lanes(Builder& b, const Value& x, Type to) {
  const Type from = x.type;
  const bool sgn = is_signed(is_float(to) ? from : to);
  const auto vector = [](uint32_t number) { return Opcode(lanes_op(number)); };
  if (is_float(from) && is_float(to))
    return is_wide(to) ? extend(b, x, to, kPromote) : shrink(b, x, to, kDemote);
  if (!is_float(from) && !is_float(to)) {
    if (is_wide(from)) return b.low_words(x, to);
    Value r{to, true, false, 0, {}};
    for (int k = 0; k < 2; ++k) {
      b.push(x);
      b.body().op(is_signed(from) ? (k == 0 ? kExtendLowS : kExtendHighS)
                                  : (k == 0 ? kExtendLowU : kExtendHighU));
      b.pop_part(r, k);
    }
    return r;
  }
  const Type integer = is_float(from) ? to : from;
  if (is_wide(integer)) return b.by_lane([&](int l) { return lower_convert(b, b.lane(x, l), to); });
  if (is_float(from) && is_wide(from)) return shrink(b, x, to, vector(sgn ? 0xfc : 0xfd));
  if (is_float(to) && is_wide(to)) return extend(b, x, to, vector(sgn ? 0xfe : 0xff));
  b.push(x);
  b.body().op(vector(is_float(from) ? (sgn ? 0xf8 : 0xf9) : (sgn ? 0xfa : 0xfb)));
  return b.pop(to, true);
}

// ── 16-bit floats ──
Value half_to_float(Builder& b, const Value& bits) {
  const auto number = [&](uint64_t v) { return Builder::like(bits, v); };
  const Value sign = b.shl(b.and_(bits, number(0x8000)), 16);
  const Value magnitude = b.and_(bits, number(0x7fff)), moved = b.shl(magnitude, 13);
  const Value scale = Builder::like(b.retype(number(0), Type::f32), 0x77800000);  // 2^112
  const Value scaled = b.bitcast(lower_op(b, ir::Op::fmul, b.bitcast(moved, Type::f32), scale), Type::u32);
  const Value special = b.less_equal(number(0x7c00), magnitude);
  return b.bitcast(b.or_(sign, b.select(special, b.or_(moved, number(0x7f800000)), scaled)), Type::f32);
}

Value float_to_half(Builder& b, const Value& x) {
  const Value bits = b.bitcast(x, Type::u32);
  const auto number = [&](uint64_t v) { return Builder::like(bits, v); };
  const Value magnitude = b.and_(bits, number(0x7fffffff)), sign = b.and_(b.shr(bits, 16), number(0x8000));
  // Normal numbers: the last kept bit and 0xfff round to even.
  const Value even = b.and_(b.shr(magnitude, 13), number(1));
  const Value rounded = b.shr(b.add(b.add(magnitude, number(0xfff)), even), 13);
  Value r = b.sub(rounded, number(112 << 10));
  // Below the least normal one: steps of 2^-24.
  const Value scale = Builder::like(b.retype(number(0), Type::f32), 0x4b800000);  // 2^24
  const Value steps =
      lower_op(b, ir::Op::frint, lower_op(b, ir::Op::fmul, b.bitcast(magnitude, Type::f32), scale));
  r = b.select(b.less(magnitude, number(0x38800000)), lower_convert(b, steps, Type::u32), r);
  r = b.select(b.less_equal(number(0x477ff000), magnitude), number(0x7c00), r);
  r = b.select(b.less(number(0x7f800000), magnitude), number(0x7e00), r);
  return b.or_(sign, r);
}

Value float_to_bfloat(Builder& b, const Value& x) {
  const Value bits = b.bitcast(x, Type::u32);
  const auto number = [&](uint64_t v) { return Builder::like(bits, v); };
  const Value high = b.shr(bits, 16);
  const Value rounded = b.shr(b.add(b.add(bits, number(0x7fff)), b.and_(high, number(1))), 16);
  const Value nan = b.less(number(0x7f800000), b.and_(bits, number(0x7fffffff)));
  return b.select(nan, b.or_(high, number(0x40)), rounded);
}

}  // namespace

Value lower_op(Builder& b, ir::Op op, const Value& x, const Value& y, const Value& z) {
  using ir::Op;
  switch (op) {
    case Op::fadd: return b.map(kFadd, {&x, &y});
    case Op::fsub: return b.map(kFsub, {&x, &y});
    case Op::fmul: return b.map(kFmul, {&x, &y});
    case Op::fdiv: return b.map(kFdiv, {&x, &y});
    case Op::fneg: return b.map(kFneg, {&x});
    case Op::fabs: return b.map(kFabs, {&x});
    case Op::fma: return fused_multiply_add(b, x, y, z);
    case Op::fsqrt: return b.map(kFsqrt, {&x});
    case Op::ffloor: return b.map(kFfloor, {&x});
    case Op::fceil: return b.map(kFceil, {&x});
    case Op::ftrunc: return b.map(kFtrunc, {&x});
    case Op::frint: return b.map(kFrint, {&x});
    case Op::fmin: return x.vector ? b.map(kPmin, {&x, &y}) : b.select(b.compare(kFlt, y, x), y, x);
    case Op::fmax: return x.vector ? b.map(kPmax, {&x, &y}) : b.select(b.compare(kFlt, x, y), y, x);
    case Op::fcopysign: return copysign(b, x, y);
    case Op::feq: return b.compare(kFeq, x, y);
    case Op::fne: return b.compare(kFne, x, y);
    case Op::flt: return b.compare(kFlt, x, y);
    case Op::fle: return b.compare(kFle, x, y);
    case Op::isnan: return b.compare(kFne, x, x);
    case Op::isinf: return b.compare(kFeq, b.map(kFabs, {&x}), infinity(x));
    case Op::isfinite: return b.compare(kFlt, b.map(kFabs, {&x}), infinity(x));
    case Op::iadd: return b.add(x, y);
    case Op::isub: return b.sub(x, y);
    case Op::imul: return b.mul(x, y);
    case Op::idiv: return safe_divide(b, x, y, false);
    case Op::irem: return safe_divide(b, x, y, true);
    case Op::ineg: return b.sub(Builder::like(x, 0), x);
    case Op::iabs: return absolute(b, x);
    case Op::imin: return b.min(x, y);
    case Op::imax: return b.max(x, y);
    case Op::umulhi: return mul_high(b, x, y);
    case Op::ieq: return b.equal(x, y);
    case Op::ine: return b.compare(kIne, x, y);
    case Op::ilt: return b.less(x, y);
    case Op::ile: return b.less_equal(x, y);
    case Op::band: return b.and_(x, y);
    case Op::bor: return b.or_(x, y);
    case Op::bxor: return b.xor_(x, y);
    case Op::bnot: return b.not_(x);
    case Op::shl:
    case Op::shr: return shift(b, op, x, y);
    case Op::popcount: return pop_count(b, x);
    case Op::clz: return b.map(kClz, {&x});
    case Op::ctz: return b.map(kCtz, {&x});
    default: break;
  }
  throw InternalError("an operation without a WebAssembly form", ir::name(op), "a row LOCKSTEP_OP");
}

Value lower_convert(Builder& b, const Value& x, Type to) {
  if (x.type == to) return x;
  if (x.type == Type::boolean) return b.from_mask(x, to);
  if (!is_float(x.type) && !is_float(to) && is_wide(x.type) == is_wide(to)) return b.retype(x, to);
  if (x.constant && x.type == Type::f32 && to == Type::f64)
    return {to, x.vector, true, std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(x.bits)))), {}};
  if (x.vector) return convert_lanes(b, x, to);
  b.push(x);
  b.body().op(Opcode(scalar_conversion(x.type, to)));
  return b.pop(to);
}

Value widen(Builder& b, Storage storage, const Value& bits) {
  switch (storage) {
    case Storage::f16: return half_to_float(b, bits);
    case Storage::bf16: return b.bitcast(b.shl(bits, 16), Type::f32);
    default: return bits;
  }
}

Value narrow(Builder& b, Storage storage, const Value& x) {
  switch (storage) {
    case Storage::f16: return float_to_half(b, x);
    case Storage::bf16: return float_to_bfloat(b, x);
    default: return x;
  }
}

Value lower_reduction(Builder& b, ir::Reduction reduction, const Value& x, const Value& y) {
  using ir::Op;
  const bool f = is_float(x.type);
  switch (reduction) {
    case ir::Reduction::add: return lower_op(b, f ? Op::fadd : Op::iadd, x, y);
    case ir::Reduction::min: return lower_op(b, f ? Op::fmin : Op::imin, x, y);
    case ir::Reduction::max: break;
  }
  return lower_op(b, f ? Op::fmax : Op::imax, x, y);
}

Value next_counter(Builder& b, const ir::Function& function, const ir::Instruction& loop, const Value& now,
                   const Value& step) {
  const Value next = b.add(now, step);
  if (!ir::may_overstep(function, loop)) return next;
  const ir::Instruction& constant = function[loop.args[2]];
  const bool wide = is_wide(constant.type), sgn = is_signed(constant.type);
  const bool down = wide ? int64_t(constant.imm) < 0 : int32_t(constant.imm) < 0;
  const uint64_t sign = wide ? uint64_t(1) << 63 : uint64_t(1) << 31, all = wide ? ~uint64_t(0) : 0xffffffffu;
  const uint64_t end = down ? (sgn ? sign : 0) : (sgn ? sign - 1 : all);
  const Value wrapped = down ? b.less(now, next) : b.less(next, now);
  return b.select(wrapped, Builder::like(now, end), next);
}

}  // namespace lockstep::compile::wasm
