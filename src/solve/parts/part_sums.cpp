#include "solve/parts/part_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "lockstep/error.hpp"
#include "primitives/sums/chunked_sum.hpp"

namespace lockstep::solve {
namespace {

class RankedSums final : public PartSums {
 public:
  RankedSums(const Device& device, const PartLayout& layout, const Sizes& shared, const Sizes& all)
      : PartSums(layout, shared, all), device_(device) {
    for (const Vector vector : {Vector::tangent, Vector::diagonal})
      if (numbers(vector) > INT32_MAX)
        throw InputError(
            fmt::format("{} numbers in sums over {} parts of a rank", numbers(vector), layout.own.size()),
            "solve parts", fmt::format("at most {}: fewer parts, or more ranks", INT32_MAX));
  }

  Buffer zeros(Vector vector, Storage storage) const override {
    Buffer& memory = memory_[size_t(vector)][storage == Storage::f64];
    if (!memory) memory = device_.allocate(storage, {numbers(vector)});
    device_.clear(memory);
    return memory;
  }

  void sum(Vector vector, const Buffer& parts, const Buffer& to, bool exchanged) const override {
    const int64_t shared = size(vector, shared_), all = size(vector, all_), own = layout_.own.size();
    if (all > shared && to.elements() == all)
      device_.copy(parts.rows(shared, all - shared), to.rows(shared, all - shared));
    if (exchanged && shared > 0)
      layout_.ranks.sum(device_, layout_.parts, parts.rows(all, own * shared).reshape({own, shared}),
                        to.rows(0, shared));
  }

  void set_costs(Storage storage, std::vector<int64_t> ends) override {
    cost_ends_ = std::move(ends);
    part_costs_ = device_.allocate(storage, {int64_t(cost_ends_.size()), 1});
    int64_t begin = 0;
    for (const int64_t end : cost_ends_) {
      cost_sums_.emplace_back(device_, storage, end - begin);
      begin = end;
    }
  }
  void sum_costs(const Buffer& costs, const Buffer& cost) const override {
    int64_t begin = 0;
    for (size_t k = 0; k < cost_ends_.size(); ++k) {
      cost_sums_[k].launch(costs.rows(begin, cost_ends_[k] - begin),
                           part_costs_.rows(int64_t(k), 1).reshape({1}));
      begin = cost_ends_[k];
    }
    layout_.ranks.sum(device_, layout_.parts, part_costs_, cost);
  }

  double sum_of_parts(const std::vector<double>& mine) const override {
    return layout_.ranks.sum<double>(layout_.parts, mine)[0];
  }
  double largest(double mine) const override {
    double largest = mine;
    for (const double other : parallel::numbers_of_all(layout_.ranks, std::vector{mine})) {
      if (std::isnan(largest) || std::isnan(other)) return NAN;
      largest = std::max(largest, other);
    }
    return largest;
  }

 private:
  int64_t numbers(Vector vector) const {
    return size(vector, all_) + layout_.own.size() * size(vector, shared_);
  }

  Device device_;
  mutable std::array<std::array<Buffer, 2>, 2> memory_;  // by vector, of f32 and f64
  std::vector<int64_t> cost_ends_;
  std::vector<primitives::ChunkedSum> cost_sums_;
  Buffer part_costs_;
};

}  // namespace

std::unique_ptr<PartSums> make_part_sums(const Device& device, const PartLayout& layout,
                                         const PartSums::Sizes& shared, const PartSums::Sizes& all) {
  return std::make_unique<RankedSums>(device, layout, shared, all);
}

}  // namespace lockstep::solve
