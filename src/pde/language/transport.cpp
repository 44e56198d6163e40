#include "pde/language/transport.hpp"

#include <optional>

#include "pde/language/stencil.hpp"

namespace lockstep::pde {
namespace {

/// A boundary as that of component `c` of a vector.
BoundaryConditions of_component(const BoundaryConditions& boundary, int c) {
  BoundaryConditions resolved = boundary;
  for (size_t axis = 0; axis < 3; ++axis)
    for (Side& side : resolved.sides[axis]) side = resolve_side(side, int(axis), c, true);
  return resolved;
}

Field scalar(System& s, const std::string& name, const FieldBoundaries& boundaries) {
  const auto own = boundaries.find(name);
  return own == boundaries.end() ? s.field(name) : s.field(name, 1, own->second);
}

}  // namespace

Field transport_velocity(System& s, const FieldBoundaries& boundaries, const BoundaryConditions& common) {
  std::vector<BoundaryConditions> each;
  bool own = false;
  for (int c = 0; c < s.dimensions(); ++c) {
    const auto found = boundaries.find(std::string("u") + char('x' + c));
    own |= found != boundaries.end();
    each.push_back(of_component(found == boundaries.end() ? common : found->second, c));
  }
  return own ? s.field("u", each) : s.vector("u");
}

System transport(int dimensions, const TransportOptions& options) {
  return transport(dimensions, options, {}, {});
}

System transport(int dimensions, const TransportOptions& o, const FieldBoundaries& boundaries,
                 const BoundaryConditions& common) {
  System s(dimensions);
  const Field sigma = scalar(s, "sigma", boundaries), u = transport_velocity(s, boundaries, common);
  if (o.sigma_transport) {
    Value r = s.dt(sigma) + s.advect(u, sigma, 0, o.upwind);
    if (o.sigma_divergence) r = r + s.at(sigma) * s.div(u);
    s.residual("sigma", r, o.weight_sigma);
  }
  if (o.momentum) {
    std::optional<Field> p, force;
    if (o.pressure) p = scalar(s, "p", boundaries);
    if (o.forcing) force = s.vector("force");
    for (int c = 0; c < dimensions; ++c) {
      Value r = s.dt(u, c) + s.advect(u, u, c, o.upwind);
      if (o.viscosity != 0) r = r - o.viscosity * s.laplacian(u, c);
      if (p) r = r + s.d(*p, c);
      if (force) r = r - s.at(*force, c);
      s.residual("u", r, o.weight_u);
    }
  }
  if (o.weight_divergence != 0) s.residual("divergence", s.div(u), o.weight_divergence);
  if (o.weight_speed != 0)
    for (int c = 0; c < dimensions; ++c) s.residual("speed", s.at(u, c), o.weight_speed);
  return s;
}

System incompressible_flow(double weight_divergence) {
  System s(3);
  const Field u = s.vector("u"), p = s.field("p");
  const Value nu = s.parameter("nu");
  for (int c = 0; c < 3; ++c)
    s.residual("momentum", s.dt(u, c) + s.advect(u, u, c) + s.d(p, c) - nu * s.laplacian(u, c));
  s.residual("divergence", s.div(u), weight_divergence);
  return s;
}

}  // namespace lockstep::pde
