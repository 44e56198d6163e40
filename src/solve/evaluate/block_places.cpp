#include "solve/evaluate/block_places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "solve/model/term_derivatives.hpp"

namespace lockstep::solve {

BlockPlaces::BlockPlaces(const Problem::State& problem)
    : sets(problem.sets),
      fixed(problem.fixed),
      any_fixed(std::find(fixed.begin(), fixed.end(), 1) != fixed.end()),
      ambient(problem.ambient),
      tangent(problem.tangent) {
  if (ambient == 0) throw InputError("a problem without blocks", "solve evaluator", "one block or more");
  for (const SetState& s : sets) {
    first_diagonal.push_back(diagonal_size);
    diagonal_size += s.count * diagonal_parts(s.tangent());
  }
  if (diagonal_size > INT32_MAX)
    throw InputError(fmt::format("{} numbers in the blocks of J^T J", diagonal_size), "solve evaluator",
                     fmt::format("at most {}", INT32_MAX));
}

const SetState& BlockPlaces::set_of(int64_t block) const {
  const auto next = std::upper_bound(sets.begin(), sets.end(), block,
                                     [](int64_t b, const SetState& s) { return b < s.first_block; });
  return *(next - 1);
}
int64_t BlockPlaces::ambient_of(int64_t block) const {
  const SetState& s = set_of(block);
  return s.first_ambient + (block - s.first_block) * s.ambient();
}
int64_t BlockPlaces::tangent_of(int64_t block) const {
  const SetState& s = set_of(block);
  return s.first_tangent + (block - s.first_block) * s.tangent();
}
int64_t BlockPlaces::diagonal_of(int64_t block) const {
  const SetState& s = set_of(block);
  return first_diagonal[size_t(&s - sets.data())] + (block - s.first_block) * diagonal_parts(s.tangent());
}

bool BlockPlaces::same_as(const BlockPlaces& other) const {
  return fixed == other.fixed &&
         std::ranges::equal(sets, other.sets, [](const SetState& a, const SetState& b) {
           return a.count == b.count && a.manifold == b.manifold;
         });
}

std::vector<uint8_t> BlockPlaces::shared_with(const BlockPlaces& other) const {
  std::vector<uint8_t> shared(fixed.size(), 0);
  for (size_t k = 0; k < std::min(sets.size(), other.sets.size()); ++k) {
    const SetState &a = sets[k], &b = other.sets[k];
    if (a.manifold != b.manifold || a.first_block != b.first_block || a.first_ambient != b.first_ambient ||
        a.first_tangent != b.first_tangent || first_diagonal[k] != other.first_diagonal[k])
      continue;
    for (int64_t block = a.first_block; block < a.first_block + std::min(a.count, b.count); ++block)
      shared[size_t(block)] = fixed[size_t(block)] == other.fixed[size_t(block)];
  }
  return shared;
}

}  // namespace lockstep::solve
