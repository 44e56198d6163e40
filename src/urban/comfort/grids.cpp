// UTCI and PET of a grid of Tmrt: one kernel each.
#include <algorithm>
#include <cmath>
#include <limits>

#include "urban/city/scene.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/comfort/kernels.hpp"

namespace lockstep::urban {
namespace {

constexpr float kNoPet = std::numeric_limits<float>::quiet_NaN();
/// Entries of the table of PET a kelvin: between them it is bent by less than 0.01 K.
constexpr int kEntriesPerKelvin = 8;

Buffer flat_grid(const Buffer& grid) { return grid.reshape({grid.elements()}); }

}  // namespace

namespace kernels {

const Kernel& utci() {
  using Real = Param<f32>;
  static const Kernel k =
      kernel("urban.utci", [](At<1> at, Grid<f32, 1> tmrt, Out<f32, 1> out, Real ta, Real c0, Real c1,
                              Real c2, Real c3, Real c4, Real c5, Real c6) {
        const Val<f32> t = tmrt[at], d = t - ta;
        Val<f32> sum = c6;
        for (const Real& c : {c5, c4, c3, c2, c1, c0}) sum = fma(sum, d, c);
        out[at] = select(isnan(t), t, ta + sum);
      });
  return k;
}

const Kernel& pet() {
  static const Kernel k = kernel("urban.pet", [](At<1> at, Grid<f32, 1> tmrt, Grid<f32, 1> table,
                                                 Out<f32, 1> out, Param<f32> first, Param<f32> per_kelvin) {
    const Val<i32> entries = table.size(0);
    const Val<f32> place = (tmrt[at] - first) * per_kelvin;
    const Val<i32> below = clamp(cast<i32>(place), 0, entries - 2);
    const Val<f32> low = table(below), high = table(below + 1);
    const Val<f32> between = fma(place - cast<f32>(below), high - low, low);
    const Val<bool> inside = place >= 0.0f && place <= cast<f32>(entries - 1);
    out[at] = select(inside, between, kNoPet);
  });
  return k;
}

}  // namespace kernels

PetStep::PetStep(double ta_c, double rh_percent, double wind_1m1, const Person& person)
    : first_c(std::floor(std::isfinite(ta_c) ? ta_c : 0) - kBelow) {
  EvenPet even(ta_c, rh_percent, wind_1m1, person);
  const int entries = static_cast<int>(kBelow + kAbove) * kEntriesPerKelvin + 1;
  table.reserve(static_cast<size_t>(entries));
  for (int k = 0; k < entries; ++k)
    table.push_back(static_cast<float>(even(first_c + static_cast<double>(k) / kEntriesPerKelvin)));
}

double PetStep::operator()(double tmrt_c) const {
  const double place = (tmrt_c - first_c) * kEntriesPerKelvin;
  if (!(place >= 0 && place <= static_cast<double>(table.size() - 1)))
    return std::numeric_limits<double>::quiet_NaN();
  const size_t below = std::min(static_cast<size_t>(place), table.size() - 2);
  return std::lerp(static_cast<double>(table[below]), static_cast<double>(table[below + 1]),
                   place - static_cast<double>(below));
}

void utci_grid(const Device& device, const Stream& stream, const UtciStep& step, const Buffer& tmrt,
               const Buffer& out) {
  const auto& c = step.coefficients;
  device.launch_on(stream, kernels::utci(), Shape{tmrt.elements()}, flat_grid(tmrt), flat_grid(out),
                   step.ta_c, c[0], c[1], c[2], c[3], c[4], c[5], c[6]);
}

void pet_grid(const Device& device, const Stream& stream, double first_c, const Buffer& table,
              const Buffer& tmrt, const Buffer& out) {
  device.launch_on(stream, kernels::pet(), Shape{tmrt.elements()}, flat_grid(tmrt), flat_grid(table),
                   flat_grid(out), first_c, kEntriesPerKelvin);
}

void pet_grid(const Device& device, const Stream& stream, const PetStep& step, const Buffer& tmrt,
              const Buffer& out) {
  pet_grid(device, stream, step.first_c, upload_on(device, stream, step.table), tmrt, out);
}

}  // namespace lockstep::urban
