#include "compile/clike/cuda/cuda_reduce.hpp"

#include <fmt/format.h>

#include <bit>

#include "compile/clike/cuda/cuda_types.hpp"
#include "lockstep/error.hpp"

namespace lockstep::clike {

namespace {

constexpr int kWarp = 32;
// Up to so many warps each folds all columns for itself; more leave it to the first one.
constexpr int kFoldByAll = 8;

std::string combine(ir::Reduction op, Type type, std::string_view a, std::string_view b) {
  switch (op) {
    case ir::Reduction::add:
      return is_signed(type) ? fmt::format("ls_add({}, {})", a, b) : fmt::format("{} + {}", a, b);
    case ir::Reduction::min: return fmt::format("{}({}, {})", is_float(type) ? "ls_fmin" : "ls_min", a, b);
    case ir::Reduction::max: return fmt::format("{}({}, {})", is_float(type) ? "ls_fmax" : "ls_max", a, b);
  }
  return {};
}

/// Steps s = count/2 … 1 of the tree by shuffles; lane 0 of the `count` lanes has the result.
std::string shuffles(ir::Reduction op, Type type, int count, std::string_view mask) {
  std::string out;
  for (int s = count / 2; s >= 1; s /= 2)
    out += fmt::format("  v = {};\n",
                       combine(op, type, "v", fmt::format("__shfl_down_sync({}, v, {})", mask, s)));
  return out;
}

}  // namespace

std::string reduce_function_name(ir::Reduction op, Type type) {
  constexpr std::string_view kNames[] = {"add", "min", "max"};
  return fmt::format("ls_group_{}_{}", kNames[size_t(op)], name(type));
}

int64_t reduce_scratch_bytes(int lanes, Type type) {
  return lanes > kWarp ? int64_t(lanes) * size_of(type) : 0;
}

std::string reduce_function(ir::Reduction op, Type type, int lanes) {
  if (!std::has_single_bit(unsigned(lanes)))
    throw InputError(fmt::format("group reduction over {} lanes", lanes), "CUDA printer", "a power of two");
  const std::string_view t = cuda_type(type);
  const std::string_view full = "0xffffffffu";
  if (lanes <= kWarp) {
    const std::string mask = lanes == kWarp ? std::string(full) : fmt::format("{:#x}u", (1u << lanes) - 1u);
    return fmt::format("__device__ __forceinline__ {0} {1}({0} v, int) {{\n  __syncthreads();\n", t,
                       reduce_function_name(op, type)) +
           shuffles(op, type, lanes, mask) + fmt::format("  return __shfl_sync({}, v, 0);\n}}\n", mask);
  }
  const int warps = lanes / kWarp;
  std::string out = fmt::format("__device__ __forceinline__ {0} {1}({0} v, int lane, {0}* scratch) {{\n", t,
                                reduce_function_name(op, type));
  out += "  scratch[lane] = v;\n  __syncthreads();\n";
  // Steps s >= 32 pair whole warps: each lane folds its column.
  std::string fold = fmt::format("  {} t[{}];\n", t, warps);
  fold += fmt::format(
      "  #pragma unroll\n  for (int w = 0; w < {}; ++w) t[w] = scratch[(lane & 31) + 32 * w];\n", warps);
  fold += fmt::format(
      "  #pragma unroll\n  for (int s = {}; s >= 1; s /= 2)\n    #pragma unroll\n    for (int w = 0; w < s; "
      "++w) t[w] = {};\n",
      warps / 2, combine(op, type, "t[w]", "t[w + s]"));
  fold += "  v = t[0];\n" + shuffles(op, type, kWarp, full);
  if (warps <= kFoldByAll) {
    out += fold + fmt::format("  v = __shfl_sync({}, v, 0);\n", full);
    out += "  __syncthreads();  // scratch is free again\n  return v;\n}\n";
  } else {
    out += "  if (lane < 32) {\n" + fold + "  if (lane == 0) scratch[0] = v;\n  }\n";
    out +=
        "  __syncthreads();\n  v = scratch[0];\n  __syncthreads();  // scratch is free again\n  return "
        "v;\n}\n";
  }
  return out;
}

}  // namespace lockstep::clike
