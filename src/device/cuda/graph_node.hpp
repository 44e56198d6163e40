// Launches in a graph whose scalars may change between its replays.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compile/clike/cuda/cuda.hpp"
#include "device/cuda/libraries/driver.hpp"

namespace lockstep::device::cuda {

class Core;

struct VariableNode {
  NodeHandle handle;  // in the graph as recorded, which has to live as long as what was made of it
  KernelNode node;
  std::vector<std::byte> arguments;
  std::vector<clike::ArgumentField> scalars;  // of the arguments

  /// For replays from now on.
  void set(const Core& core, GraphExecHandle graph, std::span<const uint64_t> values);
};

}  // namespace lockstep::device::cuda
