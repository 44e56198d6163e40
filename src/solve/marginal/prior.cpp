// A linear prior as a host term.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/solve/marginalize.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

/// R (x [-] from) + e and its derivative to the blocks' numbers.
struct Prior {
  std::vector<std::shared_ptr<const TracedManifold>> manifolds;  // by slot
  LinearPrior prior;

  /// `of` of a block's manifold at x and its part of `from`.
  std::vector<double> at(std::span<const double> x, const autodiff::HostProgram<double>& of,
                         size_t first) const {
    std::vector<double> leaves(x.begin(), x.end());
    leaves.insert(leaves.end(), prior.from.begin() + int64_t(first),
                  prior.from.begin() + int64_t(first + x.size()));
    return of(leaves);
  }
  void residuals(const HostInstance& instance, std::span<double> out) const {
    std::copy(prior.offset.begin(), prior.offset.end(), out.begin());
    size_t first = 0, column = 0;
    for (size_t s = 0; s < manifolds.size(); ++s) {
      const std::vector<double> d = at(instance.blocks[s], manifolds[s]->numbers.minus, first);
      for (size_t r = 0; r < out.size(); ++r)
        for (size_t c = 0; c < d.size(); ++c)
          out[r] += prior.root[r * size_t(prior.columns) + column + c] * d[c];
      first += instance.blocks[s].size(), column += d.size();
    }
  }
  void jacobian(const HostInstance& instance, std::span<double> out) const {
    std::fill(out.begin(), out.end(), 0.0);
    const size_t numbers = prior.from.size(), rows = size_t(prior.rows);
    size_t first = 0, column = 0;
    for (size_t s = 0; s < manifolds.size(); ++s) {
      const size_t own = instance.blocks[s].size(), tangent = size_t(manifolds[s]->manifold.tangent);
      const std::vector<double> slopes = at(instance.blocks[s], manifolds[s]->numbers.minus_slopes, first);
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < tangent; ++c)
          for (size_t k = 0; k < own; ++k)
            out[r * numbers + first + k] +=
                prior.root[r * size_t(prior.columns) + column + c] * slopes[c * own + k];
      first += own, column += tangent;
    }
  }
};

}  // namespace

TermSet add_prior(Problem& problem, const LinearPrior& prior, const std::string& name) {
  const std::string where = fmt::format("solve add_prior {}", name);
  const Problem::State& state = problem.state();
  auto own = std::make_shared<Prior>();
  HostTerm term;
  std::vector<BlockSet> sets;
  std::vector<int32_t> indices;
  int64_t numbers = 0, columns = 0;
  for (const auto& [set, block] : prior.blocks) {
    const SetState& s = state.set(set, where);
    s.place(block, where);
    if (s.manifold->minus.empty())
      throw InputError(fmt::format("blocks of {} on the manifold {}, which has no minus", s.name,
                                   s.manifold->manifold.name),
                       where, "Manifold::minus, by which a prior measures how far a block moved");
    own->manifolds.push_back(s.manifold);
    sets.push_back(set), indices.push_back(int32_t(block)), term.slots.push_back(s.ambient());
    numbers += s.ambient(), columns += s.tangent();
  }
  if (prior.rows < 1 || prior.columns != columns || int64_t(prior.from.size()) != numbers ||
      int64_t(prior.root.size()) != prior.rows * columns || int64_t(prior.offset.size()) != prior.rows)
    throw InputError(
        fmt::format("a prior of {} rows and {} columns with {} numbers in root, {} in offset and {} in from",
                    prior.rows, prior.columns, prior.root.size(), prior.offset.size(), prior.from.size()),
        where, fmt::format("1 row or more, {} columns and {} numbers", columns, numbers));
  for (const std::vector<double>* all : {&prior.root, &prior.offset, &prior.from})
    for (const double v : *all)
      if (!std::isfinite(v)) throw InputError(fmt::format("the number {}", v), where, "finite numbers");
  own->prior = prior;
  term.name = name, term.residuals = int(prior.rows);
  term.residual = [own](const HostInstance& at, std::span<double> out) { own->residuals(at, out); };
  term.jacobian = [own](const HostInstance& at, std::span<double> out) { own->jacobian(at, out); };
  // Its derivatives are exact: comparing them with differences costs a window more than the rest of a frame.
  return problem.state().add(term, sets, indices, {}, 0);
}

}  // namespace lockstep::solve
