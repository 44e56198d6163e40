// Open devices: modules compiled once, streams, recordings, counters.
#include <fmt/format.h>

#include <utility>

#include "core/reports/trace.hpp"
#include "device/launch/check.hpp"
#include "device/stages/fault.hpp"
#include "device/state.hpp"

namespace lockstep {

namespace device {

std::shared_ptr<Module> DeviceState::module(const Kernel& kernel, KernelForm form,
                                            const std::vector<int>& windows) {
  const uint64_t key = kernel.id() * 4 + (form.index == Type::i64 ? 1 : 0) + (form.long_axes ? 2 : 0);
  {
    SharedLock<SharedMutex> lock(modules_mutex);
    if (windows.empty()) {
      if (auto found = modules.find(key); found != modules.end()) return found->second;
    } else if (auto found = windowed.find({key, windows}); found != windowed.end()) {
      return found->second;
    }
  }
  UniqueLock<SharedMutex> lock(modules_mutex);
  const std::pair name(key, windows);
  if (const auto found = under_way.find(name); found != under_way.end()) {
    const std::shared_ptr<Compilation> other = found->second;
    compiled.wait(lock, [&] { return other->done; });
    if (other->error) std::rethrow_exception(other->error);
    return other->module;
  }
  // Between the first look and here, another thread may have finished.
  if (const auto found = modules.find(key); windows.empty() && found != modules.end()) return found->second;
  if (const auto found = windowed.find(name); !windows.empty() && found != windowed.end())
    return found->second;
  const auto own = under_way[name] = std::make_shared<Compilation>();
  lock.unlock();
  try {
    own->module = compile(kernel, form, windows);
  } catch (...) { own->error = std::current_exception(); }
  lock.lock();
  own->done = true;
  under_way.erase(name);
  if (own->module) (windows.empty() ? modules[key] : windowed[name]) = own->module;
  compiled.notify_all();
  lock.unlock();
  if (own->error) std::rethrow_exception(own->error);
  return own->module;
}

Support DeviceState::supports(const ir::Function& function, const NativeForm* native) const {
  return native && native->product ? backend->supports_products() : backend->supports(function);
}

std::shared_ptr<Module> DeviceState::compile(const Kernel& kernel, KernelForm form,
                                             const std::vector<int>& windows) {
  check_fault(DeviceFault::compile);
  const double begin_us = Trace::now_us();
  const ir::Function& function = kernel.function(form.index, form.long_axes);
  if (native_form(kernel) && info.kind != DeviceKind::cuda)
    throw UnsupportedError(fmt::format("kernel {} on {}: a native CUDA kernel", kernel.name(), info.name),
                           "Device::launch", "a CUDA device, or the portable kernel");
  if (Support support = supports(function, native_form(kernel)); !support.ok)
    throw UnsupportedError(fmt::format("kernel {} on {}: {}", kernel.name(), info.name, support.reason),
                           "Device::launch", "a kernel that the device supports");
  std::shared_ptr<Module> module =
      backend->compile(function, {options.numerics, windows, native_form(kernel)});
  ++(module->from_cache ? cache_hits : kernels_compiled);
  KernelReport report;
  report.name = kernel.name();
  report.from_cache = module->from_cache;
  report.begin_s = begin_us * 1e-6, report.end_s = Trace::now_us() * 1e-6;
  report.group_lanes = module->group[0] * module->group[1] * module->group[2];
  const std::lock_guard lock(modules_mutex);
  reports.push_back({std::move(report), module});
  return module;
}

namespace {
thread_local Recording* own_recording = nullptr;
thread_local const Stream* on_stream = nullptr;  // of Device::on
}  // namespace

bool recording_now() { return own_recording != nullptr; }

Recording* DeviceState::recording() const {
  return own_recording && own_recording->device == this ? own_recording : nullptr;
}

void DeviceState::refuse_recorded(std::string_view operation) const {
  if (recording())
    throw InputError(fmt::format("{} inside a recording", operation), "Device::record",
                     "launches, copies and clears on the default stream");
}

Queue* DeviceState::queue_for(const Stream& stream, std::string_view operation) {
  if (stream.owner_ && stream.owner_.get() != this)
    throw InputError("a stream of another device", operation, fmt::format("a stream of {}", info.name));
  if (const Recording* own = recording()) {
    if (stream.queue_) refuse_recorded(fmt::format("{} on a separate stream", operation));
    return own->queue.get();
  }
  const bool redirected = !stream.queue_ && on_stream && on_stream->owner_.get() == this;
  const std::shared_ptr<Queue>& queue = redirected ? on_stream->queue_ : stream.queue_;
  if (StageScope* scope = current_scope()) scope->uses(*this, queue);
  return queue.get();
}

void DeviceState::count_launch() {
  ++launches;
  if (StageScope* scope = current_scope()) ++scope->launches;
}

void DeviceState::count_copy(int64_t to_device, int64_t from_device) {
  bytes_to_device += to_device;
  bytes_from_device += from_device;
  if (StageScope* scope = current_scope()) {
    scope->bytes_to_device += to_device;
    scope->bytes_from_device += from_device;
  }
}

}  // namespace device

device::DeviceState& Device::opened() const {
  if (!state_)
    throw InputError("an empty Device handle", "lockstep::Device", "a device returned by Device::open");
  return *state_;
}
const DeviceInfo& Device::info() const { return opened().info; }
MemoryInfo Device::memory() const { return opened().backend->memory(); }
Numerics Device::numerics() const { return opened().options.numerics; }
device::Backend& Device::backend() const { return *opened().backend; }
void Device::reset_peak() { opened().pool.reset_peak(); }

DeviceCounters Device::counters() const {
  const device::DeviceState& s = opened();
  return {s.launches,          s.bytes_to_device,  s.bytes_from_device, s.pool.allocated_bytes(),
          s.pool.peak_bytes(), s.kernels_compiled, s.cache_hits};
}

std::vector<KernelReport> Device::kernels() const {
  std::vector<device::DeviceState::Compiled> known;
  {
    const SharedLock<SharedMutex> lock(opened().modules_mutex);
    known = state_->reports;
  }
  std::vector<KernelReport> reports;
  for (device::DeviceState::Compiled& one : known) {
    one.module->describe(one.report);
    reports.push_back(std::move(one.report));
  }
  return reports;
}

Support Device::supports(const Kernel& kernel) const {
  const ir::Function& function = kernel.function();
  if (native_form(kernel) && opened().info.kind != DeviceKind::cuda) return {false, "a native CUDA kernel"};
  return opened().supports(function, native_form(kernel));
}
void Device::prepare(const Kernel& kernel) const {
  kernel.function();
  opened().module(kernel, {}, {});
}

Stream Device::stream() const {
  Stream stream;
  stream.queue_ = opened().backend->make_queue();
  stream.owner_ = state_;
  return stream;
}
void Device::begin_after(const Stream& first, const Stream& then) const {
  opened().refuse_recorded("Device::begin_after");
  state_->check_alive();
  device::Queue* const before = state_->queue_for(first, "Device::begin_after");
  state_->backend->begin_after(before, state_->queue_for(then, "Device::begin_after"));
}
void Device::on(const Stream& stream, const std::function<void()>& work) const {
  opened().refuse_recorded("Device::on");
  state_->queue_for(stream, "Device::on");  // refuses another device's
  struct Redirection {
    explicit Redirection(const Stream& to) : outer(std::exchange(device::on_stream, &to)) {}
    ~Redirection() { device::on_stream = outer; }
    const Stream* outer;
  } redirection(stream);
  work();
}
void Device::synchronize() const {
  opened().refuse_recorded("Device::synchronize");
  state_->check_alive();
  state_->backend->synchronize_all();
}
void Device::synchronize(const Stream& stream) const {
  opened().refuse_recorded("Device::synchronize");
  state_->check_alive();
  state_->backend->synchronize(state_->queue_for(stream, "Device::synchronize"));
}

Graph Device::record(const std::function<void()>& work) const {
  opened().check_alive();
  if (device::own_recording)
    throw InputError("a recording inside a recording", "Device::record", "one at a time in a thread");
  Graph graph;
  graph.owner_ = state_;
  device::Recording recording{state_.get(),
                              state_->backend->begin_record(),
                              graph.memory_,
                              {},
                              std::make_shared<device::GraphNumbers>()};
  const bool checked = device::checks_on(*state_->backend) && state_->info.kind == DeviceKind::cpu;
  device::own_recording = &recording;
  try {
    work();
  } catch (...) {
    device::own_recording = nullptr;
    try {
      state_->backend->end_record(*recording.queue);
    } catch (const DeviceError&) {}  // the first error is the cause
    throw;
  }
  device::own_recording = nullptr;
  graph.recorded_ = state_->backend->end_record(*recording.queue);
  graph.recorded_->checked = checked;
  if (!recording.numbers->launches.empty()) graph.numbers_ = recording.numbers;
  if (!recording.reports.empty()) state_->keep_reports(graph.recorded_, std::move(recording.reports));
  return graph;
}

void Device::replay(const Graph& graph) const { replay(graph, Arguments()); }

void Device::replay(const Graph& graph, const Arguments& values) const {
  opened().refuse_recorded("Device::replay");
  if (graph.owner_ != state_)
    throw InputError(graph.owner_ ? fmt::format("a graph of {}", graph.owner_->info.name) : "an empty graph",
                     "Device::replay", fmt::format("a graph recorded on {}", state_->info.name));
  state_->check_alive();
  device::check_fault(DeviceFault::launch);
  device::Queue* const queue = state_->queue_for({}, "Device::replay");
  device::GraphNumbers none;
  device::GraphNumbers& numbers = graph.numbers_ ? *graph.numbers_ : none;
  const std::lock_guard lock(numbers.mutex);
  if (!values.list_.empty()) numbers.set(values.list_, *state_->backend, *graph.recorded_);
  if (device::checks_on(*state_->backend) && !graph.recorded_->checked)
    device::note_unchecked_graph(*state_->backend, state_->info.kind == DeviceKind::cpu);
  state_->backend->replay(*graph.recorded_, queue);
  state_->count_launch();
  if (state_->graphs_report) state_->show_reports_of(*graph.recorded_, queue);
}

double Device::seconds(const std::function<void()>& work) const {
  opened().refuse_recorded("Device::seconds");
  state_->backend->synchronize_all();
  device::Queue* const queue = state_->queue_for({}, "Device::seconds");
  const auto from = state_->backend->record_event(queue);
  work();
  const auto to = state_->backend->record_event(queue);
  return state_->backend->elapsed(*from, *to);
}

}  // namespace lockstep
