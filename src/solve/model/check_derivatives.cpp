// Derivatives of terms compared with differences of their residuals, instance by instance on the host.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/numbers/random.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/model/host_function.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

/// Residuals of one topology as functions of an instance's blocks, with the slopes to their numbers.
class ResidualFunctions {
 public:
  explicit ResidualFunctions(const ExpressionKey& key) : key_(key) {
    std::vector<Value> leaves, constants;
    for (size_t k = 0; k < key.leaves.size(); ++k) leaves.push_back(graph_.variable("leaf"));
    for (int k = 0; k < key.constants - key.loss_constants; ++k)
      constants.push_back(graph_.parameter("constant"));
    residuals_ = key.residuals(graph_, leaves, constants);
    for (const Value& r : residuals_)
      for (const Value& slope : autodiff::gradient(r, leaves)) slopes_.push_back(slope);
  }

  using Blocks = std::vector<std::vector<double>>;
  void set_instance(const Segment& segment, int64_t instance) {
    const size_t data = size_t(key_.data), numbers = size_t(key_.constants);
    data_ = std::span(segment.data).subspan(size_t(instance) * data, data);
    constants_ = std::span(segment.constants)
                     .subspan(segment.own_constants ? size_t(instance) * numbers : 0,
                              numbers - size_t(key_.loss_constants));
  }
  std::vector<double> residuals(const Blocks& blocks) const { return run(residuals_, blocks); }
  /// (rows, tangent coordinates of the slot).
  std::vector<double> jacobian(const Blocks& blocks, size_t slot) const {
    const Manifold& m = key_.slots[slot]->manifold;
    const size_t tangent = size_t(m.tangent), leaves = key_.leaves.size();
    const std::vector<double> slopes = run(slopes_, blocks);
    const std::vector<double> moves =
        key_.slots[slot]->numbers.slopes(joined(blocks[slot], std::vector<double>(tangent, 0.0)));
    std::vector<double> out(residuals_.size() * tangent, 0);
    for (size_t r = 0; r < residuals_.size(); ++r)
      for (size_t k = 0; k < leaves; ++k)
        if (key_.leaves[k].slot == int(slot))
          for (size_t c = 0; c < tangent; ++c)
            out[r * tangent + c] +=
                slopes[r * leaves + k] * moves[size_t(key_.leaves[k].index) * tangent + c];
    return out;
  }

 private:
  static std::vector<double> joined(std::span<const double> x, std::span<const double> delta) {
    std::vector<double> at(x.begin(), x.end());
    at.insert(at.end(), delta.begin(), delta.end());
    return at;
  }
  std::vector<double> run(const std::vector<Value>& outputs, const Blocks& blocks) const {
    std::vector<double> at;
    for (const ExpressionKey::Leaf& l : key_.leaves)
      at.push_back(l.slot < 0 ? data_[size_t(l.index)] : blocks[size_t(l.slot)][size_t(l.index)]);
    at.insert(at.end(), constants_.begin(), constants_.end());
    return autodiff::evaluate<double>(outputs, at);
  }

  const ExpressionKey& key_;
  autodiff::Tape graph_;
  std::vector<Value> residuals_, slopes_;
  std::span<const double> data_, constants_;
};

struct Fault {
  int row;
  size_t slot;
  int coordinate;
  double derivative, difference;
};

/// Central differences of step h and h / 2, extrapolated: by row.
std::vector<double> differences(const ResidualFunctions& term, const TracedManifold& manifold,
                                ResidualFunctions::Blocks blocks, size_t slot, size_t coordinate) {
  constexpr double kStep = 1e-3;
  const std::vector<double> x = blocks[slot];
  const auto at = [&](double step) {
    std::vector<double> delta(size_t(manifold.manifold.tangent), 0.0);
    delta[coordinate] = step;
    blocks[slot] = moved(manifold, x, delta);
    return term.residuals(blocks);
  };
  const std::vector<double> far = at(kStep), far_back = at(-kStep), near = at(kStep / 2),
                            near_back = at(-kStep / 2);
  std::vector<double> out;
  for (size_t r = 0; r < far.size(); ++r)
    out.push_back((4 * (near[r] - near_back[r]) / kStep - (far[r] - far_back[r]) / (2 * kStep)) / 3);
  return out;
}

