// UTCI and PET of a grid of Tmrt: one kernel each.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "urban/city/scene.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/comfort/kernels.hpp"

namespace lockstep::urban {
namespace {

constexpr float kNoPet = std::numeric_limits<float>::quiet_NaN();
/// Entries of the table of PET a kelvin: between them it is bent by less than 0.01 K.
constexpr int kEntriesPerKelvin = 8;

Buffer flat_grid(const Buffer& grid) { return grid.reshape({grid.elements()}); }

/// Rows of a table around a share of the wind.
struct WindRows {
  Val<i32> row;
  Val<f32> between;
  WindRows(const Val<f32>& a, const Val<f32>& b, const Val<f32>& share, int nodes, const Val<i32>& rows)
      : row(0), between(0.0f) {
    const Val<f32> place = sqrt(fma(share, b - a, a)) * float(nodes);
    row = clamp(cast<i32>(place), 0, rows - 2);
    between = place - cast<f32>(row);
  }
  Val<f32> mix(const Val<f32>& low, const Val<f32>& high) const {
    return select(between == 0.0f, low, fma(between, high - low, low));
  }
};

constexpr int kUtciRow = 8;

/// Rows up to the share of `most`, and one beyond.
int nodes_to(float most, int nodes) {
  return static_cast<int>(std::sqrt(static_cast<double>(most)) * nodes) + 2;
}

}  // namespace

namespace kernels {

const Kernel& utci_wind() {
  using Plane = Grid<f32, 1>;
  using Real = Param<f32>;
  static const Kernel k = kernel(
      "urban.utci.wind",
      [](At<1> at, Plane tmrt, Plane a, Plane b, Grid<f32, 2> table, Out<f32, 1> out, Real ta, Real share) {
        const Val<f32> t = tmrt[at], d = t - ta;
        const WindRows rows(a[at], b[at], share, kUtciNodes, table.size(0));
        const auto c = [&](int k) { return rows.mix(table(rows.row, k), table(rows.row + 1, k)); };
        Val<f32> sum = c(6);
        for (int k = 5; k >= 0; --k) sum = fma(sum, d, c(k));
        out[at] = select(isnan(t), t, ta + sum);
      });
  return k;
}

const Kernel& pet_wind() {
  using Plane = Grid<f32, 1>;
  static const Kernel k =
      kernel("urban.pet.wind", [](At<1> at, Plane tmrt, Plane a, Plane b, Grid<f32, 2> table, Out<f32, 1> out,
                                  Param<f32> first, Param<f32> per_kelvin, Param<f32> share) {
        const Val<i32> entries = table.size(1);
        const Val<f32> place = (tmrt[at] - first) * per_kelvin;
        const Val<i32> below = clamp(cast<i32>(place), 0, entries - 2);
        const WindRows rows(a[at], b[at], share, kPetNodes, table.size(0));
        const auto in_row = [&](const Val<i32>& row) {
          const Val<f32> low = table(row, below), high = table(row, below + 1);
          return fma(place - cast<f32>(below), high - low, low);
        };
        const Val<f32> between = rows.mix(in_row(rows.row), in_row(rows.row + 1));
        const Val<bool> inside = place >= 0.0f && place <= cast<f32>(entries - 1);
        out[at] = select(inside, between, kNoPet);
      });
  return k;
}

const Kernel& between_airs() {
  static const Kernel k = kernel("urban.air.between", [](At<1> at, Grid<f32, 1> offset, Grid<f32, 1> part,
                                                         InOut<f32, 1> out, Param<i32> node) {
    const Val<f32> below = floor(offset[at]), above = offset[at] - below, value = part[at],
                   here = cast<f32>(Val<i32>(node)), before = out[at];
    const Val<bool> second = (below + 1.0f == here) & (above != 0.0f);
    out[at] = select(below == here, value, select(second, fma(above, value - before, before), before));
  });
  return k;
}

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

std::vector<float> utci_rows(double ta_c, double rh_percent, float most,
                             const std::function<double(double)>& wind_of) {
  std::vector<float> rows;
  for (int node = 0; node < nodes_to(most, kUtciNodes); ++node) {
    const UtciStep step(ta_c, rh_percent, wind_of(node_factor(node, kUtciNodes)));
    for (const double c : step.coefficients) rows.push_back(static_cast<float>(c));
    rows.push_back(0);
  }
  return rows;
}

PetRows pet_rows(double ta_c, double rh_percent, float most, const Person& person,
                 const std::function<double(double)>& wind_of) {
  PetRows rows;
  rows.rows = nodes_to(most, kPetNodes);
  std::vector<std::optional<PetStep>> steps(static_cast<size_t>(rows.rows));
  tbb::parallel_for(size_t{0}, steps.size(), [&](size_t node) {
    steps[node].emplace(ta_c, rh_percent, wind_of(node_factor(static_cast<int>(node), kPetNodes)), person);
  });
  rows.first_c = steps[0]->first_c;
  for (const auto& step : steps)
    rows.values.insert(rows.values.end(), step->table.begin(), step->table.end());
  return rows;
}

void between_airs(const Device& device, const Stream& stream, int node, const Buffer& offset,
                  const Buffer& part, const Buffer& out) {
  device.launch_on(stream, kernels::between_airs(), Shape{out.elements()}, flat_grid(offset), flat_grid(part),
                   flat_grid(out), node);
}

void utci_grid(const Device& device, const Stream& stream, double ta_c, const Buffer& table,
               const WindShares& wind, const Buffer& tmrt, const Buffer& out) {
  device.launch_on(stream, kernels::utci_wind(), Shape{tmrt.elements()}, flat_grid(tmrt),
                   flat_grid(wind.first), flat_grid(wind.second),
                   table.reshape({table.elements() / kUtciRow, kUtciRow}), flat_grid(out), ta_c, wind.share);
}

void pet_grid(const Device& device, const Stream& stream, double first_c, const Buffer& table,
              const WindShares& wind, const Buffer& tmrt, const Buffer& out) {
  device.launch_on(stream, kernels::pet_wind(), Shape{tmrt.elements()}, flat_grid(tmrt),
                   flat_grid(wind.first), flat_grid(wind.second), table, flat_grid(out), first_c,
                   kEntriesPerKelvin, wind.share);
}

}  // namespace lockstep::urban
