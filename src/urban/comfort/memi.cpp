#include "urban/comfort/memi.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::urban::memi {
namespace {

// As the published tools have them, which the check points are of.
constexpr double kPi = 3.14, kSigma = 5.67e-8, kKelvin = 273.2;
constexpr double kPressure = 1013.25;                      // hPa
constexpr double kEvaporation = 2.42e6, kAirHeat = 1010;   // J/kg, J/(kg K)
constexpr double kBloodDensity = 1.06, kBloodHeat = 3640;  // kg/l, J/(kg K)
constexpr double kSkinEmissivity = 0.99, kClothEmissivity = 0.95, kRadiating = 0.725;
constexpr double kCoolSkin = 34, kWarmCore = 36.6;

double fourth_power(double celsius) {
  const double kelvin = celsius + kKelvin, square = kelvin * kelvin;
  return square * square;
}

double air_saturation(double t) { return 6.107 * std::pow(10, 7.5 * t / (238 + t)); }

double metabolism(const Person& p) {
  const double build = 100 * p.height_m / std::cbrt(p.mass_kg), size = std::pow(p.mass_kg, 0.75);
  const double age = 0.004 * (30 - p.age_years);
  const double basal = p.sex == Sex::male ? 3.45 * size * (1 + age + 0.010 * (build - 43.4))
                                          : 3.19 * size * (1 + age + 0.018 * (build - 42.1));
  return basal + p.activity_w;
}

/// The larger or smaller root of c·x² + b·x + a; where it has none, that of the discriminant's size.
struct Root {
  double value;
  bool real;
};
Root root_of(double c, double b, double a, bool larger) {
  const double discriminant = b * b - 4 * c * a, size = std::sqrt(std::abs(discriminant));
  return {(-b + (larger ? size : -size)) / (2 * c), discriminant >= 0};
}

/// The core's temperature where a skin is known, by candidate 1 … 6: solutions of the core's balance with
/// blood vessels and sweat at rest, at work or at their limits.
Root core_of(int candidate, const Body& body, const Air& air, double skin) {
  const double c1 = body.heat + air.breath, c2 = body.area * kBloodDensity * kBloodHeat;
  const double tissue = 5.28 * body.area;
  const double at = skin == 36 ? 36.01 : skin;
  if (candidate == 3) return {c1 / (tissue + c2 * 6.3 / 3600 / (1 + 0.5 * (kCoolSkin - at))) + at, true};
  if (candidate == 4) return {c1 / (tissue + c2 / 40) + at, true};
  const double c5 = 0.0208 * c2, c6 = 0.76075 * c2;
  if (candidate == 1 || candidate == 6)
    return root_of(c5, tissue - c6 - c5 * skin, c6 * skin - c1 - tissue * skin, candidate == 1);
  const double c3 = 18 - 0.5 * skin, c4 = tissue * c3;
  return root_of(c5, c4 - c6 - skin * c5, -c1 * c3 - skin * c4 + skin * c6, candidate == 2);
}

}  // namespace

Body::Body(const Person& p) : heat(metabolism(p)), female(p.sex == Sex::female) {
  const double clo = p.clothing_clo, h = p.height_m;
  area = 0.203 * std::pow(p.mass_kg, 0.425) * std::pow(h, 0.725);
  clothed_share = std::min(1.0, (-2.36 + 173.51 * clo - 100.76 * clo * clo + 19.28 * clo * clo * clo) / 100);
  resistance = clo / 6.45 / clothed_share;
  const double length = clo >= 2 ? 1 : clo > 0.6 ? (h - 0.2) / h : clo > 0.3 ? 0.5 : 0.1;
  const double growth = 0.15 * clo;  // of the surface by clothes
  const double around = 2 * kPi * h * length;
  const double outer = area * (growth + clothed_share) / around, inner = area * clothed_share / around;
  clothed_area = area * (clothed_share + growth);
  conductance = 6.28 * h * length * (outer - inner) / (resistance * std::log(outer / inner) * clothed_area);
  radiating_area = area * kRadiating;
}

