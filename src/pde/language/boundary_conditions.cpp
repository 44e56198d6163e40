#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/platform/from_chars.hpp"
#include "lockstep/pde.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::pde {

namespace {

struct RuleName {
  std::string_view name;
  Rule rule;
  std::string_view value = {};  // the letter of its number; empty: takes none
  bool listed = true;
};
constexpr RuleName kRules[] = {
    {"periodic", Rule::periodic},
    {"clamp", Rule::clamp},
    {"reflect_even", Rule::reflect_even},
    {"reflect_odd", Rule::reflect_odd},
    {"reflect", Rule::reflect_even, "", false},
    {"free_slip", Rule::free_slip},
    {"no_slip", Rule::no_slip},
    {"dirichlet_face", Rule::dirichlet_face, "b"},
    {"ghost_zero", Rule::ghost},
    {"ghost", Rule::ghost, "c"},
    {"node_mirror", Rule::node_mirror},
    {"one_sided1", Rule::one_sided1},
    {"one_sided2", Rule::one_sided2},
};

Side parse_side(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view rule = text.substr(0, colon);
  for (const RuleName& r : kRules) {
    if (r.name != rule) continue;
    if (r.value.empty()) {
      if (colon != std::string_view::npos)
        throw bad_text(fmt::format("boundary {} with a value", rule), "no value",
                       fmt::format("boundary {}", text));
      return {r.rule, 0};
    }
    if (colon != std::string_view::npos && text.substr(colon + 1).starts_with('@')) {
      const std::string_view parameter = text.substr(colon + 2);
      if (parameter.empty())
        throw bad_text(fmt::format("boundary {} without a parameter's name", rule),
                       fmt::format("{}:@NAME", rule), fmt::format("boundary {}", text));
      return {r.rule, 0, std::string(parameter)};
    }
    double value = NAN;
    if (colon != std::string_view::npos) {
      const std::string_view digits = text.substr(colon + 1);
      const auto [end, error] = platform::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) value = NAN;
    }
    if (!std::isfinite(value))
      throw bad_text(fmt::format("boundary {} without a number", rule),
                     fmt::format("{0}:NUMBER or {0}:@NAME", rule), fmt::format("boundary {}", text));
    return {r.rule, value};
  }
  throw bad_text(fmt::format("unknown boundary \"{}\"", rule), boundary_rules(), "boundary");
}

std::string side_text(const Side& s) {
  if (s.rule == Rule::ghost && s.value == 0 && s.parameter.empty()) return "ghost_zero";
  for (const RuleName& r : kRules)
    if (r.rule == s.rule && r.name != "ghost_zero")
      return r.value.empty()       ? std::string(r.name)
             : s.parameter.empty() ? fmt::format("{}:{}", r.name, s.value)
                                   : fmt::format("{}:@{}", r.name, s.parameter);
  return "?";
}

}  // namespace

std::string boundary_rules() {
  std::string list;
  for (const RuleName& r : kRules)
    if (r.listed)
      list += fmt::format("{}{}{}{}", list.empty() ? "" : ", ", r.name, r.value.empty() ? "" : ":", r.value);
  return list;
}

BoundaryConditions BoundaryConditions::parse(std::string_view text) {
  BoundaryConditions b;
  std::array<std::array<std::optional<Side>, 2>, 3> given;
  std::vector<std::string_view> named;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    at = comma + 1;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (std::find(named.begin(), named.end(), "") != named.end())
        throw bad_text("two rules for all sides", "one, then axes or sides",
                       fmt::format("boundary {}", text));
      named.push_back("");
      const Side side = parse_side(part);
      for (auto& axis : given) axis = {side, side};
      continue;
    }
    const std::string_view where = part.substr(0, equals);
    const int axis = where.empty() ? -1 : where[0] - 'x';
    const bool one = where.size() == 2 && (where[1] == '-' || where[1] == '+');
    if (axis < 0 || axis > 2 || (where.size() != 1 && !one))
      throw bad_text(fmt::format("unknown side \"{}\"", where), "x, y, z, x-, x+, y-, y+, z- or z+",
                     fmt::format("boundary {}", text));
    if (std::find(named.begin(), named.end(), where) != named.end())
      throw bad_text(fmt::format("{} is named twice", where), "one rule for each axis or side",
                     fmt::format("boundary {}", text));
    named.push_back(where);
    const Side side = parse_side(part.substr(equals + 1));
    for (int end = 0; end < 2; ++end)
      if (!one || (where[1] == '+') == (end == 1)) given[size_t(axis)][size_t(end)] = side;
  }
  for (size_t axis = 0; axis < 3; ++axis)
    for (size_t end = 0; end < 2; ++end) {
      // A side that is not named follows the other side's rule only where both are periodic.
      b.sides[axis][end] = given[axis][end].value_or(Side{});
      if ((b.sides[axis][0].rule == Rule::periodic) != (b.sides[axis][1].rule == Rule::periodic) && end == 1)
        throw bad_text(fmt::format("one side of {} is periodic", char('x' + axis)),
                       "both sides of an axis periodic, or none", fmt::format("boundary {}", text));
    }
  return b;
}

std::string BoundaryConditions::text() const {
  std::string out;
  for (size_t axis = 0; axis < 3; ++axis) {
    const char letter = char('x' + axis);
    if (sides[axis][0] == sides[axis][1])
      out += fmt::format("{}{}={}", out.empty() ? "" : ",", letter, side_text(sides[axis][0]));
    else
      out += fmt::format("{}{}-={},{}+={}", out.empty() ? "" : ",", letter, side_text(sides[axis][0]), letter,
                         side_text(sides[axis][1]));
  }
  if (sides[0] == sides[1] && sides[1] == sides[2] && sides[0][0] == sides[0][1])
    return side_text(sides[0][0]);
  return out;
}

std::string_view name(Path path) {
  return path == Path::automatic ? "automatic" : name_among(choices(path), path);
}

}  // namespace lockstep::pde
