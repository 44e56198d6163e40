// The interpreter as a back end. It runs everything at once, on the calling thread.
#include "device/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "compile/lower.hpp"
#include "compile/passes/forms/columns.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "core/platform/system.hpp"
#include "core/platform/threads.hpp"
#include "device/host_queue.hpp"
#include "device/interp/execute.hpp"
#include "device/interp/findings.hpp"
#include "device/interp/memory.hpp"
#include "device/interp/program.hpp"
#include "device/interp/testing.hpp"

namespace lockstep::interp {

using namespace lockstep::device;

namespace {

struct InterpModule final : Module {
  Program program;
};
struct InterpEvent final : Event {
  std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
};

InterpMemory& of(Memory& memory) { return static_cast<InterpMemory&>(memory); }

DeviceInfo describe() {
  DeviceInfo info;
  info.name = "interp";
  info.kind = DeviceKind::interp;
  info.description = "interpreter of the kernel IR, with checks";
  info.architecture = "interp";
  info.limits.buffer_bytes = PTRDIFF_MAX;
  return info;
}

class InterpBackend final : public HostBackend {
 public:
  const DeviceInfo& info() const override { return info_; }
  void set_limits(const Limits& limits) override { info_.limits = limits; }
  MemoryInfo memory() const override;

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    try {
      return std::make_shared<InterpMemory>(bytes);
    } catch (const std::bad_alloc&) {
      throw DeviceError(DeviceFault::allocation, fmt::format("interp: no memory for {} bytes", bytes));
    }
  }
  std::shared_ptr<Memory> adopt(const Foreign& foreign, int64_t bytes) override {
    return std::make_shared<InterpMemory>(foreign, bytes);
  }
  void upload(Queue*, Memory& to, int64_t offset, const void* data, int64_t bytes) override {
    std::lock_guard lock(mutex_);
    if (bytes <= 0) return;
    std::memcpy(of(to).data() + offset, data, size_t(bytes));
    std::memset(of(to).initialised() + offset, 1, size_t(bytes));
  }
  void download(Queue*, Memory& from, int64_t offset, void* data, int64_t bytes) override {
    std::lock_guard lock(mutex_);
    if (bytes > 0) std::memcpy(data, of(from).data() + offset, size_t(bytes));
  }
  void copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
            int64_t bytes) override {
    run(queue, [=, &from, &to] {
      if (bytes <= 0) return;
      std::memmove(of(to).data() + to_offset, of(from).data() + from_offset, size_t(bytes));
      std::memmove(of(to).initialised() + to_offset, of(from).initialised() + from_offset, size_t(bytes));
    });
  }
  void clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) override {
    run(queue, [=, &memory] {
      if (bytes <= 0) return;
      std::memset(of(memory).data() + offset, 0, size_t(bytes));
      std::memset(of(memory).initialised() + offset, 1, size_t(bytes));
    });
  }

  Support supports(const ir::Function& function) const override;
  std::shared_ptr<Module> compile(const ir::Function& function, const CompileOptions& options) override {
    auto module = std::make_shared<InterpModule>();
    compile::LowerOptions lowering;
    lowering.target = all_passes ? compile::Target::cpu : compile::Target::interp;
    lowering.numerics = options.numerics;
    lowering.verify_passes = all_passes;
    ir::Function lowered = compile::lower(function, lowering);
    if (const auto form = all_passes ? compile::columns_form(lowered) : std::nullopt)
      lowered = compile::columns_by_points(lowered, *form);
    compile::inline_all_calls(lowered);  // the other devices call: the same bits, by another way
    module->program = decode(std::move(lowered));
    for (int a = 0; a < 3; ++a) module->group[a] = std::max(1, function.group[a]);
    if (function.domain == ir::Domain::points && function.group[0] == 0) module->group = {64, 1, 1};
    return module;
  }
  void dispatch(const Dispatch& d) override {
    const std::vector<Binding> buffers(d.buffers.begin(), d.buffers.end());
    const auto scalars = std::make_shared<std::vector<uint64_t>>(d.scalars.begin(), d.scalars.end());
    if (d.variable) recorder(d.queue)->scalars.emplace_back(scalars, scalars->data());
    run(d.queue, [this, d, buffers, scalars] {
      Dispatch own = d;
      own.buffers = buffers;
      own.scalars = *scalars;
      dispatch_now(own);
    });
  }

  std::shared_ptr<Queue> make_queue() override { return std::make_shared<HostQueue>(); }
  void synchronize(Queue*) override {}
  void synchronize_all() override {}
  std::shared_ptr<Event> record_event(Queue*) override { return std::make_shared<InterpEvent>(); }
  double elapsed(Event& from, Event& to) override {
    return std::chrono::duration<double>(static_cast<InterpEvent&>(to).at -
                                         static_cast<InterpEvent&>(from).at)
        .count();
  }

  void replay(RecordedGraph& graph, Queue*) override {
    for (const auto& step : static_cast<HostGraph&>(graph).steps) {
      std::lock_guard lock(mutex_);
      step();
    }
  }

  bool collect = false, all_passes = false;
  std::vector<Finding> found;
  mutable Mutex mutex_;

 private:
  void run(Queue* queue, std::function<void()> work) {
    if (HostGraph* graph = recorder(queue)) return graph->steps.push_back(std::move(work));
    std::lock_guard lock(mutex_);
    work();
  }

  void dispatch_now(const Dispatch& d) {
    const auto& module = static_cast<const InterpModule&>(*d.module);
    std::vector<Finding> now = execute(module.program, d, module.group, serial_);
    if (now.empty()) return;
    std::string text;
    for (const Finding& f : now) text += (text.empty() ? "" : "; ") + f.text();
    for (Finding& f : now) {
      auto same = std::find_if(found.begin(), found.end(),
                               [&](const Finding& o) { return o.kind == f.kind && o.kernel == f.kernel; });
      if (same == found.end())
        found.push_back(std::move(f));
      else
        same->count += f.count;
    }
    if (!collect) throw DeviceError(DeviceFault::launch, text);
  }

  DeviceInfo info_ = describe();
  uint32_t serial_ = 0;
};

