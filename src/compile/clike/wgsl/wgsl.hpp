// WGSL of a kernel: one complete shader module with the entry point `main`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compile/clike/points_plan.hpp"
#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// How one buffer parameter is bound.
struct WgslBuffer {
  int windows = 1;  // consecutive bindings of window_bytes each
  bool has_base =
      false;  // the first element lies behind the first binding's begin: WgslWord::base says how far
  bool writable =
      false;  // bind read_write even if the kernel only reads it (the same memory is written elsewhere)
  friend bool operator==(const WgslBuffer&, const WgslBuffer&) = default;
};

struct WgslOptions {
  Numerics numerics = Numerics::exact;
  std::vector<WgslBuffer> buffers;   // per parameter; missing ones are the default
  int64_t window_bytes = 128 << 20;  // multiple of 4
  int64_t group_lanes = 256;         // most that a group may have
  /// Keeps the driver from contracting or regrouping products and sums (exact numerics only).
  bool fixed_arithmetic = true;
  /// Divisions and square roots are rounded correctly by the hardware: no correction step.
  bool native_division = false;
  /// The driver ends loops early (llvmpipe after 65535 turns in all): every lane counts the loops that it
  /// enters and leaves in the first word of one more binding, kLoopFlag. Not 0 at the end = some loop did not
  /// end by itself.
  bool watch_loops = false;
  /// fma rounds once: no version in whole numbers (exact numerics only).
  bool native_fma = false;
  /// The computed fma branches: llvmpipe takes thrice the time for blocks without branches, where the time of SwiftShader's
  /// compiler grows exponentially with them.
  bool branches = false;
};

/// One word of the argument block, a uniform buffer of u32 words at group 1, binding 0.
struct WgslWord {
  enum class Kind : uint8_t {
    extent,  // axis 0 = x
    offset,  // first point or group of this dispatch
    shape,   // index = buffer, axis slowest first
    stride,
    scalar,  // index = scalar; a bool is 0 or 1
    base,    // index = buffer: elements before its first one in the first binding
    zero,    // 0, unknown to the shader's compiler
    row,     // domains of one axis: points or groups that one row of groups holds
  };
  Kind kind;
  uint32_t index = 0;
  uint8_t axis = 0;
  friend bool operator==(const WgslWord&, const WgslWord&) = default;
};

/// Binding number = place in WgslSource::bindings, group 0.
inline constexpr uint32_t kLoopFlag = 0xffffffffu;  // as WgslBinding::buffer
struct WgslBinding {
  uint32_t buffer;
  int window;
  bool writable;
};

struct WgslSource {
  std::string text;
  std::array<int32_t, 3> group{1, 1, 1};
  std::vector<WgslWord> words;  // multiple of 4 words are bound
  std::vector<WgslBinding> bindings;
};

/// Levels of control flow that fit into WGSL's 127 nested braces, with those that printing and lowering add.
inline constexpr int kWgslLevels = 120;
/// Where the function has more levels of control flow than `most`, those of called functions included; or empty.
std::string deeper_than(int most, const ir::Function& function);
/// Why WGSL cannot express a function (64-bit types, too many levels), or empty.
std::string wgsl_refusal(const ir::Function& function);

/// Points of a lane that print_wgsl chooses.
PointsPlan wgsl_points(const ir::Function& function);

/// Lanes per group that print_wgsl chooses.
std::array<int32_t, 3> wgsl_group(const ir::Function& function, int64_t group_lanes);

/// Bytes of workgroup memory that the function takes.
int64_t wgsl_shared_bytes(const ir::Function& function, int64_t group_lanes);

/// `lowered` has gone through compile::lower for Target::wgsl. Throws UnsupportedError with wgsl_refusal's
/// reason.
WgslSource print_wgsl(const ir::Function& lowered, const WgslOptions& options);

/// The whole way from a traced function, for `lockstep emit`.
std::string emit_wgsl(const ir::Function& traced, Numerics numerics);

}  // namespace lockstep::clike
