// Launches: arguments checked, domains split, modules compiled once.
#include <fmt/format.h>

#include <cmath>

#include "core/trace.hpp"
#include "device/fault.hpp"
#include "device/split.hpp"
#include "device/state.hpp"

namespace lockstep {

namespace device {

std::shared_ptr<Module> DeviceState::module(const Kernel& kernel, Type index,
                                            const std::vector<int>& windows) {
  const uint64_t key = kernel.id() * 2 + (index == Type::i64);
  {
    std::shared_lock lock(modules_mutex);
    if (windows.empty()) {
      if (auto found = modules.find(key); found != modules.end()) return found->second;
    } else if (auto found = windowed.find({key, windows}); found != windowed.end()) {
      return found->second;
    }
  }
  std::unique_lock lock(modules_mutex);
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
    own->module = compile(kernel, index, windows);
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

std::shared_ptr<Module> DeviceState::compile(const Kernel& kernel, Type index,
                                             const std::vector<int>& windows) {
  check_fault(DeviceFault::compile);
  const double begin_us = Trace::now_us();
  const ir::Function& function = kernel.function(index);
  if (native_form(kernel) && info.kind != DeviceKind::cuda)
    throw UnsupportedError(fmt::format("kernel {} on {}: a native CUDA kernel", kernel.name(), info.name),
                           "Device::launch", "a CUDA device, or the portable kernel");
  if (Support support = backend->supports(function); !support.ok)
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
  const std::unique_lock lock(modules_mutex);
  reports.push_back({std::move(report), module});
  return module;
}

namespace {

[[noreturn]] void bad_argument(const Kernel& kernel, size_t number, const std::string& what,
                               const std::string& expected) {
  throw InputError(what, fmt::format("kernel {}, argument {}", kernel.name(), number + 1), expected);
}

uint64_t scalar_bits(const Kernel& kernel, size_t number, Type type, const Argument& argument) {
  return std::visit(
      [&](const auto& v) -> uint64_t {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, Buffer>) {
          bad_argument(kernel, number, "a buffer", fmt::format("a number of type {}", name(type)));
        } else {
          const auto refuse = [&] {
            bad_argument(kernel, number, fmt::format("{}", v),
                         fmt::format("a value that {} holds", name(type)));
          };
          const auto whole = [&]<class I>(I) -> uint64_t {
            if constexpr (std::is_floating_point_v<V>) {
              if (!(v >= -0x1p63 && v < 0x1p63) || double(I(v)) != v) refuse();
              return detail::bits_of(I(v));
            } else {
              if (!std::in_range<I>(std::is_same_v<V, bool> ? int64_t(v) : v)) refuse();
              return detail::bits_of(I(v));
            }
          };
          switch (type) {
            case Type::f32: return detail::bits_of(float(v));
            case Type::f64: return detail::bits_of(double(v));
            case Type::boolean: return v != V(0);
            case Type::i32: return whole(int32_t());
            case Type::u32: return whole(uint32_t());
            case Type::i64: return whole(int64_t());
            case Type::u64: return whole(uint64_t());
            case Type::none: break;
          }
          return 0;
        }
      },
      argument);
}

}  // namespace
}  // namespace device

const DeviceInfo& Device::info() const { return state_->info; }
MemoryInfo Device::memory() const { return state_->backend->memory(); }
Numerics Device::numerics() const { return state_->options.numerics; }
device::Backend& Device::backend() const { return *state_->backend; }
void Device::reset_peak() { state_->pool.reset_peak(); }

DeviceCounters Device::counters() const {
  return {state_->launches,          state_->bytes_to_device,
          state_->bytes_from_device, state_->pool.allocated_bytes(),
          state_->pool.peak_bytes(), state_->kernels_compiled,
          state_->cache_hits};
}

std::vector<KernelReport> Device::kernels() const {
  std::vector<device::DeviceState::Compiled> known;
  {
    const std::shared_lock lock(state_->modules_mutex);
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
  if (native_form(kernel) && state_->info.kind != DeviceKind::cuda) return {false, "a native CUDA kernel"};
  return state_->backend->supports(kernel.function());
}
void Device::prepare(const Kernel& kernel) const { state_->module(kernel, Type::i32, {}); }

void Device::launch_with(const Kernel& kernel, const Extent& extent, std::span<const Argument> arguments,
                         const Stream& stream) const {
  using namespace device;
  const ir::Function& function = kernel.function();
  const size_t buffers = function.buffers.size(), scalars = function.scalars.size();
  if (arguments.size() != buffers + scalars)
    throw InputError(fmt::format("{} arguments", arguments.size()), fmt::format("kernel {}", kernel.name()),
                     fmt::format("{} buffers and {} numbers", buffers, scalars));
  if (extent.rank() != function.rank)
    throw InputError(fmt::format("extent {}", to_string(extent)), fmt::format("kernel {}", kernel.name()),
                     fmt::format("rank {}", function.rank));
  if (buffers > kMaxBuffers || scalars > kMaxScalars)
    throw InputError(fmt::format("{} buffers, {} numbers", buffers, scalars),
                     fmt::format("kernel {}", kernel.name()),
                     fmt::format("at most {} and {}", kMaxBuffers, kMaxScalars));

  // Without first values: of the full length they would cost more than the rest of a launch.
  union Room {
    Room() {}
    std::array<Binding, kMaxBuffers> bindings;
  } room;
  Binding* const bindings = room.bindings.data();
  std::array<uint64_t, kMaxScalars> numbers;
  std::vector<int> windows;
  Type index = Type::i32;
  size_t b = 0, s = 0;
  // The lambda's parameters stand in one list: a buffer argument fills the next buffer, a number the next
  // scalar.
  for (size_t n = 0; n < arguments.size(); ++n) {
    const Buffer* buffer = std::get_if<Buffer>(&arguments[n]);
    if (!buffer) {
      if (s == scalars) bad_argument(kernel, n, "a number", "a buffer");
      numbers[s] = scalar_bits(kernel, n, function.scalars[s].type, arguments[n]);
      ++s;
      continue;
    }
    if (b == buffers)
      bad_argument(kernel, n, "a buffer", fmt::format("a number of type {}", name(function.scalars[s].type)));
    const ir::BufferParam& param = function.buffers[b];
    if (buffer->owner_ != state_)
      bad_argument(kernel, n, *buffer ? "a buffer of another device" : "an empty buffer",
                   fmt::format("a buffer of {}", state_->info.name));
    if (buffer->storage_ != param.storage || buffer->shape_.rank() != param.rank)
      bad_argument(kernel, n,
                   fmt::format("a buffer of {} {}", name(buffer->storage_), to_string(buffer->shape_)),
                   fmt::format("{} of rank {}", name(param.storage), param.rank));
    if (param.by_point)
      for (int a = 0; a < extent.rank(); ++a)
        if (buffer->shape_[param.rank - 1 - a] < extent[extent.rank() - 1 - a])
          bad_argument(kernel, n, fmt::format("shape {}", to_string(buffer->shape_)),
                       fmt::format("at least the extent {}", to_string(extent)));
    if (state_->recording) state_->recording->push_back(buffer->memory_);
    Binding& binding = *new (&bindings[b]) Binding;
    const int64_t size = size_of(buffer->storage_);
    binding.memory = buffer->memory_.get();
    binding.offset_bytes = buffer->offset_ * size;
    int64_t last = buffer->elements() > 0 ? 1 : 0;
    for (int a = 0; a < param.rank; ++a) {
      binding.shape[a] = buffer->shape_[a];
      binding.strides[a] = buffer->strides_[a];
      if (last) last += (buffer->shape_[a] - 1) * buffer->strides_[a];
    }
    binding.span_bytes = last * size;
    if (last > INT32_MAX || state_->options.wide_index) index = Type::i64;
    if (binding.span_bytes > state_->info.limits.binding_bytes) {
      windows.resize(buffers, 1);
      windows[b] = int((binding.span_bytes + state_->info.limits.binding_bytes - 1) /
                       state_->info.limits.binding_bytes);
    }
    ++b;
  }
  // What a kernel writes, no other argument of it may show: back ends assume so.
  for (size_t i = 0; i < buffers; ++i) {
    if (function.buffers[i].access == ir::Access::read) continue;
    for (size_t k = 0; k < buffers; ++k) {
      if (k == i || bindings[k].memory != bindings[i].memory || bindings[i].span_bytes == 0 ||
          bindings[k].span_bytes == 0)
        continue;
      const bool same_window_grid = bindings[i].strides == bindings[k].strides &&
                                    bindings[i].offset_bytes != bindings[k].offset_bytes &&
                                    function.buffers[i].rank > 1;
      const bool apart = bindings[i].offset_bytes + bindings[i].span_bytes <= bindings[k].offset_bytes ||
                         bindings[k].offset_bytes + bindings[k].span_bytes <= bindings[i].offset_bytes;
      if (!apart && !same_window_grid)
        throw InputError(fmt::format("buffers {} and {} overlap and one is written", i + 1, k + 1),
                         fmt::format("kernel {}", kernel.name()), "separate memory, or one InOut parameter");
    }
  }
  if (extent.elements() == 0) return;
  state_->check_alive();
  check_fault(DeviceFault::launch);
  try {
    check_fault(DeviceFault::device_lost);
    const std::shared_ptr<Module> module = state_->module(kernel, index, windows);
    Dispatch dispatch;
    dispatch.module = module.get();
    dispatch.queue = stream.queue_.get();
    dispatch.buffers = {bindings, buffers};
    dispatch.scalars = {numbers.data(), scalars};
    std::array<int64_t, 3> groups{1, 1, 1};
    const bool points = function.domain == ir::Domain::points;
    for (int a = 0; a < extent.rank(); ++a) {
      const int64_t size = extent[extent.rank() - 1 - a];
      if (size < 0 || size > INT32_MAX)
        throw InputError(fmt::format("extent {}", to_string(extent)), fmt::format("kernel {}", kernel.name()),
                         "axes of 0 to 2^31 - 1");
      dispatch.extent[a] = size;
      groups[a] = points ? (size + module->group[a] - 1) / module->group[a] : size;
    }
    for_each_piece(groups, state_->info.limits.groups, [&](const Piece& piece) {
      for (int a = 0; a < 3; ++a) dispatch.offset[a] = piece.first[a] * (points ? module->group[a] : 1);
      dispatch.count = piece.count;
      state_->backend->dispatch(dispatch);
      ++state_->launches;
    });
  } catch (const DeviceError& error) {
    if (error.fault() == DeviceFault::device_lost) state_->lost = true;
    throw;
  }
}

Stream Device::stream() const {
  Stream stream;
  stream.queue_ = state_->backend->make_queue();
  return stream;
}
void Device::synchronize() const {
  state_->check_alive();
  state_->backend->synchronize(nullptr);
}
void Device::synchronize(const Stream& stream) const { state_->backend->synchronize(stream.queue_.get()); }

Graph Device::record(const std::function<void()>& work) const {
  Graph graph;
  state_->backend->begin_record();
  state_->recording = &graph.memory_;
  try {
    work();
  } catch (...) {
    state_->recording = nullptr;
    state_->backend->end_record();
    throw;
  }
  state_->recording = nullptr;
  graph.recorded_ = state_->backend->end_record();
  return graph;
}
void Device::replay(const Graph& graph) const {
  state_->check_alive();
  device::check_fault(DeviceFault::launch);
  state_->backend->replay(*graph.recorded_);
  ++state_->launches;
}

double Device::seconds(const std::function<void()>& work) const {
  state_->backend->synchronize(nullptr);
  const auto from = state_->backend->record_event(nullptr);
  work();
  const auto to = state_->backend->record_event(nullptr);
  return state_->backend->elapsed(*from, *to);
}

}  // namespace lockstep
