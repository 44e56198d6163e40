// The CUDA back end: allocation, copies, launches, streams and graphs through the driver API.
#include "device/backend.hpp"

#include <fmt/format.h>

#include <bit>
#include <thread>
#include <utility>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/nvrtc.hpp"
#include "device/cuda/copy_kernel.hpp"
#include "device/cuda/core.hpp"
#include "device/cuda/libraries/cublas.hpp"
#include "device/cuda/libraries/nvtx.hpp"
#include "device/cuda/module.hpp"
#include "device/cuda/staging.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::cuda {

namespace {

class CudaGraph final : public RecordedGraph {
 public:
  CudaGraph(std::shared_ptr<Core> core, GraphHandle graph, CudaQueue& recorded)
      : variables(std::move(recorded.variables)),
        core_(std::move(core)),
        workspace_(std::move(recorded.workspace)),
        graph_(graph) {
    const Driver& d = core_->driver();
    const Result result = d.graph_instantiate(&exec, graph, 0);
    if (result != kSuccess || variables.empty()) d.graph_destroy(std::exchange(graph_, nullptr));
    core_->check(result, DeviceFault::launch, "making a graph");
    core_->check(d.graph_upload(exec, core_->main_stream()), DeviceFault::launch, "making a graph");
  }
  ~CudaGraph() override {
    const Entered here = core_->try_enter();
    if (!here || !exec) return;
    try {
      core_->synchronize_all();
    } catch (const DeviceError&) {}  // the device is lost, and the graph with it
    core_->driver().graph_exec_destroy(exec);
    if (graph_) core_->driver().graph_destroy(graph_);
  }
  GraphExecHandle exec = nullptr;
  std::vector<VariableNode> variables;

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<Memory> workspace_;  // of the libraries' calls in it
  GraphHandle graph_;                  // kept where its nodes are changed
};

DeviceInfo describe(const Driver& d, int number, DeviceNumber device) {
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    d.device_attribute(&value, which, device);
    return int64_t(value);
  };
  DeviceInfo info;
  info.name = fmt::format("cuda:{}", number);
  info.kind = DeviceKind::cuda;
  char name[256] = "";
  d.device_name(name, int(sizeof name), device);
  info.architecture = fmt::format("sm_{}", 10 * attribute(kCapabilityMajor) + attribute(kCapabilityMinor));
  const std::string release = driver_release();
  info.description = fmt::format("{}, driver {}, CUDA {}.{}, {}", name, release.empty() ? "unknown" : release,
                                 d.version / 1000, d.version % 1000 / 10, info.architecture);
  size_t total = 0;
  d.device_memory(&total, device);
  info.limits.groups = {attribute(kMaxGridX), attribute(kMaxGridY), attribute(kMaxGridZ)};
  info.limits.group_lanes = attribute(kMaxThreadsPerBlock);
  info.limits.buffer_bytes = info.limits.binding_bytes = int64_t(total);
  info.limits.bindings = kMaxBuffers;
  info.limits.shared_bytes = attribute(kMaxSharedOptIn);
  info.multiprocessors = int(attribute(kMultiprocessors));
  return info;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int number)
      : core_(std::make_shared<Core>(number)),
        info_(describe(core_->driver(), number, core_->device())),
        limits_(info_.limits),
        copies_(core_) {}
  ~CudaBackend() override {
    if (const Entered here = core_->try_enter()) core_->driver().stream_synchronize(core_->main_stream());
  }

  const DeviceInfo& info() const override { return info_; }
  void set_limits(const Limits& limits) override { info_.limits = limits_ = limits; }
  MemoryInfo memory() const override { return core_->memory(); }

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    return std::make_shared<CudaMemory>(core_, bytes);
  }
  std::shared_ptr<Memory> adopt(const Foreign& foreign, int64_t bytes) override {
    return std::make_shared<CudaMemory>(core_, foreign, bytes);
  }
  void begin_after(NativeStream stream) override { core_->begin_after(stream_handle(stream)); }
  void end_before(NativeStream stream) override { core_->end_before(stream_handle(stream)); }
  void upload(Queue* queue, Memory& to, int64_t offset, const void* data, int64_t bytes) override {
    const Entered here = core_->enter();
    transfers(queue).uploads.upload(stream_of(*core_, queue), address(to, offset), data, bytes);
  }
  void download(Queue* queue, Memory& from, int64_t offset, void* data, int64_t bytes) override {
    const Entered here = core_->enter();
    transfers(queue).downloads.download(stream_of(*core_, queue), address(from, offset), data, bytes);
  }
  void copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
            int64_t bytes) override {
    if (bytes == 0) return;
    const Entered here = core_->enter();
    const StreamHandle stream = stream_of(*core_, queue);
    if (copies_.copy(static_cast<CudaMemory&>(from), from_offset, static_cast<CudaMemory&>(to), to_offset,
                     bytes, stream))
      return;
    core_->check(core_->driver().copy_device(address(to, to_offset), address(from, from_offset),
                                             size_t(bytes), stream),
                 DeviceFault::launch, "copying on the device");
  }
  void clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) override {
    if (bytes == 0) return;
    const Entered here = core_->enter();
    core_->check(
        core_->driver().fill_bytes(address(memory, offset), 0, size_t(bytes), stream_of(*core_, queue)),
        DeviceFault::launch, "clearing");
  }

  Support supports(const ir::Function& f) const override {
    const auto no = [](std::string reason) { return Support{false, std::move(reason)}; };
    if (core_->arch() < 70) return no(fmt::format("{} is older than sm_70", info_.architecture));
    if (f.group_lanes() > limits_.group_lanes)
      return no(fmt::format("groups of {} lanes; {} are possible", f.group_lanes(), limits_.group_lanes));
    if (int64_t(f.buffers.size()) > limits_.bindings)
      return no(fmt::format("{} buffers; {} are possible", f.buffers.size(), limits_.bindings));
    if (const int64_t bytes = clike::cuda_shared_bytes(f); bytes > limits_.shared_bytes)
      return no(fmt::format("{} bytes of shared memory; {} are possible", bytes, limits_.shared_bytes));
    if (!limits_.f64)
      for (Type type : {Type::f64, Type::i64, Type::u64})
        if (f.uses(type)) return no(fmt::format("{} is switched off", name(type)));
    return {};
  }
  Support supports_products() const override {
    std::string reason;
    return Cublas::find(&reason) ? Support{} : Support{false, reason};
  }
  std::shared_ptr<Module> compile(const ir::Function& function, const CompileOptions& options) override {
    if (options.native && options.native->product) {
      std::call_once(first_product_, [&] { products_ = std::make_shared<Products>(core_); });
      return std::make_shared<CublasModule>(products_, function, *options.native->product);
    }
    return std::make_shared<CudaModule>(core_, source_of(function, options, core_->arch()), options.numerics);
  }

  void dispatch(const Dispatch& dispatch) override {
    const Entered here = core_->enter();
    const StreamHandle stream = stream_of(*core_, dispatch.queue);
    static_cast<const Launchable*>(dispatch.module)->launch(dispatch, stream);
    if (dispatch.variable)  // by a number, so it is a kernel
      static_cast<CudaQueue*>(dispatch.queue)
          ->variables.push_back(static_cast<const CudaModule*>(dispatch.module)->captured(dispatch, stream));
  }

  std::shared_ptr<Queue> make_queue() override { return std::make_shared<CudaQueue>(core_); }
  void begin_after(Queue* first, Queue* then) override {
    core_->begin_after(stream_of(*core_, first), stream_of(*core_, then));
  }
  void synchronize(Queue* queue) override {
    const Entered here = core_->enter();
    core_->synchronize(stream_of(*core_, queue));
  }
  void synchronize_all() override { core_->synchronize_all(); }
  std::shared_ptr<Event> record_event(Queue* queue) override {
    return std::make_shared<CudaEvent>(core_, stream_of(*core_, queue));
  }
  double elapsed(Event& from, Event& to) override {
    const Entered here = core_->enter();
    const Driver& d = core_->driver();
    const EventHandle first = static_cast<CudaEvent&>(from).handle, last = static_cast<CudaEvent&>(to).handle;
    core_->check(d.event_synchronize(first), DeviceFault::device_lost, "waiting for an event");
    core_->check(d.event_synchronize(last), DeviceFault::device_lost, "waiting for an event");
    float milliseconds = 0;
    core_->check(d.event_elapsed(&milliseconds, first, last), DeviceFault::launch, "reading a time");
    return double(milliseconds) * 1e-3;
  }

  std::shared_ptr<Queue> begin_record() override { return CudaQueue::capturing(core_); }
  std::shared_ptr<RecordedGraph> end_record(Queue& queue) override {
    const Entered here = core_->enter();
    GraphHandle graph = nullptr;
    core_->check(core_->driver().end_capture(stream_of(*core_, &queue), &graph), DeviceFault::launch,
                 "recording");
    return std::make_shared<CudaGraph>(core_, graph, static_cast<CudaQueue&>(queue));
  }
  void set_scalars(RecordedGraph& graph, size_t dispatch, std::span<const uint64_t> scalars) override {
    const Entered here = core_->enter();
    auto& recorded = static_cast<CudaGraph&>(graph);
    recorded.variables.at(dispatch).set(*core_, recorded.exec, scalars);
  }
  void replay(RecordedGraph& graph, Queue* queue) override {
    const nvtx::Range range("graph");
    const Entered here = core_->enter();
    core_->check(core_->driver().graph_launch(static_cast<CudaGraph&>(graph).exec, stream_of(*core_, queue)),
                 DeviceFault::launch, "launching a graph");
  }

 private:
  Transfers& transfers(Queue* queue) const {
    return queue ? static_cast<CudaQueue*>(queue)->transfers() : core_->main_transfers();
  }
  static Address address(Memory& memory, int64_t offset) {
    return static_cast<CudaMemory&>(memory).address + Address(offset);
  }

  std::shared_ptr<Core> core_;
  DeviceInfo info_;
  Limits limits_;
  CopyKernel copies_;
  std::once_flag first_product_;
  std::shared_ptr<Products> products_;
};

