// Compiled kernels: one shader per way of binding the buffers.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "compile/clike/wgsl/wgsl.hpp"
#include "device/webgpu/core.hpp"

namespace lockstep::device::webgpu {

/// One shader of a kernel.
struct Variant {
  Pipeline pipeline;
  clike::WgslSource source;
};

class WebgpuModule final : public Module {
 public:
  WebgpuModule(std::shared_ptr<Core> core, ir::Function lowered, clike::WgslOptions options);
  ~WebgpuModule() override;

  /// The shader for these ways of binding; compiled when first requested.
  const Variant& variant(const std::vector<clike::WgslBuffer>& buffers);
  const ir::Function& function() const { return lowered_; }
  void describe(KernelReport& report) const override { report.group_lanes = lanes_; }

 private:
  int lanes_ = 1;
  std::shared_ptr<Core> core_;
  ir::Function lowered_;
  clike::WgslOptions options_;
  std::vector<std::pair<std::vector<clike::WgslBuffer>, std::unique_ptr<Variant>>> variants_;
};

/// One dispatch made ready: what is bound, which words the shader reads.
struct Prepared {
  const Variant* variant = nullptr;
  std::vector<BufferRange> ranges;
  std::vector<uint32_t> words;
};
/// `window_bytes` as the module was compiled for.
Prepared prepare(WebgpuModule& module, const Dispatch& dispatch, int64_t window_bytes, int64_t max_bindings,
                 WGPUBuffer loop_flag);

/// Levels of control flow on llvmpipe, which runs both sides of conditions that are nested more than 80 deep; the rest is
/// left to what printing and lowering add.
inline constexpr int kLlvmpipeLevels = 72;

/// How a back end's limits let a function run; pure. `levels`: of control flow.
Support wgsl_support(const ir::Function& function, const Limits& limits, const WGPULimits& hardware,
                     int levels);

}  // namespace lockstep::device::webgpu
