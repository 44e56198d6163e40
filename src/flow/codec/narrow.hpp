// Fields in f64 before the codec, which works in f32.
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/array.hpp"

namespace lockstep::flow {

/// Fields (frames, ny, nx) in f32, and the largest distance of one of their numbers from the given one.
struct NarrowFields {
  Array frames;
  double rounding = 0;
};

/// Of contiguous fields in f64; f32 is returned as it is. Throws InputError, naming `where`, for numbers that are not
/// finite in f32.
NarrowFields narrow(const Array& exact, std::string_view where);

/// The bound for the narrow fields that keeps `bound` for the given ones. Throws InputError, naming `where`, if rounding
/// alone reaches it.
double bound_of_narrow(double bound, double rounding, std::string_view where);

}  // namespace lockstep::flow
