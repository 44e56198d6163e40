#include "solve/linear/cholesky/elimination_order.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

namespace lockstep::solve {
namespace {

/// The graph while it is eliminated: live elements hold live variables only.
class QuotientGraph {
 public:
  QuotientGraph(std::span<const int32_t> weights, std::span<const int32_t> groups, const Elements& given)
      : weights_(weights), groups_(groups), inputs_(given.count()) {
    const size_t n = weights.size();
    of_.resize(n), done_.assign(n, 0), degree_.resize(n), mark_.assign(n, -1);
    for (int32_t e = 0; e < inputs_; ++e) {
      add_element({given[e].begin(), given[e].end()});
      for (const int32_t v : given[e]) of_[size_t(v)].push_back(e);
    }
    for (size_t v = 0; v < n; ++v) {
      int64_t degree = 0;
      for (const int32_t e : of_[v]) degree += size_[size_t(e)] - weights_[v];
      set_degree(int32_t(v), degree);
    }
  }

  std::vector<EliminationFront> run() {
    std::vector<EliminationFront> fronts;
    while (!queue_.empty()) {
      const auto [group, degree, v] = queue_.top();
      queue_.pop();
      if (!done_[size_t(v)] && degree == degree_[size_t(v)]) fronts.push_back(eliminate(v));
    }
    return fronts;
  }

 private:
  void add_element(std::vector<int32_t>&& variables) {
    int64_t size = 0;
    for (const int32_t v : variables) size += weights_[size_t(v)];
    members_.push_back(std::move(variables));
    size_.push_back(size), outside_.push_back(0), counted_.push_back(-1), absorbed_.push_back(0);
  }
  void set_degree(int32_t v, int64_t degree) {
    degree_[size_t(v)] = degree;
    queue_.emplace(groups_[size_t(v)], degree, v);
  }
  void absorb(int32_t element) {
    absorbed_[size_t(element)] = 1;
    members_[size_t(element)] = {};
  }

  EliminationFront eliminate(int32_t pivot) {
    EliminationFront front;
    front.pivots.push_back(pivot);
    done_[size_t(pivot)] = 1;
    const int32_t number = int32_t(members_.size());
    std::vector<int32_t> clique;
    for (const int32_t e : of_[size_t(pivot)]) {
      for (const int32_t u : members_[size_t(e)])
        if (!done_[size_t(u)] && mark_[size_t(u)] != number) mark_[size_t(u)] = number, clique.push_back(u);
      absorb(e);
    }
    of_[size_t(pivot)] = {};
    add_element(std::move(clique));
    const std::vector<int32_t>& rest = members_.back();
    // The weight that each other element has outside of the new one.
    for (const int32_t u : rest) {
      std::erase_if(of_[size_t(u)], [&](int32_t e) { return absorbed_[size_t(e)] != 0; });
      for (const int32_t e : of_[size_t(u)]) {
        if (counted_[size_t(e)] != number)
          counted_[size_t(e)] = number, outside_[size_t(e)] = size_[size_t(e)];
        outside_[size_t(e)] -= weights_[size_t(u)];
      }
    }
    for (const int32_t u : rest) join(u, groups_[size_t(pivot)], front);
    std::erase_if(members_.back(), [&](int32_t u) { return done_[size_t(u)] != 0; });
    for (const int32_t u : rest) {
      int64_t degree = size_.back() - weights_[size_t(u)];
      for (const int32_t e : of_[size_t(u)]) degree += outside_[size_t(e)];
      of_[size_t(u)].push_back(number);
      set_degree(u, degree);
    }
    front.rows = rest;
    return front;
  }

  /// Absorbs elements within the new one; a variable that is left in no other is a pivot, too.
  void join(int32_t u, int32_t group, EliminationFront& front) {
    std::vector<int32_t>& own = of_[size_t(u)];
    std::erase_if(own, [&](int32_t e) {
      if (outside_[size_t(e)] == 0 && !absorbed_[size_t(e)]) absorb(e);
      return absorbed_[size_t(e)] != 0;
    });
    if (!own.empty() || groups_[size_t(u)] != group) return;
    done_[size_t(u)] = 1;
    size_.back() -= weights_[size_t(u)];
    front.pivots.push_back(u);
  }

