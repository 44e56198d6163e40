#include "device/cuda/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compile/clike/nvrtc.hpp"
#include "compile/lower.hpp"
#include "core/disk_cache.hpp"
#include "core/trace.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::cuda {

using clike::ArgumentField;
using clike::ArgumentKind;

namespace {
clike::CudaSource native_source(const ir::Function& traced, const NativeForm& form) {
  clike::CudaSource source;
  source.arguments = clike::argument_layout(traced, true);
  source.text = fmt::format(
      "// {}\ntypedef unsigned int u32;\ntypedef long long i64;\ntypedef unsigned long long u64;\n{}\n{}",
      traced.name, clike::argument_struct(traced, source.arguments), form.cuda.source);
  source.entry = form.cuda.entry;
  source.block = form.block[0] > 0 ? form.block : clike::cuda_group(traced);
  for (auto& size : source.block) size = std::max(size, 1);
  source.covered = form.points[0] > 0 ? form.points : source.block;
  source.dynamic_shared_bytes = form.dynamic_shared_bytes;
  source.cluster = form.cluster;
  return source;
}
}  // namespace

clike::CudaSource source_of(const ir::Function& traced, const CompileOptions& options, int arch) {
  if (options.native) return native_source(traced, *options.native);
  return clike::print_cuda(compile::lower(traced, {compile::Target::cuda, options.numerics}),
                           {options.numerics, arch});
}

namespace {

// With fewer groups per multiprocessor than this, several points per lane would leave lanes idle.
constexpr int64_t kFineGroups = 16;

/// Machine code for this device; PTX, which the driver compiles, where NVRTC is older than the device.
std::vector<std::byte> machine_code(const Core& core, const clike::CudaSource& source, Numerics numerics,
                                    bool& from_cache) {
  const clike::Nvrtc& nvrtc = clike::Nvrtc::get();
  int arch = 0;
  for (int known : nvrtc.architectures())
    if (known <= core.arch()) arch = known;
  if (arch == 0)
    throw DeviceError(DeviceFault::compile,
                      fmt::format("NVRTC {} generates no code for sm_{}", nvrtc.version(), core.arch()));
  const clike::CudaOutput output = arch == core.arch() ? clike::CudaOutput::cubin : clike::CudaOutput::ptx;

  std::string key = fmt::format("cuda nvrtc {}", nvrtc.version());
  for (const std::string& option : clike::Nvrtc::options(arch, output, numerics)) key += " " + option;
  key += "\n" + source.text;
  if (auto code = DiskCache::global().get(key)) {
    from_cache = true;
    return std::move(*code);
  }
  const TraceScope scope(source.entry, "compile");
  std::vector<std::byte> code = nvrtc.compile(source.text, source.entry, arch, output, numerics);
  DiskCache::global().put(key, code);
  return code;
}

}  // namespace

CudaModule::CudaModule(std::shared_ptr<Core> core, const clike::CudaSource& source, Numerics numerics)
    : core_(std::move(core)),
      block_(source.block),
      points_(source.points),
      dynamic_shared_bytes_(uint32_t(source.dynamic_shared_bytes)),
      cluster_(source.cluster),
      arguments_(source.arguments) {
  if (arguments_.bytes > kMaxArgumentBytes)
    throw DeviceError(DeviceFault::compile,
                      fmt::format("kernel {} takes {} bytes of arguments, {} are possible", source.entry,
                                  arguments_.bytes, kMaxArgumentBytes));
  group = source.covered;
  const std::vector<std::byte> code = machine_code(*core_, source, numerics, from_cache);
  core_->enter();
  const Driver& d = core_->driver();
  if (const Result result = d.module_load(&module_, code.data()); result != kSuccess) {
    const std::string doing =
        fmt::format("loading kernel {} (NVRTC {}, driver for CUDA {}.{})", source.entry,
                    clike::Nvrtc::get().version(), d.version / 1000, d.version % 1000 / 10);
    core_->fail(result, DeviceFault::compile, doing.c_str());
  }
  core_->check(d.module_function(&function_, module_, source.entry.c_str()), DeviceFault::compile,
               "loading a kernel");
  if (!source.fine_entry.empty())
    core_->check(d.module_function(&fine_function_, module_, source.fine_entry.c_str()), DeviceFault::compile,
                 "loading a kernel");
  if (dynamic_shared_bytes_ > 0)
    core_->check(d.function_set(function_, kFunctionMaxDynamicShared, int(dynamic_shared_bytes_)),
                 DeviceFault::compile, "asking for shared memory");
  if (cluster_ > 8)  // more than every device has
    core_->check(d.function_set(function_, kFunctionLargeClusters, 1), DeviceFault::compile,
                 "asking for clusters of more than 8 blocks");
}

