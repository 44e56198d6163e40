// The robust losses as text and as Values.
#include "solve/model/robust_loss.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace lockstep::solve {

namespace {

struct Named {
  RobustLoss::Kind kind;
  std::string_view name;
};
constexpr Named kNames[] = {
    {RobustLoss::Kind::none, "none"},     {RobustLoss::Kind::huber, "huber"},
    {RobustLoss::Kind::cauchy, "cauchy"}, {RobustLoss::Kind::tukey, "tukey"},
    {RobustLoss::Kind::arctan, "arctan"}, {RobustLoss::Kind::geman_mcclure, "geman_mcclure"},
};

}  // namespace

void check_robust_loss(const RobustLoss& loss, const std::string& where) {
  if (loss.kind != RobustLoss::Kind::none && !(std::isfinite(loss.scale) && loss.scale > 0))
    throw InputError(fmt::format("scale {} of a robust loss", loss.scale), where, "a finite number above 0");
}

RobustLoss parse_robust_loss(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  for (const Named& n : kNames) {
    if (n.name != kind) continue;
    RobustLoss loss{n.kind, 1};
    if (colon == std::string::npos) return loss;
    const std::string number = text.substr(colon + 1);
    char* end = nullptr;
    loss.scale = std::strtod(number.c_str(), &end);
    if (n.kind == RobustLoss::Kind::none || number.empty() || *end != 0)
      throw InputError(fmt::format("robust loss '{}'", text), "solve parse_robust_loss",
                       "none, or KIND:SCALE with a number above 0");
    check_robust_loss(loss, "solve parse_robust_loss");
    return loss;
  }
  throw InputError(fmt::format("robust loss '{}'", text), "solve parse_robust_loss",
                   "none, huber, cauchy, tukey, geman_mcclure or arctan, with :SCALE");
}

Value robust_loss(RobustLoss::Kind kind, const Value& s, const Value& scale) {
  const Value a2 = scale * scale;
  switch (kind) {
    case RobustLoss::Kind::none: return s;
    case RobustLoss::Kind::huber: {
      const auto inside = s <= a2;
      return select(inside, s, 2.0 * scale * sqrt(select(inside, 1, s)) - a2);
    }
    case RobustLoss::Kind::cauchy: return a2 * log1p(s / a2);
    case RobustLoss::Kind::tukey: {
      const auto inside = s <= a2;
      return a2 * (1.0 / 3) * (1 - select(inside, cube(1 - s / a2), 0));
    }
    case RobustLoss::Kind::geman_mcclure: return s / (1 + s / a2);
    case RobustLoss::Kind::arctan: return scale * atan(s / scale);
  }
  return s;
}

Value robust_loss(const RobustLoss& loss, const Value& s) {
  check_robust_loss(loss, "solve robust_loss");
  return robust_loss(loss.kind, s, s.graph().constant(loss.scale));
}

}  // namespace lockstep::solve
