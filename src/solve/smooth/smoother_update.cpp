// Updates: blocks that moved are relinearised, the affected part of the tree is eliminated, old blocks leave.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/smooth/smoother_state.hpp"

namespace lockstep::solve {
namespace {

enum Group : uint8_t { kLeaving = 0, kMiddle = 1, kLast = 2 };
constexpr size_t kMostExchanges = 50;

void unique(std::vector<int32_t>& list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
}

}  // namespace

std::vector<BlockValues> Smoother::State::moved_values(std::span<const int32_t> which) const {
  std::vector<BlockValues> out(which.size()), steps(which.size());
  std::vector<std::vector<size_t>> curved(sets.size());  // by set: those that a kernel moves
  for (size_t k = 0; k < which.size(); ++k) {
    out[k] = points[size_t(which[k])];
    const Variable& v = variables[size_t(which[k])];
    steps[k] = limited_step(which[k]);
    if (std::ranges::all_of(steps[k], [](double d) { return d == 0; })) continue;
    if (sets[size_t(v.set)].manifold->euclidean)
      for (size_t c = 0; c < steps[k].size(); ++c) out[k][c] += steps[k][c];
    else
      curved[size_t(v.set)].push_back(k);
  }
  const Device& device = context.cpu();
  for (size_t s = 0; s < sets.size(); ++s) {
    const int64_t n = int64_t(curved[s].size());
    if (n == 0) continue;
    const Manifold& manifold = sets[s].manifold->manifold;
    std::vector<double> state, delta;
    for (const size_t k : curved[s]) {
      state.insert(state.end(), out[k].begin(), out[k].end());
      delta.insert(delta.end(), steps[k].begin(), steps[k].end());
    }
    const Buffer to = device.allocate(Storage::f64, {n, manifold.ambient});
    device.launch(retract_kernel(sets[s].manifold, Storage::f64, Storage::f64), {n},
                  Arguments()
                      .set("state", device.upload(std::span<const double>(state), {n, manifold.ambient}))
                      .set("step", device.upload(std::span<const double>(delta), {n, manifold.tangent}))
                      .set("free", device.upload(std::vector<uint32_t>(size_t(n), 1)))
                      .set("candidate", to));
    device.read(to, state.data(), to.bytes());
    for (size_t i = 0; i < curved[s].size(); ++i)
      std::copy_n(state.begin() + int64_t(i) * manifold.ambient, manifold.ambient, out[curved[s][i]].begin());
  }
  for (size_t k = 0; k < which.size(); ++k) limit_values(which[k], out[k]);
  return out;
}

void Smoother::State::linearise(const Device& device, std::span<const int32_t> which) {
  std::vector<std::vector<SmoothFactor*>> by_group(groups.size());
  for (const int32_t f : which) {
    SmoothFactor& factor = factors[size_t(f)];
    if (factor.base)
      linearise_prior(factor);
    else
      by_group[size_t(factor.group)].push_back(&factor);
  }
  for (size_t g = 0; g < groups.size(); ++g)
    if (!by_group[g].empty()) groups[g]->linearise(device, by_group[g], points, tree.widths());
}

namespace {

/// One update while it is made.
class SmootherChange {
 public:
  explicit SmootherChange(Smoother::State& state) : s_(state) {}

  SmootherUpdate run(const Device& device, bool all) {
    find_leaving();
    find_moved(all);
    try {
      linearise(device);
      report_.eliminated = eliminate(s_.touched, true);
    } catch (...) {
      undo();
      throw;
    }
    s_.moved.clear();
    report_.left = int64_t(leaving_.size() + bare_.size());
    commit();
    settle_bounds();
    report_.cliques = s_.tree.clique_count();
    return report_;
  }

 private:
  void find_leaving() {
    if (!std::isfinite(s_.options.lag)) return;
    for (size_t v = 0; v < s_.variables.size(); ++v) {
      const Smoother::State::Variable& own = s_.variables[v];
      if (own.set < 0 || !(own.time < s_.latest - s_.options.lag)) continue;
      if (!own.fixed)
        leaving_.push_back(int32_t(v));
      else if (own.factors.empty())
        bare_.push_back(int32_t(v));
    }
  }

