#include "compile/wasm/helpers.hpp"

#include "compile/wasm/lower_op.hpp"

namespace lockstep::compile::wasm {

namespace {

using ir::Op;

/// Two lanes of f64, in one local.
struct Pair {
  Local local;
};

class Pairs {
 public:
  explicit Pairs(Builder& b) : b_(b) {}

  Pair add(const Pair& x, const Pair& y) { return binary(0xf0, x, y); }
  Pair sub(const Pair& x, const Pair& y) { return binary(0xf1, x, y); }
  Pair mul(const Pair& x, const Pair& y) { return binary(0xf2, x, y); }
  Pair less_equal(const Pair& x, const Pair& y) { return binary(0x4b, x, y); }
  Pair less(const Pair& x, const Pair& y) { return binary(0x49, x, y); }
  Pair equal(const Pair& x, const Pair& y) { return binary(0x47, x, y); }
  Pair both(const Pair& x, const Pair& y) { return plain(kAnd, x, y); }
  Pair either(const Pair& x, const Pair& y) { return plain(kOr, x, y); }
  Pair abs(const Pair& x) {
    b_.body().get(x.local);
    b_.body().op(Opcode(kVector | 0xec));
    return pop();
  }
  Pair number(uint64_t bits) {
    b_.body().constant({bits, bits});
    return pop();
  }
  Pair choose(const Pair& mask, const Pair& yes, const Pair& no) {
    for (const Pair* p : {&yes, &no, &mask}) b_.body().get(p->local);
    b_.body().op(kBitselect);
    return pop();
  }
  /// x + y and its error, exactly.
  std::pair<Pair, Pair> two_sum(const Pair& x, const Pair& y) {
    const Pair s = add(x, y), t = sub(s, x);
    return {s, add(sub(x, sub(s, t)), sub(y, t))};
  }
  /// `s` moved to the neighbour with an odd last bit on the side of `error`, where that is not 0: rounded to odd.
  Pair to_odd(const Pair& s, const Pair& error) {
    Body& body = b_.body();
    const Pair inexact = less(number(0), abs(error));  // false for NaN
    const auto shift = [&](uint32_t opcode, const Pair& x, int by) {
      body.get(x.local);
      body.constant(Kind::i32, uint64_t(by));
      body.op(Opcode(kVector | opcode));
      return pop();
    };
    constexpr uint32_t kShl = 0xcb, kShrS = 0xcc;
    const Pair odd = shift(kShrS, shift(kShl, s, 63), 63);
    body.get(error.local), body.get(s.local);
    body.op(kXor);
    const Pair step = either(shift(kShrS, pop(), 63), number(1));  // away from 0, or towards it
    body.get(inexact.local), body.get(odd.local);
    body.op(kAndNot);
    const Pair moved = both(step, pop());
    body.get(s.local), body.get(moved.local);
    body.op(Opcode(kVector | 0xce));
    return pop();
  }

