// Thermal comfort of grids on a device, and PET as the tables of a run hold it. Temperatures in °C, humidity in %, wind in
// m/s.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/urban/comfort.hpp"

namespace lockstep::urban {

/// pet() through the middle of the teeth: the state half a step past the balance, found to 1e-7 K. Quick for a
/// series of Tmrt near each other.
class EvenPet {
 public:
  EvenPet(double ta_c, double rh_percent, double wind_1m1, const Person& person = {});
  ~EvenPet();
  double operator()(double tmrt_c);

 private:
  struct Setting;
  std::unique_ptr<Setting> setting_;
};

/// Of the polynomial's fit: wind (m/s at 10 m), Tmrt - Ta (K).
inline constexpr double kUtciLeastWind = 0.5, kUtciLeastExcess = -30, kUtciMostExcess = 70;

// ---- Grids: air and wind are those of one time step, Tmrt is a grid. ----

/// UTCI as a function of Tmrt alone: Ta + Σ c_k D^k with D = Tmrt - Ta.
struct UtciStep {
  double ta_c = 0;
  std::array<double, 7> coefficients{};  ///< of D^0 … D^6

  UtciStep(double ta_c, double rh_percent, double wind_10m);
  double operator()(double tmrt_c) const;
};

/// PET as a function of Tmrt alone: EvenPet in a table, with straight lines between its entries. Tmrt outside of it gives
/// NaN.
struct PetStep {
  static constexpr double kBelow = 40, kAbove = 100;  ///< of the air's whole degrees, K
  double first_c;
  std::vector<float> table;  ///< from first_c on in equal steps

  PetStep(double ta_c, double rh_percent, double wind_1m1, const Person& person = {});
  double operator()(double tmrt_c) const;
};

/// One value of `out` for one of `tmrt`, both f32, contiguous and of as many elements; NaN where Tmrt is NaN. In
/// the order of a stream.
void utci_grid(const Device& device, const Stream& stream, const UtciStep& step, const Buffer& tmrt,
               const Buffer& out);
void pet_grid(const Device& device, const Stream& stream, const PetStep& step, const Buffer& tmrt,
              const Buffer& out);
/// With PetStep::table resident, for those who copy the tables of many steps at once.
void pet_grid(const Device& device, const Stream& stream, double first_c, const Buffer& table,
              const Buffer& tmrt, const Buffer& out);

// ---- The same where the wind differs from pixel to pixel: a share of that of the step. ----

/// Shares for which the tables have rows, and where a pixel's lies between them: evenly in their roots, since comfort changes
/// most where there is little wind. Shares of 0, 1/16, 1/4, 9/16, 1 … are rows of both tables.
inline constexpr int kUtciNodes = 64, kPetNodes = 16;  ///< up to the share of 1
constexpr double node_factor(int node, int nodes) {
  const double root = static_cast<double>(node) / nodes;
  return root * root;
}
/// Rows of UtciStep's coefficients and 0; `wind_of`: the wind at 10 m of a share.
std::vector<float> utci_rows(double ta_c, double rh_percent, float most,
                             const std::function<double(double)>& wind_of);
/// Rows of PetStep, which all begin at `first_c`; `wind_of`: the wind at 1.1 m of a share.
struct PetRows {
  double first_c = 0;
  int64_t rows = 0;
  std::vector<float> values;
  Shape shape() const { return {rows, static_cast<int64_t>(values.size()) / rows}; }
};
PetRows pet_rows(double ta_c, double rh_percent, float most, const Person& person,
                 const std::function<double(double)>& wind_of);

/// Shares of the wind between two planes of the size of Tmrt.
struct WindShares {
  Buffer first, second;
  float share = 0;  ///< of the second
};
void utci_grid(const Device& device, const Stream& stream, double ta_c, const Buffer& table,
               const WindShares& wind, const Buffer& tmrt, const Buffer& out);
void pet_grid(const Device& device, const Stream& stream, double first_c, const Buffer& table,
              const WindShares& wind, const Buffer& tmrt, const Buffer& out);

/// A result between those of a step in air that is whole kelvins warmer than the weather's: called for one `node` after the
/// other, in ascending order; `offset` is the pixel's K above the weather's air.
void between_airs(const Device& device, const Stream& stream, int node, const Buffer& offset,
                  const Buffer& part, const Buffer& out);

}  // namespace lockstep::urban
