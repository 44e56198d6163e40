// Thermal comfort from air temperature, humidity, wind and mean radiant temperature: UTCI and PET, of one place
// in double precision and of grids on a device. Temperatures in °C, humidity in %, wind in m/s.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::urban {

/// Universal Thermal Climate Index (°C): the operational polynomial of 210 terms (Bröde et al. 2012,
/// doi:10.1007/s00484-011-0454-1), with the saturation pressure of Hardy (1998). Nothing is clamped: outside of
/// utci_is_fitted() the polynomial stands as it is. NaN for a wind that is not positive and where an argument is NaN.
double utci(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

/// Whether the polynomial was fitted there: -50 … 50 °C, Tmrt - Ta of -30 … 70 K, wind of 0.5 … 17 m/s, vapour
/// pressure to 5 kPa.
bool utci_is_fitted(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

enum class Sex { male, female };

/// The person of PET. The default is the standard person of VDI 3787.
struct Person {
  double mass_kg = 75, age_years = 35, height_m = 1.8;
  double activity_w = 80;     ///< beside the basal metabolism
  double clothing_clo = 0.9;  ///< 0.1 … 4
  Sex sex = Sex::male;
};
/// Throws InputError for a person whose balance has no sense: a mass outside 10 … 300 kg, and so on.
void check(const Person& person);

/// Physiologically Equivalent Temperature (°C) by the balance of MEMI (Höppe 1999, doi:10.1007/s004840050118): the
/// indoor air at which core and skin would be as warm. Wind is that at 1.1 m. The clothes' temperature is walked to in
/// steps as published, which end up to 0.001 K past the balance: PET as a function of Tmrt has teeth of 0.03 K, in hot
/// wind of 0.1 K. NaN where an argument is NaN, for a wind below 0, and where no state of the body balances.
double pet(double ta_c, double rh_percent, double tmrt_c, double wind_1m1, const Person& person = {});

/// The same through the middle of the teeth: the state half a step past the balance, found to 1e-7 K. Quick for a
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

/// Wind at a height from one measured at another (m) over the ground, by the power law of exponent 0.2.
double wind_at(double height_m, double wind, double measured_at_m);
inline constexpr double kUtciWindHeight = 10, kPetWindHeight = 1.1;
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

// ---- Classes of stress ----

enum class ComfortIndex { utci, pet };

/// A class: its name as published, and its upper bound, which belongs to it; infinite for the last.
struct StressClass {
  std::string_view name;
  double upper_c;
};
/// From the coldest up: the ten of UTCI (Błażejczyk et al. 2013) and the nine of PET (Matzarakis & Mayer 1996).
std::span<const StressClass> stress_classes(ComfortIndex index);
/// Place in stress_classes(); -1 for NaN.
int stress_class(ComfortIndex index, double value_c);

}  // namespace lockstep::urban
