#include "compile/clike/wgsl/wgsl_prelude.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "compile/clike/wgsl/wgsl_buffers.hpp"

namespace lockstep::clike {

namespace {

constexpr Helper kHelpers[] = {
    {"ls_hidden", "var<private> ls_hidden: u32 = 0u;"},
    {"ls_zero", "var<private> ls_zero: u32;"},
    {"ls_isnan", "fn ls_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"},
    {"ls_isinf", "fn ls_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }"},
    {"ls_isfinite",
     "fn ls_isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }"},
    {"ls_copysign",
     "fn ls_copysign(x: f32, s: f32) -> f32 { return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | "
     "(bitcast<u32>(s) & 0x80000000u)); }"},
    {"ls_abs", "fn ls_abs(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }"},
    {"ls_neg", "fn ls_neg(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }"},
    // A driver that sees a negation may miscount loops down to it; see WgslPrinter::before_for.
    {"ls_neg_u32", "fn ls_neg_u32(x: u32) -> u32 { return (~x ^ ls_zero) + 1u; }"},
    {"ls_neg_i32", "fn ls_neg_i32(x: i32) -> i32 { return bitcast<i32>(ls_neg_u32(bitcast<u32>(x))); }"},
    {"ls_abs_i32", "fn ls_abs_i32(x: i32) -> i32 { return select(x, ls_neg_i32(x), x < 0i); }"},
    {"ls_bound_u32", "fn ls_bound_u32(x: u32) -> u32 { return x ^ ls_zero; }"},
    {"ls_bound_i32", "fn ls_bound_i32(x: i32) -> i32 { return bitcast<i32>(bitcast<u32>(x) ^ ls_zero); }"},
    // a * b + c with one rounding, for adapters whose fma rounds twice: the product's and the sums' rounding
    // errors are found exactly, their sum is rounded to odd, the last addition rounds to nearest (Boldo and
    // Melquiond 2008). A power of two keeps the product's parts away from overflow and underflow; subnormal
    // results may round twice. ls_keep hides a rounded value from the driver's algebra. Its conditions are in brackets, for
    // unbranched().
    {"ls_keep", "fn ls_keep(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ ls_zero); }"},
    {"ls_two_sum", R"(fn ls_two_sum(a: f32, b: f32) -> vec2<f32> {
  let s = ls_keep(a + b);
  let t = ls_keep(s - a);
  return vec2<f32>(s, ls_keep(a - ls_keep(s - t)) + ls_keep(b - t));
})"},
    {"ls_fma", R"(fn ls_fma(first: f32, second: f32, third: f32) -> f32 {
  let swap = (bitcast<u32>(first) & 0x7fffffffu) < (bitcast<u32>(second) & 0x7fffffffu);
  let big = select(first, second, swap);
  let small = select(second, first, swap);
  let ea = (bitcast<u32>(big) >> 23u) & 255u;
  let eb = (bitcast<u32>(small) >> 23u) & 255u;
  let ec = (bitcast<u32>(third) >> 23u) & 255u;
  let down = ea + eb > 370u;
  let up = (ea + eb < 160u) && (ec < 180u);
  let shift = !down && !up && ((ea > 252u) || (eb < 40u));
  let one = 0x3f800000u;
  let more = 0x5f800000u;
  let less = 0x1f800000u;
  let scale = bitcast<f32>(select(select(one, more, up), less, down));
  let back = bitcast<f32>(select(select(one, less, up), more, down));
  let a = ls_keep(big * bitcast<f32>(select(one, less, down || shift)));
  let b = ls_keep(small * bitcast<f32>(select(one, more, up || shift)));
  let c = ls_keep(third * scale);
  let p = ls_keep(a * b);
  let ah = bitcast<f32>((bitcast<u32>(a) + 0x800u) & 0xfffff000u);
  let bh = bitcast<f32>((bitcast<u32>(b) + 0x800u) & 0xfffff000u);
  let al = ls_keep(a - ah);
  let bl = ls_keep(b - bh);
  let e1 = ls_keep(ls_keep(ah * bh) - p);
  let e2 = ls_keep(e1 + ls_keep(ah * bl));
  let e3 = ls_keep(e2 + ls_keep(al * bh));
  let u = ls_two_sum(c, e3 + ls_keep(al * bl));
  let t = ls_two_sum(p, u.x);
  let v = ls_two_sum(t.y, u.y);
  let bits = bitcast<u32>(v.x);
  let step = select(0xffffffffu, 1u, (v.x > 0.0f) == (v.y > 0.0f));
  let odd = bitcast<f32>(select(bits, bits + step, (v.y != 0.0f) && ((bits & 1u) == 0u)));
  let r = ls_keep(t.x + odd) * back;
  // Infinities and NaN; a product and a c of zero.
  let special = select(big * small + third, third, (ea < 255u) && (eb < 255u) && (ec == 255u));
  let finite = max(max(ea, ec), (bitcast<u32>(p) >> 23u) & 255u) < 255u;
  return select(special, r, finite && ((p != 0.0f) || (c != 0.0f)));
})"},
    // Quotient and root rounded to nearest, for adapters that promise less: an estimate, the exact remainder
    // by fma, a correction of half an ulp at most. Far exponents and special values take the long way.
    {"ls_div", R"(fn ls_div(a: f32, b: f32) -> f32 {
  let ea = (bitcast<u32>(a) >> 23u) & 255u;
  let eb = (bitcast<u32>(b) >> 23u) & 255u;
  if (ea - 64u > 126u || eb - 64u > 126u) { return ls_div_far(a, b); }
  return ls_div_near(a, b);
})"},
    {"ls_div_near", R"(fn ls_div_near(a: f32, b: f32) -> f32 {
  let y0 = 1.0f / b;
  let y = fma(fma(-b, y0, 1.0f), y0, y0);
  let q0 = a * y;
  let q1 = fma(fma(-b, q0, a), y, q0);
  return fma(fma(-b, q1, a), y, q1);
})"},
    {"ls_div_far", R"(fn ls_div_far(a: f32, b: f32) -> f32 {
  let ua = bitcast<u32>(a) & 0x7fffffffu;
  let ub = bitcast<u32>(b) & 0x7fffffffu;
  let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
  if (ua > 0x7f800000u || ub > 0x7f800000u || (ua == ub && (ua == 0u || ua == 0x7f800000u))) {
    return bitcast<f32>(0x7fc00000u + ls_hidden);
  }
  if (ua == 0x7f800000u || ub == 0u) { return bitcast<f32>((sign | 0x7f800000u) + ls_hidden); }
  if (ub == 0x7f800000u || ua == 0u) { return bitcast<f32>(sign); }
  // Both as 1 to 2 times a power of two; subnormal numbers are shifted up first.
  let za = countLeadingZeros(ua);
  let zb = countLeadingZeros(ub);
  let ea = select(i32(ua >> 23u), 9i - i32(za), za > 8u);
  let eb = select(i32(ub >> 23u), 9i - i32(zb), zb > 8u);
  let ma = bitcast<f32>(0x3f800000u | (select(ua, ua << (max(za, 8u) - 8u), za > 8u) & 0x7fffffu));
  let mb = bitcast<f32>(0x3f800000u | (select(ub, ub << (max(zb, 8u) - 8u), zb > 8u) & 0x7fffffu));
  let q = ls_div_near(ma, mb);
  let bits = bitcast<u32>(q);
  let e = i32(bits >> 23u) + ea - eb;
  if (e >= 255i) { return bitcast<f32>((sign | 0x7f800000u) + ls_hidden); }
  if (e >= 1i) { return bitcast<f32>(sign | (u32(e) << 23u) | (bits & 0x7fffffu)); }
  // Subnormal: the sign of the remainder shows on which side of q the quotient is.
  let r = fma(-q, mb, ma);
  let m = (bits & 0x7fffffu) | 0x800000u;
  let shift = min(u32(1i - e), 25u);
  let kept = m >> shift;
  let rest = m & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (r > 0.0f || (r == 0.0f && (kept & 1u) == 1u)));
  return bitcast<f32>(sign | (kept + select(0u, 1u, up)));
})"},
    {"ls_sqrt", R"(fn ls_sqrt(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if (bits - 1u >= 0x7f7fffffu) {
    if (bits == 0x7f800000u || (bits & 0x7fffffffu) == 0u) { return x; }
    return bitcast<f32>(0x7fc00000u + ls_hidden);
  }
  // By whole numbers where x is subnormal: adapters may take it for zero.
  var y = x;
  var scale = 1.0f;
  if (bits < 0x20000000u) {
    y = select(x * bitcast<f32>(0x5f800000u), f32(bits) * bitcast<f32>(0x15000000u), bits < 0x800000u);
    scale = bitcast<f32>(0x2f800000u);
  }
  let s = sqrt(y);
  return fma(fma(-s, s, y), 0.5f / s, s) * scale;
})"},
    // A driver that recognises a minimum takes its own, whose NaN and zeros are others.
    {"ls_fmin", R"(fn ls_fmin(a: f32, b: f32) -> f32 {
  return bitcast<f32>(select(bitcast<u32>(a), bitcast<u32>(b) ^ ls_zero, b < a));
})"},
    {"ls_fmax", R"(fn ls_fmax(a: f32, b: f32) -> f32 {
  return bitcast<f32>(select(bitcast<u32>(a), bitcast<u32>(b) ^ ls_zero, a < b));
})"},
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
  if (b == -1i) { return ls_neg_i32(a); }
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
    // Some adapters round values of 2^31 and more wrongly.
    {"ls_u32_to_f32", R"(fn ls_u32_to_f32(x: u32) -> f32 {
  if (x < 0x80000000u) { return f32(i32(x)); }
  return f32(i32((x >> 1u) | (x & 1u))) * 2.0f;
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

/// With & and | in place of && and ||, which branch.
std::string unbranched(std::string text) {
  for (const std::string_view twice : {"&&", "||"})
    for (size_t at = 0; (at = text.find(twice, at)) != text.npos;) text.erase(at, 1);
  return text;
}

}  // namespace

