// Launches: arguments checked and bound, domains split.
#include <fmt/format.h>

#include <optional>

#include "device/host_queue.hpp"
#include "device/launch/check.hpp"
#include "device/launch/numbers.hpp"
#include "device/launch/observe.hpp"
#include "device/launch/overlap.hpp"
#include "device/launch/split.hpp"
#include "device/stages/fault.hpp"
#include "device/state.hpp"

namespace lockstep {

namespace device {

namespace {
std::string given_text(const Argument& argument) {
  const std::string text = text_of(argument);
  return std::holds_alternative<StructArgument>(argument) ? text : "the number " + text;
}
}  // namespace

/// A launch as the back ends take it. The arguments are bound in the order of the kernel's parameters.
class BoundLaunch {
 public:
  BoundLaunch(DeviceState& device, const Kernel& kernel, const Shape& extent,
              std::span<const Argument> arguments, const Buffer* reports, const std::source_location& line)
      : device_(device),
        line_(line),
        kernel_(kernel),
        function_(kernel.function()),
        extent_(extent),
        given_(function_.argument_buffers()) {
    check_counts(arguments.size());
    for (int a = 0; a < extent_.rank(); ++a) form_.long_axes |= extent_[a] > INT32_MAX - ir::kLongAxis;
    for (size_t n = 0; n < arguments.size(); ++n) {
      const auto* buffer = std::get_if<Buffer>(&arguments[n]);
      const bool buffers_left = buffers_ < given_, scalars_left = scalars_ < function_.scalars.size();
      const int position = buffers_left ? function_.buffers[buffers_].position : -1;
      const bool known = position >= 0;  // else a buffer fills the next buffer, a number the next scalar
      const bool wants_buffer =
          buffers_left && (known ? position == int(n) || !scalars_left : buffer || !scalars_left);
      if (wants_buffer)
        bind_buffer(n, arguments[n], buffer);
      else
        bind_scalar(n, arguments[n]);
    }
    if (reports) add(*reports);
    check_overlaps();
  }

  void run(const Stream& stream) {
    if (no_points() && named_.empty()) return;
    device_.check_alive();
    check_fault(DeviceFault::launch);
    try {
      check_fault(DeviceFault::device_lost);
      const std::shared_ptr<Module> module = device_.module(kernel_, form_, windows_);
      Queue* const queue = device_.queue_for(stream, "Device::launch_on");
      for (const std::shared_ptr<Memory>& zeros : zeros_)
        device_.backend->clear(queue, *zeros, 0, zeros->bytes);
      if (Recording* recording = device_.recording())
        for (const std::shared_ptr<Memory>& memory : kept_) recording->memory.push_back(memory);
      if (checks_on(*device_.backend)) return run_checked(*module, queue);
      keep_numbers(dispatch(*module, queue));
    } catch (const DeviceError& error) {
      if (error.fault() == DeviceFault::device_lost) device_.lost = true;
      throw;
    }
  }

 private:
  bool no_points() const {
    for (int a = 0; a < extent_.rank(); ++a)
      if (extent_[a] == 0) return true;
    return false;
  }
  std::string where() const { return fmt::format("kernel {}{}", kernel_.name(), launched()); }
  std::string launched() const { return near_text(line_, ", launched near "); }
  [[noreturn]] void bad_argument(size_t number, const std::string& parameter, ir::Place declared,
                                 const Mismatch& mismatch) const {
    const std::string line = ir::place_text(function_, declared);
    throw InputError(mismatch.what,
                     fmt::format("kernel {}, argument {} ({}{}){}", kernel_.name(), number + 1, parameter,
                                 line.empty() ? "" : ", declared near " + line, launched()),
                     mismatch.expected);
  }

