#include "device/cuda/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "compile/clike/nvrtc.hpp"
#include "compile/lower.hpp"
#include "core/files/disk_cache.hpp"
#include "core/reports/trace.hpp"
#include "device/cuda/testing.hpp"
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
  source.own_architecture = form.own_architecture;
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
constexpr int64_t kFineGroups = 16, kFineGroupsOfColumns = 2;
std::atomic<bool> several_points{false};

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
  const clike::CudaOutput output = arch != core.arch()       ? clike::CudaOutput::ptx
                                   : source.own_architecture ? clike::CudaOutput::own_cubin
                                                             : clike::CudaOutput::cubin;

  std::string key = fmt::format("cuda nvrtc {}", nvrtc.version());
  for (const std::string& option : clike::Nvrtc::options(arch, output, numerics)) key += " " + option;
  key += "\n" + source.text;
  if (auto code = DiskCache::global().get(key)) {
    from_cache = true;
    return std::move(*code);
  }
  const TimedScope scope(source.entry, "compile");
  std::vector<std::byte> code = nvrtc.compile(source.text, source.entry, arch, output, numerics);
  DiskCache::global().put(key, code);
  return code;
}

}  // namespace

void always_several_points(bool always) { several_points = always; }

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
  const Entered here = core_->enter();
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
  if (const Entered here = core_->try_enter(); here && module_) core_->driver().module_unload(module_);
}

void CudaModule::describe(KernelReport& report) const {
  const Entered here = core_->try_enter();
  if (!here) return;
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

KernelNode CudaModule::node_of(const Dispatch& dispatch) const {
  KernelNode node;
  std::array<int64_t, 3> groups = dispatch.count;
  groups[0] *= cluster_;
  node.function = function_;
  const int64_t enough = points_.columns > 1 ? kFineGroupsOfColumns : kFineGroups;
  if (fine_function_ && !several_points &&
      groups[0] * groups[1] * groups[2] < core_->multiprocessors() * enough) {
    node.function = fine_function_;
    groups[size_t(points_.axis)] *= points_.points;
    groups[0] *= points_.columns;
  }
  for (size_t a = 0; a < 3; ++a) {
    node.grid[a] = unsigned(groups[a]);
    node.block[a] = unsigned(block_[a]);
  }
  node.shared_bytes = dynamic_shared_bytes_;
  return node;
}

void CudaModule::launch(const Dispatch& dispatch, StreamHandle stream) const {
  alignas(16) std::byte arguments[kMaxArgumentBytes];
  pack(dispatch, arguments);
  launch(node_of(dispatch), arguments, arguments_.bytes, stream);
}

void CudaModule::launch(std::span<const std::byte> arguments, unsigned blocks, StreamHandle stream) const {
  KernelNode node;
  node.function = function_;
  node.grid[0] = blocks;
  for (size_t a = 0; a < 3; ++a) node.block[a] = unsigned(block_[a]);
  launch(node, arguments.data(), arguments.size(), stream);
}

void CudaModule::launch(const KernelNode& n, const void* arguments, size_t bytes, StreamHandle stream) const {
  // As one buffer: the driver then need not look at each parameter.
  void* buffer[] = {kLaunchBuffer, const_cast<void*>(arguments), kLaunchBufferSize, &bytes, nullptr};
  const Result result =
      core_->driver().launch(n.function, n.grid[0], n.grid[1], n.grid[2], n.block[0], n.block[1], n.block[2],
                             n.shared_bytes, stream, nullptr, buffer);
  core_->check(result, DeviceFault::launch, "launching a kernel");
}

VariableNode CudaModule::captured(const Dispatch& dispatch, StreamHandle stream) const {
  const Driver& d = core_->driver();
  int status = 0;
  const NodeHandle* last = nullptr;
  size_t count = 0;
  core_->check(d.capture_info(stream, &status, nullptr, nullptr, &last, &count), DeviceFault::launch,
               "recording a launch");
  if (count != 1)
    throw DeviceError(DeviceFault::launch, fmt::format("recording a launch: {} last nodes", count));
  VariableNode variable{last[0], node_of(dispatch), std::vector<std::byte>(arguments_.bytes), {}};
  pack(dispatch, variable.arguments.data());
  for (const ArgumentField& field : arguments_.fields)
    if (field.kind == ArgumentKind::scalar) variable.scalars.push_back(field);
  return variable;
}

}  // namespace lockstep::device::cuda
