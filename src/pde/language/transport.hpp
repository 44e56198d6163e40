// The transport loss with boundaries for single fields and components.
#pragma once

#include <map>
#include <string>

#include "lockstep/pde.hpp"

namespace lockstep::pde {

/// Boundaries of "sigma", "ux", "uy", "uz" and "p" that differ from the mesh's; free_slip and no_slip reflect
/// components of u as those of a vector.
using FieldBoundaries = std::map<std::string, BoundaryConditions>;

/// transport(dimensions, options), where `boundaries` take the place of `common`, the mesh's own.
System transport(int dimensions, const TransportOptions& options, const FieldBoundaries& boundaries,
                 const BoundaryConditions& common);
/// Adds their velocity "u", a vector, or where a component has a boundary of its own, components with one each.
Field transport_velocity(System& system, const FieldBoundaries& boundaries, const BoundaryConditions& common);

}  // namespace lockstep::pde