  void check_counts(size_t arguments) const {
    const size_t buffers = given_, scalars = function_.scalars.size(), structs = function_.structs.size();
    const size_t numbers = function_.argument_numbers();
    if (arguments != buffers + numbers)
      throw InputError(
          fmt::format("{} arguments", arguments), where(),
          structs ? fmt::format("{} buffers, {} numbers and {} structs", buffers, numbers - structs, structs)
                  : fmt::format("{} buffers and {} numbers", buffers, numbers));
    if (function_.buffers.size() > kMaxBuffers || scalars > kMaxScalars)
      throw InputError(fmt::format("{} buffers, {} numbers", buffers, scalars), where(),
                       fmt::format("at most {} and {}", kMaxBuffers, kMaxScalars));
    if (extent_.rank() != function_.rank)
      throw InputError(fmt::format("extent {}", to_string(extent_)), where(),
                       fmt::format("rank {}", function_.rank));
    for (int a = 0; a < extent_.rank(); ++a)
      if (extent_[a] < 0 || extent_[a] > INT32_MAX)
        throw InputError(fmt::format("extent {}", to_string(extent_)), where(), "axes of 0 to 2^31 - 1");
  }

  void bind_scalar(size_t n, const Argument& argument) {
    const size_t count = function_.structs.empty() ? 1 : scalars_of(function_, scalars_);
    if (scalars_ + count > kMaxScalars) check_counts(n + 1);  // throws
    if (const auto mismatch = number_bits(function_, scalars_, argument, &numbers_[scalars_]))
      bad_argument(n, number_name(function_, scalars_), function_.scalars[scalars_].place, *mismatch);
    if (const auto* named = std::get_if<PerReplay>(&argument))
      if (device_.recording()) named_.push_back({named->name, scalars_, n});
    scalars_ += count;
  }

  void bind_buffer(size_t n, const Argument& argument, const Buffer* buffer) {
    const ir::BufferParam& param = function_.buffers[buffers_];
    const auto refuse = [&](const std::string& what, const std::string& expected) {
      bad_argument(n, param.name, param.place, {what, expected});
    };
    const auto wanted = [&] {
      return fmt::format("a buffer of {}, rank {}", name(param.storage), param.rank);
    };
    if (!buffer) refuse(given_text(argument), wanted());
    if (!*buffer) refuse("an empty buffer", wanted());
    if (buffer->owner_.get() != &device_)
      refuse("a buffer of another device", fmt::format("a buffer of {}", device_.info.name));
    const Shape& shape = buffer->shape_;
    if (buffer->storage_ != param.storage || shape.rank() != param.rank) refuse(text_of(argument), wanted());
    if (param.by_point)
      for (int a = 0; a < extent_.rank(); ++a)
        if (shape[param.rank - 1 - a] < extent_[extent_.rank() - 1 - a])
          refuse(fmt::format("shape {}", to_string(shape)),
                 fmt::format("at least the extent {}", to_string(extent_)));
    if (param.access != ir::Access::read && overlaps_itself(shape, buffer->strides_))
      refuse(layout_text(*buffer), "a buffer whose elements do not share memory");
    for (const ir::ShapeRule& rule : function_.shapes) check_shape(n, rule, shape);
    if (device_.recording()) kept_.push_back(buffer->memory_);
    add(*buffer);
  }

  /// A rule between two buffers is checked with the later one.
  void check_shape(size_t n, const ir::ShapeRule& rule, const Shape& shape) const {
    const bool sized = rule.size >= 0, own = rule.buffer == buffers_;
    if (sized ? !own : std::max(rule.buffer, rule.other) != buffers_) return;
    const uint32_t like = own ? rule.other : rule.buffer;
    const int axis = own ? rule.axis : rule.other_axis, like_axis = own ? rule.other_axis : rule.axis;
    const int64_t needed = sized              ? rule.size
                           : like == buffers_ ? shape[like_axis]
                                              : room_.bindings[like].shape[like_axis];
    if (shape[axis] == needed) return;
    const ir::BufferParam& param = function_.buffers[buffers_];
    const std::string line = ir::place_text(function_, rule.place);
    bad_argument(
        n, param.name, param.place,
        {fmt::format("shape {}", to_string(shape)),
         fmt::format(
             "{} along axis {}{}{}", needed, axis,
             sized ? "" : fmt::format(", as {} has along axis {}", function_.buffers[like].name, like_axis),
             line.empty() ? "" : fmt::format(" (required near {})", line))});
  }

