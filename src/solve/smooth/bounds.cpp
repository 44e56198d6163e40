// Coordinates of a Smoother's blocks that are held, for good or while they are at a bound.
#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/smooth/smoother_state.hpp"

namespace lockstep::solve {

void Smoother::fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates) {
  State& s = *state_;
  const std::string where = "solve smoother fix_coordinates";
  s.registry.state().check_unused(where);
  const int32_t variable = s.variable(set, block, where);
  const State::Set& own = s.sets[size_t(set.id)];
  check_coordinates(*own.manifold, own.name, coordinates, where);
  State::Variable& v = s.variables[size_t(variable)];
  const std::vector<double> step = s.limited_step(variable);
  v.held.clear();
  for (int c = 0; c < own.manifold->manifold.tangent; ++c)
    if (std::ranges::find(coordinates, c) != coordinates.end())
      v.held.push_back({c, v.fixed ? 0 : step[size_t(c)]});
  for (State::Bound& b : v.bounds)
    if (v.holds(b.coordinate)) b.at = 0;
  s.touch_clique(variable);
}

void Smoother::bound(BlockSet set, int64_t block, int component, double lower, double upper) {
  State& s = *state_;
  const std::string where = "solve smoother bound";
  s.registry.state().check_unused(where);
  const int32_t variable = s.variable(set, block, where);
  const State::Set& own = s.sets[size_t(set.id)];
  const int coordinate = bounded_coordinate(*own.manifold, own.name, block, component, lower, upper, where);
  std::vector<State::Bound>& bounds = s.variables[size_t(variable)].bounds;
  std::erase_if(bounds, [&](const State::Bound& b) { return b.component == component; });
  std::erase(s.bounded, variable);
  if (std::isfinite(lower) || std::isfinite(upper))
    bounds.push_back({component, coordinate, lower, upper, 0});
  if (!bounds.empty()) s.bounded.push_back(variable);
  s.touch_clique(variable);
}

void Smoother::State::touch_clique(int32_t variable) {
  if (tree.clique_of(variable) >= 0) touched.push_back(variable);
}

std::vector<HeldStep> Smoother::State::held_steps(int32_t variable) const {
  const Variable& v = variables[size_t(variable)];
  std::vector<HeldStep> held = v.held;
  for (const Bound& b : v.bounds)
    if (b.at != 0 && !v.holds(b.coordinate))
      held.push_back(
          {b.coordinate, (b.at < 0 ? b.lower : b.upper) - points[size_t(variable)][size_t(b.component)]});
  return held;
}

std::vector<double> Smoother::State::limited_step(int32_t variable) const {
  const std::span<const double> step = tree.step(variable);
  std::vector<double> out(step.begin(), step.end());
  if (out.empty()) return out;  // fixed
  const Variable& v = variables[size_t(variable)];
  for (const Bound& b : v.bounds) {
    if (v.holds(b.coordinate)) continue;
    const double x = points[size_t(variable)][size_t(b.component)];
    out[size_t(b.coordinate)] = std::clamp(out[size_t(b.coordinate)], b.lower - x, b.upper - x);
  }
  return out;
}

void Smoother::State::limit_values(int32_t variable, BlockValues& values) const {
  const Variable& v = variables[size_t(variable)];
  for (const Bound& b : v.bounds) {
    double& x = values[size_t(b.component)];
    if (v.fixed || v.holds(b.coordinate)) continue;
    x = b.at < 0 ? b.lower : b.at > 0 ? b.upper : std::clamp(x, b.lower, b.upper);
  }
}

int Smoother::State::wrong_side(int32_t variable, const Bound& b) const {
  constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();
  if (b.at != 0) {
    if (b.lower == b.upper) return b.at;
    const CliqueTree::Slope slope = tree.held_slope(variable, b.coordinate);
    return -b.at * slope.value < -slope.rounding ? 0 : b.at;
  }
  const double point = points[size_t(variable)][size_t(b.component)],
               x = point + tree.step(variable)[size_t(b.coordinate)];
  const auto beyond = [&](double over, double bound) {
    return over > kRounding * std::max(std::abs(point), std::abs(bound));
  };
  if (b.lower == b.upper || beyond(b.lower - x, b.lower)) return -1;
  return beyond(x - b.upper, b.upper) ? 1 : 0;
}

std::vector<Smoother::State::Exchange> Smoother::State::exchanges(ExchangeRule& rule) const {
  constexpr int kTries = 3;
  std::vector<Exchange> all;
  for (const int32_t v : bounded) {
    const Variable& own = variables[size_t(v)];
    if (tree.clique_of(v) < 0) continue;
    for (size_t k = 0; k < own.bounds.size(); ++k)
      if (!own.holds(own.bounds[k].coordinate))
        if (const int at = wrong_side(v, own.bounds[k]); at != own.bounds[k].at) all.push_back({v, k, at});
  }
  if (all.size() < rule.fewest)
    rule.fewest = all.size(), rule.tries = kTries;
  else if (rule.tries > 0)
    --rule.tries;
  else
    all.erase(all.begin(), all.end() - 1);
  return all;
}

}  // namespace lockstep::solve
