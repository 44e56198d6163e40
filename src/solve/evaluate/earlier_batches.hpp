// The batches of an evaluator's last problem, for those of the next one that have the same tables.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

/// Whether instances of two terms have the same tables: a term and itself, or functions of the host of one shape.
inline bool same_tables(const TermDerivatives& a, const TermDerivatives& b) {
  if (&a == &b || !a.host() || !b.host()) return &a == &b;
  const ExpressionKey &x = a.expression(), &y = b.expression();
  const auto bytes = [](const ExpressionKey& key) {
    return key.loss_expression ? key.loss_expression->bytes : decltype(key.loss_expression->bytes){};
  };
  return x.rows == y.rows && x.data == y.data && x.weighted == y.weighted && x.loss == y.loss &&
         bytes(x) == bytes(y) &&
         std::ranges::equal(
             x.slots, y.slots, {}, [](const auto& slot) { return slot->key; },
             [](const auto& slot) { return slot->key; }) &&
         std::ranges::equal(a.constants(), b.constants(), [](const ConstantUse& p, const ConstantUse& q) {
           return p.where == q.where && std::bit_cast<uint64_t>(p.value) == std::bit_cast<uint64_t>(q.value);
         });
}

/// Batches of before, each found once.
class EarlierBatches {
 public:
  explicit EarlierBatches(std::vector<BatchState>&& batches)
      : batches_(std::move(batches)), found_(batches_.size(), 0) {}
  int64_t size() const { return int64_t(batches_.size()); }
  /// The next one of as many instances of the piece's expression, if there is one; of a function of the host, that function
  /// rather than another of its shape.
  void find(Evaluator::State::Piece& piece) {
    const TermDerivatives& term = *piece.term;
    if (term.host() && take(piece, [&](const TermDerivatives& other) { return other.key() == term.key(); }))
      return;
    take(piece, [](const TermDerivatives&) { return true; });
  }

 private:
  template <class F>
  bool take(Evaluator::State::Piece& piece, F fits) {
    for (size_t k = 0; k < batches_.size(); ++k) {
      const size_t at = (next_ + k) % batches_.size();
      BatchState& batch = batches_[at];
      if (found_[at] || batch.n != piece.end - piece.first || batch.part != piece.batch->part ||
          batch.may_group != piece.may_group || !fits(*batch.term) || !same_tables(*batch.term, *piece.term))
        continue;
      found_[at] = 1, next_ = at + 1;
      piece.kept_at = int64_t(at), piece.kept = std::move(batch);
      return true;
    }
    return false;
  }

  std::vector<BatchState> batches_;
  std::vector<uint8_t> found_;
  size_t next_ = 0;
};

}  // namespace lockstep::solve
