#include "urban/radiation/perez.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "urban/angles.hpp"

namespace lockstep::urban {
namespace {

// Four coefficients a clearness bin (Perez et al. 1993, table 1).
constexpr double kA[8][4] = {{1.3525, -.2576, -.2690, -1.4366}, {-1.2219, -.7730, 1.4148, 1.1016},
                             {-1.1000, -.2515, .8952, .0156},   {-.5484, -.6654, -.2672, .7117},
                             {-.6000, -.3566, -2.5000, 2.3250}, {-1.0156, -.3670, 1.0078, 1.4051},
                             {-1.0000, .0211, .5025, -.5119},   {-1.0500, .0289, .4260, .3590}};
constexpr double kB[8][4] = {{-.7670, .0007, 1.2734, -.1233},  {-.2054, .0367, -3.9128, .9156},
                             {.2782, -.1812, -4.5000, 1.1766}, {.7234, -.6219, -5.6812, 2.6297},
                             {.2937, .0496, -5.6812, 1.8415},  {.2875, -.5328, -3.8500, 3.3750},
                             {-.3000, .1922, .7023, -1.6317},  {-.3250, .1156, .7781, .0025}};
constexpr double kC[8][4] = {{2.8000, .6004, 1.2375, 1.0000},        {6.9750, .1774, 6.4477, -.1239},
                             {24.7219, -13.0812, -37.7000, 34.8438}, {33.3389, -18.3000, -62.2500, 52.0781},
                             {21.0000, -4.7656, -21.5906, 7.2492},   {14.0000, -.9999, -7.1406, 7.5469},
                             {19.0000, -5.0000, 1.2438, -1.9094},    {31.0625, -14.5000, -46.1148, 55.3750}};
constexpr double kD[8][4] = {{1.8734, .6297, .9738, .2809},      {-1.5798, -.5081, -1.7812, .1080},
                             {-5.0000, 1.5218, 3.9229, -2.6204}, {-3.5000, .0016, 1.1477, .1062},
                             {-3.5000, -.1554, 1.4062, .3988},   {-3.4000, -.1078, -1.0750, 1.5702},
                             {-4.0000, .0250, .3844, .2656},     {-7.2312, .4050, 13.3500, .6234}};
constexpr double kE[8][4] = {{.0356, -.1246, -.5718, .9938},    {.2624, .0672, -.2190, -.4285},
                             {-.0156, .1597, .4199, -.5562},    {.4659, -.3296, -.0876, -.0329},
                             {.0032, .0766, -.0656, -.1294},    {-.0672, .4016, .3017, -.4844},
                             {1.0468, -.3788, -2.4517, 1.4656}, {1.5000, -.6426, 1.8564, .5636}};
constexpr double kBinEdges[7] = {1.065, 1.230, 1.500, 1.950, 2.800, 4.500, 6.200};

double air_mass(double altitude_deg, PerezFormula formula) {
  const double s = std::sin(altitude_deg * kRadian);
  if (altitude_deg >= 10) return 1 / s;
  const double low = 0.50572 * std::pow(altitude_deg + 6.07995, -1.6364);
  return formula == PerezFormula::perez93 ? 1 / (s + low) : 1 / s + low;
}

std::vector<double> even(size_t count) {
  return std::vector<double>(count, 1.0 / static_cast<double>(count));
}

}  // namespace

PerezSky perez_sky(const PerezInput& in, PerezFormula formula) {
  const double zenith = (90 - in.sun_altitude_deg) * kRadian;
  const double kappa = 1.041 * zenith * zenith * zenith;
  const double diffuse = in.diffuse_w_m2, all = in.diffuse_w_m2 + in.beam_w_m2;
  double clearness = 0;
  if (formula == PerezFormula::umep_compat)
    clearness = all / (diffuse + kappa) / (1 + kappa);
  else if (diffuse > 0)
    clearness = (all / diffuse + kappa) / (1 + kappa);
  else
    clearness = all > 0 ? std::numeric_limits<double>::infinity() : 1;
  const double b = 2 * kPi * in.day_of_year / 365;
  const double extraterrestrial = 1367 * (1.00011 + 0.034221 * std::cos(b) + 0.00128 * std::sin(b) +
                                          0.000719 * std::cos(2 * b) + 0.000077 * std::sin(2 * b));
  const double brightness =
      diffuse <= 10 ? 0 : air_mass(in.sun_altitude_deg, formula) * diffuse / extraterrestrial;
  const auto edge = std::upper_bound(std::begin(kBinEdges), std::end(kBinEdges), clearness);
  return {clearness, brightness, static_cast<int>(edge - std::begin(kBinEdges))};
}

std::vector<double> perez_luminance(std::span<const Direction> patches, const PerezInput& in,
                                    PerezFormula formula, bool guards) {
  if (guards && (in.sun_altitude_deg < 3 || in.diffuse_w_m2 < 10)) return even(patches.size());
  const PerezSky sky = perez_sky(in, formula);
  const double z = (90 - in.sun_altitude_deg) * kRadian, d = sky.brightness;
  const auto linear = [&](const double(&table)[8][4]) {
    const double* const x = table[sky.bin];
    return x[0] + x[1] * z + d * (x[2] + x[3] * z);
  };
  const double a = linear(kA), b = linear(kB), e = linear(kE);
  double c = linear(kC), dd = linear(kD);
  if (sky.bin == 0) {
    c = std::exp(std::pow(d * (kC[0][0] + kC[0][1] * z), kC[0][2])) - kC[0][3];
    const double again = formula == PerezFormula::umep_compat ? d * d : d;
    dd = -std::exp(d * (kD[0][0] + kD[0][1] * z)) + kD[0][2] + again * kD[0][3];
  }
  const double sun = in.sun_altitude_deg * kRadian;
  std::vector<double> luminance;
  double sum = 0;
  bool negative = false;
  for (const Direction& patch : patches) {
    const double p = patch.altitude_deg * kRadian;
    const double apart = std::abs(patch.azimuth_deg - in.sun_azimuth_deg) * kRadian;
    const double cosine =
        std::clamp(std::sin(p) * std::sin(sun) + std::cos(sun) * std::cos(p) * std::cos(apart), -1.0, 1.0);
    const double l = (1 + a * std::exp(b / std::sin(p))) *
                     (1 + c * std::exp(dd * std::acos(cosine)) + e * cosine * cosine);
    luminance.push_back(l);
    sum += l;
    negative = negative || l < 0;
  }
  if (!std::isfinite(sum) || (guards && (negative || sum <= 0)) || sum == 0) return even(patches.size());
  for (double& l : luminance) l /= sum;
  return luminance;
}

std::vector<double> band_solid_angles(const SkyDivision& sky) {
  const double half = sky.bands.front().altitude_deg;
  std::vector<double> angles;
  for (size_t k = 0; k < sky.bands.size(); ++k) {
    const SkyBand& band = sky.bands[k];
    const auto sine = [&](double deg) { return std::sin(deg * kRadian); };
    const bool zenith = band.count == 1 && k > 0;
    angles.push_back(zenith ? 2 * kPi * (1 - sine(sky.bands[k - 1].altitude_deg + half))
                            : 2 * kPi / band.count *
                                  (sine(band.altitude_deg + half) - sine(band.altitude_deg - half)));
  }
  return angles;
}

namespace {

/// ∫ max(0, cos x) dx from `low` to `high`, radians.
double lit_arc(double low, double high) {
  const auto up_to = [](double x) {
    const double turns = std::floor((x + kPi / 2) / (2 * kPi)), rest = x - 2 * kPi * turns;
    return 2 * turns + 1 + (rest < kPi / 2 ? std::sin(rest) : 1.0);
  };
  return up_to(high) - up_to(low);
}

}  // namespace

std::vector<PatchCosines> patch_cosines(const SkyDivision& sky, bool exact) {
  const std::vector<double> angles = band_solid_angles(sky);
  const double half = sky.bands.front().altitude_deg * kRadian;
  std::vector<PatchCosines> all;
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    const auto b = static_cast<size_t>(sky.band_of_patch[k]);
    const double altitude = sky.patches[k].altitude_deg * kRadian,
                 azimuth = sky.patches[k].azimuth_deg * kRadian;
    PatchCosines c{};
    if (!exact) {
      c.down = angles[b] * std::sin(altitude);
      c.side = angles[b] * std::cos(altitude);
      for (size_t d = 0; d < 4; ++d)
        c.faces[d] = c.side * std::max(0.0, std::cos(azimuth - kPi / 2 * static_cast<double>(d + 1)));
      all.push_back(c);
      continue;
    }
    const bool zenith = sky.bands[b].count == 1 && b > 0;
    const double low = zenith ? sky.bands[b - 1].altitude_deg * kRadian + half : altitude - half,
                 high = zenith ? kPi / 2 : altitude + half, width = 2 * kPi / sky.bands[b].count;
    const double rise = (high - low) / 2 + (std::sin(2 * high) - std::sin(2 * low)) / 4;  // ∫ cos²
    c.down = width * (std::pow(std::sin(high), 2) - std::pow(std::sin(low), 2)) / 2;
    c.side = width * rise;
    for (size_t d = 0; d < 4; ++d) {
      const double centre = azimuth - kPi / 2 * static_cast<double>(d + 1);
      c.faces[d] = rise * lit_arc(centre - width / 2, centre + width / 2);
    }
    all.push_back(c);
  }
  return all;
}

}  // namespace lockstep::urban
