// A problem in fixed parts, each some of its instances in their order, and the share of them that a rank has.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/parallel.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

class PartSums;

/// Numbers of tangent vectors, diagonals of blocks and states.
struct PartSumSizes {
  int64_t tangent = 0, diagonal = 0, ambient = 0;
};

/// How the problem of a rank is cut. Its sets are those of the whole, but for the last one where `split`: of that it has the
/// blocks of its own parts, each of which is in one part.
struct PartLayout {
  parallel::Group ranks;
  int64_t parts = 1;  // of the whole problem
  bool split = false;
  std::vector<int64_t> first_block;  // of the split set, by own part, and behind the last one
  parallel::Range own;               // parts of this rank
  std::function<std::unique_ptr<PartSums>(const Device&, const PartLayout&, const PartSumSizes& shared,
                                          const PartSumSizes& all)>
      make_sums;
};

class PartedProblem {
 public:
  /// Throws InputError where a part would have no instance.
  PartedProblem(const Problem& whole, Linear linear, int64_t parts, const parallel::Group& ranks);
  PartedProblem(const PartedProblem&) = delete;
  PartedProblem& operator=(const PartedProblem&) = delete;

  const Problem& own() const { return own_; }
  const PartLayout& layout() const { return layout_; }
  /// The own problem's numbers among those of the whole, and back, which is collective.
  std::vector<double> own_state(std::span<const double> whole) const;
  std::vector<double> whole_state(const std::vector<double>& own) const;

 private:
  /// Sets in the own problem's order; ambient numbers.
  struct SetShare {
    int64_t first_of_whole, first, count;
  };
  Problem own_;
  PartLayout layout_;
  std::vector<SetShare> sets_;
  int64_t ambient_ = 0, first_split_ = 0;  // of the whole: numbers, and where those of the split set begin
};

}  // namespace lockstep::solve
