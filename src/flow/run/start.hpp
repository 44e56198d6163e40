// Whether a flow can start with its step.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "lockstep/flow.hpp"

namespace lockstep::flow {

/// Why no run starts from velocities of this Courant number, that of stepping.dt; none where one does.
inline std::optional<OptionError::Parts> start_error(const Model& model, const Stepping& stepping,
                                                     double courant) {
  constexpr auto kInvalid = OptionError::Kind::invalid;
  if (!std::isfinite(courant))
    return OptionError::Parts{kInvalid, "box",
                              fmt::format("velocities in a box of {} x {} are not finite at the start",
                                          model.grid.lx, model.grid.ly),
                              "lengths whose velocities {precision} holds", ""};
  const double limit = cfl_limit(model, stepping.integrator);
  if (stepping.cfl > 0 || courant <= limit) return std::nullopt;
  return OptionError::Parts{kInvalid, "dt",
                            fmt::format("dt = {} is cfl = {:.4g} at the start", stepping.dt, courant),
                            fmt::format("at most {:.4g} (cfl {:.4g}) with {}", stepping.dt * limit / courant,
                                        limit, name(stepping.integrator)),
                            ""};
}

}  // namespace lockstep::flow
