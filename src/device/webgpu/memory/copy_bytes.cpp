#include <fmt/format.h>

#include "device/webgpu/memory/transfer.hpp"

namespace lockstep::device::webgpu {

namespace {

// A.x first byte, A.y end byte of the destination, A.z byte of the source that goes to A.x, A.w first word.
constexpr std::string_view kShader = R"(
@group(1) @binding(0) var<uniform> A: array<vec4<u32>, 1>;
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
{0}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
  let word = A[0].w + (group.y * 32768u + group.x) * 64u + lane;
  if (word * 4u >= A[0].y) {{ return; }}
  var bits = to[word];
  for (var k = 0u; k < 4u; k++) {{
    let at = word * 4u + k;
    if (at >= A[0].x && at < A[0].y) {{
      {1}
      bits = (bits & ~(0xffu << (k * 8u))) | (byte << (k * 8u));
    }}
  }}
  to[word] = bits;
}}
)";

// A.x quads of four words.
constexpr std::string_view kQuadShader = R"(
@group(1) @binding(0) var<uniform> A: array<vec4<u32>, 1>;
@group(0) @binding(0) var<storage, read_write> to: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> source: array<vec4<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = (group.y * 32768u + group.x) * 256u + lane;
  if (at < A[0].x) { to[at] = source[at]; }
}
)";

std::array<uint32_t, 3> folded(uint32_t groups) {
  return {std::min(groups, 32768u), (groups + 32767) / 32768, 1};
}

}  // namespace

ByteKernels::~ByteKernels() {
  for (auto* pipeline : {&copy_, &clear_, &quads_})
    if (*pipeline) core_->n.ComputePipelineRelease((*pipeline)->handle);
}

ByteKernels::Step ByteKernels::make(const BufferRange* from, uint32_t from_offset, const BufferRange& to,
                                    uint32_t first, uint32_t bytes) {
  auto& pipeline = from ? copy_ : clear_;
  if (!pipeline) {
    const std::string code =
        from ? fmt::format(
                   kShader, "@group(0) @binding(1) var<storage, read_write> source: array<u32>;",
                   "let s = at - A[0].x + A[0].z; let byte = (source[s / 4u] >> ((s % 4u) * 8u)) & 0xffu;")
             : fmt::format(kShader, "", "let byte = 0u;");
    pipeline = core_->make_pipeline(code, from ? "copy_bytes" : "clear_bytes",
                                    std::vector<bool>(from ? 2 : 1, true), true);
  }
  std::vector<BufferRange> ranges{to};
  if (from) ranges.push_back(*from);
  const uint32_t words = (first + bytes + 3) / 4 - first / 4, groups = (words + 63) / 64;
  return {&*pipeline,
          core_->bind_group(pipeline->layout, ranges),
          {first, first + bytes, from_offset, first / 4},
          folded(groups)};
}

ByteKernels::Step ByteKernels::make_quads(const BufferRange& from, const BufferRange& to, uint32_t quads) {
  if (!quads_)
    quads_ = core_->make_pipeline(std::string(kQuadShader), "copy_quads", std::vector<bool>(2, true), true);
  return {
      &*quads_, core_->bind_group(quads_->layout, {to, from}), {quads, 0, 0, 0}, folded((quads + 255) / 256)};
}

}  // namespace lockstep::device::webgpu
