// Random numbers of modes.
#pragma once

#include "core/numbers/random.hpp"

namespace lockstep::flow {

/// A wavenumber vector as a counter: the same for every number of points.
template <class U, class I>
U mode_counter(I ix, I iy) {
  return (U(iy) << U(16)) | (U(ix) & U(0xFFFFu));
}

}  // namespace lockstep::flow
