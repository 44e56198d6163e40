// The planes of a grid that one rank computes. Its arrays also hold those around them.
#pragma once

#include <cstdint>
#include <memory>

namespace lockstep::pde {

struct Discretisation;

struct GridPart {
  int64_t first = 0, planes = 0;                // in the arrays
  int64_t chunk = 0;                            // planes of a partial sum of the fused path
  std::shared_ptr<const Discretisation> whole;  // that it is a part of
};

}  // namespace lockstep::pde