CudaModule::~CudaModule() {
  if (module_ && core_->try_enter()) core_->driver().module_unload(module_);
}

void CudaModule::describe(KernelReport& report) const {
  if (!core_->try_enter()) return;
  const Driver& d = core_->driver();
  const auto attribute = [&](int which) {
    int value = 0;
    return d.function_get(&value, which, function_) == kSuccess ? value : 0;
  };
  const int lanes = block_[0] * block_[1] * block_[2];
  report.group_lanes = lanes;
  report.registers = attribute(kFunctionRegisters);
  report.shared_bytes = attribute(kFunctionShared) + int64_t(dynamic_shared_bytes_);
  report.local_bytes = attribute(kFunctionLocal);
  int groups = 0, threads = 0;
  if (d.occupancy(&groups, function_, lanes, dynamic_shared_bytes_) != kSuccess) return;
  report.groups_at_once = groups;
  if (d.device_attribute(&threads, kMultiprocessorThreads, core_->device()) == kSuccess && threads > 0)
    report.occupancy = double(groups) * lanes / threads;
}

void CudaModule::pack(const Dispatch& dispatch, std::byte* to) const {
  for (const ArgumentField& field : arguments_.fields) {
    uint64_t word = 0;
    switch (field.kind) {
      case ArgumentKind::buffer: {
        const Binding& binding = dispatch.buffers[field.index];
        word = static_cast<const CudaMemory*>(binding.memory)->address + Address(binding.offset_bytes);
        break;
      }
      case ArgumentKind::shape: word = uint64_t(dispatch.buffers[field.index].shape[field.axis]); break;
      case ArgumentKind::stride: word = uint64_t(dispatch.buffers[field.index].strides[field.axis]); break;
      case ArgumentKind::extent: word = uint64_t(dispatch.extent[field.axis]); break;
      case ArgumentKind::offset: word = uint64_t(dispatch.offset[field.axis]); break;
      case ArgumentKind::scalar: word = dispatch.scalars[field.index]; break;
    }
    std::memcpy(to + field.offset, &word,
                field.bytes == 8 ? 8 : 4);  // little-endian: the low half of a 4-byte field
  }
}

void CudaModule::launch(const Dispatch& dispatch, StreamHandle stream) const {
  alignas(16) std::byte arguments[kMaxArgumentBytes];
  pack(dispatch, arguments);
  // As one buffer: the driver then need not look at each parameter.
  size_t bytes = arguments_.bytes;
  void* buffer[] = {kLaunchBuffer, arguments, kLaunchBufferSize, &bytes, nullptr};
  std::array<int64_t, 3> groups = dispatch.count;
  groups[0] *= cluster_;
  FunctionHandle function = function_;
  if (fine_function_ && groups[0] * groups[1] * groups[2] < core_->multiprocessors() * kFineGroups) {
    function = fine_function_;
    groups[size_t(points_.axis)] *= points_.points;
  }
  const Result result = core_->driver().launch(
      function, unsigned(groups[0]), unsigned(groups[1]), unsigned(groups[2]), unsigned(block_[0]),
      unsigned(block_[1]), unsigned(block_[2]), dynamic_shared_bytes_, stream, nullptr, buffer);
  core_->check(result, DeviceFault::launch, "launching a kernel");
}

}  // namespace lockstep::device::cuda