  /// Blocks to be relinearised.
  void find_moved(bool all) {
    const auto far = [&](int32_t v) {
      const double most =
          all ? 0 : s_.options.relinearize * s_.sets[size_t(s_.variables[size_t(v)].set)].unit;
      return std::ranges::any_of(s_.tree.step(v), [&](double d) { return std::abs(d) > most; });
    };
    if (all) {
      for (size_t v = 0; v < s_.variables.size(); ++v)
        if (s_.variables[v].set >= 0 && far(int32_t(v))) moved_.push_back(int32_t(v));
    } else {
      for (const int32_t v : s_.moved)
        if (far(v)) moved_.push_back(v);
      unique(moved_);
    }
    report_.relinearized = int64_t(moved_.size());
  }

  void linearise(const Device& device) {
    const std::vector<BlockValues> to = s_.moved_values(moved_);
    std::vector<int32_t> which = s_.new_factors;
    for (size_t k = 0; k < moved_.size(); ++k) {
      const int32_t v = moved_[k];
      const std::span<double> step = s_.tree.step(v);
      undo_.points.emplace_back(v, std::exchange(s_.points[size_t(v)], to[k]));
      undo_.steps.emplace_back(v, std::vector<double>(step.begin(), step.end()));
      undo_.held.emplace_back(v, s_.variables[size_t(v)].held);
      std::ranges::fill(step, 0.0);
      for (HeldStep& h : s_.variables[size_t(v)].held) h.step = 0;
      const std::vector<int32_t>& own = s_.variables[size_t(v)].factors;
      which.insert(which.end(), own.begin(), own.end());
    }
    unique(which);
    for (const int32_t f : which) {
      SmoothFactor& factor = s_.factors[size_t(f)];
      undo_.quadratics.push_back({f, std::move(factor.gram), factor.cost});
    }
    s_.linearise(device, which);
  }

  void undo() {
    for (auto& [v, point] : undo_.points) s_.points[size_t(v)] = std::move(point);
    for (const auto& [v, step] : undo_.steps) std::ranges::copy(step, s_.tree.step(v).begin());
    for (auto& [v, held] : undo_.held) s_.variables[size_t(v)].held = std::move(held);
    for (auto& q : undo_.quadratics) {
      s_.factors[size_t(q.factor)].gram = std::move(q.gram);
      s_.factors[size_t(q.factor)].cost = q.cost;
    }
  }

  /// The cliques of these pivots, with all that is new, leaves or moved; gives the number of blocks. `news`: what changed
  /// is eliminated last from now on.
  int64_t eliminate(std::vector<int32_t> pivots, bool news) {
    std::vector<int32_t> anywhere = leaving_, newest = s_.new_variables;
    for (const int32_t f : s_.new_factors) {
      const std::vector<int32_t>& own = s_.factors[size_t(f)].variables;
      pivots.insert(pivots.end(), own.begin(), own.end());
    }
    newest.insert(newest.end(), pivots.begin(), pivots.end());
    unique(newest);
    last_ = news && !newest.empty() ? newest : s_.last;
    anywhere.insert(anywhere.end(), moved_.begin(), moved_.end());
    std::erase_if(pivots, [&](int32_t v) { return s_.tree.clique_of(v) < 0; });
    affected_ = s_.tree.affected(pivots, anywhere);
    std::vector<int32_t>& variables = affected_.variables;
    variables.insert(variables.end(), s_.new_variables.begin(), s_.new_variables.end());
    std::ranges::sort(variables);
    group_.assign(s_.variables.size(), 0xff);  // of an affected variable
    for (const int32_t v : variables) {
      group_[size_t(v)] = kMiddle;
      s_.tree.hold(v, s_.held_steps(v));
    }
    for (const int32_t v : last_)
      if (group_[size_t(v)] != 0xff) group_[size_t(v)] = kLast;
    for (const int32_t v : leaving_) group_[size_t(v)] = kLeaving;
    std::vector<int32_t> groups;
    std::vector<int32_t> inside;  // factors whose variables are all affected
    for (const int32_t v : variables) {
      groups.push_back(group_[size_t(v)]);
      for (const int32_t f : s_.variables[size_t(v)].factors) {
        const SmoothFactor& factor = s_.factors[size_t(f)];
        if (factor.variables[0] == v &&
            std::ranges::all_of(factor.variables, [&](int32_t u) { return group_[size_t(u)] != 0xff; }))
          inside.push_back(f);
      }
    }
    std::vector<QuadraticView> views;
    for (const int32_t f : inside) {
      const SmoothFactor& factor = s_.factors[size_t(f)];
      int64_t size = 1;
      for (const int32_t v : factor.variables) size += s_.tree.widths()[size_t(v)];
      views.push_back({factor.variables, factor.gram.data(), size});
    }
    replacement_ = s_.tree.eliminate(variables, groups, views, affected_.orphans);
    if (replacement_.undetermined)
      throw InputError(
          fmt::format("{} has a direction that no term determines", s_.text(*replacement_.undetermined)),
          "solve smoother update", "terms, priors or fixed blocks that determine all blocks");
    return int64_t(variables.size());
  }

