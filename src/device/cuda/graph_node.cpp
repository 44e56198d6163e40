#include "device/cuda/graph_node.hpp"

#include <cstring>

#include "device/cuda/core.hpp"

namespace lockstep::device::cuda {

void VariableNode::set(const Core& core, GraphExecHandle graph, std::span<const uint64_t> values) {
  for (const clike::ArgumentField& field : scalars)
    std::memcpy(arguments.data() + field.offset, &values[field.index], field.bytes == 8 ? 8 : 4);
  size_t bytes = arguments.size();
  void* buffer[] = {kLaunchBuffer, arguments.data(), kLaunchBufferSize, &bytes, nullptr};
  node.extra = buffer;
  core.check(core.driver().graph_set_kernel(graph, handle, &node), DeviceFault::launch,
             "changing a graph's numbers");
  node.extra = nullptr;
}

}  // namespace lockstep::device::cuda
