// Computations with variants as `lockstep tune` measures and the tests compare them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/variants/table.hpp"
#include "device/variants/variants.hpp"
#include "lockstep/verify.hpp"

namespace lockstep::variants {

/// Sizes around the crossovers that are known, ascending, and the axis of the table that they are on; no sizes: nothing to tune.
struct Range {
  std::string axis;
  std::vector<int64_t> sizes;
  std::string none = "one variant is the fastest at all sizes";  // why there are no sizes
};

/// Device memory of a variant at a size: `given`, its inputs and outputs, and `scratch`, what it allocates beyond them.
struct VariantMemory {
  int64_t given = 0, scratch = 0;
};

/// A class of problems of a computation, or numbers of the table.
struct Subject {
  const Computation* computation = nullptr;                   // null: `numbers`
  std::string_view numbers{};                                 // their name in the table (variants::measured)
  std::function<std::vector<double>(const Device&)> measure;  // of numbers; empty: see Range::none
  std::string of;
  Range host, gpu;
  std::vector<int64_t> small;  // sizes of tests
  double tolerance = 0;        // of the largest result, where variants agree up to rounding
  bool fast_only = false;      // has a choice in fast numerics alone
  std::function<double(const Device&, int64_t size)> position;  // on the axis of the device's range
  /// A variant at a size, ready to run. Throws UnsupportedError where it does not apply.
  std::function<CaseRun(const Device&, int64_t size, std::string_view variant)> bind;

  std::string_view name() const { return computation ? computation->name() : numbers; }
  /// Known before anything is allocated. Of a variant that applies.
  std::function<VariantMemory(const Device&, int64_t size, std::string_view variant)> memory;
  std::string no_memory;  // why `memory` is empty

  const Range& range(const Device& device) const { return capabilities_of(device).host_memory ? host : gpu; }
};

struct Timing {
  int variant = 0;
  double seconds = 0;    // median
  int64_t scratch = -1;  // bytes beyond inputs and outputs; -1: not known beforehand
  std::string refusal;   // why the variant does not apply; then there is no time
};
struct Point {
  int64_t size = 0;
  double position = 0;
  std::vector<Timing> timings;  // by variant
  int before = 0, after = 0;    // the variant that the table takes, without and with `row`
};
struct Tuned {
  const Subject* subject = nullptr;
  std::vector<Point> points;
  TableRow row;         // neither steps nor values: nothing to store
  std::string skipped;  // why nothing was measured, or not all of it
};

/// Measures the variants of a subject, interleaved, for about `seconds`.
Tuned tune(const Device& device, const Subject& subject, double seconds);

/// Ranks variants by time. One moves before another where it takes less than 0.97 of its time, so that noise changes no order.
std::vector<int> rank(std::vector<int> order, const std::vector<Timing>& timings);

}  // namespace lockstep::variants