/// Why this device cannot be used, or empty.
std::string obstacle(const Driver& d, DeviceNumber device) {
  int major = 0, mode = 0;
  d.device_attribute(&major, kCapabilityMajor, device);
  d.device_attribute(&mode, kComputeMode, device);
  if (mode == kComputeModeProhibited) return "the device's compute mode forbids its use";
  if (major < 7) return "older than sm_70";
  std::string reason;
  return clike::Nvrtc::find(&reason) ? std::string() : fmt::format("no NVRTC ({})", reason);
}

std::vector<DeviceStatus> list_devices() {
  DeviceStatus absent;
  absent.info.name = "cuda";
  absent.info.kind = DeviceKind::cuda;
  const Driver* driver = Driver::find(&absent.reason);
  if (!driver) return {absent};
  std::vector<DeviceStatus> all;
  int count = 0;
  driver->device_count(&count);
  for (int number = 0; number < count; ++number) {
    DeviceStatus status;
    DeviceNumber device = 0;
    if (driver->device_get(&device, number) != kSuccess) continue;
    status.info = describe(*driver, number, device);
    status.reason = obstacle(*driver, device);
    status.memory.total_bytes = status.info.limits.buffer_bytes;
    if (status.reason.empty()) {
      try {
        status.memory = Core(number).memory();
        status.available = true;
      } catch (const Error& error) { status.reason = error.what(); }
    }
    all.push_back(std::move(status));
  }
  return all;
}

std::shared_ptr<Backend> open_device(int number, const DeviceOptions&) {
  // The compiler's library loads while the driver makes the context.
  std::jthread compiler;
  if (Driver::find()) compiler = std::jthread([] { clike::Nvrtc::find(); });
  auto backend = std::make_shared<CudaBackend>(number);
  nvtx::attach();
  DeviceNumber device = 0;
  const Driver& driver = *Driver::find();
  driver.device_get(&device, number);
  if (const std::string reason = obstacle(driver, device); !reason.empty())
    throw UnsupportedError(reason, fmt::format("cuda:{}", number), "a usable NVIDIA GPU and NVRTC");
  return backend;
}

}  // namespace

}  // namespace lockstep::device::cuda

namespace lockstep::device {
const BackendKind& cuda_backend() {
  static const BackendKind kind{DeviceKind::cuda, cuda::list_devices, cuda::open_device};
  return kind;
}
}  // namespace lockstep::device
