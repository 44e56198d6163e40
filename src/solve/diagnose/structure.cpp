#include "solve/diagnose/structure.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::solve {
namespace {

constexpr double kMostProducts = 3e8;  // of a piece's dense factorisation

}  // namespace

Columns::Columns(const Problem::State& state) : moves(size_t(state.blocks), 0) {
  for (const SetState& set : state.sets)
    for (int64_t b = set.first_block; b < set.first_block + set.count; ++b)
      for (int c = 0; c < set.tangent(); ++c) {
        const int64_t at = set.first_tangent + (b - set.first_block) * set.tangent() + c;
        if (!state.moves(b, at)) continue;
        block.push_back(b), coordinate.push_back(c), tangent.push_back(at);
        moves[size_t(b)] = 1;
      }
}

Pieces::Pieces(const Problem::State& state, const Columns& columns) : of_block(size_t(state.blocks), -1) {
  std::vector<int64_t> parent(size_t(state.blocks));
  std::iota(parent.begin(), parent.end(), int64_t(0));
  const auto root = [&](int64_t b) {
    while (parent[size_t(b)] != b) b = parent[size_t(b)] = parent[size_t(parent[size_t(b)])];
    return b;
  };
  std::vector<uint8_t> beside_held(size_t(state.blocks), 0);
  each_counting(state,
                [&](const std::string&, int64_t, size_t batch, const Segment& segment, int64_t i, int64_t) {
                  const size_t slots = state.batches[batch].expression->slots.size();
                  int64_t first = -1;
                  bool held = false;
                  for (size_t s = 0; s < slots; ++s) {
                    const int64_t b = segment.blocks[size_t(i) * slots + s];
                    held |= !columns.moves[size_t(b)];
                    if (!columns.moves[size_t(b)]) continue;
                    if (first < 0) first = root(b);
                    parent[size_t(root(b))] = first;
                  }
                  if (held && first >= 0) beside_held[size_t(first)] = 1;
                });
  std::map<int64_t, int64_t> number;  // by root
  for (int64_t b = 0; b < state.blocks; ++b) {
    if (!columns.moves[size_t(b)]) continue;
    const auto [at, fresh] = number.emplace(root(b), int64_t(blocks.size()));
    if (fresh) blocks.emplace_back(), touches_held.push_back(0);
    blocks[size_t(at->second)].push_back(b), of_block[size_t(b)] = at->second;
    if (beside_held[size_t(b)]) touches_held[size_t(at->second)] = 1;
  }
}

bool each_dense_piece(const SparseRows& j, const Pieces& pieces, const Columns& columns,
                      const std::function<void(DensePiece)>& f) {
  const size_t count = pieces.blocks.size();
  std::vector<DensePiece> all(count);
  std::vector<Eigen::Index> place(columns.block.size());
  for (size_t c = 0; c < columns.block.size(); ++c) {
    std::vector<int64_t>& own = all[size_t(pieces.of_block[size_t(columns.block[c])])].columns;
    place[c] = Eigen::Index(own.size()), own.push_back(int64_t(c));
  }
  for (int64_t r = 0; r < j.rows; ++r)
    if (const int64_t e = j.first[size_t(r)]; e < j.first[size_t(r) + 1])
      all[size_t(pieces.of_block[size_t(columns.block[size_t(j.column[size_t(e)])])])].rows.push_back(r);
  const auto too_large = [](const DensePiece& piece) {
    const double n = double(piece.columns.size()),
                 m = double(std::max(piece.rows.size(), piece.columns.size()));
    return m * n * n > kMostProducts;
  };
  if (std::ranges::any_of(all, too_large)) return false;
  for (DensePiece& piece : all) {
    piece.matrix.setZero(Eigen::Index(piece.rows.size()), Eigen::Index(piece.columns.size()));
    for (size_t r = 0; r < piece.rows.size(); ++r)
      for (int64_t e = j.first[size_t(piece.rows[r])]; e < j.first[size_t(piece.rows[r]) + 1]; ++e)
        piece.matrix(Eigen::Index(r), place[size_t(j.column[size_t(e)])]) = j.values[size_t(e)];
    f(std::move(piece));
  }
  return true;
}

}  // namespace lockstep::solve
