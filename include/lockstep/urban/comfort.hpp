// Thermal comfort of one place from air temperature, humidity, wind and mean radiant temperature: UTCI and PET in double
// precision. Temperatures in °C, humidity in %, wind in m/s.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lockstep/schema.hpp"

namespace lockstep::urban {

/// Universal Thermal Climate Index (°C): the operational polynomial of 210 terms (Bröde et al. 2012,
/// doi:10.1007/s00484-011-0454-1), with the saturation pressure of Hardy (1998). Nothing is clamped: outside of
/// utci_is_fitted() the polynomial is evaluated unchanged. NaN for a wind that is not positive and where an argument is NaN.
double utci(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

/// Whether the polynomial was fitted there: -50 … 50 °C, Tmrt - Ta of -30 … 70 K, wind of 0.5 … 17 m/s, vapour
/// pressure to 5 kPa.
bool utci_is_fitted(double ta_c, double rh_percent, double wind_10m, double tmrt_c);

enum class Sex { male, female };

/// The person of PET. The default is the standard person of VDI 3787.
struct Person {
  double mass_kg = 75, age_years = 35, height_m = 1.8;
  double activity_w = 80;     ///< in addition to the basal metabolism
  double clothing_clo = 0.9;  ///< 0.1 … 4
  Sex sex = Sex::male;
};

/// Physiologically Equivalent Temperature (°C) by the balance of MEMI (Höppe 1999, doi:10.1007/s004840050118): the
/// indoor air temperature at which core and skin are equally warm. Wind is that at 1.1 m. As published, the clothing
/// temperature is searched for in steps that end up to 0.001 K beyond the balance, so PET as a function of Tmrt has
/// steps of 0.03 K, in hot wind of 0.1 K. NaN for an argument that is NaN, for a negative wind, and if no state of
/// the body balances. Throws InputError for an invalid person.
double pet(double ta_c, double rh_percent, double tmrt_c, double wind_1m1, const Person& person = {});

/// Wind at one height from the wind at another (m) above the ground, by the power law with exponent 0.2.
double wind_at(double height_m, double wind, double measured_at_m);
inline constexpr double kUtciWindHeight = 10, kPetWindHeight = 1.1;

enum class ComfortIndex { utci, pet };

/// A class: its published name, and its upper bound, inclusive; infinite for the last.
struct StressClass {
  std::string_view name;
  double upper_c;
};
/// From the coldest: the ten of UTCI (Błażejczyk et al. 2013) and the nine of PET (Matzarakis & Mayer 1996).
std::span<const StressClass> stress_classes(ComfortIndex index);
/// Index in stress_classes(); -1 for NaN.
int stress_class(ComfortIndex index, double value_c);

// ---- One place, as in the commands `urban utci` and `urban pet` ----

struct AirOptions {
  double ta_c = 20, rh_percent = 50, wind = 1, tmrt_c = 20;
  std::optional<double>
      wind_height_m;  ///< of the sensor, from which the wind is converted; default: that of the index
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

/// Throw InputError for invalid options, and if no state of the body balances.
UtciResult run(const UtciOptions& options);
PetResult run(const PetOptions& options);

std::span<const Choice<Sex>> choices(Sex);
void describe(Schema<Person>& s);
void describe(Schema<UtciOptions>& s);
void describe(Schema<PetOptions>& s);

}  // namespace lockstep::urban
