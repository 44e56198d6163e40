#include "solve/minimize/order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "solve/minimize/choose.hpp"
#include "solve/model/block_groups.hpp"
#include "solve/model/counting.hpp"

namespace lockstep::solve {

std::vector<int32_t> elimination_groups(const Problem& problem, const Options& options) {
  if (options.order.empty()) return {};
  std::vector<int32_t> groups = block_groups(problem, options.order, "order");
  std::ranges::replace(groups, -1, int32_t(options.order.size()));
  return groups;
}

std::vector<int32_t> elimination_order(const Problem& problem, const Options& options) {
  const std::vector<int32_t> groups = elimination_groups(problem, options);
  std::vector<int32_t> out;
  if (groups.empty()) return out;
  for (const SetState& set : problem.state().sets)
    for (int64_t b = 0; b < set.count; ++b)
      out.insert(out.end(), size_t(set.tangent()), groups[size_t(set.first_block + b)]);
  return out;
}

int first_group_set(const Problem& problem, const std::vector<int32_t>& groups) {
  const std::vector<SetState>& sets = problem.state().sets;
  const auto all_in = [&](const SetState& set, bool in) {
    return std::all_of(groups.begin() + set.first_block, groups.begin() + set.first_block + set.count,
                       [in](int32_t g) { return (g == 0) == in; });
  };
  int found = -1;
  for (size_t k = 0; k < sets.size(); ++k) {
    if (sets[k].count == 0 || all_in(sets[k], false)) continue;
    if (found >= 0 || !all_in(sets[k], true)) return -1;
    found = int(k);
  }
  return found;
}

void check_order(const Problem& problem, const Options& options, Linear linear) {
  if (options.order.empty()) return;
  const auto refuse = [](OptionError::Kind kind, std::string found, std::string expected) {
    throw schema_of<Options>().error({kind, "order", std::move(found), std::move(expected), ""});
  };
  const bool direct = linear == Linear::cholesky || linear == Linear::device_cholesky;
  const bool schur = linear == Linear::dense_schur || linear == Linear::schur_pcg;
  if (!has_linear_solver(options.method) || !(direct || schur))
    refuse(OptionError::Kind::useless, "it has no effect with this {method} and {linear}",
           "{linear} auto, cholesky, device-cholesky, dense-schur or schur-pcg");
  const std::vector<int32_t> groups = elimination_groups(problem, options);
  if (!schur) return;
  const auto invalid = [&](std::string found, std::string expected) {
    refuse(OptionError::Kind::invalid, std::move(found), std::move(expected));
  };
  if (options.order.size() > 2)
    invalid(fmt::format("{} groups with {{linear}} {}", options.order.size(), name(linear)),
            "the group to eliminate and at most one more, or {linear} cholesky");
  if (linear == Linear::schur_pcg && first_group_set(problem, groups) < 0)
    invalid("a first group that is not one block set, with {linear} schur-pcg",
            "all blocks of one set, or {linear} dense-schur or cholesky");
  const Problem::State& state = problem.state();
  for (const Batch& batch : state.batches)
    each_that_counts(batch, [&](auto blocks, const Segment&, int64_t) {
      int32_t first = -1;
      for (const int32_t b : blocks) {
        if (groups[size_t(b)] != 0 || state.fixed[size_t(b)] || b == first) continue;
        if (first >= 0)
          invalid(fmt::format("{} and {}, which share a term of {}, in the first group",
                              block_text(state, first), block_text(state, b), batch.name),
                  "blocks that share no term, or {linear} cholesky");
        first = b;
      }
    });
}

}  // namespace lockstep::solve
