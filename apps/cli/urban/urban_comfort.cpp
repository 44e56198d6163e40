// `lockstep urban utci` and `urban pet`: thermal comfort of one place.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

using urban::ComfortIndex;

struct ComfortCommand {
  std::optional<double> ta, rh, wind, tmrt, measured_at;
  urban::Person person;
  std::string sex = "male";
};

double wind_of(const ComfortCommand& arguments, double height_m) {
  const double wind = *arguments.wind;
  return arguments.measured_at ? urban::wind_at(height_m, wind, *arguments.measured_at) : wind;
}

int print(Session& session, ComfortIndex index, double value, nlohmann::ordered_json document) {
  if (!std::isfinite(value))
    throw InputError("no state of the body balances there", "urban pet", "air as on Earth");
  const int place = urban::stress_class(index, value);
  document["stress"] = urban::stress_classes(index)[static_cast<size_t>(place)].name;
  session.finish(std::move(document), fmt::format("{:.3f}", value));
  return 0;
}

int run_utci(const CommonOptions& common, const ComfortCommand& a) {
  Session session(common);
  const double wind = wind_of(a, urban::kUtciWindHeight);
  const double value = urban::utci(*a.ta, *a.rh, wind, *a.tmrt);
  return print(
      session, ComfortIndex::utci, value,
      {{"utci", value}, {"wind_10m", wind}, {"fitted", urban::utci_is_fitted(*a.ta, *a.rh, wind, *a.tmrt)}});
}

int run_pet(const CommonOptions& common, const ComfortCommand& a) {
  Session session(common);
  const double wind = wind_of(a, urban::kPetWindHeight);
  urban::Person person = a.person;
  if (a.sex == "female") person.sex = urban::Sex::female;
  const double value = urban::pet(*a.ta, *a.rh, *a.tmrt, wind, person);
  return print(session, ComfortIndex::pet, value, {{"pet", value}, {"wind_1m1", wind}});
}

void add_air(CLI::App& app, ComfortCommand& arguments, const std::string& wind, NumberRange wind_range) {
  add_number(app, "--ta", arguments.ta, "temperature of the air", "DEG", {-90, 70});
  add_number(app, "--rh", arguments.rh, "its relative humidity", "PERCENT", {0, 100});
  add_number(app, "--wind", arguments.wind, wind, "M/S", wind_range);
  add_number(app, "--tmrt", arguments.tmrt, "mean radiant temperature", "DEG", {-90, 150});
  for (const char* name : {"--ta", "--rh", "--wind", "--tmrt"}) require(app, name);
  add_number(app, "--wind-height", arguments.measured_at,
             "height at which the wind was measured, if another; it is carried over by a power law", "M",
             {0, 500, true});
}

void add_index(CommandList& commands, CLI::App& urban, bool pet) {
  Command& command =
      pet ? add_command(commands, urban, "pet", "physiologically equivalent temperature of one place")
          : add_command(commands, urban, "utci", "universal thermal climate index of one place");
  auto arguments = std::make_shared<ComfortCommand>();
  CLI::App& app = *command.app;
  if (!pet) {
    add_air(app, *arguments, "10 m above ground, above 0", {0, 200, true});
    add_common(command, "lockstep urban utci --ta 30 --rh 45 --wind 2 --tmrt 60");
    command.run = [&command, arguments] { return run_utci(command.common, *arguments); };
    return;
  }
  add_air(app, *arguments, "at the body, 1.1 m above ground", {0, 200});
  urban::Person& person = arguments->person;
  add_number(app, "--mass", person.mass_kg, "of the person (default 75)", "KG", {10, 300});
  add_number(app, "--age", person.age_years, "in years (default 35)", "YEARS", {1, 120});
  add_number(app, "--height", person.height_m, "of the person (default 1.8)", "M", {0.6, 2.5});
  add_number(app, "--activity", person.activity_w, "heat of work (default 80)", "W", {0, 1000});
  add_number(app, "--clothing", person.clothing_clo, "insulation by clothes (default 0.9)", "CLO", {0.1, 4});
  add_choice(app, "--sex", arguments->sex, "for the basal metabolism", {"male", "female"});
  add_common(command, "lockstep urban pet --ta 30 --rh 45 --wind 1 --tmrt 60");
  command.run = [&command, arguments] { return run_pet(command.common, *arguments); };
}

}  // namespace

void add_urban_comfort(CommandList& commands, CLI::App& urban) {
  for (const bool pet : {false, true}) add_index(commands, urban, pet);
}

}  // namespace lockstep::cli
