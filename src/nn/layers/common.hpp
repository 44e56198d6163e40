// Kernels that several layers share, and the choice of a kernel by element type.
#pragma once

#include <string>

#include "lockstep/device.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/nn/network.hpp"

namespace lockstep::nn {

/// Calls f with a float or a double.
template <class F>
decltype(auto) by_type(Storage storage, F&& f) {
  if (storage == Storage::f64) return f(f64());
  return f(f32());
}

template <class T>
std::string nn_kernel_name(std::string_view operation) {
  return "nn." + std::string(operation) + "." + std::string(lockstep::name(lockstep::detail::kType<T>));
}

/// c = a b. Fast numerics on CUDA may take cuBLAS, which rounds f32 to tf32 first.
void multiply(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c);

/// Rows that one lane adds up in order; sums of more rows are sums of such chunks.
inline constexpr int kSumRows = 64;

/// to[j] = sum over rows i of x[i, j]: chunks of kSumRows rows in order, then their sums in the same way until one is
/// left. `partial` is scratch of column_scratch(rows) * columns elements.
void column_sums(const Device& device, const Buffer& x, const Buffer& partial, const Buffer& to);
int64_t column_scratch(int64_t rows);
template <class T>
const Kernel& column_sums_kernel();

/// y = f(y + b[column]); for gelu (slope, b, y): y = f(slope + b), slope = f'(slope + b). Without `bias` no b.
template <class T>
Kernel activate_kernel(Activation f, bool bias);
/// dy *= f' as it follows from y; for gelu the second argument is the slope itself.
template <class T>
Kernel slope_kernel(Activation f);

}  // namespace lockstep::nn