double Body::breath(double ta, double vapour) const {
  const double out = 0.47 * ta + 21, volume = 1.44e-6 * heat;
  return kAirHeat * (ta - out) * volume +
         0.623 * (kEvaporation / kPressure) * (vapour - body_saturation(out)) * volume;
}

double Body::convection(double transfer, double ta, double skin, double cloth) const {
  return transfer * (ta - skin) * area * (1 - clothed_share) + transfer * (ta - cloth) * clothed_area;
}

double Body::radiation(double tmrt, double skin, double cloth) const {
  const double around = fourth_power(tmrt);
  return radiating_area * (1 - clothed_share) * kSkinEmissivity * kSigma * (around - fourth_power(skin)) +
         kRadiating * clothed_area * kClothEmissivity * kSigma * (around - fourth_power(cloth));
}

double Body::diffusion(double wet, double vapour, double skin_vapour) const {
  return kEvaporation / 0.79e7 * area * (1 - wet) * (vapour - skin_vapour);
}

double heat_transfer(double wind) { return 2.67 + 6.5 * std::pow(wind, 0.67); }

double body_saturation(double t) { return 6.11 * std::pow(10, 7.45 * t / (235 + t)); }

Air air_of(const Body& body, double ta_c, double rh_percent, double tmrt_c, double wind_1m1) {
  const double vapour = rh_percent / 100 * air_saturation(ta_c);
  return {ta_c, vapour, tmrt_c, heat_transfer(wind_1m1), body.breath(ta_c, vapour)};
}

bool holds(int candidate, const State& s, double slack) {
  if (!s.real) return false;
  const double blood =
      (6.3 + 75 * std::max(0.0, s.core - kWarmCore)) / (1 + 0.5 * std::max(0.0, kCoolSkin - s.skin));
  switch (candidate) {
    case 2:
    case 5: return s.core >= kWarmCore && s.skin <= 34.05 && blood < 91 + slack;
    case 1:
    case 6: return s.core >= kWarmCore && s.skin > 33.85 && blood < 91 + slack;
    case 3: return s.core < kWarmCore && s.skin <= kCoolSkin && blood < 91 + slack;
    default: return blood >= 89 - slack;
  }
}

State state_of(int candidate, const Body& body, const Air& air, double cloth) {
  State s;
  s.cloth = cloth;
  s.skin = (air.transfer * (cloth - air.ta) +
            kClothEmissivity * kSigma * (fourth_power(cloth) - fourth_power(air.tmrt)) * kRadiating) /
               body.conductance +
           cloth;
  const Root core = core_of(candidate, body, air, s.skin);
  s.core = core.value;
  s.real = core.real;
  const double mean = 0.1 * s.skin + 0.9 * s.core;
  const double sweat = mean <= kWarmCore ? 0.0 : 304.94 * (mean - kWarmCore) * body.area / 3.6e6;
  const double wanted = -sweat * (body.female ? 0.7 : 1.0) * kEvaporation;
  const double skin_vapour = body_saturation(s.skin);
  const double evaporation = 0.633 * air.transfer / (kPressure * kAirHeat);
  const double passage = 1 / (1 + 0.92 * air.transfer * body.resistance);
  const double possible = evaporation * (air.vapour - skin_vapour) * body.area * kEvaporation * passage;
  s.wet = std::min(1.0, wanted / possible);
  s.sweat = std::min(0.0, wanted <= possible ? possible : wanted);
  s.balance = body.heat + body.diffusion(s.wet, air.vapour, skin_vapour) + air.breath + s.sweat +
              body.convection(air.transfer, air.ta, s.skin, cloth) + body.radiation(air.tmrt, s.skin, cloth);
  return s;
}

double indoor_gain(const Body& body, const State& s, double indoor_c) {
  return body.heat + body.diffusion(s.wet, kIndoorVapour, body_saturation(s.skin)) + s.sweat +
         body.breath(indoor_c, kIndoorVapour) +
         body.convection(heat_transfer(kIndoorWind), indoor_c, s.skin, s.cloth) +
         body.radiation(indoor_c, s.skin, s.cloth);
}

}  // namespace lockstep::urban::memi
