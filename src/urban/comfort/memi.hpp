// The heat balance of a body, its clothes and its skin (MEMI, Höppe 1999) that PET is made of. Temperatures in °C,
// vapour pressures in hPa, heat in W, positive what the body gains.
#pragma once

#include <limits>

#include "urban/comfort/comfort.hpp"

namespace lockstep::urban::memi {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kIndoorWind = 0.1, kIndoorVapour = 12;  // m/s, hPa
inline constexpr int kCandidates = 6;
/// Near the greatest blood flow the states on neither side may hold by a hair: then both may by this much.
inline constexpr double kSlack[] = {0, 1};

/// The body and its clothes: areas (m²) and what hinders heat.
struct Body {
  double heat, area, clothed_share, clothed_area, radiating_area, resistance, conductance;
  bool female;

  explicit Body(const Person& person);
  double breath(double ta, double vapour) const;
  /// From skin and clothes.
  double convection(double transfer, double ta, double skin, double cloth) const;
  double radiation(double tmrt, double skin, double cloth) const;
  /// Vapour that leaves dry skin.
  double diffusion(double wet, double vapour, double skin_vapour) const;
};

double heat_transfer(double wind);
double body_saturation(double t);

/// The air around the body.
struct Air {
  double ta, vapour, tmrt, transfer, breath;
  double first_cloth() const { return (ta + tmrt + 34) / 3; }  ///< a guess of the clothes' temperature
};
Air air_of(const Body& body, double ta_c, double rh_percent, double tmrt_c, double wind_1m1);

/// Temperatures of the body and its sweat.
struct State {
  bool real = true;  ///< the core's equation has a solution
  double core = 0, skin = 0, cloth = 0, wet = 0, sweat = 0;
  double balance = 0;  ///< heat gained, 0 in the end
};

/// The state that follows from a temperature of the clothes, with the core by candidate 1 … 6: solutions of its
/// balance with blood vessels and sweat at rest, at work or at their limits.
State state_of(int candidate, const Body& body, const Air& air, double cloth);
/// Whether a candidate's state is of the kind that it was derived for. Blood flows of 89 … 91 l/(h m²) part those
/// below the limit of 90 from those at it.
bool holds(int candidate, const State& state, double slack);
/// Heat gained by a body of this state in still indoor air of 12 hPa whose walls are as warm.
double indoor_gain(const Body& body, const State& state, double indoor_c);

}  // namespace lockstep::urban::memi
