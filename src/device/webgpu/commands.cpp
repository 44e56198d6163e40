// Commands, encoded at once or recorded for later.
#include <utility>

#include "device/webgpu/backend.hpp"

namespace lockstep::device::webgpu {

namespace {
RecordedCommands* recorder(Queue* queue) {
  return queue ? static_cast<WebgpuQueue*>(queue)->recording.get() : nullptr;
}
}  // namespace

RecordedCommands::~RecordedCommands() {
  std::lock_guard lock(core->mutex);
  for (Command& c : commands) {
    if (c.group) core->n.BindGroupRelease(c.group);
    if (c.pipeline.handle) core->n.ComputePipelineRelease(c.pipeline.handle);
  }
  if (argument_group) core->n.BindGroupRelease(argument_group);
  if (argument_buffer) core->n.BufferRelease(argument_buffer);
}

void WebgpuBackend::run(Queue* queue, const Pipeline& pipeline, WGPUBindGroup group,
                        const std::vector<uint32_t>& words, const std::array<uint32_t, 3>& groups) {
  RecordedCommands* const recording = recorder(queue);
  if (!recording) return core_->encode(pipeline, group, words, groups);
  RecordedCommands::Command command{RecordedCommands::Kind::dispatch, pipeline, group};
  command.groups = groups;
  core_->n.BindGroupAddRef(group);
  core_->n.ComputePipelineAddRef(pipeline.handle);
  auto& arguments = recording->arguments;
  command.argument_offset = uint32_t(arguments.size() * 4);
  arguments.insert(arguments.end(), words.begin(), words.end());
  const uint64_t stride_words = core_->argument_stride() / 4;
  arguments.resize((arguments.size() + stride_words - 1) / stride_words * stride_words);
  recording->commands.push_back(command);
}

void WebgpuBackend::note_scalars(Queue* queue, const clike::WgslSource& source) {
  RecordedCommands& recording = *recorder(queue);
  std::vector<RecordedCommands::Word>& words = recording.variables.emplace_back();
  for (size_t k = 0; k < source.words.size(); ++k)
    if (source.words[k].kind == clike::WgslWord::Kind::scalar)
      words.push_back({uint32_t(source.words[k].index), (recording.arguments.size() + k) * 4});
}

void WebgpuBackend::copy_words(Queue* queue, WGPUBuffer from, int64_t from_offset, WGPUBuffer to,
                               int64_t to_offset, int64_t bytes) {
  RecordedCommands* const recording = recorder(queue);
  if (!recording) return core_->copy(from, uint64_t(from_offset), to, uint64_t(to_offset), uint64_t(bytes));
  RecordedCommands::Command command{RecordedCommands::Kind::copy};
  command.from = from;
  command.to = to;
  command.from_offset = uint64_t(from_offset);
  command.to_offset = uint64_t(to_offset);
  command.bytes = uint64_t(bytes);
  recording->commands.push_back(command);
}

void WebgpuBackend::clear_words(Queue* queue, WGPUBuffer buffer, int64_t offset, int64_t bytes) {
  RecordedCommands* const recording = recorder(queue);
  if (!recording) return core_->clear(buffer, uint64_t(offset), uint64_t(bytes));
  RecordedCommands::Command command{RecordedCommands::Kind::clear};
  command.to = buffer;
  command.to_offset = uint64_t(offset);
  command.bytes = uint64_t(bytes);
  recording->commands.push_back(command);
}

std::shared_ptr<Queue> WebgpuBackend::begin_record() {
  auto queue = std::make_shared<WebgpuQueue>();
  queue->recording = std::make_shared<RecordedCommands>(core_);
  return queue;
}

std::shared_ptr<RecordedGraph> WebgpuBackend::end_record(Queue& queue) {
  std::lock_guard lock(core_->mutex);
  const std::shared_ptr<RecordedCommands> recorded =
      std::exchange(static_cast<WebgpuQueue&>(queue).recording, nullptr);
  if (recorded && !recorded->arguments.empty()) {
    core_->check_alive();
    const uint64_t bytes = recorded->arguments.size() * 4;
    recorded->argument_buffer = core_->make_buffer(
        bytes + kArgumentBytes, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, DeviceFault::allocation);
    core_->write(recorded->argument_buffer, 0, recorded->arguments.data(), bytes);
    recorded->argument_group = core_->argument_group(recorded->argument_buffer);
    recorded->arguments = {};
    core_->check(DeviceFault::allocation, "recording");
  }
  return recorded;
}

void WebgpuBackend::set_scalars(RecordedGraph& graph, size_t dispatch, std::span<const uint64_t> scalars) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  const auto& recorded = static_cast<const RecordedCommands&>(graph);
  for (const RecordedCommands::Word& word : recorded.variables.at(dispatch)) {
    const uint32_t bits = uint32_t(scalars[word.scalar]);
    core_->write(recorded.argument_buffer, word.offset, &bits, sizeof bits);
  }
}

void WebgpuBackend::replay(RecordedGraph& graph, Queue*) {
  std::lock_guard lock(core_->mutex);
  core_->check_alive();
  const auto& recorded = static_cast<const RecordedCommands&>(graph);
  if (core_->loop_flag()) core_->mark_loops();
  for (const RecordedCommands::Command& c : recorded.commands) switch (c.kind) {
      case RecordedCommands::Kind::dispatch:
        core_->encode_at(c.pipeline, c.group, recorded.argument_group, c.argument_offset, c.groups);
        break;
      case RecordedCommands::Kind::copy:
        core_->copy(c.from, c.from_offset, c.to, c.to_offset, c.bytes);
        break;
      case RecordedCommands::Kind::clear: core_->clear(c.to, c.to_offset, c.bytes); break;
    }
}

}  // namespace lockstep::device::webgpu
