// The rates of eddy viscosities at a point, in a kernel.
#pragma once

#include "flow/les/terms.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::flow {

/// `field(q)` gives the value of a Quantity. Rates need the fields of rate_fields().
template <class T, class F>
Val<T> rate_at(Rate rate, const F& field) {
  const auto length = [](const Val<T>& a, const Val<T>& b) { return sqrt(a * a + b * b); };
  switch (rate) {
    case Rate::strain: return T(2) * length(field(Quantity::s11), field(Quantity::s12));
    case Rate::gradient: return length(field(Quantity::wx), field(Quantity::wy));
    case Rate::none: break;
  }
  return T(0);
}

}  // namespace lockstep::flow
