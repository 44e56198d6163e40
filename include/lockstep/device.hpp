// Devices, buffers, streams, launches, graphs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/types.hpp"

namespace lockstep {

enum class DeviceKind : uint8_t { cpu, cuda, webgpu, interp };
std::string_view name(DeviceKind kind);

/// exact: IEEE operations and the functions of src/math, bit-identical on the CPU and CUDA. fast: hardware intrinsics,
/// equal within the bounds of the cases.
enum class Numerics : uint8_t { exact, fast };

/// Limits of a back end, as queried from it. Tests lower them to exercise the splitting of launches.
struct Limits {
  std::array<int64_t, 3> groups{0x7fffffff, 0x7fffffff, 0x7fffffff};  // per dispatch, x y z
  int64_t group_lanes = 1024;
  int64_t buffer_bytes = INT64_MAX;   // one allocation
  int64_t binding_bytes = INT64_MAX;  // buffer size that a kernel can access
  int64_t bindings = 64;              // buffers of one kernel
  int64_t shared_bytes = 48 << 10;
  bool f64 = true;  // f64, i64, u64
  bool f16 = true;  // 16-bit storage can be written
};

struct DeviceInfo {
  std::string name;  // "cuda:0"
  DeviceKind kind = DeviceKind::cpu;
  std::string description;   // "NVIDIA H200, driver 580.159, sm_90"
  std::string architecture;  // part of the key of the kernel cache: "sm_90", "znver4"
  bool software = false;     // a WebGPU adapter that runs on the CPU
  Limits limits;
  int multiprocessors = 0;  // multiprocessors (CUDA) or threads (CPU); 0: unknown
};

struct MemoryInfo {
  int64_t total_bytes = 0, free_bytes = 0;
};

/// One line of `lockstep devices`.
struct DeviceStatus {
  DeviceInfo info;
  MemoryInfo memory;
  bool available = false;
  std::string reason;  // reason why it is not available, else empty
};

struct DeviceOptions {
  Numerics numerics = Numerics::exact;
  int threads = 0;                            // CPU threads, at most 4096; 0: all
  std::function<void(Limits&)> lower_limits;  // called with the queried limits before first use
  bool wide_index = false;                    // 64-bit element offsets even if 32 bits suffice; for tests
};

/// Whether a device supports a kernel, with the reason if it does not.
struct Support {
  bool ok = true;
  std::string reason;
};

/// Counters of a device since it was opened.
struct DeviceCounters {
  int64_t launches = 0, bytes_to_device = 0, bytes_from_device = 0;
  int64_t allocated_bytes = 0, peak_bytes = 0;
  int64_t kernels_compiled = 0, cache_hits = 0;
};

/// A kernel that a device compiled or loaded from its cache, with its resources.
struct KernelReport {
  std::string name;
  bool from_cache = false;
  double begin_s = 0, end_s = 0;  // of the compilation, on the process's trace clock (Trace::now_us)
  int group_lanes = 0;            // lanes of a group; on the CPU those of a vector of f32
  /// CUDA: reported by the driver for the compiled kernel. 0 elsewhere.
  int registers = 0;         // of a lane
  int64_t shared_bytes = 0;  // of a group, static and dynamic
  int64_t local_bytes = 0;   // of a lane: spills and local arrays
  int groups_at_once = 0;    // CUDA: resident groups of a multiprocessor; CPU: threads; 0: unknown
  double occupancy = 0;      // CUDA: resident lanes divided by the maximum of a multiprocessor; 0: unknown
};

namespace device {
class Backend;
class BoundLaunch;
struct GraphNumbers;
class Memory;
class Queue;
class RecordedGraph;
struct DeviceState;
}  // namespace device

/// A stream of another library on this device: a CUstream as a number.
using NativeStream = uint64_t;

/// Memory of another library, for Device::wrap.
struct Foreign {
  uint64_t address = 0;  // of the first element: on the host (CPU, interpreter) or of the device (CUDA)
  /// Kept alive while work uses the memory; null: the memory outlives the device.
  std::shared_ptr<const void> owner;
  /// In elements, slowest axis first; all 0: C order. The last axis has stride 1, and no stride is negative.
  std::array<int64_t, 4> strides{};
  /// CUDA: the stream of the owner. Work on the buffer starts after the work already submitted to that stream. Work that
  /// the owner submits after the buffer is released starts after the work on the buffer. Without a stream, the device is
  /// synchronised instead.
  std::optional<NativeStream> stream;
};

/// A typed array on a device: a cheap handle with shared ownership. Rows are contiguous, so the last axis has stride 1.
class Buffer {
 public:
  Buffer() = default;
  Storage storage() const { return storage_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * size_of(storage_); }
  explicit operator bool() const { return memory_ != nullptr; }

