// Checked launches: each also runs on the interpreter, on copies of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {

class Device;

/// A fault of a kernel, or bits that differ, found by a checked launch. `where` is the kernel and the author's line.
class CheckError : public Error {
 public:
  using Error::Error;
};

/// All findings of one kind at one line of a kernel.
struct CheckFinding {
  /// "out_of_bounds", "misaligned", "uninitialised", "race", "divergence", "not_uniform" or "differing_bits"
  std::string kind;
  std::string kernel;
  std::string place;     // "life.cpp:23", or empty where it is not known
  std::string launched;  // the line of the launch, likewise
  std::string text;      // the whole line
  int64_t launches = 0;  // that had it
};

/// Launches that were due for a check and cannot be checked.
struct UncheckedLaunches {
  std::string what, why;  // "kernel life" or "graphs of cuda:0"
  int64_t count = 0;
};

/// Every n-th launch of all devices, or of one, is checked from now on; 0: none. The first Device::open of the process
/// takes it for all devices from LOCKSTEP_CHECK. A checked launch waits for the device and runs first on the
/// interpreter, on copies of what its buffers hold. Memory that is allocated while checks are on counts as not
/// initialised until it is written; other memory counts as initialised. Results are compared bit by bit on cpu and cuda
/// with exact numerics, except for kernels in which the order of atomic operations shows. Launches of a graph are
/// checked when a CPU device that recorded them under checks replays it. Native kernels and graphs of other devices are
/// not checked: unchecked_launches() lists them. The interpreter itself checks all launches without this.
void check_launches(int64_t every);
void check_launches(const Device& device, int64_t every);
/// The interval of all devices; that of LOCKSTEP_CHECK where no other was given.
int64_t checked_every();

/// By default a launch with findings throws CheckError before it runs on the device (differing bits: after). Collected,
/// each finding is a line on stderr and the program goes on; a launch with accesses out of bounds then leaves the
/// interpreter's results, where such reads give 0 and such writes are dropped.
void collect_check_findings(bool collect);
std::vector<CheckFinding> check_findings();
std::vector<UncheckedLaunches> unchecked_launches();
/// Launches that have been checked.
int64_t checked_launches();
/// Forgets findings and counts.
void clear_check_findings();

}  // namespace lockstep
