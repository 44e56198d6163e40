// Sums of an evaluator over the parts of a problem, along a tree over the parts' numbers.
#pragma once

#include <memory>
#include <vector>

#include "solve/parts/parted_problem.hpp"

namespace lockstep::solve {

/// The sums that an evaluator requests; made by PartLayout::make_sums, so that programs without ranks need none of it. Vectors
/// that instances add to are the first `shared` numbers, which are the same on every rank, and others that belong to one part
/// each.
class PartSums {
 public:
  using Sizes = PartSumSizes;
  enum class Vector : uint8_t { tangent, diagonal };

  PartSums(const PartLayout& layout, const Sizes& shared, const Sizes& all)
      : layout_(layout), shared_(shared), all_(all) {}
  virtual ~PartSums() = default;
  PartSums(const PartSums&) = delete;
  PartSums& operator=(const PartSums&) = delete;

  const Sizes& shared() const { return shared_; }
  /// Where a part of this rank adds to number `at` of a vector.
  int64_t place(Vector vector, int64_t at, int part) const {
    const int64_t shared = size(vector, shared_), all = size(vector, all_);
    return at < shared ? all + part * shared + at : at;
  }
  /// Zeros to be added to; the same memory at the next call of the vector and storage.
  virtual Buffer zeros(Vector vector, Storage storage) const = 0;
  /// The sums, in a whole vector or in the shared numbers alone. Without `exchanged` the shared numbers are left out; with them
  /// the call is collective.
  virtual void sum(Vector vector, const Buffer& parts, const Buffer& to, bool exchanged) const = 0;

  /// The instances' costs: those of own part k end at ends[k].
  virtual void set_costs(Storage storage, std::vector<int64_t> ends) = 0;
  virtual void sum_costs(const Buffer& costs, const Buffer& cost) const = 0;

  /// The sum of a number of each own part, over all parts.
  virtual double sum_of_parts(const std::vector<double>& mine) const = 0;
  /// The largest number of all ranks; NaN where one is.
  virtual double largest(double mine) const = 0;
  /// term(first, count) of the shared numbers of a vector plus its sum over the parts' own, `width` numbers for each block of
  /// the split set.
  template <class Term>
  double total(int64_t shared, int64_t width, Term term) const {
    const double sum = shared > 0 ? term(int64_t{0}, shared) : 0;
    if (!layout_.split) return sum;
    const std::vector<int64_t>& block = layout_.first_block;
    std::vector<double> mine;
    for (size_t k = 0; k + 1 < block.size(); ++k)
      mine.push_back(term(shared + block[k] * width, (block[k + 1] - block[k]) * width));
    return sum + sum_of_parts(mine);
  }

 protected:
  static int64_t size(Vector vector, const Sizes& sizes) {
    return vector == Vector::tangent ? sizes.tangent : sizes.diagonal;
  }
  const PartLayout& layout_;
  const Sizes shared_, all_;
};

std::unique_ptr<PartSums> make_part_sums(const Device& device, const PartLayout& layout,
                                         const PartSums::Sizes& shared, const PartSums::Sizes& all);

}  // namespace lockstep::solve
