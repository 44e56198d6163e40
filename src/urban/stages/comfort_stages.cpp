// The stages of thermal comfort by themselves.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "lockstep/error.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/stages/run_stage.hpp"

namespace lockstep::urban {
namespace {

io::NpzArrays utci_stage(const StageInput& in) {
  const auto ta = in.grid("ta"), rh = in.grid("rh"), va = in.grid("va"), tmrt = in.grid("tmrt");
  std::vector<double> out(ta.size());
  for (size_t k = 0; k < out.size(); ++k) out[k] = utci(ta[k], rh[k], va[k], tmrt[k]);
  return {{"utci", in.array(std::move(out))}};
}

io::NpzArrays pet_stage(const StageInput& in) {
  Person person;
  person.mass_kg = in.scalar_or("mass", person.mass_kg);
  person.age_years = in.scalar_or("age", person.age_years);
  person.height_m = in.scalar_or("height", person.height_m);
  person.activity_w = in.scalar_or("activity", person.activity_w);
  person.clothing_clo = in.scalar_or("clothing", person.clothing_clo);
  const double sex = in.scalar_or("sex", 1);
  if (sex != 1 && sex != 2)
    throw InputError(fmt::format("sex {:g}", sex), "urban stage pet", "1 (male) or 2 (female)");
  person.sex = sex == 1 ? Sex::male : Sex::female;
  const auto ta = in.grid("ta"), rh = in.grid("rh"), v = in.grid("v"), tmrt = in.grid("tmrt");
  std::vector<double> out(ta.size());
  tbb::parallel_for(size_t{0}, out.size(),
                    [&](size_t k) { out[k] = pet(ta[k], rh[k], tmrt[k], v[k], person); });
  return {{"pet", in.array(std::move(out))}};
}

}  // namespace

std::vector<RunnableStage> comfort_stages() {
  const StageArray ta{"ta", "(y,x)", "°C", "air temperature"}, rh{"rh", "(y,x)", "%", "relative humidity"},
      tmrt{"tmrt", "(y,x)", "°C", "mean radiant temperature"};
  return {{"utci",
           "universal thermal climate index",
           {ta, rh, {"va", "(y,x)", "m/s", "wind at 10 m"}, tmrt},
           {{"utci", "(y,x)", "°C", "NaN where the wind is not above 0"}},
           utci_stage},
          {"pet",
           "physiologically equivalent temperature",
           {ta,
            rh,
            {"v", "(y,x)", "m/s", "wind at 1.1 m"},
            tmrt,
            {"mass", "()", "kg", "of the person; 75", true},
            {"age", "()", "years", "35", true},
            {"height", "()", "m", "1.8", true},
            {"activity", "()", "W", "80", true},
            {"clothing", "()", "clo", "0.9", true},
            {"sex", "()", "", "1 male (default), 2 female", true}},
           {{"pet", "(y,x)", "°C", ""}},
           pet_stage}};
}

}  // namespace lockstep::urban
