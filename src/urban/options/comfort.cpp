// Names and options of thermal comfort at one place.
#include "lockstep/urban/comfort.hpp"

#include <array>
#include <cmath>

#include "core/reports/log.hpp"
#include "urban/comfort/comfort.hpp"

namespace lockstep::urban {

std::span<const Choice<Sex>> choices(Sex) {
  static constexpr auto kAll = std::to_array<Choice<Sex>>({{"male", Sex::male}, {"female", Sex::female}});
  return kAll;
}

namespace {

template <class O>
void describe_air(Schema<O>& s, const char* wind) {
  s.option("ta", &O::ta_c, "air temperature")
      .member("ta_c")
      .at_least(-90)
      .at_most(70)
      .shown("DEG")
      .required();
  s.option("rh", &O::rh_percent, "relative humidity of the air")
      .member("rh_percent")
      .at_least(0)
      .at_most(100)
      .shown("PERCENT")
      .required();
  s.option("wind", &O::wind, wind).at_least(0).at_most(200).shown("M/S").required();
  s.option("tmrt", &O::tmrt_c, "mean radiant temperature")
      .member("tmrt_c")
      .at_least(-90)
      .at_most(150)
      .shown("DEG")
      .required();
  s.option("wind_height", &O::wind_height_m,
           "height at which the wind was measured, if different; converted by a power law")
      .member("wind_height_m")
      .above(0)
      .at_most(500)
      .shown("M");
}

double wind_of(const AirOptions& o, double height_m) {
  return o.wind_height_m ? wind_at(height_m, o.wind, *o.wind_height_m) : o.wind;
}

void set_value(ComfortResult& result, ComfortIndex index, const OptionList& list, double value) {
  if (!std::isfinite(value))
    throw list.error({OptionError::Kind::invalid, "", "no state of the body balances there",
                      "air temperature, humidity and wind as they occur on Earth", ""});
  result.value = value;
  result.stress = stress_classes(index)[static_cast<size_t>(stress_class(index, value))].name;
}

}  // namespace

void describe(Schema<Person>& s) {
  s.of("urban::Person");
  s.option("mass", &Person::mass_kg, "mass of the person")
      .member("mass_kg")
      .at_least(10)
      .at_most(300)
      .shown("KG");
  s.option("age", &Person::age_years, "age in years")
      .member("age_years")
      .at_least(1)
      .at_most(120)
      .shown("YEARS");
  s.option("height", &Person::height_m, "height of the person")
      .member("height_m")
      .at_least(0.6)
      .at_most(2.5)
      .shown("M");
  s.option("activity", &Person::activity_w, "heat of activity")
      .member("activity_w")
      .at_least(0)
      .at_most(1000)
      .shown("W");
  s.option("clothing", &Person::clothing_clo, "insulation of the clothing")
      .member("clothing_clo")
      .at_least(0.1)
      .at_most(4)
      .shown("CLO");
  s.option("sex", &Person::sex, "sex, for the basal metabolism");
}

void describe(Schema<UtciOptions>& s) {
  s.of("urban::UtciOptions");
  describe_air(s, "wind at 10 m above ground, above 0");
  s.change("wind").above(0);
}

void describe(Schema<PetOptions>& s) {
  s.of("urban::PetOptions");
  describe_air(s, "wind at the body, 1.1 m above ground");
  s.include(&PetOptions::person);
}

UtciResult run(const UtciOptions& o) {
  const OptionList& list = schema_of<UtciOptions>();
  list.check(&o);
  UtciResult result;
  result.wind = wind_of(o, kUtciWindHeight);
  result.fitted = utci_is_fitted(o.ta_c, o.rh_percent, result.wind, o.tmrt_c);
  if (!result.fitted)
    logging::warning(
        "the state is outside of UTCI's fit: air of -50 to 50 °C, Tmrt of {:g} to {:g} K above it, wind of "
        "{:g} to 17 m/s at 10 m, vapour to 5 kPa",
        kUtciLeastExcess, kUtciMostExcess, kUtciLeastWind);
  set_value(result, ComfortIndex::utci, list, utci(o.ta_c, o.rh_percent, result.wind, o.tmrt_c));
  return result;
}

PetResult run(const PetOptions& o) {
  const OptionList& list = schema_of<PetOptions>();
  list.check(&o);
  PetResult result;
  result.wind = wind_of(o, kPetWindHeight);
  set_value(result, ComfortIndex::pet, list, pet(o.ta_c, o.rh_percent, o.tmrt_c, result.wind, o.person));
  return result;
}

}  // namespace lockstep::urban
