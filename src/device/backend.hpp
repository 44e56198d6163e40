// The interface of a back end. The common layer (device.cpp) checks arguments, splits domains, caches modules,
// counts, injects faults; a back end only allocates, copies, compiles and dispatches. It reports failure by
// DeviceError.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"
#include "lockstep/native.hpp"

namespace lockstep::device {

class Memory {
 public:
  virtual ~Memory() = default;
  int64_t bytes = 0;
  uint64_t address = 0;  // of the first byte, on the host or in CUDA's address space; 0: nobody can tell
};

/// A compiled kernel.
class Module {
 public:
  virtual ~Module() = default;
  /// Fills in registers, memory and what runs at once, where the back end knows them.
  virtual void describe(KernelReport&) const {}
  bool from_cache = false;
  std::array<int32_t, 3> group{1, 1, 1};  // lanes per group as compiled
  bool folds = false;  // takes as many groups along x as the limits of x and y have together
};

class StreamMemory;
class Queue {
 public:
  virtual ~Queue() = default;
  std::shared_ptr<StreamMemory> memory;  // kept for it (pool.hpp); null until it keeps some
};

class RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  bool checked = false;  // its launches check themselves (launch/check.hpp)
};

class Event {
 public:
  virtual ~Event() = default;
};

/// A buffer as a kernel sees it.
struct Binding {
  Memory* memory = nullptr;
  int64_t offset_bytes = 0;
  int64_t span_bytes = 0;            // from the offset to the last element's end
  std::array<int64_t, 4> shape{};    // slowest first
  std::array<int64_t, 4> strides{};  // elements
};

inline constexpr int kMaxBuffers = 32, kMaxScalars = 64;

/// Foreign::stream of memory whose user orders its work by begin_after and end_before, and keeps it until then.
inline constexpr NativeStream kOrderedByUser = ~NativeStream(0);

/// One legal dispatch. Axes: 0 = x, the fastest.
struct Dispatch {
  const Module* module = nullptr;
  Queue* queue = nullptr;                  // null = default
  std::array<int64_t, 3> extent{1, 1, 1};  // of the whole domain: points or groups
  std::array<int64_t, 3> offset{0, 0, 0};  // of this dispatch: first point or first group
  std::array<int64_t, 3> count{1, 1, 1};   // of this dispatch: groups along each axis
  std::span<const Binding> buffers;
  std::span<const uint64_t> scalars;  // bits, as ir::Function::scalars
  bool variable = false;              // recorded, and replays may change its scalars
};

/// How a kernel is to be compiled: one module per distinct value.
struct CompileOptions {
  Numerics numerics = Numerics::exact;
  /// Per buffer, in how many equal windows of `binding_bytes` it is bound (WebGPU); all 1 elsewhere.
  std::vector<int> windows;
  /// CUDA only: this source or library instead of the function, whose parameters and domain it has.
  const NativeForm* native = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceInfo& info() const = 0;
  std::atomic<int64_t> check_every{0};  // launches; 0: as for all devices (launch/check.hpp)
  /// May only lower. Called once, before anything else.
  virtual void set_limits(const Limits& limits) = 0;
  virtual MemoryInfo memory() const = 0;

  virtual std::shared_ptr<Memory> allocate(int64_t bytes) = 0;
  /// Memory of others; lets go of `owner` when nothing that was given to the device uses it any more.
  virtual std::shared_ptr<Memory> adopt(const Foreign&, int64_t) {
    throw UnsupportedError("memory of others on " + info().name, "Device::wrap", "cpu, interp or cuda");
  }
  /// Orders the device's work and a foreign stream; where everything runs at once there is nothing to do.
  virtual void begin_after(NativeStream) {}
  virtual void end_before(NativeStream) {}
  /// `queue` null = default. upload may return before the copy is done but has read `data`; download has
  /// finished.
  virtual void upload(Queue* queue, Memory& to, int64_t offset, const void* data, int64_t bytes) = 0;
  virtual void download(Queue* queue, Memory& from, int64_t offset, void* data, int64_t bytes) = 0;
  virtual void copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
                    int64_t bytes) = 0;
  virtual void clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) = 0;

  /// Pure: types, limits, bindings, shared memory.
  virtual Support supports(const ir::Function& function) const = 0;
  /// Whether a LibraryProduct runs here.
  virtual Support supports_products() const { return {false, "no library of matrix products"}; }
  /// `function` is as traced: the back end runs compile::lower() for its target first.
  virtual std::shared_ptr<Module> compile(const ir::Function& function, const CompileOptions& options) = 0;
  virtual void dispatch(const Dispatch& dispatch) = 0;

  virtual std::shared_ptr<Queue> make_queue() = 0;
  /// Work of `then` from now on begins after the work of `first` so far; where queues do not overlap there is nothing to do.
  virtual void begin_after(Queue* /*first*/, Queue* /*then*/) {}
  virtual void synchronize(Queue* queue) = 0;  // null = default
  virtual void synchronize_all() = 0;
  virtual std::shared_ptr<Event> record_event(Queue* queue) = 0;
  /// Seconds between two events; waits for them.
  virtual double elapsed(Event& from, Event& to) = 0;

  /// A queue whose dispatches, copies and clears are recorded, not run, until end_record. Several may be open.
  virtual std::shared_ptr<Queue> begin_record() = 0;
  virtual std::shared_ptr<RecordedGraph> end_record(Queue& queue) = 0;
  /// New scalars of a variable dispatch, numbered in the order of the recording, for replays from now on.
  virtual void set_scalars(RecordedGraph& graph, size_t dispatch, std::span<const uint64_t> scalars) = 0;
  virtual void replay(RecordedGraph& graph, Queue* queue) = 0;
};

/// Devices of one kind, by number. An unavailable kind gives one status with the reason.
struct BackendKind {
  DeviceKind kind;
  std::vector<DeviceStatus> (*list)();
  /// Throws UnsupportedError with the reason.
  std::shared_ptr<Backend> (*open)(int number, const DeviceOptions& options);
};
/// The compiled-in back ends, in the order of `auto`: cuda, webgpu, cpu, interp. Each folder defines its own:
const BackendKind& cuda_backend();
const BackendKind& webgpu_backend();
const BackendKind& cpu_backend();
const BackendKind& interp_backend();

}  // namespace lockstep::device
