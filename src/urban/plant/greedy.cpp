#include "urban/plant/greedy.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::urban {
namespace {

/// Evaluations at a time of the lazy search. Fixed: what is evaluated must not depend on the device.
constexpr size_t kLazyBatch = 16;

class GreedySearch {
 public:
  GreedySearch(const GreedyProblem& problem, PlantSearch search) : problem_(problem), search_(search) {
    open_.resize(problem.candidates);
    std::iota(open_.begin(), open_.end(), size_t{0});
    stale_.assign(problem.candidates, 0);
    result_.last_gains.resize(problem.candidates);
    evaluate(open_);
    result_.first_gains = result_.last_gains;
    result_.raised = 0;
  }

  bool choose_next() {
    if (search_ == PlantSearch::exact)
      refresh_all();
    else
      refresh_until_best_is_fresh();
    const auto best =
        std::min_element(open_.begin(), open_.end(), [this](size_t a, size_t b) { return ahead(a, b); });
    if (best == open_.end() || !(result_.last_gains[*best] > 0)) return false;
    const size_t chosen = *best;
    open_.erase(best);
    result_.chosen.push_back(chosen);
    result_.gains.push_back(result_.last_gains[chosen]);
    problem_.choose(chosen);
    std::erase_if(open_, [&](size_t other) { return problem_.excludes(chosen, other); });
    for (const size_t other : open_) stale_[other] = stale_[other] || problem_.changes(chosen, other);
    return true;
  }

  GreedyChoice take() { return std::move(result_); }

 private:
  bool ahead(size_t a, size_t b) const {
    return result_.last_gains[a] != result_.last_gains[b] ? result_.last_gains[a] > result_.last_gains[b]
                                                          : a < b;
  }

  void evaluate(const std::vector<size_t>& which) {
    if (which.empty()) return;
    const std::vector<double> gains = problem_.evaluate(which);
    for (size_t k = 0; k < which.size(); ++k) {
      result_.raised += gains[k] > result_.last_gains[which[k]];
      result_.last_gains[which[k]] = gains[k];
      stale_[which[k]] = 0;
    }
    result_.evaluations += static_cast<int64_t>(which.size());
  }

  void refresh_all() {
    std::vector<size_t> stale;
    std::ranges::copy_if(open_, std::back_inserter(stale), [this](size_t k) { return stale_[k]; });
    evaluate(stale);
  }

  void refresh_until_best_is_fresh() {
    for (;;) {
      std::vector<size_t> order = open_;
      std::ranges::sort(order, [this](size_t a, size_t b) { return ahead(a, b); });
      std::vector<size_t> stale;
      for (const size_t k : order) {
        if (stale.empty() && !stale_[k]) return;
        if (stale_[k] && stale.size() < kLazyBatch) stale.push_back(k);
        if (!stale_[k]) break;  // what is behind a fresh gain is not needed yet
      }
      if (stale.empty()) return;
      evaluate(stale);
    }
  }

  const GreedyProblem& problem_;
  const PlantSearch search_;
  std::vector<size_t> open_;
  std::vector<uint8_t> stale_;
  GreedyChoice result_;
};

}  // namespace

GreedyChoice greedy(const GreedyProblem& problem, int64_t count, PlantSearch search) {
  GreedySearch run(problem, search);
  for (int64_t k = 0; k < count && run.choose_next(); ++k) {}
  return run.take();
}

}  // namespace lockstep::urban