Support InterpBackend::supports(const ir::Function& function) const {
  int64_t shared = 0;
  for (const auto& a : function.shared) shared += a.count * size_of(a.storage);
  const Limits& limits = info_.limits;
  if (int64_t(function.buffers.size()) > limits.bindings)
    return {false, fmt::format("{} buffers; at most {}", function.buffers.size(), limits.bindings)};
  if (shared > limits.shared_bytes)
    return {false, fmt::format("{} bytes of shared memory; at most {}", shared, limits.shared_bytes)};
  if (function.group_lanes() > limits.group_lanes)
    return {false, fmt::format("groups of {} lanes; at most {}", function.group_lanes(), limits.group_lanes)};
  if (!limits.f64 && (function.uses(Type::f64) || function.uses(Type::i64) || function.uses(Type::u64)))
    return {false, "64-bit types"};
  return {};
}

MemoryInfo InterpBackend::memory() const {
  const platform::SystemMemory memory = platform::system_memory();
  return {memory.total_bytes, memory.free_bytes};
}

InterpBackend& interp_of(Backend& backend) {
  auto* interp = dynamic_cast<InterpBackend*>(&backend);
  if (!interp)
    throw InputError(fmt::format("device {}", backend.info().name), "interp findings", "an interp device");
  return *interp;
}

}  // namespace

std::string_view name(FindingKind kind) {
  static constexpr std::string_view kNames[] = {"out_of_bounds", "misaligned", "uninitialised",
                                                "race",          "divergence", "not_uniform"};
  return kNames[size_t(kind)];
}

std::string Finding::text() const {
  static constexpr std::string_view kWords[] = {"accesses out of bounds",
                                                "misaligned wide accesses",
                                                "reads of uninitialised memory",
                                                "races between lanes",
                                                "barriers that not all lanes reach",
                                                "uniform() values on which lanes differ"};
  return fmt::format("kernel {}: {} {}, first in `{}`{}{} at {}", kernel, count, kWords[size_t(kind)],
                     instruction, source.empty() ? "" : " near ", source, lane);
}

void run_all_passes(Backend& backend, bool all) { interp_of(backend).all_passes = all; }
void collect_findings(Backend& backend, bool collect) { interp_of(backend).collect = collect; }
std::vector<Finding> findings(const Backend& backend) {
  const InterpBackend& interp = interp_of(const_cast<Backend&>(backend));
  std::lock_guard lock(interp.mutex_);
  return interp.found;
}
void clear_findings(Backend& backend) {
  InterpBackend& interp = interp_of(backend);
  std::lock_guard lock(interp.mutex_);
  interp.found.clear();
}

}  // namespace lockstep::interp

namespace lockstep::device {

const BackendKind& interp_backend() {
  static const BackendKind kind{
      DeviceKind::interp,
      [] {
        interp::InterpBackend backend;
        return std::vector<DeviceStatus>{{backend.info(), backend.memory(), true, ""}};
      },
      [](int number, const DeviceOptions&) -> std::shared_ptr<Backend> {
        if (number != 0)
          throw UnsupportedError(fmt::format("interp:{}", number), "device", "interp, which has one device");
        return std::make_shared<interp::InterpBackend>();
      }};
  return kind;
}

}  // namespace lockstep::device
