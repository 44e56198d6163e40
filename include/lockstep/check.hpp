// Checked launches also run on the interpreter, on copies of their inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {

class Device;

/// An error of a kernel, or differing bits, found by a checked launch. `where` contains the kernel and the source
/// line.
class CheckError : public Error {
 public:
  using Error::Error;
};

/// All findings of one kind at one line of a kernel.
struct CheckFinding {
  /// "out_of_bounds", "misaligned", "uninitialised", "race", "divergence", "not_uniform" or "differing_bits"
  std::string kind;
  std::string kernel;
  std::string place;     // "life.cpp:23", or empty if unknown
  std::string launched;  // line of the first launch, or empty if unknown
  std::string text;      // the whole message of the first launch
  int64_t launches = 0;  // launches with the finding
};

/// Launches that should have been checked but cannot be.
struct UncheckedLaunches {
  std::string what, why;  // "kernel life" or "graphs of cuda:0"
  int64_t count = 0;
};

/// Checks every n-th launch of all devices, or of one device; 0: none. Throws InputError for a negative number. The
/// first Device::open of the process reads LOCKSTEP_CHECK for all devices.
///
/// A checked launch waits for the device and first runs on the interpreter, on copies of its buffers. Memory allocated
/// while checks are enabled is uninitialised until it is written; other memory is assumed to be initialised. Results
/// are compared bit by bit on the CPU and CUDA in exact numerics, except for kernels whose results depend on the order
/// of atomic operations. Launches of a graph are checked if a CPU device recorded and replays them with checks enabled.
/// Native kernels and graphs of other devices are not checked; unchecked_launches() lists them. Devices of the
/// interpreter always check all launches.
void check_launches(int64_t every);
void check_launches(const Device& device, int64_t every);
/// The interval of all devices; by default that of LOCKSTEP_CHECK.
int64_t checked_every();

/// By default a launch with findings throws CheckError before it runs on the device; for differing bits, after it ran.
/// If findings are collected, each is printed to stderr once and the program continues. A launch with out-of-bounds
/// accesses then returns the results of the interpreter, where such reads give 0 and such writes are dropped.
void collect_check_findings(bool collect);
std::vector<CheckFinding> check_findings();
std::vector<UncheckedLaunches> unchecked_launches();
/// Launches that have been checked.
int64_t checked_launches();
/// Clears findings and counts.
void clear_check_findings();

}  // namespace lockstep