std::span<const Helper> wgsl_helpers(bool branches) {
  if (branches) return kHelpers;
  constexpr auto is_fma = [](const Helper& helper) { return helper.name == "ls_fma"; };
  static const auto& text =
      *new std::string(unbranched(std::string(std::ranges::find_if(kHelpers, is_fma)->text)));
  static const auto& table = *new std::vector<Helper>([&] {
    std::vector<Helper> all(std::begin(kHelpers), std::end(kHelpers));
    std::ranges::find_if(all, is_fma)->text = text;
    return all;
  }());
  return table;
}

std::string wgsl_reduce_function(Type type, ir::Reduction kind, int lanes) {
  const std::string_view t = wgsl_type(type);
  const std::string_view combine = kind == ir::Reduction::add ? "a + b"
                                   : kind == ir::Reduction::min
                                       ? (type == Type::f32 ? "ls_fmin(a, b)" : "select(a, b, b < a)")
                                       : (type == Type::f32 ? "ls_fmax(a, b)" : "select(a, b, a < b)");
  std::string text = fmt::format(
      "fn ls_reduce_{0}_{1}(lane: i32, value: {0}) -> {0} {{\n  ls_tree_{0}[lane] = value;\n  "
      "workgroupBarrier();\n",
      t, int(kind));
  for (int s = lanes / 2; s > 0; s /= 2)
    text += fmt::format(R"(  if (lane < {1}i) {{
    let a = ls_tree_{0}[lane];
    let b = ls_tree_{0}[lane + {1}i];
    ls_tree_{0}[lane] = {2};
  }}
  workgroupBarrier();
)",
                        t, s, combine);
  return text +
         fmt::format("  let result = ls_tree_{0}[0];\n  workgroupBarrier();\n  return result;\n}}\n", t);
}

}  // namespace lockstep::clike
