// Priors of blocks that left, costs, and the problem that a Smoother holds as one for batch minimisers.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>

#include "lockstep/error.hpp"
#include "solve/model/rank.hpp"
#include "solve/smooth/smoother_state.hpp"

namespace lockstep::solve {
namespace {

using Gram = Eigen::Map<const Eigen::MatrixXd>;

/// Both triangles of a quadratic whose lower one is stored.
Eigen::MatrixXd whole_gram(const std::vector<double>& lower, Eigen::Index size) {
  return Gram(lower.data(), size, size).selfadjointView<Eigen::Lower>();
}

}  // namespace

std::vector<double> Smoother::State::prior_offset(const SmoothFactor& factor,
                                                  const std::vector<BlockValues>& at,
                                                  std::vector<std::vector<double>>* slopes) const {
  std::vector<double> offset;
  auto from = factor.base->from.begin();
  for (const int32_t v : factor.variables) {
    const TracedManifold& manifold = *sets[size_t(variables[size_t(v)].set)].manifold;
    const size_t ambient = size_t(manifold.manifold.ambient), tangent = size_t(manifold.manifold.tangent);
    std::vector<double> leaves = at[size_t(v)];
    leaves.insert(leaves.end(), from, from + int64_t(ambient));
    from += int64_t(ambient);
    const std::vector<double> d = manifold.numbers.minus(leaves);
    offset.insert(offset.end(), d.begin(), d.end());
    if (!slopes) continue;
    const std::vector<double> outer = manifold.numbers.minus_slopes(leaves);  // (tangent, ambient)
    std::vector<double> x = at[size_t(v)];
    x.resize(ambient + tangent, 0);
    const std::vector<double> inner = manifold.numbers.slopes(x);  // (ambient, tangent)
    std::vector<double>& own = slopes->emplace_back(tangent * tangent, 0);
    for (size_t r = 0; r < tangent; ++r)
      for (size_t k = 0; k < ambient; ++k)
        for (size_t c = 0; c < tangent; ++c)
          own[r * tangent + c] += outer[r * ambient + k] * inner[k * tangent + c];
  }
  return offset;
}

/// With M = [D d; 0 1], D the slopes and d the offset, [J D  J d + r]^T [J D  J d + r] is M^T [J r]^T [J r] M.
void Smoother::State::linearise_prior(SmoothFactor& factor) const {
  std::vector<std::vector<double>> slopes;
  const std::vector<double> offset = prior_offset(factor, points, &slopes);
  const Eigen::Index size = Eigen::Index(offset.size()) + 1;
  Eigen::MatrixXd m = Eigen::MatrixXd::Zero(size, size);
  Eigen::Index at = 0;
  for (const std::vector<double>& own : slopes) {
    const Eigen::Index width = Eigen::Index(std::lround(std::sqrt(double(own.size()))));
    for (Eigen::Index r = 0; r < width; ++r)
      for (Eigen::Index c = 0; c < width; ++c) m(at + r, at + c) = own[size_t(r * width + c)];
    at += width;
  }
  for (Eigen::Index r = 0; r + 1 < size; ++r) m(r, size - 1) = offset[size_t(r)];
  m(size - 1, size - 1) = 1;
  const Eigen::MatrixXd gram = m.transpose() * (whole_gram(factor.base->gram, size) * m);
  factor.gram.assign(gram.data(), gram.data() + gram.size());
  factor.cost = 0.5 * factor.gram.back();
}

double Smoother::State::linear_cost() const {
  double sum = 0;
  for (const SmoothFactor& f : factors) sum += f.cost;
  return sum;
}

double Smoother::State::total_cost() const {
  std::vector<int32_t> which;
  for (size_t v = 0; v < variables.size(); ++v)
    if (variables[v].set >= 0) which.push_back(int32_t(v));
  std::vector<BlockValues> moved = moved_values(which), at(variables.size());
  for (size_t k = 0; k < which.size(); ++k) at[size_t(which[k])] = std::move(moved[k]);
  std::vector<std::vector<const SmoothFactor*>> by_group(groups.size());
  double sum = 0;
  for (const SmoothFactor& factor : factors) {
    if (factor.group < 0) continue;
    if (!factor.base) {
      by_group[size_t(factor.group)].push_back(&factor);
      continue;
    }
    std::vector<double> d = prior_offset(factor, at, nullptr);
    d.push_back(1);
    const Eigen::Map<const Eigen::VectorXd> x(d.data(), Eigen::Index(d.size()));
    sum += 0.5 * x.dot(whole_gram(factor.base->gram, x.size()) * x);
  }
  for (size_t g = 0; g < groups.size(); ++g)
    if (!by_group[g].empty()) sum += groups[g]->cost(context.cpu(), by_group[g], at);
  return sum;
}

/// R and e with R^T R the prior's matrix and R^T e its vector, by eigenvalues in units of the diagonal.
LinearPrior Smoother::State::square_root(const SmoothFactor& factor,
                                         std::span<const std::pair<BlockSet, int64_t>> blocks) const {
  LinearPrior prior;
  prior.from = factor.base->from;
  for (const int32_t v : factor.variables) {
    prior.blocks.push_back(blocks[size_t(v)]);
    prior.columns += tree.widths()[size_t(v)];
  }
  const Eigen::Index n = Eigen::Index(prior.columns);
  const Eigen::MatrixXd gram = whole_gram(factor.base->gram, n + 1);
  Eigen::VectorXd scale = gram.diagonal().head(n).cwiseMax(0).cwiseSqrt();
  for (Eigen::Index k = 0; k < n; ++k)
    if (!(scale(k) > 0)) scale(k) = 1;
  const Eigen::VectorXd inverse = scale.cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(inverse.asDiagonal() * gram.topLeftCorner(n, n) *
                                                             inverse.asDiagonal());
  prior.constant = 0.5 * gram(n, n);
  for (Eigen::Index k = 0; k < n; ++k) {
    const double value = eigen.eigenvalues()(k);
    if (!(value > kRank)) continue;
    const Eigen::VectorXd direction = eigen.eigenvectors().col(k);
    const double e = direction.dot(inverse.cwiseProduct(gram.col(n).head(n))) / std::sqrt(value);
    const Eigen::VectorXd row = std::sqrt(value) * direction.cwiseProduct(scale);
    prior.root.insert(prior.root.end(), row.data(), row.data() + n);
    prior.offset.push_back(e);
    prior.constant -= 0.5 * e * e;
    ++prior.rows;
  }
  return prior;
}

Problem Smoother::State::problem() const {
  Problem out;
  std::vector<std::pair<BlockSet, int64_t>> blocks(variables.size());
  std::vector<BlockSet> handles;
  for (const Set& own : sets) {
    std::vector<double> values;
    for (const BlockValues& v : moved_values(own.variables)) values.insert(values.end(), v.begin(), v.end());
    handles.push_back(out.add_blocks(own.name, own.manifold->manifold, values));
    for (size_t k = 0; k < own.variables.size(); ++k) {
      blocks[size_t(own.variables[k])] = {handles.back(), int64_t(k)};
      const Variable& v = variables[size_t(own.variables[k])];
      if (v.fixed) out.fix(handles.back(), int64_t(k));
      for (const Bound& b : v.bounds) out.bound(handles.back(), int64_t(k), b.component, b.lower, b.upper);
      std::vector<int> held;
      for (const HeldStep& h : v.held) held.push_back(h.coordinate);
      if (!held.empty()) out.fix_coordinates(handles.back(), int64_t(k), held);
    }
  }
  std::vector<std::vector<int32_t>> indices(groups.size());
  std::vector<std::vector<double>> data(groups.size()), weights(groups.size());
  for (const SmoothFactor& factor : factors) {
    if (factor.group < 0 || factor.base) continue;
    for (const int32_t v : factor.slots)
      indices[size_t(factor.group)].push_back(int32_t(blocks[size_t(v)].second));
    std::vector<double>& own = data[size_t(factor.group)];
    own.insert(own.end(), factor.data.begin(), factor.data.end());
    weights[size_t(factor.group)].push_back(factor.weight);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<BlockSet> of;
    for (const BlockSet set : groups[g]->sets()) of.push_back(handles[size_t(set.id)]);
    if (indices[g].empty()) continue;
    const TermSet added = std::visit(
        [&](const auto& type) { return out.add_terms(type, of, indices[g], data[g]); }, groups[g]->type());
    if (std::ranges::any_of(weights[g], [](double w) { return w != 1; })) out.weigh(added, weights[g]);
  }
  for (const SmoothFactor& factor : factors)
    if (factor.group >= 0 && factor.base)
      if (const LinearPrior prior = square_root(factor, blocks); prior.rows > 0) add_prior(out, prior);
  return out;
}

void Smoother::State::minimise_batch() {
  Problem batch = problem();
  Options exact;
  exact.function_tolerance = 1e-15;
  minimize(batch, context, exact);
  for (size_t s = 0; s < sets.size(); ++s)
    for (size_t k = 0; k < sets[s].variables.size(); ++k) {
      const int32_t v = sets[s].variables[k];
      const auto value = std::as_const(batch).value({int(s), batch.number()}, int64_t(k));
      points[size_t(v)].assign(value.begin(), value.end());
      std::ranges::fill(tree.step(v), 0.0);
    }
}

/// The longest coordinate of a step, in units of its set.
double Smoother::State::longest_step() const {
  double most = 0;
  for (size_t v = 0; v < variables.size(); ++v)
    if (variables[v].set >= 0)
      for (const double d : tree.step(int32_t(v)))
        most = std::max(most, std::abs(d) / sets[size_t(variables[v].set)].unit);
  return most;
}

int Smoother::State::solve(int max_iterations) {
  constexpr double kRounding = 1e-13;
  update(false);
  double cost = INFINITY, longest = INFINITY;
  bool batch = false;
  for (int k = 1;; ++k) {
    update(true);
    const double next = linear_cost(), step = longest_step();
    if (!(next <= cost * (1 + kRounding) + 1e-300) && !batch) {
      minimise_batch();
      batch = true, cost = longest = INFINITY;
      for (size_t f = 0; f < factors.size(); ++f)
        if (factors[f].group >= 0) new_factors.push_back(int32_t(f));
      update(false);
      continue;
    }
    // At the minimum steps no longer shrink; under a robust loss they do so by a factor that may be near 1.
    if ((!(next < cost * (1 - kRounding)) && !(step < longest)) || step == 0 || k >= max_iterations) return k;
    cost = next, longest = step;
  }
}

}  // namespace lockstep::solve
