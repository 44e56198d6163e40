// Angles of the models; the plain references have their own.
#pragma once

#include <numbers>

namespace lockstep::urban {

inline constexpr double kPi = std::numbers::pi;
inline constexpr double kRadian = kPi / 180;  // of a degree

}  // namespace lockstep::urban
