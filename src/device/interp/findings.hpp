// Findings: faults of a kernel that the interpreter sees while it runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::device {
class Backend;
}

namespace lockstep::interp {

enum class FindingKind : uint8_t {
  out_of_bounds,  // an index outside of a buffer or one of its axes, of a shared or a local array; reads give
                  // 0, writes are dropped
  misaligned,     // a wide access whose offset is no multiple of its width
  uninitialised,  // memory that nothing has written since it was allocated, or since the group or lane began
  race,           // two lanes, no barrier between them, one of them writes and not both atomically
  divergence,     // a barrier or group reduction that not all lanes of the group reach
  not_uniform     // a uniform() value on which lanes of a group (points of a points kernel) differ
};
std::string_view name(FindingKind kind);

/// All findings of one kind in one kernel.
struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string instruction;  // of the first, as ir::print shows it
  std::string lane;         // of the first: "point (3, 0)" or "group (2), lane 5"
  int64_t count = 0;
  std::string source;  // the author's line near the first: "life.cpp:23", or empty
  /// "kernel x: 3 races between lanes, first in `store …` near life.cpp:23 at point (3, 0)"
  std::string text() const;
};

/// By default a dispatch with findings throws DeviceError(launch) with their text when it has ended.
/// Collecting, it returns as if nothing were; findings() then gives what has been found since the last clear.
void collect_findings(device::Backend& interp, bool collect);
std::vector<Finding> findings(const device::Backend& interp);
void clear_findings(device::Backend& interp);

}  // namespace lockstep::interp