  std::span<const int32_t> weights_;
  std::span<const int32_t> groups_;
  int32_t inputs_;
  std::vector<std::vector<int32_t>> of_;       // live elements by variable
  std::vector<std::vector<int32_t>> members_;  // by element: those of the input, then one of each front
  std::vector<int64_t> size_, outside_;
  std::vector<int32_t> counted_, mark_;
  std::vector<uint8_t> absorbed_, done_;
  std::vector<int64_t> degree_;
  using Entry = std::tuple<int32_t, int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// Fronts that are as fast together with their parents.
class Merger {
 public:
  Merger(std::vector<EliminationFront>& fronts, std::span<const int32_t> weights,
         std::span<const int32_t> groups)
      : fronts_(fronts), weights_(weights), groups_(groups), into_(fronts.size()) {}

  void run() {
    for (size_t f = 0; f < fronts_.size(); ++f) {
      into_[f] = int32_t(f);
      for (const int32_t c : fronts_[f].children) fronts_[size_t(c)].parent = int32_t(f);
    }
    for (size_t f = 0; f < fronts_.size(); ++f)
      if (fronts_[f].parent >= 0 && pays(fronts_[f], fronts_[size_t(fronts_[f].parent)])) merge(int32_t(f));
    compact();
  }

 private:
  int64_t weight(const std::vector<int32_t>& variables) const {
    int64_t sum = 0;
    for (const int32_t v : variables) sum += weights_[size_t(v)];
    return sum;
  }
  /// Zeros that merging stores, compared with what small fronts cost.
  bool pays(const EliminationFront& child, const EliminationFront& parent) const {
    constexpr int64_t kFewPivots = 12, kManyPivots = 96;
    if (groups_[size_t(child.pivots[0])] != groups_[size_t(parent.pivots[0])]) return false;
    const int64_t pivots = weight(child.pivots), above = weight(parent.pivots);
    const int64_t missing = above + weight(parent.rows) - weight(child.rows);
    if (missing == 0) return pivots + above <= kManyPivots;
    return pivots + above <= kFewPivots && missing <= kFewPivots / 2;
  }
  void merge(int32_t f) {
    EliminationFront& child = fronts_[size_t(f)];
    EliminationFront& parent = fronts_[size_t(child.parent)];
    parent.pivots.insert(parent.pivots.begin(), child.pivots.begin(), child.pivots.end());
    parent.elements.insert(parent.elements.end(), child.elements.begin(), child.elements.end());
    std::erase(parent.children, f);
    for (const int32_t c : child.children) {
      fronts_[size_t(c)].parent = child.parent;
      parent.children.push_back(c);
    }
    into_[size_t(f)] = -1;
  }
  void compact() {
    int32_t next = 0;
    for (size_t f = 0; f < fronts_.size(); ++f)
      if (into_[f] >= 0) {
        into_[f] = next;
        if (size_t(next) != f) fronts_[size_t(next)] = std::move(fronts_[f]);
        ++next;
      }
    fronts_.resize(size_t(next));
    for (EliminationFront& front : fronts_) {
      for (int32_t& c : front.children) c = into_[size_t(c)];
      if (front.parent >= 0) front.parent = into_[size_t(front.parent)];
    }
  }

  std::vector<EliminationFront>& fronts_;
  std::span<const int32_t> weights_;
  std::span<const int32_t> groups_;
  std::vector<int32_t> into_;
};

}  // namespace

std::vector<EliminationFront> elimination_fronts(std::span<const int32_t> weights,
                                                 std::span<const int32_t> groups, const Elements& elements) {
  std::vector<EliminationFront> fronts = QuotientGraph(weights, groups, elements).run();
  std::vector<int32_t> front_of(weights.size());
  for (size_t f = 0; f < fronts.size(); ++f)
    for (const int32_t v : fronts[f].pivots) front_of[size_t(v)] = int32_t(f);
  const auto first_front = [&](std::span<const int32_t> variables) -> EliminationFront& {
    const auto first = std::ranges::min(variables, {}, [&](int32_t v) { return front_of[size_t(v)]; });
    return fronts[size_t(front_of[size_t(first)])];
  };
  for (int32_t e = 0; e < elements.count(); ++e) first_front(elements[e]).elements.push_back(e);
  for (size_t f = 0; f < fronts.size(); ++f)
    if (!fronts[f].rows.empty()) first_front(fronts[f].rows).children.push_back(int32_t(f));
  Merger(fronts, weights, groups).run();
  return fronts;
}

}  // namespace lockstep::solve
