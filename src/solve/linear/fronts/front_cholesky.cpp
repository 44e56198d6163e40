#include "solve/linear/fronts/front_cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::solve {

FrontCholesky::FrontCholesky(const Device& device, Storage real, const BlockPattern& pattern,
                             std::span<const int32_t> groups)
    : device_(device), real_(real), plan_(FrontTree(pattern, groups)) {
  const double wanted = bytes(), free = double(device.memory().free_bytes);
  if (free > 0 && wanted > free)
    throw InputError(
        fmt::format("factors of {:.1f} GB on a device with {:.1f} GB free", wanted / 1e9, free / 1e9),
        "solve device-cholesky", "a smaller problem, --linear cholesky on the host, or an iterative solver");
  upload();
}

void FrontCholesky::upload() {
  const auto list = [&](const std::vector<int32_t>& v) {
    return v.empty() ? device_.upload(std::vector<int32_t>{0}) : device_.upload(v);
  };
  const auto table = [&](const std::vector<int32_t>& v, int64_t width) {
    const std::vector<int32_t>& some = v.empty() ? std::vector<int32_t>(size_t(width)) : v;
    return device_.upload(std::span<const int32_t>(some), {int64_t(some.size()) / width, width});
  };
  work_ = table(plan_.work, 4), fronts_ = table(plan_.fronts, kFrontWords);
  children_ = table(plan_.children, kChildWords);
  places_ = list(plan_.places), rows_ = list(plan_.rows), value_at_ = list(plan_.value_at);
  diagonal_at_ = list(plan_.diagonal_at), order_ = list(plan_.order);
  const auto numbers = [&](int64_t count) {
    const Buffer buffer = device_.allocate(real_, {std::max<int64_t>(count, 1)});
    device_.clear(buffer);
    return buffer;
  };
  const int64_t blocks = plan_.steps * kPivotBlock * kPivotBlock, n = plan_.unknowns;
  panels_ = numbers(plan_.panels), updates_ = numbers(plan_.updates);
  diagonals_ = numbers(blocks), inverses_ = numbers(blocks);
  pivots_ = numbers(n), whole_ = numbers(n), sent_ = numbers(int64_t(plan_.rows.size())), y_ = numbers(n);
  least_ = numbers((n + kLeastChunk - 1) / kLeastChunk);
  values_ = numbers(int64_t(plan_.value_at.size())), added_ = numbers(n), x_ = numbers(n);
}

void FrontCholesky::launch(FrontStep step, const WorkRange& range, auto&&... arguments) const {
  if (range.count == 0) return;
  device_.launch(front_kernel(step, real_), {range.count}, work_.rows(range.first, range.count), fronts_,
                 arguments...);
}

void FrontCholesky::factorise() const {
  const int64_t n = plan_.unknowns;
  device_.clear(panels_);
  device_.launch(front_kernel(FrontStep::scatter, real_), {int64_t(plan_.value_at.size())}, value_at_,
                 values_, panels_);
  device_.launch(front_kernel(FrontStep::diagonal, real_), {n}, diagonal_at_, order_, added_, panels_,
                 whole_);
  for (const FrontPlan::Level& level : plan_.levels) {
    launch(FrontStep::gather, level.gather, children_, places_, panels_, updates_);
    for (size_t block = 0; block < level.panels.size(); ++block) {
      launch(FrontStep::panel, level.panels[block], whole_, panels_, diagonals_, pivots_);
      launch(FrontStep::trail, level.trails[block], panels_);
    }
    launch(FrontStep::update, level.updates, children_, places_, panels_, updates_);
  }
  device_.launch(front_kernel(FrontStep::invert, real_), {plan_.steps, kPivotBlock}, diagonals_, inverses_);
  device_.launch(front_kernel(FrontStep::least, real_), {least_.elements()}, pivots_, least_);
}

void FrontCholesky::substitute() const {
  const int64_t n = plan_.unknowns;
  device_.launch(front_kernel(FrontStep::order, real_), {n}, order_, x_, y_);
  for (const FrontPlan::Level& level : plan_.levels) {
    launch(FrontStep::forward, level.fronts, children_, places_, panels_, inverses_, sent_, y_);
    launch(FrontStep::rows, level.rows, children_, places_, panels_, y_, sent_);
  }
  for (auto level = plan_.levels.rbegin(); level != plan_.levels.rend(); ++level) {
    launch(FrontStep::columns, level->columns, rows_, panels_, y_);
    launch(FrontStep::backward, level->fronts, panels_, inverses_, y_);
  }
  device_.launch(front_kernel(FrontStep::restore, real_), {n}, order_, y_, x_);
}

void FrontCholesky::run() {
  if (!recorded_) {
    graph_ = device_.record([&] { factorise(), substitute(); });
    recorded_ = true;
  }
  device_.replay(graph_);
}

FrontCholesky::Outcome FrontCholesky::outcome() const {
  std::vector<double> least;
  if (real_ == Storage::f64) {
    least = device_.download<double>(least_);
  } else {
    const std::vector<float> narrow = device_.download<float>(least_);
    least.assign(narrow.begin(), narrow.end());
  }
  Outcome outcome;
  for (const double ratio : least) outcome.least_pivot = std::min(outcome.least_pivot, ratio);
  if (outcome.least_pivot > 0) return outcome;
  outcome.unknown = int64_t(outcome.least_pivot + kFailedPivot);
  for (size_t f = 0; f < plan_.fronts.size() / kFrontWords; ++f) {
    const int32_t* const words = plan_.fronts.data() + f * kFrontWords;
    const int64_t column = outcome.unknown - words[kFirstUnknown];
    if (column >= 0 && column < words[kPivots]) outcome.front = int64_t(f), outcome.column = column;
  }
  return outcome;
}

}  // namespace lockstep::solve