  void add(const Buffer& buffer) {
    Binding& binding = *new (&room_.bindings[buffers_]) Binding;
    const ir::BufferParam& param = function_.buffers[buffers_];
    const int64_t size = size_of(buffer.storage_);
    binding.memory = buffer.memory_.get();
    binding.offset_bytes = buffer.offset_ * size;
    int64_t last = 1;
    for (int a = 0; a < buffer.shape_.rank(); ++a) {
      binding.shape[a] = buffer.shape_[a];
      binding.strides[a] = buffer.strides_[a];
      if (buffer.shape_[a] == 0) last = 0;
      if (last) last += (buffer.shape_[a] - 1) * buffer.strides_[a];
    }
    if (last == 0 && param.ruled) last = bind_zeros(binding, param.rank, size);
    binding.span_bytes = last * size;
    if (last > INT32_MAX || device_.options.wide_index) form_.index = Type::i64;
    for (int a = 0; a < param.rank; ++a)
      form_.long_axes |= binding.shape[a] > INT32_MAX - std::max<int64_t>(param.reach, ir::kLongAxis);
    const int64_t most = device_.info.limits.binding_bytes;
    if (binding.span_bytes > most) {
      windows_.resize(function_.buffers.size(), 1);
      windows_[buffers_] = int((binding.span_bytes + most - 1) / most);
    }
    ++buffers_;
  }

  /// A boundary rule brings every coordinate to -1 … size - 1 of its axis, also of one without elements: a buffer that
  /// has none is a row of zeros for it. Gives the row's elements.
  int64_t bind_zeros(Binding& binding, int rank, int64_t size) {
    const int64_t elements = std::max<int64_t>(binding.shape[rank - 1], 1);
    constexpr int64_t kBefore = 16;
    if (no_points()) return 0;
    zeros_.push_back(device_.pool.allocate(kBefore + elements * size));
    if (device_.recording()) kept_.push_back(zeros_.back());
    binding.memory = zeros_.back().get();
    binding.offset_bytes = kBefore;
    binding.strides = {};
    return elements;
  }

  /// No other argument may show a buffer that the kernel writes: back ends assume so.
  void check_overlaps() const {
    for (size_t i = 0; i < buffers_; ++i) {
      if (function_.buffers[i].access == ir::Access::read) continue;
      for (size_t k = 0; k < buffers_; ++k) {
        const Binding &written = room_.bindings[i], &other = room_.bindings[k];
        if (k != i && overlap(written, other, size_of(function_.buffers[i].storage),
                              size_of(function_.buffers[k].storage)))
          throw InputError(fmt::format("buffers {} and {} overlap and one is written", i + 1, k + 1), where(),
                           "separate memory, or one InOut parameter");
      }
    }
  }

  /// Replays may give the named numbers other values.
  void keep_numbers(int64_t dispatches) const {
    if (!named_.empty())
      device_.recording()->numbers->launches.push_back(
          {kernel_, {numbers_.begin(), numbers_.begin() + scalars_}, named_, line_, dispatches});
  }

