// The CPU as a device: kernels compiled to SIMD code, run over threads. Work of every queue runs at once, in
// order.
#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "compile/native/native.hpp"
#include "core/platform/system.hpp"
#include "core/platform/thread.hpp"
#include "core/platform/threads.hpp"
#include "device/backend.hpp"
#include "device/cpu/memory.hpp"
#include "device/cpu/schedule.hpp"
#include "device/host_queue.hpp"

namespace lockstep::device {

namespace cpu {

namespace {

using compile::simd::Box;
using compile::simd::Frame;
using compile::simd::NativeKernel;

static_assert(sizeof(Frame::buffers) / sizeof(Frame::Buffer) >= kMaxBuffers &&
              sizeof(Frame::scalars) / 8 >= kMaxScalars);

class CpuModule : public Module {
 public:
  void describe(KernelReport& report) const override {
    report.group_lanes = compile::simd::native_lanes();
    report.groups_at_once = threads;
  }
  std::shared_ptr<NativeKernel> kernel;
  Work work;
  uint32_t written = 0;  // bit per buffer that is only written
  bool atomics = false;  // on buffers
  int threads = 1;
  bool alone =
      false;  // little but atomics: threads would only fight for cache lines; workers have no atomics
};

class CpuEvent : public Event {
 public:
  std::chrono::steady_clock::time_point time;
};

/// Rough operations per lane; a loop counts some passes of its body.
int64_t cost_of(const ir::Function& f, uint32_t block, int64_t passes) {
  constexpr int64_t kPasses = 16, kMost = 1 << 20;
  int64_t cost = 0;
  for (ir::Id id : f.blocks[block]) {
    const ir::Instruction& i = f[id];
    cost += passes * (ir::is_math(i.op) ? 20 : i.op == ir::Op::load || i.op == ir::Op::store ? 4 : 1);
    const int64_t inner =
        i.op == ir::Op::for_ || i.op == ir::Op::loop ? std::min(passes * kPasses, kMost) : passes;
    for (uint32_t b : i.blocks)
      if (b != ir::kNoBlock) cost += cost_of(f, b, inner);
    cost = std::min(cost, kMost);
  }
  return cost;
}

int64_t count_atomics(const ir::Function& f) {
  int64_t n = 0;
  for (const ir::Block& block : f.blocks)
    for (ir::Id id : block) n += f[id].op == ir::Op::atomic && !ir::AtomicTarget::from_bits(f[id].imm).shared;
  return n;
}

/// Size of the last cache level as one thread sees it. Virtual machines report too much: at most the usual 32 MB.
int64_t cache_bytes() {
  constexpr int64_t kUsual = int64_t(32) << 20;
  const int64_t bytes = platform::last_level_cache_bytes();
  return bytes > 0 ? std::min(bytes, kUsual) : kUsual;
}

MemoryInfo host_memory() {
  const platform::SystemMemory memory = platform::system_memory();
  return {memory.total_bytes, memory.free_bytes};
}

DeviceInfo describe(int threads) {
  DeviceInfo info;
  info.name = "cpu";
  info.kind = DeviceKind::cpu;
  info.architecture = compile::simd::native_processor();
  info.description =
      fmt::format("{}, {} thread{}", platform::processor_description(), threads, threads == 1 ? "" : "s");
  info.limits.buffer_bytes = PTRDIFF_MAX;
  info.limits.bindings = kMaxBuffers;
  info.limits.shared_bytes = 1 << 20;
  info.multiprocessors = threads;
  return info;
}

class CpuBackend : public HostBackend {
 public:
  explicit CpuBackend(const DeviceOptions& options)
      : threads_(options.threads), info_(describe(threads_.count())) {}

