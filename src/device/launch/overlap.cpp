#include "device/launch/overlap.hpp"

namespace lockstep::device {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// Whether `distance` is a sum over the axes from `axis` on of stride times a step that leads from an element
/// of `b` to one of `a`: the elements' coordinates differ by -(b's size - 1) to a's size - 1.
bool reachable(const Binding& a, const Binding& b, int axis, int64_t distance) {
  if (axis == 4 || a.strides[size_t(axis)] == 0) return distance == 0;
  int64_t least = 0, most = 0;  // what the axes behind this one add
  for (size_t k = size_t(axis) + 1; k < 4; ++k) {
    least -= (b.shape[k] - 1) * a.strides[k];
    most += (a.shape[k] - 1) * a.strides[k];
  }
  const auto at = size_t(axis);
  const int64_t stride = a.strides[at];
  const int64_t first = std::max(-floor_div(most - distance, stride), 1 - b.shape[at]),
                last = std::min(floor_div(distance - least, stride), a.shape[at] - 1);
  for (int64_t step = first; step <= last; ++step)
    if (reachable(a, b, axis + 1, distance - step * stride)) return true;
  return false;
}

}  // namespace

bool overlap(const Binding& a, Binding b, int64_t element_bytes) {
  if (a.memory != b.memory) {  // blocks of others may lie in one another
    if (a.memory->address == 0 || b.memory->address == 0) return false;
    b.offset_bytes += int64_t(b.memory->address - a.memory->address);
  }
  if (a.span_bytes == 0 || b.span_bytes == 0) return false;
  if (a.offset_bytes + a.span_bytes <= b.offset_bytes || b.offset_bytes + b.span_bytes <= a.offset_bytes)
    return false;
  const int64_t distance = b.offset_bytes - a.offset_bytes;
  return a.strides != b.strides || distance % element_bytes != 0 ||
         reachable(a, b, 0, distance / element_bytes);
}

}  // namespace lockstep::device