  /// The same memory with another shape. Throws InputError for another number of elements, or if not contiguous.
  Buffer reshape(Shape shape) const;
  /// Rows [first, first + count) of the slowest axis, sharing the memory. Throws InputError for rows outside the axis.
  Buffer rows(int64_t first, int64_t count) const;
  /// A rectangular part (offset and size per axis), sharing the memory and its strides. Throws InputError for a part
  /// that is not inside the buffer.
  Buffer window(const Shape& offset, const Shape& size) const;
  bool contiguous() const;
  const std::array<int64_t, 4>& strides() const { return strides_; }
  /// Number of elements between the start of the memory and the first element of this buffer.
  int64_t offset() const { return offset_; }
  /// Address of the first element for other libraries: on the host (CPU, interpreter) or on the device (CUDA); 0 on
  /// WebGPU. Device::begin_after and end_before order the work of other libraries.
  uint64_t native() const;

 private:
  friend class Device;
  friend class device::BoundLaunch;
  std::shared_ptr<device::Memory> memory_;
  std::shared_ptr<device::DeviceState> owner_;
  Storage storage_ = Storage::f32;
  Shape shape_;
  std::array<int64_t, 4> strides_{};  // elements
  int64_t offset_ = 0;                // elements
};

/// A registered struct as an argument (kernel/structure.hpp).
struct StructArgument {
  const ir::StructType* type = nullptr;
  std::shared_ptr<const void> data;
};
/// A number or struct of a recorded launch that replays may change by its name. Outside recordings, just its value.
struct PerReplay {
  std::string name;
  std::variant<double, int64_t, uint64_t, bool, StructArgument> value;
};

/// One argument of a launch: a buffer, a struct, or a number, which is converted to the type of the parameter.
/// Integers, and all numbers for an integer parameter, must be representable exactly: 16777217 for an f32 is rejected.
/// Floating-point numbers are rounded to nearest: 0.1 for an f32 becomes 0.1f. Numbers outside the range of the type
/// are rejected. A rejection is an InputError.
using Argument = std::variant<Buffer, double, int64_t, uint64_t, bool, StructArgument, PerReplay>;

namespace detail {
/// A number in the type that arguments store, or a copy of a struct.
template <class To, class A>
To number_argument(const A& a) {
  if constexpr (std::is_same_v<A, bool>)
    return To(a);
  else if constexpr (Structure<A>)
    return To(StructArgument{&struct_type<A>(), std::make_shared<const A>(a)});
  else if constexpr (std::is_floating_point_v<A>)
    return To(double(a));
  else if constexpr (std::is_unsigned_v<A>)
    return To(uint64_t(a));
  else
    return To(int64_t(a));
}
}  // namespace detail

template <class A>
Argument to_argument(const A& a) {
  if constexpr (std::is_same_v<A, Argument> || std::is_same_v<A, Buffer> || std::is_same_v<A, PerReplay>)
    return Argument(a);
  else
    return detail::number_argument<Argument>(a);
}

/// An argument with this value that replays of the recorded graph may change by name. If several launches share a name,
/// a new value applies to all of them.
template <class A>
PerReplay per_replay(std::string name, const A& value) {
  return {std::move(name), detail::number_argument<decltype(PerReplay::value)>(value)};
}

/// A kernel and the source line that launches it.
struct LaunchedKernel {
  LaunchedKernel(const Kernel& launched, std::source_location line = std::source_location::current())
      : kernel(launched), where(line) {}
  const Kernel& kernel;
  std::source_location where;
};

/// Arguments of a launch by the names of the kernel's parameters (kernel/dynamic.hpp).
class Arguments {
 public:
  template <class A>
  Arguments& set(std::string name, const A& value) {
    list_.emplace_back(std::move(name), to_argument(value));
    return *this;
  }
  /// The arguments in the order of the kernel's parameters. Throws InputError, naming the kernel and the parameter, for
  /// missing, unknown or duplicate names, buffers of another element type or rank, a buffer for a number, and a number
  /// for a buffer.
  std::vector<Argument> bind(const Kernel& kernel,
                             const std::source_location& where = std::source_location::current()) const;
  /// The same for the arguments that match parameters of the kernel; others are ignored.
  std::vector<Argument> bind_known(const Kernel& kernel,
                                   const std::source_location& where = std::source_location::current()) const;