 private:
  Pair pop() {
    Pair p{b_.body().local(Kind::v128)};
    b_.body().set(p.local);
    return p;
  }
  Pair plain(Opcode opcode, const Pair& x, const Pair& y) {
    b_.body().get(x.local), b_.body().get(y.local);
    b_.body().op(opcode);
    return pop();
  }
  Pair binary(uint32_t number, const Pair& x, const Pair& y) { return plain(Opcode(kVector | number), x, y); }
  Builder& b_;
};

/// The product of f32 is exact in f64, its sum with c rounded to odd; so the rounding to f32 is that of the exact
/// sum (Boldo and Melquiond 2008).
void fma32_body(Builder& b, const std::array<Value, 3>& operands) {
  Pairs pairs(b);
  std::array<Value, 3> wide;
  for (size_t k = 0; k < 3; ++k) wide[k] = lower_convert(b, operands[k], Type::f64);
  Value sum{Type::f64, true, false, 0, {}};
  for (size_t k = 0; k < 2; ++k) {
    const Pair product = pairs.mul({wide[0].part[k]}, {wide[1].part[k]});
    const auto [s, error] = pairs.two_sum(product, {wide[2].part[k]});
    sum.part[k] = pairs.to_odd(s, error).local;
  }
  b.push(lower_convert(b, sum, Type::f32));
}

constexpr uint64_t kLeastFactor = uint64_t(1023 - 450) << 52, kMostFactor = uint64_t(1023 + 480) << 52,
                   kMostSummand = uint64_t(1023 + 960) << 52, kSplitter = 0x41a0000002000000u;  // 2^27 + 1

/// Lanes whose exponents keep every step below exact: no overflow, and no error of a product below the subnormal numbers.
void fma64_body(Builder& b, const std::function<uint32_t(std::string_view)>& helper) {
  Body& body = b.body();
  Pairs p(b);
  const std::array<Pair, 3> x{{{body.param(0)}, {body.param(1)}, {body.param(2)}}};
  const Pair zero = p.number(0);
  const auto is_zero = [&](const Pair& v) { return p.equal(v, zero); };
  const auto factor_fits = [&](const Pair& v) {
    const Pair size = p.abs(v);
    return p.both(p.less_equal(size, p.number(kMostFactor)),
                  p.either(p.less_equal(p.number(kLeastFactor), size), is_zero(v)));
  };
  const Pair fits =
      p.both(p.both(factor_fits(x[0]), factor_fits(x[1])), p.less_equal(p.abs(x[2]), p.number(kMostSummand)));
  body.get(fits.local);
  body.op(kAllTrue64);
  const Local result = body.local(Kind::v128);
  body.if_();
  {
    // x y = product + low (Dekker), then the sum of three by Boldo and Melquiond.
    const auto split = [&](const Pair& v) {
      const Pair c = p.mul(v, p.number(kSplitter));
      const Pair high = p.sub(c, p.sub(c, v));
      return std::pair(high, p.sub(v, high));
    };
    const Pair product = p.mul(x[0], x[1]);
    const auto [ah, al] = split(x[0]);
    const auto [bh, bl] = split(x[1]);
    Pair low = p.sub(p.mul(ah, bh), product);
    low = p.add(low, p.mul(ah, bl));
    low = p.add(low, p.mul(al, bh));
    low = p.add(low, p.mul(al, bl));
    const auto [th, tl] = p.two_sum(x[2], low);
    const auto [vh, vl] = p.two_sum(product, th);
    const auto [z, error] = p.two_sum(tl, vl);
    const Pair sum = p.add(vh, p.to_odd(z, error));
    // A product of 0 is exact, and its sign decides that of 0 + 0.
    const Pair exact = p.either(is_zero(x[0]), is_zero(x[1]));
    body.get(p.choose(exact, p.add(product, x[2]), sum).local);
    body.set(result);
  }
  body.else_();
  for (int l = 0; l < 2; ++l) {
    for (const Pair& v : x) {
      body.get(v.local);
      body.lane(kExtractF64, l);
    }
    body.call(helper(kFma));
    if (l == 0)
      body.op(kSplatF64);
    else
      body.lane(kReplaceF64, 1);
  }
  body.set(result);
  body.end();
  body.get(result);
}

/// In f64 without the error of the sum: right unless some lane lies halfway between two f32, or is too small for f32's
/// normal numbers, and the sum is not exact. Then fma32.
Value fma_lanes(Builder& b, const Value& x, const Value& y, const Value& z) {
  Body& body = b.body();
  const Value product = lower_op(b, Op::fmul, lower_convert(b, x, Type::f64), lower_convert(b, y, Type::f64));
  const Value summand = lower_convert(b, z, Type::f64), sum = lower_op(b, Op::fadd, product, summand);
  // The 29 bits that f32 lacks are 1000…, or the high word without its sign is above 0 and at most that of 2^-126.
  const Value low = b.low_words(sum, Type::u32);
  b.push(sum, 0), b.push(sum, 1);
  body.shuffle({4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31});
  const Value high = b.pop(Type::u32, true);
  const auto number = [&](uint64_t v) { return Builder::like(low, v); };
  const Value halfway = b.equal(b.shl(low, 3), number(0x80000000u)),
              small = b.less(b.add(b.shl(high, 1), number(0xffffffffu)), number(uint64_t(1023 - 126) << 21)),
              doubt = b.or_(halfway, small);
  const Value r = b.variable(Type::f32, true);
  const Label done = body.block();
  b.push(b.any(doubt));
  body.if_();
  const Value exact = b.and_(lower_op(b, Op::feq, lower_op(b, Op::fsub, sum, product), summand),
                             lower_op(b, Op::feq, lower_op(b, Op::fsub, sum, summand), product));
  b.push(b.any(b.and_(doubt, b.not_(exact))));
  body.if_();
  b.push(x), b.push(y), b.push(z);
  body.call(b.helper(kFma32));
  body.set(r.part[0]);
  body.branch(done);
  body.end();
  body.end();
  b.assign(r, lower_convert(b, sum, Type::f32));
  body.end();
  return r;
}

}  // namespace

Value fused_multiply_add(Builder& b, const Value& x, const Value& y, const Value& z) {
  if (!x.vector) return b.lane(fused_multiply_add(b, b.splat(x), b.splat(y), b.splat(z)), 0);
  if (!x.wide() && !b.fuses()) return fma_lanes(b, x, y, z);
  Value r{x.type, true, false, 0, {}};
  for (int k = 0; k < r.parts(); ++k) {
    b.push(x, k), b.push(y, k), b.push(z, k);
    if (b.fuses())
      b.body().op(x.wide() ? kFusedF64 : kFusedF32);
    else
      b.body().call(b.helper(kFma64));
    b.pop_part(r, k);
  }
  return r;
}

Signature helper_signature(std::string_view name) {
  if (name == kFma) return {{Kind::f64, Kind::f64, Kind::f64}, {Kind::f64}};
  return {{Kind::v128, Kind::v128, Kind::v128}, {Kind::v128}};
}

Bytes helper_body(std::string_view name, const std::function<uint32_t(std::string_view)>& helper) {
  const auto body = std::make_shared<Body>(helper_signature(name).takes);
  Builder b(body, helper);
  if (name == kFma64) {
    fma64_body(b, helper);
  } else {
    std::array<Value, 3> operands;
    for (size_t k = 0; k < 3; ++k) {
      operands[k] = {Type::f32, true, false, 0, {}};
      operands[k].part[0] = body->param(uint32_t(k));
    }
    fma32_body(b, operands);
  }
  return body->finish();
}

}  // namespace lockstep::compile::wasm
