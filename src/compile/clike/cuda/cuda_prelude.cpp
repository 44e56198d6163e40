#include "compile/clike/cuda/cuda_prelude.hpp"

#include <vector>

namespace lockstep::clike {

namespace {

#define D "__device__ __forceinline__ "

// In order of definition.
constexpr Helper kCommon[] = {
    {"u32", "typedef unsigned int u32;"},
    {"i64", "typedef long long i64;"},
    {"u64", "typedef unsigned long long u64;"},

    // Two's complement arithmetic: signed overflow wraps.
    {"ls_add", D "int ls_add(int a, int b) { return int(u32(a) + u32(b)); }\n" D
                 "i64 ls_add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }"},
    {"ls_sub", D "int ls_sub(int a, int b) { return int(u32(a) - u32(b)); }\n" D
                 "i64 ls_sub(i64 a, i64 b) { return i64(u64(a) - u64(b)); }"},
    {"ls_mul", D "int ls_mul(int a, int b) { return int(u32(a) * u32(b)); }\n" D
                 "i64 ls_mul(i64 a, i64 b) { return i64(u64(a) * u64(b)); }"},
    // How many steps from low stay below high.
    {"ls_passes",
     "template <class U, class T> " D
     "U ls_passes(T low, T high, U step) { return low < high ? (U(high) - U(low) - 1u) / step + 1u : 0u; }"},
    // Hides that it is a negation: ptxas 13.0 drops the sign where it unrolls a downward loop with a negated
    // bound.
    {"ls_neg", D "u32 ls_neg(u32 a) {\n"
                 "  u32 r;\n"
                 "  asm(\"{ .reg .b32 t; not.b32 t, %1; add.u32 %0, t, 1; }\" : \"=r\"(r) : \"r\"(a));\n"
                 "  return r;\n"
                 "}\n" D "u64 ls_neg(u64 a) {\n"
                 "  u64 r;\n"
                 "  asm(\"{ .reg .b64 t; not.b64 t, %1; add.u64 %0, t, 1; }\" : \"=l\"(r) : \"l\"(a));\n"
                 "  return r;\n"
                 "}\n" D "int ls_neg(int a) { return int(ls_neg(u32(a))); }\n" D
                 "i64 ls_neg(i64 a) { return i64(ls_neg(u64(a))); }"},
    // x / 0 = 0, x % 0 = 0, min / -1 = min, min % -1 = 0. The negation is a plain one: where ptxas 13.0 knows that
    // a is -1 here, it takes the hidden one of it for 0.
    {"ls_idiv",
     D "int ls_idiv(int a, int b) { return b == 0 ? 0 : b == -1 ? int(0u - u32(a)) : a / b; }\n" D
       "u32 ls_idiv(u32 a, u32 b) { return b == 0u ? 0u : a / b; }\n" D
       "i64 ls_idiv(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? i64(u64(0) - u64(a)) : a / b; }\n" D
       "u64 ls_idiv(u64 a, u64 b) { return b == 0u ? 0u : a / b; }"},
    {"ls_irem", D "int ls_irem(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }\n" D
                  "u32 ls_irem(u32 a, u32 b) { return b == 0u ? 0u : a % b; }\n" D
                  "i64 ls_irem(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }\n" D
                  "u64 ls_irem(u64 a, u64 b) { return b == 0u ? 0u : a % b; }"},
    // A small first operand, as in the shift of a periodic index, is mostly below the second: no division
    // then.
    {"ls_irem_short",
     D "int ls_irem_short(int a, int b) { return (a < 0 ? -a : a) < b ? a : ls_irem(a, b); }"},
    {"ls_iabs",
     D "int ls_iabs(int a) { return a < 0 ? ls_neg(a) : a; }\n" D "u32 ls_iabs(u32 a) { return a; }\n" D
       "i64 ls_iabs(i64 a) { return a < 0 ? ls_neg(a) : a; }\n" D "u64 ls_iabs(u64 a) { return a; }"},
    {"ls_min", "template <class T> " D "T ls_min(T a, T b) { return b < a ? b : a; }"},
    {"ls_max", "template <class T> " D "T ls_max(T a, T b) { return a < b ? b : a; }"},
    {"ls_umulhi", D "u32 ls_umulhi(u32 a, u32 b) { return __umulhi(a, b); }\n" D
                    "u64 ls_umulhi(u64 a, u64 b) { return __umul64hi(a, b); }"},
    // Hides that it is a complement: where a branch follows from a comparison of ~a, ptxas 13.0 takes a for ~a.
    {"ls_not",
     D "bool ls_not(bool a) { return !a; }\n" D
       "u32 ls_not(u32 a) { u32 r; asm(\"sub.u32 %0, -1, %1;\" : \"=r\"(r) : \"r\"(a)); return r; }\n" D
       "u64 ls_not(u64 a) { u64 r; asm(\"sub.u64 %0, -1, %1;\" : \"=l\"(r) : \"l\"(a)); return r; }\n" D
       "int ls_not(int a) { return int(ls_not(u32(a))); }\n" D
       "i64 ls_not(i64 a) { return i64(ls_not(u64(a))); }"},
    // Shift amounts count modulo the width.
    {"ls_shl", D "int ls_shl(int a, int b) { return int(u32(a) << (u32(b) & 31u)); }\n" D
                 "u32 ls_shl(u32 a, u32 b) { return a << (b & 31u); }\n" D
                 "i64 ls_shl(i64 a, i64 b) { return i64(u64(a) << (u32(b) & 63u)); }\n" D
                 "u64 ls_shl(u64 a, u64 b) { return a << (u32(b) & 63u); }"},
    {"ls_shr", D "int ls_shr(int a, int b) { return a >> (u32(b) & 31u); }\n" D
                 "u32 ls_shr(u32 a, u32 b) { return a >> (b & 31u); }\n" D
                 "i64 ls_shr(i64 a, i64 b) { return a >> (u32(b) & 63u); }\n" D
                 "u64 ls_shr(u64 a, u64 b) { return a >> (u32(b) & 63u); }"},
    {"ls_popcount", D "int ls_popcount(int a) { return __popc(u32(a)); }\n" D
                      "u32 ls_popcount(u32 a) { return u32(__popc(a)); }\n" D
                      "i64 ls_popcount(i64 a) { return __popcll(u64(a)); }\n" D
                      "u64 ls_popcount(u64 a) { return u64(__popcll(a)); }"},
    {"ls_clz",
     D "int ls_clz(int a) { return __clz(a); }\n" D "u32 ls_clz(u32 a) { return u32(__clz(int(a))); }\n" D
       "i64 ls_clz(i64 a) { return __clzll(a); }\n" D "u64 ls_clz(u64 a) { return u64(__clzll(i64(a))); }"},
    {"ls_ctz", D "int ls_ctz(int a) { return a == 0 ? 32 : __ffs(a) - 1; }\n" D
                 "u32 ls_ctz(u32 a) { return a == 0u ? 32u : u32(__ffs(int(a)) - 1); }\n" D
                 "i64 ls_ctz(i64 a) { return a == 0 ? 64 : __ffsll(a) - 1; }\n" D
                 "u64 ls_ctz(u64 a) { return a == 0u ? 64u : u64(__ffsll(i64(a)) - 1); }"},
    // Not max(0, min(c, n - 1)): for that ptxas 13.0 takes one instruction (VIMNMX.RELU), whose predicate it
    // also takes for a comparison of the result with an operand, wrongly where the result is 0.
    {"ls_clamp_index", D "int ls_clamp_index(int c, int n) { return min(max(c, 0), n - 1); }"},
    {"ls_relu", D "int ls_relu(int a) { return a & ~(a >> 31); }"},

    // Floats.
    // f32 in integers: of abs.f32 of (c ? 1 : -0) ptxas 13.0 makes a choice between 1 and -0.
    {"ls_abs", D "float ls_abs(float a) { return __uint_as_float(__float_as_uint(a) & 0x7fffffffu); }\n" D
                 "double ls_abs(double a) { return fabs(a); }"},
    {"ls_floor",
     D "float ls_floor(float a) { return floorf(a); }\n" D "double ls_floor(double a) { return floor(a); }"},
    {"ls_ceil",
     D "float ls_ceil(float a) { return ceilf(a); }\n" D "double ls_ceil(double a) { return ceil(a); }"},
    {"ls_trunc",
     D "float ls_trunc(float a) { return truncf(a); }\n" D "double ls_trunc(double a) { return trunc(a); }"},
    {"ls_rint",
     D "float ls_rint(float a) { return rintf(a); }\n" D "double ls_rint(double a) { return rint(a); }"},
    {"ls_copysign", D "float ls_copysign(float a, float b) { return copysignf(a, b); }\n" D
                      "double ls_copysign(double a, double b) { return copysign(a, b); }"},
    {"ls_isnan", "template <class T> " D "bool ls_isnan(T a) { return a != a; }"},
    {"ls_isinf",
     D "bool ls_isinf(float a) { return fabsf(a) == __uint_as_float(0x7f800000u); }\n" D
       "bool ls_isinf(double a) { return fabs(a) == __longlong_as_double(0x7ff0000000000000ll); }"},
    {"ls_isfinite",
     D "bool ls_isfinite(float a) { return fabsf(a) < __uint_as_float(0x7f800000u); }\n" D
       "bool ls_isfinite(double a) { return fabs(a) < __longlong_as_double(0x7ff0000000000000ll); }"},
    // The first operand stays where neither is less: NaN and zeros of both signs. As assembly, because NVRTC
    // 13.0 makes max.f64 of (-0.0 < b ? b : -0.0), which takes +0 for larger.
    {"ls_fmin", D "float ls_fmin(float a, float b) {\n"
                  "  float r;\n"
                  "  asm(\"{ .reg .pred p; setp.lt.f32 p, %2, %1; selp.f32 %0, %2, %1, p; }\""
                  " : \"=f\"(r) : \"f\"(a), \"f\"(b));\n"
                  "  return r;\n"
                  "}\n" D "double ls_fmin(double a, double b) {\n"
                  "  double r;\n"
                  "  asm(\"{ .reg .pred p; setp.lt.f64 p, %2, %1; selp.f64 %0, %2, %1, p; }\""
                  " : \"=d\"(r) : \"d\"(a), \"d\"(b));\n"
                  "  return r;\n"
                  "}"},
    {"ls_fmax", D "float ls_fmax(float a, float b) {\n"
                  "  float r;\n"
                  "  asm(\"{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.f32 %0, %2, %1, p; }\""
                  " : \"=f\"(r) : \"f\"(a), \"f\"(b));\n"
                  "  return r;\n"
                  "}\n" D "double ls_fmax(double a, double b) {\n"
                  "  double r;\n"
                  "  asm(\"{ .reg .pred p; setp.lt.f64 p, %1, %2; selp.f64 %0, %2, %1, p; }\""
                  " : \"=d\"(r) : \"d\"(a), \"d\"(b));\n"
                  "  return r;\n"
                  "}"},

    // Either operand's NaN stays; sm_80 and later.
    {"ls_min_nan", D "float ls_min_nan(float a, float b) { float r; asm(\"min.NaN.f32 %0, %1, %2;\" : "
                     "\"=f\"(r) : \"f\"(a), \"f\"(b)); return r; }"},
    {"ls_max_nan", D "float ls_max_nan(float a, float b) { float r; asm(\"max.NaN.f32 %0, %1, %2;\" : "
                     "\"=f\"(r) : \"f\"(a), \"f\"(b)); return r; }"},

    // Float to integer: saturates, NaN gives 0. The hardware gives another value for NaN where a side is 64
    // bits wide.
    {"ls_to_i32", D "int ls_to_i32(float a) { return __float2int_rz(a); }\n" D
                    "int ls_to_i32(double a) { return a == a ? __double2int_rz(a) : 0; }"},
    {"ls_to_u32", D "u32 ls_to_u32(float a) { return __float2uint_rz(a); }\n" D
                    "u32 ls_to_u32(double a) { return a == a ? __double2uint_rz(a) : 0u; }"},
    {"ls_to_i64", D "i64 ls_to_i64(float a) { return a == a ? __float2ll_rz(a) : 0ll; }\n" D
                    "i64 ls_to_i64(double a) { return a == a ? __double2ll_rz(a) : 0ll; }"},
    {"ls_to_u64", D "u64 ls_to_u64(float a) { return a == a ? __float2ull_rz(a) : 0ull; }\n" D
                    "u64 ls_to_u64(double a) { return a == a ? __double2ull_rz(a) : 0ull; }"},

    // 16-bit storage.
    {"ls_from_f16", D "float ls_from_f16(unsigned short h) { float f; asm(\"cvt.f32.f16 %0, %1;\" : "
                      "\"=f\"(f) : \"h\"(h)); return f; }"},
    {"ls_to_f16", D "unsigned short ls_to_f16(float f) { unsigned short h; asm(\"cvt.rn.f16.f32 %0, %1;\" : "
                    "\"=h\"(h) : \"f\"(f)); return h; }"},
    {"ls_from_bf16", D "float ls_from_bf16(unsigned short h) { return __uint_as_float(u32(h) << 16); }"},

    // Values of four 8-byte components.
    {"ls_double4", "struct __align__(16) ls_double4 { double x, y, z, w; };"},
    {"ls_long4", "struct __align__(16) ls_long4 { i64 x, y, z, w; };"},
    {"ls_ulong4", "struct __align__(16) ls_ulong4 { u64 x, y, z, w; };"},
};

// Round to nearest even in integers: sm_75 converts no bf16.
constexpr Helper kBf16Integer = {"ls_to_bf16", D
                                 "unsigned short ls_to_bf16(float f) {\n"
                                 "  const u32 u = __float_as_uint(f);\n"
                                 "  if (f != f) return (unsigned short)(u >> 16 | 64u);\n"
                                 "  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
                                 "}"};
constexpr Helper kBf16Hardware = {"ls_to_bf16", D
                                  "unsigned short ls_to_bf16(float f) { unsigned short h; "
                                  "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f)); return h; }"};

constexpr Helper kExact[] = {
    {"ls_div", D "float ls_div(float a, float b) { return __fdiv_rn(a, b); }\n" D
                 "double ls_div(double a, double b) { return __ddiv_rn(a, b); }"},
    {"ls_fma", D "float ls_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }\n" D
                 "double ls_fma(double a, double b, double c) { return __fma_rn(a, b, c); }"},
    {"ls_sqrt", D "float ls_sqrt(float a) { return __fsqrt_rn(a); }\n" D
                  "double ls_sqrt(double a) { return __dsqrt_rn(a); }"},
};
// Hardware forms, tuned by NVRTC's flags of fast numerics.
constexpr Helper kFast[] = {
    {"ls_div", "template <class T> " D "T ls_div(T a, T b) { return a / b; }"},
    {"ls_fma", D "float ls_fma(float a, float b, float c) { return fmaf(a, b, c); }\n" D
                 "double ls_fma(double a, double b, double c) { return fma(a, b, c); }"},
    {"ls_sqrt",
     D "float ls_sqrt(float a) { return sqrtf(a); }\n" D "double ls_sqrt(double a) { return sqrt(a); }"},
};

// Asynchronous copies into shared memory.
constexpr Helper kAsync[] = {
    {"ls_shared_address", D "u32 ls_shared_address(const void* p) {\n"
                            "  u64 a;\n"
                            "  asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(a) : \"l\"(p));\n"
                            "  return u32(a);\n"
                            "}"},
    {"ls_copy_async4",
     D "void ls_copy_async4(void* to, const void* from) { asm volatile(\"cp.async.ca.shared.global [%0], "
       "[%1], 4;\" :: \"r\"(ls_shared_address(to)), \"l\"(from) : \"memory\"); }"},
    {"ls_copy_async8",
     D "void ls_copy_async8(void* to, const void* from) { asm volatile(\"cp.async.ca.shared.global [%0], "
       "[%1], 8;\" :: \"r\"(ls_shared_address(to)), \"l\"(from) : \"memory\"); }"},
    {"ls_copy_async16",
     D "void ls_copy_async16(void* to, const void* from) { asm volatile(\"cp.async.cg.shared.global [%0], "
       "[%1], 16;\" :: \"r\"(ls_shared_address(to)), \"l\"(from) : \"memory\"); }"},
    {"ls_async_commit",
     D "void ls_async_commit() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }"},
    {"ls_async_wait",
     "template <int open> " D
     "void ls_async_wait() { asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(open) : \"memory\"); }"},
};

#undef D

}  // namespace

std::span<const Helper> cuda_helpers(Numerics numerics, int arch) {
  static const auto build = [](Numerics n, bool ampere) {
    std::vector<Helper> all(std::begin(kCommon), std::end(kCommon));
    all.push_back(ampere ? kBf16Hardware : kBf16Integer);
    if (n == Numerics::exact)
      all.insert(all.end(), std::begin(kExact), std::end(kExact));
    else
      all.insert(all.end(), std::begin(kFast), std::end(kFast));
    all.insert(all.end(), std::begin(kAsync), std::end(kAsync));
    return all;
  };
  static const std::vector<Helper> tables[4] = {build(Numerics::exact, false), build(Numerics::exact, true),
                                                build(Numerics::fast, false), build(Numerics::fast, true)};
  return tables[(numerics == Numerics::fast ? 2 : 0) + (arch >= 80 ? 1 : 0)];
}

}  // namespace lockstep::clike