 private:
  friend class Device;
  std::vector<std::pair<std::string, Argument>> list_;
};

/// A sequence of work that runs in order. The work of two streams may overlap. The CPU runs work immediately.
class Stream {
 public:
  Stream() = default;

 private:
  friend class Device;
  friend struct device::DeviceState;
  std::shared_ptr<device::DeviceState> owner_;
  std::shared_ptr<device::Queue> queue_;
};

/// Recorded launches that replay at low cost on the device that recorded them.
class Graph {
 public:
  Graph() = default;

 private:
  friend class Device;
  std::shared_ptr<device::DeviceState> owner_;
  std::shared_ptr<device::RecordedGraph> recorded_;
  std::vector<std::shared_ptr<device::Memory>> memory_;  // keeps the memory of the launches
  std::shared_ptr<device::GraphNumbers> numbers_;        // that replays may change; null: none
};

/// A device: a cheap handle with shared ownership. Work of one thread runs in the order of its calls, and calls from
/// several threads are safe. Functions throw InputError for empty handles and for buffers, streams and graphs of another
/// device. Functions that use the device throw DeviceError if it fails.
class Device {
 public:
  Device() = default;
  /// Opens the first device of a comma-separated list that works. Names: `cpu`, `cuda[:N]`, `webgpu[:N]`, `interp`,
  /// `auto`. Throws InputError for an unknown name and for a number of threads out of range, and UnsupportedError with
  /// all reasons if no device works.
  static Device open(std::string_view names = "auto", const DeviceOptions& options = {});
  /// All back ends with their devices, or the reasons why they have none.
  static std::vector<DeviceStatus> list();

  bool valid() const { return state_ != nullptr; }
  bool same_as(const Device& other) const { return state_ == other.state_; }
  const DeviceInfo& info() const;
  MemoryInfo memory() const;
  Numerics numerics() const;
  DeviceCounters counters() const;
  /// Kernels that were compiled or loaded since the device was opened, in the order of completion.
  std::vector<KernelReport> kernels() const;
  void reset_peak();

  /// Uninitialised memory. Throws DeviceError (allocation) if there is not enough.
  Buffer allocate(Storage storage, Shape shape) const;
  template <detail::Stored E>
  Buffer allocate(Shape shape) const {
    return allocate(detail::kStorage<E>, shape);
  }
  /// Foreign memory as a buffer, without a copy: kernels read and write it in place. On the CPU, the 64 bytes after it
  /// must be readable. Throws InputError for a null or misaligned address and for invalid strides, and UnsupportedError
  /// on WebGPU.
  Buffer wrap(Storage storage, Shape shape, const Foreign& foreign) const;
  /// begin_after: later work of this device starts after the work already submitted to `stream`. end_before: later work
  /// of `stream` starts after the work already submitted to this device. Both have an effect on CUDA only.
  void begin_after(NativeStream stream) const;
  void end_before(NativeStream stream) const;
  /// Allocates and copies. The span must have as many elements as the shape.
  template <detail::Stored E>
  Buffer upload(std::span<const E> data, Shape shape) const {
    Buffer buffer = allocate(detail::kStorage<E>, shape);
    write(buffer, data.data(), int64_t(data.size_bytes()));
    return buffer;
  }
  template <detail::Stored E>
  Buffer upload(const std::vector<E>& data) const {
    return upload(std::span<const E>(data), {int64_t(data.size())});
  }
  /// A buffer with the shape and elements of the array. Throws InputError for more than 4 axes and for unsupported
  /// element types.
  Buffer upload(const Array& array) const;
  /// Copies from the host to the buffer or window, in row-major order. Throws InputError unless `bytes` is its size.
  void write(const Buffer& buffer, const void* data, int64_t bytes, const Stream& stream = {}) const;
  /// Copies to the host, in the same order, after waiting for earlier work.
  void read(const Buffer& buffer, void* data, int64_t bytes, const Stream& stream = {}) const;
  template <detail::Stored E>
  std::vector<E> download(const Buffer& buffer) const {
    check_storage(buffer, detail::kStorage<E>);
    std::vector<E> data(size_t(buffer.elements()));
    read(buffer, data.data(), buffer.bytes());
    return data;
  }
  /// A host array with the shape and elements of the buffer or window.
  Array download(const Buffer& buffer) const;
  /// Copies on the device. Both buffers are contiguous and have the same storage and element count; they may overlap.
  void copy(const Buffer& from, const Buffer& to, const Stream& stream = {}) const;
  /// Sets all bytes of a contiguous buffer to zero.
  void clear(const Buffer& buffer, const Stream& stream = {}) const;

