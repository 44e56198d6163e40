// UTCI: the polynomial as published, and collapsed to one of Tmrt - Ta for a whole grid.
#include <array>
#include <cmath>
#include <limits>

#include "urban/comfort/comfort.hpp"
#include "urban/comfort/utci_terms.hpp"

namespace lockstep::urban {
namespace {

/// Saturation vapour pressure over water (hPa): B. Hardy 1998, ITS-90.
double saturation_hpa(double ta_c) {
  constexpr double g[] = {-2836.5744,   -6028.076559,  19.54263612,   -0.02737830188,
                          1.6261698e-5, 7.0229056e-10, -1.8680009e-13};
  const double kelvin = ta_c + 273.15;
  double sum = 2.7150305 * std::log(kelvin), power = 1 / (kelvin * kelvin);
  for (const double factor : g) {
    sum += factor * power;
    power *= kelvin;
  }
  return 0.01 * std::exp(sum);
}

double vapour_kpa(double ta_c, double rh_percent) { return saturation_hpa(ta_c) * rh_percent / 1000; }

using UtciPowers = std::array<double, kUtciDegree + 1>;
UtciPowers utci_powers(double x) {
  UtciPowers powers{1};
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = powers[k - 1] * x;
  return powers;
}

}  // namespace

double utci(double ta_c, double rh_percent, double wind_10m, double tmrt_c) {
  if (!(wind_10m > 0)) return std::numeric_limits<double>::quiet_NaN();
  const UtciPowers air = utci_powers(ta_c), wind = utci_powers(wind_10m), excess = utci_powers(tmrt_c - ta_c),
                   vapour = utci_powers(vapour_kpa(ta_c, rh_percent));
  double sum = ta_c;
  for (const UtciTerm& t : utci_terms())
    sum += t.factor * air[t.air] * wind[t.wind] * excess[t.excess] * vapour[t.vapour];
  return sum;
}

bool utci_is_fitted(double ta_c, double rh_percent, double wind_10m, double tmrt_c) {
  const double excess = tmrt_c - ta_c;
  return std::abs(ta_c) <= 50 && excess >= kUtciLeastExcess && excess <= kUtciMostExcess &&
         wind_10m >= kUtciLeastWind && wind_10m <= 17 && rh_percent >= 0 && vapour_kpa(ta_c, rh_percent) <= 5;
}

UtciStep::UtciStep(double ta, double rh_percent, double wind_10m) : ta_c(ta) {
  if (!(wind_10m > 0)) {
    coefficients[0] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const UtciPowers air = utci_powers(ta), wind = utci_powers(wind_10m),
                   vapour = utci_powers(vapour_kpa(ta, rh_percent));
  for (const UtciTerm& t : utci_terms())
    coefficients[t.excess] += t.factor * air[t.air] * wind[t.wind] * vapour[t.vapour];
}

double UtciStep::operator()(double tmrt_c) const {
  const double excess = tmrt_c - ta_c;
  double sum = 0;
  for (size_t k = coefficients.size(); k-- > 0;) sum = sum * excess + coefficients[k];
  return ta_c + sum;
}

}  // namespace lockstep::urban
