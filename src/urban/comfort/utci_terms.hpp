// The terms of the UTCI polynomial.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::urban {

/// factor · Ta^air · va^wind · (Tmrt - Ta)^excess · Pa^vapour, in °C, m/s at 10 m, K and kPa.
struct UtciTerm {
  double factor;
  uint8_t air, wind, excess, vapour;
};
inline constexpr int kUtciDegree = 6;  ///< of each power, and of all together

/// All 210; their sum is UTCI - Ta.
std::span<const UtciTerm> utci_terms();

}  // namespace lockstep::urban
