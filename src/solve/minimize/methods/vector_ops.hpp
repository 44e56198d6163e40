// Updates of tangent vectors by the clamped diagonal. All buffers are of one storage, f32
// or f64, and one length.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/device.hpp"
#include "optimize/vectors.hpp"

namespace lockstep::solve {

/// q = D p, where D is d within DampingRange
void scale_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q);
/// q = p / D
void divide_by(const Device& device, const Buffer& d, const Buffer& p, const Buffer& q);
/// q = max(p, q)
void raise(const Device& device, const Buffer& p, const Buffer& q);
/// x = 0 where `which`, by way of the host
void clear(const Device& device, const std::vector<uint8_t>& which, const Buffer& x);
/// Waits for the number, which on a CPU is added up in place where the vector is short. max_abs: NaN where an element
/// is NaN.
double max_abs(const Device& device, const Buffer& x);
double dot(const Device& device, const Buffer& x, const Buffer& y);
double norm(const Device& device, const Buffer& x);

}  // namespace lockstep::solve