  const DeviceInfo& info() const override { return info_; }
  void set_limits(const Limits& limits) override { info_.limits = limits; }
  MemoryInfo memory() const override { return host_memory(); }

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    if (bytes > info_.limits.buffer_bytes)
      throw DeviceError(DeviceFault::allocation,
                        fmt::format("cpu: a buffer of {} bytes is above the limit of {}", bytes,
                                    info_.limits.buffer_bytes));
    return std::make_shared<HostMemory>(bytes);
  }
  std::shared_ptr<Memory> adopt(const Foreign& foreign, int64_t bytes) override {
    return std::make_shared<HostMemory>(foreign, bytes);
  }
  void upload(Queue*, Memory& to, int64_t offset, const void* data, int64_t bytes) override {
    copy_parallel(at(to, offset), static_cast<const std::byte*>(data), bytes);
  }
  void download(Queue*, Memory& from, int64_t offset, void* data, int64_t bytes) override {
    copy_parallel(static_cast<std::byte*>(data), at(from, offset), bytes);
  }
  void copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
            int64_t bytes) override {
    submit(queue, [this, to = at(to, to_offset), from = at(from, from_offset), bytes] {
      if (to < from + bytes && from < to + bytes)
        std::memmove(to, from, size_t(bytes));
      else
        copy_parallel(to, from, bytes);
    });
  }
  void clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) override {
    submit(queue, [this, to = at(memory, offset), bytes] {
      threads_.for_bytes(bytes, [=](int64_t first, int64_t count) { clear_part(to + first, count, bytes); });
    });
  }

  Support supports(const ir::Function& f) const override {
    int64_t shared = 0;
    for (const ir::ArrayDecl& array : f.shared) shared += array.count * size_of(array.storage);
    const Limits& limits = info_.limits;
    if (shared > limits.shared_bytes)
      return {false, fmt::format("{} bytes of shared arrays, the limit is {}", shared, limits.shared_bytes)};
    if (int64_t(f.buffers.size()) > limits.bindings)
      return {false, fmt::format("{} buffers, the limit is {}", f.buffers.size(), limits.bindings)};
    if (f.domain == ir::Domain::groups && f.group_lanes() > limits.group_lanes)
      return {false, fmt::format("groups of {} lanes, the limit is {}", f.group_lanes(), limits.group_lanes)};
    if (!limits.f64)
      for (Type type : {Type::f64, Type::i64, Type::u64})
        if (f.uses(type)) return {false, fmt::format("{} is switched off", name(type))};
    return {};
  }

  std::shared_ptr<Module> compile(const ir::Function& function, const CompileOptions& options) override {
    auto module = std::make_shared<CpuModule>();
    module->kernel = compile::simd::compile_native(function, options.numerics);
    module->from_cache = module->kernel->from_cache;
    module->threads = threads_.count();
    module->work.function = module->kernel->function;
    module->work.scratch_bytes = module->kernel->scratch_bytes;
    module->work.points = function.domain == ir::Domain::points;
    module->work.cost = std::max<int64_t>(cost_of(function, 0, 1), 1);
    for (size_t k = 0; k < function.buffers.size(); ++k)
      module->written |= uint32_t(function.buffers[k].access == ir::Access::write) << k;
    const int64_t atomics = count_atomics(function);
    module->atomics = atomics > 0;
    module->alone = !kHasThreads || threads_.count() == 1 || module->work.cost < 32 * atomics;
    if (!module->work.points) {
      module->work.cost *= function.group_lanes();
      module->group = function.group;
    }
    return module;
  }

  void dispatch(const Dispatch& d) override {
    const auto& module = static_cast<const CpuModule&>(*d.module);
    Box box;
    for (int a = 0; a < 3; ++a) {
      box.low[a] = int32_t(d.offset[a]);
      box.high[a] = int32_t(std::min(d.offset[a] + d.count[a], d.extent[a]));
    }
    if (HostGraph* graph = recorder(d.queue)) {
      auto frame = std::make_shared<Frame>();
      fill(*frame, d);
      if (d.variable) graph->scalars.emplace_back(frame, frame->scalars);
      graph->steps.push_back([this, &module, frame, box] { run(module, *frame, box); });
      return;
    }
    Frame frame;
    fill(frame, d);
    run(module, frame, box);
  }

