// Thermal comfort at one point from air temperature, relative humidity, wind speed and mean radiant temperature: UTCI and
// PET in double precision. Temperatures are in °C, humidity in %, wind speeds in m/s.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lockstep/schema.hpp"

namespace lockstep::urban {

/// Universal Thermal Climate Index (°C) by the operational polynomial of 210 terms (Bröde et al. 2012,
/// doi:10.1007/s00484-011-0454-1), with the saturation vapour pressure of Hardy (1998). Arguments are not clamped: the
/// polynomial is evaluated even if utci_is_fitted() is false. NaN for a wind that is not positive and if an argument is
/// NaN.
double utci(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

/// True in the range of the fit of the polynomial: Ta of -50 … 50 °C, Tmrt - Ta of -30 … 70 K, wind of 0.5 … 17 m/s,
/// vapour pressure up to 5 kPa.
bool utci_is_fitted(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

enum class Sex { male, female };

/// The person of PET. The default is the standard person of VDI 3787.
struct Person {
  double mass_kg = 75, age_years = 35, height_m = 1.8;
  double activity_w = 80;     ///< in addition to the basal metabolism
  double clothing_clo = 0.9;  ///< 0.1 … 4
  Sex sex = Sex::male;
};

/// Physiologically Equivalent Temperature (°C) by the heat balance model MEMI (Höppe 1999, doi:10.1007/s004840050118): the
/// air temperature of an indoor room in which core and skin have the same temperatures. `wind_1m1` is the wind at 1.1 m.
/// As published, the search for the clothing temperature stops up to 0.001 K beyond the balance. PET as a function of
/// Tmrt therefore has steps of 0.03 K, or 0.1 K in hot wind. NaN for an argument that is not finite, for a negative wind, and if
/// no state of the body is balanced. Throws InputError for an invalid person.
double pet(double ta_c, double rh_percent, double tmrt_c, double wind_1m1, const Person& person = {});

/// Wind speed at `height_m` above the ground from `wind` at `measured_at_m`, by the power law with exponent 0.2.
double wind_at(double height_m, double wind, double measured_at_m);
inline constexpr double kUtciWindHeight = 10, kPetWindHeight = 1.1;

enum class ComfortIndex { utci, pet };

/// A class of thermal stress: its published name and its inclusive upper bound, which is infinite for the last.
struct StressClass {
  std::string_view name;
  double upper_c;
};
/// The classes from the coldest on: ten for UTCI (Błażejczyk et al. 2013) and nine for PET (Matzarakis and Mayer 1996).
std::span<const StressClass> stress_classes(ComfortIndex index);
/// Index in stress_classes(); -1 for NaN.
int stress_class(ComfortIndex index, double value_c);

// ---- One point, as in the commands `urban utci` and `urban pet` ----

struct AirOptions {
  double ta_c = 20, rh_percent = 50, wind = 1, tmrt_c = 20;
  std::optional<double>
      wind_height_m;  ///< height of `wind`, which is converted; default: the height of the index
};
struct UtciOptions : AirOptions {};
struct PetOptions : AirOptions {
  Person person;
};

struct ComfortResult {
  double value = 0;
  double wind = 0;          ///< at the height of the index
  std::string_view stress;  ///< name of the class
};
struct UtciResult : ComfortResult {
  bool fitted = true;  ///< utci_is_fitted()
};
struct PetResult : ComfortResult {};

/// Throw InputError for invalid options, and if no state of the body is balanced.
UtciResult run(const UtciOptions& options);
PetResult run(const PetOptions& options);

std::span<const Choice<Sex>> choices(Sex);
void describe(Schema<Person>& s);
void describe(Schema<UtciOptions>& s);
void describe(Schema<PetOptions>& s);

}  // namespace lockstep::urban
