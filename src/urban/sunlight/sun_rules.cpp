#include "urban/sunlight/sun_rules.hpp"

#include <fmt/format.h>

#include <array>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

// The sun of the second half of a period repeats that of the first: days from its beginning to the solstice show it. The
// sun of 22 November is lower than that of 21 January.
const std::vector<RuleDay> kFebruaryToOctober = {{2, 19}, {3, 21}, {4, 21}, {5, 21}, {6, 21}};
const std::vector<RuleDay> kJanuaryToNovember = {{1, 21}, {2, 19}, {3, 21}, {4, 21},
                                                 {5, 21}, {6, 21}, {11, 22}};

std::vector<SunRuleFacts> make_rules() {
  const std::vector<RuleDay> equinox = {{3, 21}};
  std::vector<SunRuleFacts> rules(9);
  const auto at = [&](SunRule rule) -> SunRuleFacts& { return rules[static_cast<size_t>(rule)]; };
  at(SunRule::en17037) = {.source = "EN 17037:2018, exposure to sunlight",
                          .days = equinox,
                          .levels = {{90, "minimum, 1.5 h"}, {180, "medium, 3 h"}, {240, "high, 4 h"}},
                          .choice = {{2, 1}, {3, 21}}};
  at(SunRule::din5034_winter) = {.source = "DIN 5034-1:2011, 4.4, 17 January",
                                 .days = {{1, 17}},
                                 .least_altitude_deg = 6,
                                 .levels = {{60, "1 h or more"}}};
  at(SunRule::din5034_equinox) = {.source = "DIN 5034-1:2011, 4.4, equinox",
                                  .days = equinox,
                                  .least_altitude_deg = 6,
                                  .levels = {{240, "4 h or more"}}};
  at(SunRule::tno_light) = {.source = "TNO, light norm: 19 February to 21 October",
                            .days = kFebruaryToOctober,
                            .levels = {{120, "2 h or more"}}};
  at(SunRule::tno_strict) = {.source = "TNO, strict norm: 21 January to 22 November",
                             .days = kJanuaryToNovember,
                             .levels = {{180, "3 h or more"}}};
  at(SunRule::the_hague) = {.source = "The Hague's norm: 19 February to 21 October",
                            .days = kFebruaryToOctober,
                            .least_altitude_deg = 10,
                            .levels = {{120, "2 h or more"}}};
  at(SunRule::bre209) = {.source = "BRE 209, gardens and amenity areas",
                         .days = equinox,
                         .least_altitude_deg = 10,
                         .levels = {{120, "2 h or more"}}};
  at(SunRule::solklart) = {.source = "Boverket, Solklart (1991)",
                           .days = equinox,
                           .from_minute = 9 * 60,
                           .to_minute = 17 * 60,
                           .levels = {{300, "5 h or more"}}};
  return rules;
}

}  // namespace

std::span<const Choice<SunRule>> choices(SunRule) {
  using enum SunRule;
  static constexpr auto kAll = std::to_array<Choice<SunRule>>({{"none", none},
                                                               {"en17037", en17037},
                                                               {"din5034-winter", din5034_winter},
                                                               {"din5034-equinox", din5034_equinox},
                                                               {"tno-light", tno_light},
                                                               {"tno-strict", tno_strict},
                                                               {"the-hague", the_hague},
                                                               {"bre209", bre209},
                                                               {"solklart", solklart}});
  return kAll;
}

const SunRuleFacts& facts_of(SunRule rule) {
  static const std::vector<SunRuleFacts> rules = make_rules();
  if (rule == SunRule::none) throw InternalError("no rule", "facts_of", "a rule");
  return rules[static_cast<size_t>(rule)];
}

int SunRuleFacts::grade(int64_t minutes) const {
  int reached = 0;
  for (const RuleLevel& level : levels) reached += minutes >= level.minutes;
  return reached;
}

std::vector<std::string> SunRuleFacts::labels() const {
  std::vector<std::string> all = {fmt::format("less than {:g} h", levels.front().minutes / 60.0)};
  for (const RuleLevel& level : levels) all.emplace_back(level.label);
  return all;
}

}  // namespace lockstep::urban
