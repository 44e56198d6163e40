// WebGPU on the desktop, through wgpu-native on Vulkan.
#pragma once

#include <optional>

#include "device/backend.hpp"
#include "device/webgpu/events.hpp"
#include "device/webgpu/memory/transfer.hpp"
#include "device/webgpu/modules.hpp"

namespace lockstep::device::webgpu {

/// Commands as replay() encodes them again.
struct RecordedCommands final : RecordedGraph {
  enum class Kind : uint8_t { dispatch, copy, clear };
  struct Command {
    Kind kind;
    Pipeline pipeline;  // dispatch; its handle and the group are owned
    WGPUBindGroup group = nullptr;
    uint32_t argument_offset = 0;
    std::array<uint32_t, 3> groups{};
    WGPUBuffer from = nullptr, to = nullptr;  // copy, clear
    uint64_t from_offset = 0, to_offset = 0, bytes = 0;
  };
  explicit RecordedCommands(std::shared_ptr<Core> owner) : core(std::move(owner)) {}
  ~RecordedCommands() override;

  std::shared_ptr<Core> core;
  std::vector<Command> commands;
  std::vector<uint32_t> arguments;  // of all dispatches, until they are uploaded
  struct Word {
    uint32_t scalar;
    uint64_t offset;  // bytes, in the argument buffer
  };
  std::vector<std::vector<Word>> variables;  // of each variable dispatch
  WGPUBuffer argument_buffer = nullptr;
  WGPUBindGroup argument_group = nullptr;
};

/// WebGPU has one queue: work of all of them keeps its order, unless they record it.
struct WebgpuQueue final : Queue {
  std::shared_ptr<RecordedCommands> recording;
};

class WebgpuBackend final : public Backend {
 public:
  WebgpuBackend(const Native& native, const Adapter& adapter, int number);
  ~WebgpuBackend() override;

  const DeviceInfo& info() const override { return info_; }
  void set_limits(const Limits& limits) override;
  MemoryInfo memory() const override;

  std::shared_ptr<Memory> allocate(int64_t bytes) override;
  void upload(Queue* queue, Memory& to, int64_t offset, const void* data, int64_t bytes) override;
  void download(Queue* queue, Memory& from, int64_t offset, void* data, int64_t bytes) override;
  void copy(Queue* queue, Memory& from, int64_t from_offset, Memory& to, int64_t to_offset,
            int64_t bytes) override;
  void clear(Queue* queue, Memory& memory, int64_t offset, int64_t bytes) override;

  Support supports(const ir::Function& function) const override;
  std::shared_ptr<Module> compile(const ir::Function& function, const CompileOptions& options) override;
  void dispatch(const Dispatch& dispatch) override;

  std::shared_ptr<Queue> make_queue() override { return std::make_shared<WebgpuQueue>(); }
  void synchronize(Queue*) override { synchronize_all(); }
  void synchronize_all() override;
  std::shared_ptr<Event> record_event(Queue* queue) override;
  double elapsed(Event& from, Event& to) override;

  std::shared_ptr<Queue> begin_record() override;
  std::shared_ptr<RecordedGraph> end_record(Queue& queue) override;
  void set_scalars(RecordedGraph& graph, size_t dispatch, std::span<const uint64_t> scalars) override;
  void replay(RecordedGraph& graph, Queue*) override;

  /// For tests: compiles a shader without bindings.
  void compile_wgsl(const std::string& wgsl, const std::string& label);
  /// For tests: the device is gone as after a driver's reset.
  void lose_device();

 private:
  void run(Queue* queue, const Pipeline& pipeline, WGPUBindGroup group, const std::vector<uint32_t>& words,
           const std::array<uint32_t, 3>& groups);
  void move_bytes(Queue* queue, const WebgpuMemory* from, int64_t from_offset, const WebgpuMemory& to,
                  int64_t to_offset, int64_t bytes);
  void note_scalars(Queue* queue, const clike::WgslSource& source);
  /// By a kernel where it pays.
  void copy_part(Queue* queue, BufferRange from, BufferRange to);
  void copy_words(Queue* queue, WGPUBuffer from, int64_t from_offset, WGPUBuffer to, int64_t to_offset,
                  int64_t bytes);
  void clear_words(Queue* queue, WGPUBuffer buffer, int64_t offset, int64_t bytes);

  std::shared_ptr<Core> core_;
  DeviceInfo info_;
  int64_t window_bytes_ = 0, chunk_bytes_ = 0;
  Transfer transfer_;
  ByteKernels byte_kernels_;
  std::shared_ptr<EventPool> events_;
};

}  // namespace lockstep::device::webgpu
