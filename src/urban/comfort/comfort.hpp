// Thermal comfort of grids on a device, and PET as the tables of a run hold it. Temperatures in °C, humidity in %, wind in
// m/s.
#pragma once

#include <array>
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

}  // namespace lockstep::urban