  /// Whether this device supports the kernel; does not compile.
  Support supports(const Kernel& kernel) const;
  /// Compiles ahead of the first launch.
  void prepare(const Kernel& kernel) const;
  /// Runs a kernel over a domain, slowest axis first: points of a points kernel, groups of a groups kernel. Checks
  /// the arguments against the parameters (InputError) and splits domains that exceed the limits of the back end. A
  /// buffer that the kernel writes must not overlap its other buffers.
  template <class... A>
  void launch(const LaunchedKernel& kernel, const Shape& extent, const A&... arguments) const {
    launch_on({}, kernel, extent, arguments...);
  }
  template <class... A>
  void launch_on(const Stream& stream, const LaunchedKernel& kernel, const Shape& extent,
                 const A&... arguments) const {
    const Argument list[] = {to_argument(arguments)..., Argument(false)};
    launch_with(kernel.kernel, extent, std::span<const Argument>(list, sizeof...(A)), stream, kernel.where);
  }
  void launch_with(const Kernel& kernel, const Shape& extent, std::span<const Argument> arguments,
                   const Stream& stream,
                   const std::source_location& where = std::source_location::current()) const;
  /// With arguments by the names of the kernel's parameters.
  void launch(const LaunchedKernel& kernel, const Shape& extent, const Arguments& arguments) const {
    launch_on({}, kernel, extent, arguments);
  }
  void launch_on(const Stream& stream, const LaunchedKernel& kernel, const Shape& extent,
                 const Arguments& arguments) const {
    launch_with(kernel.kernel, extent, arguments.bind(kernel.kernel, kernel.where), stream, kernel.where);
  }

  Stream stream() const;
  /// Later work of `then` starts after the work already submitted to `first`. An empty Stream is the default stream;
  /// inside `on`, it is the stream of `on`.
  void begin_after(const Stream& first, const Stream& then) const;
  /// Runs `work` with `stream` as the default stream of this thread, also for replays. Throws InputError for a stream of
  /// another device and inside a recording.
  void on(const Stream& stream, const std::function<void()>& work) const;
  void synchronize() const;
  void synchronize(const Stream& stream) const;

  /// Records the launches, copies and clears of `work` on the default stream of this thread without running them;
  /// other threads are not affected. Inside, read, write, replay, seconds, synchronize, another record and other
  /// streams are rejected (InputError). The graph keeps its memory alive.
  Graph record(const std::function<void()>& work) const;
  void replay(const Graph& graph) const;
  /// Replays with new values for numbers and structs recorded by per_replay. A value persists until it is set again.
  /// Throws InputError, without any effect, for a name that no launch of the graph has, a value that its parameter
  /// cannot represent, and a graph of another device.
  void replay(const Graph& graph, const Arguments& values) const;

  /// Seconds that the device spends on `work`, measured by device events if available. Earlier work completes first.
  double seconds(const std::function<void()>& work) const;

  /// The back end; for native kernels and tests.
  device::Backend& backend() const;

 private:
  static void check_storage(const Buffer& buffer, Storage storage);
  /// Throws InputError for an empty handle.
  device::DeviceState& opened() const;
  void expect_own(const Buffer& buffer, std::string_view where) const;
  std::shared_ptr<device::DeviceState> state_;
};

}  // namespace lockstep