  /// With the interpreter's run before the device's, and the comparison after it; a CPU's recording takes both along.
  void run_checked(const Module& module, Queue* queue) const {
    std::array<int64_t, 3> extent{1, 1, 1};
    for (int a = 0; a < extent_.rank(); ++a) extent[size_t(a)] = extent_[extent_.rank() - 1 - a];
    const auto checked =
        std::make_shared<CheckedLaunch>(device_, kernel_, form_, std::span(room_.bindings.data(), buffers_),
                                        std::span(numbers_.data(), scalars_), extent, line_);
    Recording* const recording = device_.recording();
    if (!recording) {
      const bool due = checked->due();
      if (due && !checked->before()) return;
      dispatch(module, queue);
      if (due) checked->after(queue);
      return;
    }
    if (device_.info.kind != DeviceKind::cpu) return keep_numbers(dispatch(module, queue));
    std::vector<std::function<void()>>& steps = recorder(queue)->steps;
    const size_t earlier = steps.size();
    keep_numbers(dispatch(module, queue));
    if (!named_.empty()) checked->follow(recording->numbers, recording->numbers->launches.size() - 1);
    const std::vector<std::function<void()>> own(steps.begin() + int64_t(earlier), steps.end());
    steps.resize(earlier);
    steps.emplace_back([checked, own] {
      const bool due = checked->due();
      if (due && !checked->before()) return;
      for (const auto& step : own) step();
      if (due) checked->after(nullptr);
    });
  }

  int64_t dispatch(const Module& module, Queue* queue) const {
    int64_t dispatches = 0;
    Dispatch dispatch;
    dispatch.variable = !named_.empty();
    dispatch.module = &module;
    dispatch.queue = queue;
    dispatch.buffers = {room_.bindings.data(), buffers_};
    dispatch.scalars = {numbers_.data(), scalars_};
    std::array<int64_t, 3> groups{1, 1, 1};
    const bool points = function_.domain == ir::Domain::points;
    for (int a = 0; a < extent_.rank(); ++a) {
      const int64_t size = extent_[extent_.rank() - 1 - a];
      dispatch.extent[a] = size;
      groups[a] = points ? (size + module.group[a] - 1) / module.group[a] : size;
    }
    std::array<int64_t, 3> limit = device_.info.limits.groups;
    if (module.folds) limit[0] *= limit[1];
    for_each_piece(groups, limit, [&](const Piece& piece) {
      for (int a = 0; a < 3; ++a) dispatch.offset[a] = piece.first[a] * (points ? module.group[a] : 1);
      dispatch.count = piece.count;
      device_.backend->dispatch(dispatch);
      device_.count_launch();
      ++dispatches;
    });
    return dispatches;
  }

  DeviceState& device_;
  const std::source_location& line_;
  const Kernel& kernel_;
  const ir::Function& function_;
  const Shape& extent_;
  const size_t given_;  // buffers that are arguments
  // Without first values: of the full length they would cost more than the rest of a launch.
  union Room {
    Room() {}
    std::array<Binding, kMaxBuffers> bindings;
  } room_;
  std::array<uint64_t, kMaxScalars> numbers_;
  size_t buffers_ = 0, scalars_ = 0;
  std::vector<int> windows_;
  std::vector<std::shared_ptr<Memory>> kept_;   // by a recording
  std::vector<std::shared_ptr<Memory>> zeros_;  // in place of empty buffers
  std::vector<NamedNumber> named_;              // that replays may change
  KernelForm form_;
};

namespace {
thread_local const LaunchObserver* launch_observer = nullptr;
}
ObservedLaunches::ObservedLaunches(const LaunchObserver& observer) { launch_observer = &observer; }
ObservedLaunches::~ObservedLaunches() { launch_observer = nullptr; }

}  // namespace device

void Device::launch_with(const Kernel& kernel, const Shape& extent, std::span<const Argument> arguments,
                         const Stream& stream, const std::source_location& where) const {
  if (device::launch_observer) (*device::launch_observer)(kernel, extent, arguments);
  if (!kernel.function().reporting) {
    device::BoundLaunch(opened(), kernel, extent, arguments, nullptr, where).run(stream);
    return;
  }
  const Buffer words = allocate(Storage::u32, {1 + ir::kReportSlots * ir::kReportWords});
  device::BoundLaunch launch(opened(), kernel, extent, arguments, &words, where);
  clear(words, stream);
  launch.run(stream);
  device::PendingReports reports{kernel, words.memory_};
  if (device::Recording* recording = state_->recording())
    recording->reports.push_back(std::move(reports));
  else
    state_->show_reports(reports, state_->queue_for(stream, "Device::launch_on"));
}

}  // namespace lockstep
