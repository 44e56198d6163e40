#include "compile/clike/wgsl_prelude.hpp"

namespace lockstep::clike {

namespace {

constexpr Helper kHelpers[] = {
    {"ls_hidden", "var<private> ls_hidden: u32 = 0u;"},
    {"ls_isnan", "fn ls_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"},
    {"ls_isinf", "fn ls_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }"},
    {"ls_isfinite",
     "fn ls_isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }"},
    {"ls_copysign",
     "fn ls_copysign(x: f32, s: f32) -> f32 { return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | "
     "(bitcast<u32>(s) & 0x80000000u)); }"},
    {"ls_abs", "fn ls_abs(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }"},
    {"ls_neg", "fn ls_neg(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }"},
    // a * b + c with one rounding, in whole numbers, for adapters whose fma rounds twice. The product has 48
    // bits; the term with the smaller exponent is shifted right with a sticky last bit.
    {"ls_shift_jam", R"(fn ls_shift_jam(v: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return v; }
  if (n < 32u) { return vec2<u32>((v.x >> n) | (v.y << (32u - n)) | select(0u, 1u, (v.x << (32u - n)) != 0u), v.y >> n); }
  if (n == 32u) { return vec2<u32>(v.y | select(0u, 1u, v.x != 0u), 0u); }
  if (n < 64u) { return vec2<u32>((v.y >> (n - 32u)) | select(0u, 1u, ((v.y << (64u - n)) | v.x) != 0u), 0u); }
  return vec2<u32>(select(0u, 1u, (v.x | v.y) != 0u), 0u);
})"},
    {"ls_round_pack", R"(fn ls_round_pack(sign: u32, exponent: i32, value: vec2<u32>) -> f32 {
  let zeros = select(countLeadingZeros(value.y), 32u + countLeadingZeros(value.x), value.y == 0u);
  var v = value;
  if (zeros >= 32u) { v = vec2<u32>(0u, v.x << (zeros - 32u)); }
  else if (zeros > 0u) { v = vec2<u32>(v.x << zeros, (v.y << zeros) | (v.x >> (32u - zeros))); }
  var e = exponent - i32(zeros) + 190i;
  if (e >= 255i) { return bitcast<f32>((sign | 0x7f800000u) + ls_hidden); }
  if (e <= 0i) {
    v = ls_shift_jam(v, u32(1i - e));
    e = 0i;
  } else {
    e -= 1i;
  }
  let kept = v.y >> 8u;
  let rest = (v.y & 0xffu) | select(0u, 1u, v.x != 0u);
  let up = rest > 0x80u || (rest == 0x80u && (kept & 1u) == 1u);
  return bitcast<f32>(sign | ((u32(e) << 23u) + kept + select(0u, 1u, up)));
})"},
    {"ls_fma", R"(fn ls_fma(a: f32, b: f32, c: f32) -> f32 {
  let ua = bitcast<u32>(a);
  let ub = bitcast<u32>(b);
  let uc = bitcast<u32>(c);
  var ma = ua & 0x7fffffffu;
  var mb = ub & 0x7fffffffu;
  var mc = uc & 0x7fffffffu;
  if (ma >= 0x7f800000u || mb >= 0x7f800000u) { return a * b + c; }
  if (mc >= 0x7f800000u) { return c; }
  if (ma == 0u || mb == 0u) {
    if (mc != 0u) { return c; }
    return bitcast<f32>((ua ^ ub) & uc & 0x80000000u);
  }
  // Value = m * 2^e with 23 <= log2(m) < 24; subnormal numbers are brought there first.
  var ea = max(i32(ma >> 23u), 1i) - 150i;
  var eb = max(i32(mb >> 23u), 1i) - 150i;
  var ec = max(i32(mc >> 23u), 1i) - 150i;
  ma = select(ma & 0x7fffffu, (ma & 0x7fffffu) | 0x800000u, ma >= 0x800000u);
  mb = select(mb & 0x7fffffu, (mb & 0x7fffffu) | 0x800000u, mb >= 0x800000u);
  mc = select(mc & 0x7fffffu, (mc & 0x7fffffu) | 0x800000u, mc >= 0x800000u);
  let za = countLeadingZeros(ma) - 8u;
  let zb = countLeadingZeros(mb) - 8u;
  ma = ma << za;
  mb = mb << zb;
  ea -= i32(za);
  eb -= i32(zb);
  let sign = (ua ^ ub) & 0x80000000u;
  // 48 bits, then 14 more: the top bit is 60 or 61.
  let low = ma * mb;
  let high = ls_umulhi(ma, mb);
  var p = vec2<u32>(low << 14u, (high << 14u) | (low >> 18u));
  var e = ea + eb - 14i;
  if (mc == 0u) { return ls_round_pack(sign, e, p); }
  let zc = countLeadingZeros(mc) - 8u;
  mc = mc << zc;
  ec -= i32(zc) + 38i;
  var q = vec2<u32>(0u, mc << 6u);
  if (e >= ec) {
    q = ls_shift_jam(q, u32(e - ec));
  } else {
    p = ls_shift_jam(p, u32(ec - e));
    e = ec;
  }
  if (sign == (uc & 0x80000000u)) {
    let x = p.x + q.x;
    return ls_round_pack(sign, e, vec2<u32>(x, p.y + q.y + select(0u, 1u, x < q.x)));
  }
  if (p.x == q.x && p.y == q.y) { return 0.0f; }
  let less = p.y < q.y || (p.y == q.y && p.x < q.x);
  let g = select(p, q, less);
  let h = select(q, p, less);
  return ls_round_pack(select(sign, sign ^ 0x80000000u, less), e, vec2<u32>(g.x - h.x, g.y - h.y - select(0u, 1u, g.x < h.x)));
})"},
    {"ls_div", "fn ls_div(a: f32, b: f32) -> f32 { return a / b; }"},
    {"ls_sqrt", "fn ls_sqrt(x: f32) -> f32 { return sqrt(x); }"},
    {"ls_idiv_u32", R"(fn ls_idiv_u32(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a / b;
})"},
    {"ls_irem_u32", R"(fn ls_irem_u32(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a % b;
})"},
    {"ls_idiv_i32", R"(fn ls_idiv_i32(a: i32, b: i32) -> i32 {
  if (b == 0i) { return 0i; }
  if (b == -1i) { return 0i - a; }
  return a / b;
})"},
    {"ls_irem_i32", R"(fn ls_irem_i32(a: i32, b: i32) -> i32 {
  if (b == 0i || b == -1i) { return 0i; }
  return a - (a / b) * b;
})"},
    {"ls_umulhi", R"(fn ls_umulhi(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let middle = ah * bl + ((al * bl) >> 16u);
  let low = (middle & 0xffffu) + al * bh;
  return ah * bh + (middle >> 16u) + (low >> 16u);
})"},
    {"ls_f32_to_i32", R"(fn ls_f32_to_i32(x: f32) -> i32 {
  if (ls_isnan(x)) { return 0i; }
  if (x >= 2147483648.0f) { return 2147483647i; }
  if (x <= -2147483648.0f) { return bitcast<i32>(0x80000000u); }
  return i32(x);
})"},
    {"ls_f32_to_u32", R"(fn ls_f32_to_u32(x: f32) -> u32 {
  if (!(x > 0.0f)) { return 0u; }
  if (x >= 4294967296.0f) { return 0xffffffffu; }
  return u32(x);
})"},
    // Multiplying by a power of two is exact as long as no subnormal number is involved.
    {"ls_f16_load", R"(fn ls_f16_load(h: u32) -> f32 {
  let sign = (h & 0x8000u) << 16u;
  let exponent = (h >> 10u) & 31u;
  let fraction = h & 1023u;
  if (exponent == 0u) { return bitcast<f32>(bitcast<u32>(f32(fraction) * bitcast<f32>(0x33800000u)) | sign); }
  if (exponent == 31u) { return bitcast<f32>((0x7f800000u | (fraction << 13u) | sign) + ls_hidden); }
  return bitcast<f32>(((exponent + 112u) << 23u) | (fraction << 13u) | sign);
})"},
    {"ls_f16_store", R"(fn ls_f16_store(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size < 0x33000001u) { return sign; }
  if (size < 0x38800000u) {
    let shift = 126u - (size >> 23u);
    let whole = (size & 0x7fffffu) | 0x800000u;
    let kept = whole >> shift;
    let rest = whole & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
  }
  return sign | min((size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u, 0x7c00u);
})"},
    {"ls_bf16_load", "fn ls_bf16_load(h: u32) -> f32 { return bitcast<f32>((h << 16u) + ls_hidden); }"},
    {"ls_bf16_store", R"(fn ls_bf16_store(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
})"},
};

}  // namespace

std::span<const Helper> wgsl_helpers() { return kHelpers; }

}  // namespace lockstep::clike