  /// Holds and releases coordinates at bounds until the steps are the minimum within them.
  void settle_bounds() {
    leaving_.clear(), bare_.clear(), moved_.clear();
    Smoother::State::ExchangeRule rule;
    for (size_t most = kMostExchanges + 4 * s_.bounded.size(); most > 0; --most) {
      const std::vector<Smoother::State::Exchange> exchanges = s_.exchanges(rule);
      if (exchanges.empty()) return;
      std::vector<int32_t> pivots;
      std::vector<int> before;
      const auto bound = [&](const Smoother::State::Exchange& e) -> int& {
        return s_.variables[size_t(e.variable)].bounds[e.bound].at;
      };
      for (const Smoother::State::Exchange& e : exchanges)
        before.push_back(std::exchange(bound(e), e.at)), pivots.push_back(e.variable);
      try {
        report_.eliminated += eliminate(std::move(pivots), false);
      } catch (const InputError&) {  // only the bound holds it: its slope was rounding
        for (size_t k = 0; k < exchanges.size(); ++k) bound(exchanges[k]) = before[k];
        return;
      }
      commit();
    }
  }

  void commit() {
    std::vector<SmoothFactor> priors;
    for (const CliqueTree::Replacement::Part& part : replacement_.parts) {
      const bool above = part.parent >= 0 && replacement_.parts[size_t(part.parent)].leaves;
      if (part.leaves && !above && !part.clique.rows.empty()) priors.push_back(prior_of(part.clique));
    }
    s_.tree.replace(affected_, std::move(replacement_));
    s_.new_factors.clear(), s_.new_variables.clear(), s_.touched.clear();
    s_.last = std::move(last_);
    for (const int32_t v : leaving_)
      for (const int32_t f : std::vector<int32_t>(s_.variables[size_t(v)].factors)) s_.drop_factor(f);
    for (SmoothFactor& prior : priors) s_.add_factor(std::move(prior));
    for (const std::vector<int32_t>* list : {&leaving_, &bare_})
      for (const int32_t v : *list) s_.drop_variable(v);
    s_.tree.substitute(s_.options.propagate, s_.moved);
  }

  /// The prior of the neighbours of blocks that leave, around the points where these are linearised.
  SmoothFactor prior_of(const Clique& clique) const {
    SmoothFactor prior;
    prior.group = 0, prior.slots = prior.variables = clique.rows;
    prior.gram = clique.trailing;
    prior.base = std::make_unique<SmoothFactor::Base>();
    prior.base->gram = clique.trailing;
    prior.cost = 0.5 * clique.trailing.back();
    for (const int32_t v : clique.rows)
      prior.base->from.insert(prior.base->from.end(), s_.points[size_t(v)].begin(),
                              s_.points[size_t(v)].end());
    return prior;
  }

  Smoother::State& s_;
  SmootherUpdate report_;
  std::vector<int32_t> leaving_, bare_, moved_, last_;  // bare: fixed ones that no term has
  std::vector<uint8_t> group_;
  CliqueTree::Affected affected_;
  CliqueTree::Replacement replacement_;
  /// Values from before the update, until it is known to succeed.
  struct Undo {
    std::vector<std::pair<int32_t, BlockValues>> points;
    std::vector<std::pair<int32_t, std::vector<double>>> steps;
    std::vector<std::pair<int32_t, std::vector<HeldStep>>> held;
    struct Quadratic {
      int32_t factor;
      std::vector<double> gram;
      double cost;
    };
    std::vector<Quadratic> quadratics;
  };
  Undo undo_;
};

}  // namespace

SmootherUpdate Smoother::State::update(bool all) {
  SmootherUpdate report;
  context.run_stage_on_cpu("solve.smooth",
                           [&](const Device& device) { report = SmootherChange(*this).run(device, all); });
  return report;
}

}  // namespace lockstep::solve
