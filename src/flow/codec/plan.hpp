// The plan of v2 from the spectrum of its first frame on the device; plan_codec() is the same on the host.
#pragma once

#include <vector>

#include "flow/codec/layout.hpp"

namespace lockstep::flow {

/// Sums of the modes' squares by rings of wavenumbers, in units of a field's.
struct RingSums {
  std::vector<double> inside;  // of r <= |k| < r + 1
  std::vector<double> scales;  // root mean square of the parts of r - 1/2 <= |k| < r + 1/2
  double squares = 0;          // of all modes
  /// Whether sums in f32 hold what they should: neither beyond its range nor nothing.
  bool sound() const { return squares > 1e-20 && squares < 1e30; }
};

/// `spectrum`: the half spectrum of one frame, f32.
RingSums ring_sums(const Device& device, const BoxGrid& grid, const Buffer& spectrum);
/// The smallest |k| within which the share of the enstrophy lies.
double cut_on_device(const Device& device, const CodecOptions& options, const Buffer& spectrum,
                     const RingSums& rings);

/// Rings of a grid, and the launch of their sums (2, rings, 2); for cases.
int64_t ring_count(const BoxGrid& grid);
void launch_rings(const Device& device, const BoxGrid& grid, const Buffer& spectrum, const Buffer& sums);

}  // namespace lockstep::flow