  std::shared_ptr<Queue> make_queue() override { return std::make_shared<HostQueue>(); }
  void synchronize(Queue*) override {}
  void synchronize_all() override {}
  std::shared_ptr<Event> record_event(Queue*) override {
    auto event = std::make_shared<CpuEvent>();
    event->time = std::chrono::steady_clock::now();
    return event;
  }
  double elapsed(Event& from, Event& to) override {
    return std::chrono::duration<double>(static_cast<CpuEvent&>(to).time - static_cast<CpuEvent&>(from).time)
        .count();
  }

  void replay(RecordedGraph& graph, Queue*) override {
    for (const auto& step : static_cast<HostGraph&>(graph).steps) step();
  }

 private:
  static std::byte* at(Memory& memory, int64_t offset) {
    return static_cast<HostMemory&>(memory).data() + offset;
  }

  template <class F>
  void submit(Queue* queue, F work) {
    if (HostGraph* graph = recorder(queue))
      graph->steps.emplace_back(std::move(work));
    else
      work();
  }
  void copy_parallel(std::byte* to, const std::byte* from, int64_t bytes) {
    threads_.for_bytes(
        bytes, [=](int64_t first, int64_t count) { copy_part(to + first, from + first, count, bytes); });
  }
  /// Launches with atomics on buffers run side by side with atomic instructions, or alone without.
  void run(const CpuModule& module, Frame& frame, const Box& box) {
    run_on_threads(module, frame, box);
    if (!frame.fault) return;
    const std::string text = module.kernel->fault_text(frame);
    frame.fault = 0;
    throw DeviceError(DeviceFault::launch, text);
  }
  void run_on_threads(const CpuModule& module, const Frame& frame, const Box& box) {
    if (!module.atomics) return threads_.run(module.work, frame, box, false);
    if (module.alone) {
      const std::lock_guard lock(atomics_);
      threads_.run(module.work, frame, box, true);
    } else {
      SharedLock<SharedMutex> lock(atomics_);
      threads_.run(module.work, frame, box, false);
    }
  }
  void fill(Frame& frame, const Dispatch& d) const {
    const auto& module = static_cast<const CpuModule&>(*d.module);
    frame.alone = module.atomics && module.alone;
    frame.large = 0;
    frame.fault = 0;
    for (int a = 0; a < 3; ++a) frame.extent[a] = int32_t(d.extent[a]);
    std::copy(d.scalars.begin(), d.scalars.end(), frame.scalars);
    for (size_t k = 0; k < d.buffers.size(); ++k) {
      const Binding& binding = d.buffers[k];
      Frame::Buffer& buffer = frame.buffers[k];
      if ((module.written >> k & 1) && binding.span_bytes >= cache_bytes_) frame.large |= uint32_t(1) << k;
      buffer.data = binding.memory ? at(*binding.memory, binding.offset_bytes) : nullptr;
      std::copy(binding.shape.begin(), binding.shape.end(), buffer.shape);
      std::copy(binding.strides.begin(), binding.strides.end(), buffer.strides);
      buffer.bytes = binding.span_bytes;
    }
  }

  Threads threads_;
  const int64_t cache_bytes_ = cache_bytes();
  SharedMutex atomics_;
  DeviceInfo info_;
};

std::vector<DeviceStatus> list() {
  DeviceStatus status;
  status.reason = compile::simd::native_unavailable();
  status.available = status.reason.empty();
  status.info = describe(platform::available_threads());
  status.memory = host_memory();
  return {status};
}

std::shared_ptr<Backend> open(int number, const DeviceOptions& options) {
  if (const std::string reason = compile::simd::native_unavailable(); !reason.empty())
    throw UnsupportedError(reason, "cpu", "a build with LLVM 19");
  if (number != 0) throw UnsupportedError(fmt::format("cpu:{}", number), "--device", "cpu");
  return std::make_shared<CpuBackend>(options);
}

}  // namespace
}  // namespace cpu

const BackendKind& cpu_backend() {
  static const BackendKind kind{DeviceKind::cpu, cpu::list, cpu::open};
  return kind;
}

}  // namespace lockstep::device
