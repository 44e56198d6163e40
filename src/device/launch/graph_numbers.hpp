// Numbers of recorded launches that replays may change.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/threads.hpp"
#include "device/backend.hpp"

namespace lockstep::device {

/// A number or struct of one launch.
struct NamedNumber {
  std::string name;
  size_t first;     // of its scalars
  size_t argument;  // of the launch
};

struct VariableLaunch {
  Kernel kernel;
  std::vector<uint64_t> bits;  // of all scalars
  std::vector<NamedNumber> numbers;
  std::source_location where;
  int64_t dispatches;  // that the back end numbered for it
};

struct GraphNumbers {
  Mutex mutex;  // over a change and the replay that it is for
  std::vector<VariableLaunch> launches;

  /// Gives the back end what is new. Throws InputError, before anything is changed, as Device::replay says.
  void set(std::span<const std::pair<std::string, Argument>> values, Backend& backend, RecordedGraph& graph);
};

}  // namespace lockstep::device
