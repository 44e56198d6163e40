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

/// Sizes around the crossovers that are known, ascending, and the axis of the table that they lie on; no sizes: nothing to tune.
struct Range {
  std::string axis;
  std::vector<int64_t> sizes;
};

/// A class of problems of a computation.
struct Subject {
  const Computation* computation = nullptr;
  std::string of;
  Range host, gpu;
  std::vector<int64_t> small;  // sizes of tests
  double tolerance = 0;        // of the largest result, where variants agree up to rounding
  bool fast_only = false;      // has a choice in fast numerics alone
  std::function<double(const Device&, int64_t size)> position;  // on the axis of the device's range
  /// A variant at a size, ready to run. Throws UnsupportedError where it does not apply.
  std::function<CaseRun(const Device&, int64_t size, std::string_view variant)> bind;

  const Range& range(const Device& device) const { return capabilities_of(device).host_memory ? host : gpu; }
};

struct Timing {
  int variant = 0;
  double seconds = 0;   // median
  std::string refusal;  // why the variant does not apply; then there is no time
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
  TableRow row;         // no steps: nothing to store
  std::string skipped;  // why nothing was measured, or not all of it
};

/// Measures the variants of a subject, interleaved, for about `seconds`.
Tuned tune(const Device& device, const Subject& subject, double seconds);

/// Ranks variants by time. One moves before another where it takes less than 0.97 of its time, so that noise changes no order.
std::vector<int> rank(std::vector<int> order, const std::vector<Timing>& timings);

}  // namespace lockstep::variants