/// The same of a host term that has a Jacobian.
std::optional<Fault> find_host_fault(const HostFunction& term, const ExpressionKey& key,
                                     const HostArguments& at, double tolerance) {
  if (!key.host->jacobian) return std::nullopt;
  const auto columns = size_t(term.columns());
  std::vector<double> given(size_t(term.rows()) * columns), slopes(given.size());
  term.jacobian(at, given), term.differences(at, slopes);
  for (size_t r = 0; r < size_t(term.rows()); ++r) {
    size_t column = r * columns;
    for (size_t slot = 0; slot < key.slots.size(); ++slot) {
      const auto tangent = size_t(key.slots[slot]->manifold.tangent);
      double scale = 1;
      for (size_t c = 0; c < tangent; ++c)
        if (std::isfinite(given[column + c])) scale = std::max(scale, std::abs(given[column + c]));
      for (size_t c = 0; c < tangent; ++c, ++column)
        if (!(std::abs(given[column] - slopes[column]) <= tolerance * scale))
          return Fault{int(r), slot, int(c), given[column], slopes[column]};
    }
  }
  return std::nullopt;
}

std::optional<Fault> find_fault(const ResidualFunctions& term, const ExpressionKey& key,
                                const ResidualFunctions::Blocks& blocks, double tolerance) {
  const std::vector<double> residuals = term.residuals(blocks);
  for (size_t slot = 0; slot < blocks.size(); ++slot) {
    const size_t tangent = size_t(key.slots[slot]->manifold.tangent);
    const std::vector<double> exact = term.jacobian(blocks, slot);
    for (size_t c = 0; c < tangent; ++c) {
      const std::vector<double> slopes = differences(term, *key.slots[slot], blocks, slot, c);
      for (size_t r = 0; r < residuals.size(); ++r) {
        if (!std::isfinite(residuals[r])) continue;
        double scale = 1;
        for (size_t k = 0; k < tangent; ++k)
          if (std::isfinite(exact[r * tangent + k]))
            scale = std::max(scale, std::abs(exact[r * tangent + k]));
        const double derivative = exact[r * tangent + c];
        if (!(std::abs(derivative - slopes[r]) <= tolerance * scale))
          return Fault{int(r), slot, int(c), derivative, slopes[r]};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string DerivativeFault::text() const {
  return fmt::format(
      "instance {} of {}: the derivative of residual {} to coordinate {} of block {} is {:.6g}, differences "
      "give "
      "{:.6g}",
      instance, name, row, coordinate, block, derivative, difference);
}

std::vector<DerivativeFault> check_derivatives(const Problem& problem, const DerivativeCheck& check) {
  if (check.points < 1 || !(check.spread >= 0) || !(check.tolerance > 0) || check.most < 1)
    throw InputError(fmt::format("{} points, spread {}, tolerance {}, {} instances", check.points,
                                 check.spread, check.tolerance, check.most),
                     "solve check_derivatives",
                     "a point or more, a spread of 0 or more, a positive tolerance");
  const Problem::State& state = problem.state();
  const ProblemUse use(state);
  std::vector<DerivativeFault> faults;
  for (size_t b = 0; b < state.batches.size(); ++b) {
    const ExpressionKey& key = *state.batches[b].expression;
    std::optional<ResidualFunctions> term;
    std::optional<HostFunction> host;
    if (key.host)
      host.emplace(key);
    else
      term.emplace(key);
    int64_t place = 0;  // among the instances that count
    for (const Segment& segment : state.batches[b].segments)
      for (int64_t i = 0; i < segment.count && place < check.most; ++i) {
        if (!segment.counts(i)) continue;
        if (term) term->set_instance(segment, i);
        for (int point = 0; point < check.points; ++point) {
          ResidualFunctions::Blocks blocks;
          for (size_t s = 0; s < key.slots.size(); ++s) {
            const int32_t block = segment.blocks[size_t(i) * key.slots.size() + s];
            const SetState& set = state.set_of(block);
            const auto first =
                state.values.begin() + set.first_ambient + (block - set.first_block) * set.ambient();
            blocks.emplace_back(first, first + set.ambient());
            std::vector<double> delta;
            for (int c = 0; c < set.tangent(); ++c)
              delta.push_back(check.spread *
                              (2 * unit_interval(philox(uint32_t(c), uint32_t(point),
                                                        random_key(check.seed, uint64_t(block)))) -
                               1));
            if (check.spread > 0) blocks.back() = moved(*key.slots[s], blocks.back(), delta);
          }
          const std::vector<std::span<const double>> spans(blocks.begin(), blocks.end());
          const auto data = std::span(segment.data).subspan(size_t(i) * size_t(key.data), size_t(key.data));
          const std::optional<Fault> fault =
              host ? find_host_fault(*host, key, {spans, data, i}, check.tolerance)
                   : find_fault(*term, key, blocks, check.tolerance);
          if (!fault) continue;
          const auto [name, instance] = state.origin(b, place);
          const int32_t block = segment.blocks[size_t(i) * key.slots.size() + fault->slot];
          const SetState& set = state.set_of(block);
          faults.push_back({name, instance, fault->row,
                            fmt::format("{} {}", set.name, set.number(block - set.first_block)),
                            fault->coordinate, fault->derivative, fault->difference});
          break;
        }
        ++place;
      }
  }
  return faults;
}

}  // namespace lockstep::solve
