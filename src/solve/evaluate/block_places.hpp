// Where the numbers of a problem's blocks are in states, tangent vectors and block diagonals.
#pragma once

#include <cstdint>
#include <vector>

#include "solve/model/problem.hpp"

namespace lockstep::solve {

struct BlockPlaces {
  std::vector<SetState> sets;
  std::vector<int64_t> first_diagonal;  // by set: first number in the block diagonal
  std::vector<uint8_t> fixed;           // by block
  bool any_fixed = false;
  int64_t ambient = 0, tangent = 0, diagonal_size = 0;

  BlockPlaces() = default;
  /// Throws InputError for a problem without blocks, or with too many numbers in the blocks of J^T J.
  explicit BlockPlaces(const Problem::State& problem);

  const SetState& set_of(int64_t block) const;
  int64_t tangent_of(int64_t block) const;
  int64_t ambient_of(int64_t block) const;
  int64_t diagonal_of(int64_t block) const;

  bool same_as(const BlockPlaces& other) const;
  /// By block, whether the block of this number has its numbers at the same places in `other`, and is fixed in both
  /// or in none.
  std::vector<uint8_t> shared_with(const BlockPlaces& other) const;
};

}  // namespace lockstep::solve
