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
    {RobustLoss::Kind::none, "none"},       {RobustLoss::Kind::huber, "huber"},
    {RobustLoss::Kind::cauchy, "cauchy"},   {RobustLoss::Kind::tukey, "tukey"},
    {RobustLoss::Kind::arctan, "arctan"},   {RobustLoss::Kind::geman_mcclure, "geman_mcclure"},
    {RobustLoss::Kind::soft_l1, "soft_l1"},
};

/// "A,B" as tolerant_loss(A, B).
RobustLoss parse_tolerant(const std::string& text, const std::string& numbers) {
  char *middle = nullptr, *end = nullptr;
  const double a = std::strtod(numbers.c_str(), &middle);
  const double b = *middle == ',' ? std::strtod(middle + 1, &end) : 0;
  if (*middle != ',' || end == middle + 1 || *end != 0)
    throw InputError(fmt::format("robust loss '{}'", text), "solve parse_robust_loss", "tolerant:A,B");
  return tolerant_loss(a, b);
}

}  // namespace

void check_robust_loss(const RobustLoss& loss, const std::string& where) {
  if (loss.kind == RobustLoss::Kind::expression && !loss.rho)
    throw InputError("an expression loss without its expression", where,
                     "a loss returned by expression_loss");
  if (loss.kind != RobustLoss::Kind::none && !(std::isfinite(loss.scale) && loss.scale > 0))
    throw InputError(fmt::format("scale {} of a robust loss", loss.scale), where, "a finite number above 0");
}

RobustLoss parse_robust_loss(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind == "tolerant" && colon != std::string::npos) return parse_tolerant(text, text.substr(colon + 1));
  for (const Named& n : kNames) {
    if (n.name != kind) continue;
    RobustLoss loss{n.kind, 1};
    if (n.kind == RobustLoss::Kind::none && colon == std::string::npos) return loss;
    if (colon == std::string::npos)
      throw InputError(fmt::format("robust loss '{}' without a scale", text), "solve parse_robust_loss",
                       fmt::format("{}:SCALE, the |r| from which residuals count less: {}:1.5", kind, kind));
    const std::string number = text.substr(colon + 1);
    char* end = nullptr;
    loss.scale = std::strtod(number.c_str(), &end);
    if (n.kind == RobustLoss::Kind::none || number.empty() || *end != 0)
      throw InputError(fmt::format("robust loss '{}'", text), "solve parse_robust_loss",
                       "none, or KIND:SCALE with a number above 0");
    check_robust_loss(loss, "solve parse_robust_loss");
    return loss;
  }
  throw InputError(
      fmt::format("robust loss '{}'", text), "solve parse_robust_loss",
      "none, huber, cauchy, tukey, geman_mcclure, arctan or soft_l1 with :SCALE, or tolerant:A,B");
}

std::string to_text(const RobustLoss& loss) {
  if (loss.kind == RobustLoss::Kind::none) return "none";
  for (const Named& n : kNames)
    if (n.kind == loss.kind) return fmt::format("{}:{}", n.name, loss.scale);
  return "expression";
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
    case RobustLoss::Kind::soft_l1: return 2.0 * a2 * (sqrt(1 + s / a2) - 1);
    case RobustLoss::Kind::expression: break;
  }
  return s;
}

RobustLoss expression_loss(std::function<Value(const Value& s)> rho) {
  RobustLoss loss;
  loss.kind = RobustLoss::Kind::expression;
  loss.rho = std::move(rho);
  check_robust_loss(loss, "solve expression_loss");
  return loss;
}

RobustLoss tolerant_loss(double a, double b) {
  if (!(a >= 0) || !(b > 0) || !std::isfinite(a) || !std::isfinite(b))
    throw InputError(fmt::format("a {} and b {}", a, b), "solve tolerant_loss", "a >= 0 and b > 0");
  const double at_0 = b * std::log1p(std::exp(-a / b));
  return expression_loss([=](const Value& s) { return b * softplus((s - a) / b) - at_0; });
}

RobustLoss scaled_loss(const RobustLoss& loss, double factor) {
  if (!(factor >= 0) || !std::isfinite(factor))
    throw InputError(fmt::format("factor {}", factor), "solve scaled_loss", "a finite number >= 0");
  check_robust_loss(loss, "solve scaled_loss");
  return expression_loss([=](const Value& s) { return factor * robust_loss(loss, s); });
}

RobustLoss composed_loss(const RobustLoss& outer, const RobustLoss& inner) {
  check_robust_loss(outer, "solve composed_loss"), check_robust_loss(inner, "solve composed_loss");
  return expression_loss([=](const Value& s) { return robust_loss(outer, robust_loss(inner, s)); });
}

Value robust_loss(const RobustLoss& loss, const Value& s) {
  check_robust_loss(loss, "solve robust_loss");
  if (loss.kind == RobustLoss::Kind::expression) return loss.rho(s);
  return robust_loss(loss.kind, s, s.graph().constant(loss.scale));
}

}  // namespace lockstep::solve
