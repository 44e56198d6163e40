// CUDA C++ of a kernel: complete source for NVRTC, without includes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/clike/cuda/cuda_points.hpp"
#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// Content of a field of the kernel's argument struct.
enum class ArgumentKind : uint8_t { buffer, shape, stride, extent, offset, scalar };

/// One field of the struct that a kernel takes by value as its only parameter.
struct ArgumentField {
  ArgumentKind kind;
  uint8_t index = 0;    // buffer or scalar
  uint8_t axis = 0;     // shape, stride: slowest first; extent, offset: 0 = x
  uint8_t bytes = 0;    // 4 or 8
  uint16_t offset = 0;  // in the struct
};
struct ArgumentLayout {
  std::vector<ArgumentField> fields;
  uint32_t bytes = 0;  // multiple of 8
};
/// The fields that the function uses, or with `all` every field, as native kernels see them.
ArgumentLayout argument_layout(const ir::Function& function, bool all = false);
/// `struct Arguments { … };` b0 = pointer of buffer 0, b0_n1 its shape, b0_s0 its stride, extent_x, offset_x,
/// p0 = scalar.
std::string argument_struct(const ir::Function& function, const ArgumentLayout& layout);

struct CudaSource {
  std::string text;
  std::string entry;
  std::string fine_entry;  // the same with one point per lane, for small domains; empty where it is `entry`
  std::array<int32_t, 3> block{1, 1, 1};    // threads
  std::array<int32_t, 3> covered{1, 1, 1};  // points of a block of `entry`; `block` for groups kernels
  PointsPlan points;                        // of a lane of `entry`
  int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
  int32_t cluster = 1;            // blocks of a group
  bool own_architecture = false;  // machine code for the device's own architecture alone
  ArgumentLayout arguments;
};

struct CudaOptions {
  Numerics numerics = Numerics::exact;
  int arch = 90;                     // 10 * compute capability
  std::optional<PointsPlan> points;  // of points kernels; empty: the printer chooses
  std::optional<bool> inner_path;  // points kernels: a second body without clamps; empty: the printer chooses
  bool columns = true;             // points kernels: columns by 16-byte accesses where they pay
};
/// `lowered` has gone through compile::lower for Target::cuda.
CudaSource print_cuda(const ir::Function& lowered, const CudaOptions& options);
inline CudaSource print_cuda(const ir::Function& lowered, Numerics numerics, int arch) {
  return print_cuda(lowered, CudaOptions{numerics, arch});
}

/// Bytes of shared memory that a function takes, without printing it.
int64_t cuda_shared_bytes(const ir::Function& function);
/// Lanes per block that print_cuda chooses.
std::array<int32_t, 3> cuda_group(const ir::Function& function);

/// "sm_90", "90" or "compute_90" as 90. Throws InputError.
int parse_arch(std::string_view text);

}  // namespace lockstep::clike
