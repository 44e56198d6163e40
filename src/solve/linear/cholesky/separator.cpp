// Multilevel vertex separators.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>

#include "solve/linear/cholesky/nested_dissection.hpp"

namespace lockstep::solve {
namespace {

constexpr int32_t kCoarsest = 100;     // vertices of the graph that is split first
constexpr int kStarts = 10;            // regions that are grown there
constexpr int kPasses = 8;             // of refinement on each level
constexpr double kLargestShare = 0.6;  // of the weight on one side

/// A graph with weights of edges: how many edges of the finest graph one stands for.
struct LevelGraph {
  std::vector<int32_t> first, adjacent, edge_weight, weight;
  int32_t vertices() const { return int32_t(weight.size()); }
};

/// Numbers that look random and are the same every time.
class Sequence {
 public:
  uint32_t below(uint32_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((uint64_t(uint32_t(state_ >> 32)) * n) >> 32);
  }

 private:
  uint64_t state_ = 0x2545f4914f6cdd1d;
};

/// Pairs joined by heavy edges become one vertex; `coarse_of` gives it. Light vertices are preferred, and no
/// vertex grows above `heaviest`.
LevelGraph coarsen(const LevelGraph& g, int64_t heaviest, Sequence& random, std::vector<int32_t>& coarse_of) {
  const int32_t n = g.vertices();
  std::vector<int32_t> order(static_cast<size_t>(n)), mate(size_t(n), -1);
  std::iota(order.begin(), order.end(), 0);
  for (int32_t k = n - 1; k > 0; --k) std::swap(order[size_t(k)], order[random.below(uint32_t(k) + 1)]);
  coarse_of.assign(size_t(n), -1);
  std::vector<std::array<int32_t, 2>> pairs;
  for (const int32_t v : order) {
    if (mate[size_t(v)] >= 0) continue;
    int32_t best = v;
    for (int32_t e = g.first[size_t(v)]; e < g.first[size_t(v) + 1]; ++e) {
      const int32_t u = g.adjacent[size_t(e)];
      if (mate[size_t(u)] >= 0 || int64_t(g.weight[size_t(u)]) + g.weight[size_t(v)] > heaviest) continue;
      if (best != v) {
        const int32_t at = g.edge_weight[size_t(e)];
        const auto found = std::lower_bound(g.adjacent.begin() + g.first[size_t(v)],
                                            g.adjacent.begin() + g.first[size_t(v) + 1], best);
        const int32_t held = g.edge_weight[size_t(found - g.adjacent.begin())];
        if (at < held || (at == held && g.weight[size_t(u)] >= g.weight[size_t(best)])) continue;
      }
      best = u;
    }
    mate[size_t(v)] = best, mate[size_t(best)] = v;
    pairs.push_back({std::min(v, best), std::max(v, best)});
  }
  std::sort(pairs.begin(), pairs.end());  // near vertices stay near
  for (size_t c = 0; c < pairs.size(); ++c)
    for (const int32_t v : pairs[c]) coarse_of[size_t(v)] = int32_t(c);

  LevelGraph out;
  out.first = {0};
  std::vector<int64_t> place(pairs.size(), -1);
  std::vector<std::array<int32_t, 2>> row;
  for (size_t c = 0; c < pairs.size(); ++c) {
    const auto [a, b] = pairs[c];
    out.weight.push_back(g.weight[size_t(a)] + (a == b ? 0 : g.weight[size_t(b)]));
    row.clear();
    for (const int32_t v : pairs[c]) {
      for (int32_t e = g.first[size_t(v)]; e < g.first[size_t(v) + 1]; ++e) {
        const int32_t other = coarse_of[size_t(g.adjacent[size_t(e)])];
        if (other == int32_t(c)) continue;
        if (place[size_t(other)] < 0) {
          place[size_t(other)] = int64_t(row.size());
          row.push_back({other, 0});
        }
        row[size_t(place[size_t(other)])][1] += g.edge_weight[size_t(e)];
      }
      if (a == b) break;
    }
    for (const auto& [other, weight] : row) place[size_t(other)] = -1;
    std::sort(row.begin(), row.end());
    for (const auto& [other, weight] : row) out.adjacent.push_back(other), out.edge_weight.push_back(weight);
    out.first.push_back(int32_t(out.adjacent.size()));
  }
  return out;
}

/// A labelling of a graph and its weights by side.
class Labelling {
 public:
  Labelling(const LevelGraph& graph, std::vector<Side> side) : g_(graph), side_(std::move(side)) {
    for (int32_t v = 0; v < g_.vertices(); ++v) weights_[size_t(side_[size_t(v)])] += g_.weight[size_t(v)];
    const int64_t all = weights_[0] + weights_[1] + weights_[2];
    most_ = int64_t(kLargestShare * double(all));
  }
  const std::vector<Side>& sides() const { return side_; }

  /// Balanced ones first, then light separators, then even sides.
  struct Quality {
    int64_t excess, separator, uneven;
    auto operator<=>(const Quality&) const = default;
  };
  Quality quality() const {
    const int64_t larger = std::max(weights_[0], weights_[1]), smaller = std::min(weights_[0], weights_[1]);
    return {std::max<int64_t>(0, larger - most_), weights_[2], larger - smaller};
  }

  /// Moves vertices of the separator to a side, the best one first, each at most once in a pass; what was
  /// best on the way stays (Fiduccia and Mattheyses).
  void refine() {
    for (int pass = 0; pass < kPasses; ++pass)
      if (!refine_once()) return;
  }

 private:
  struct Move {
    int64_t gain;
    int32_t vertex;
    int to;
    bool operator<(const Move& o) const {
      return gain != o.gain ? gain < o.gain : vertex != o.vertex ? vertex > o.vertex : to > o.to;
    }
  };
  struct Done {
    int32_t vertex;
    int to;
    size_t pulled;  // of pulled_, where its part begins
  };

  /// Decrease of the separator where v goes to `to`: v less its neighbours on the other side.
  int64_t gain(int32_t v, int to) const {
    int64_t sum = g_.weight[size_t(v)];
    for (int32_t e = g_.first[size_t(v)]; e < g_.first[size_t(v) + 1]; ++e) {
      const int32_t u = g_.adjacent[size_t(e)];
      if (side_[size_t(u)] == Side(1 - to)) sum -= g_.weight[size_t(u)];
    }
    return sum;
  }
  void set(int32_t v, Side to) {
    weights_[size_t(side_[size_t(v)])] -= g_.weight[size_t(v)];
    weights_[size_t(to)] += g_.weight[size_t(v)];
    side_[size_t(v)] = to;
  }

  bool refine_once() {
    const int32_t n = g_.vertices();
    gains_.assign(size_t(n), {0, 0});
    locked_.assign(size_t(n), 0);
    std::priority_queue<Move> queue;
    size_t boundary = 0;
    const auto enter = [&](int32_t v) {
      for (int to : {0, 1}) {
        gains_[size_t(v)][size_t(to)] = gain(v, to);
        queue.push({gains_[size_t(v)][size_t(to)], v, to});
      }
    };
    for (int32_t v = 0; v < n; ++v)
      if (side_[size_t(v)] == Side::separator) enter(v), ++boundary;
    const size_t patience = std::max<size_t>(25, boundary);
    std::vector<Done> done;
    pulled_.clear();
    const Quality before = quality();
    Quality best = before;
    size_t kept = 0;
    while (!queue.empty() && done.size() < kept + patience) {
      const Move move = queue.top();
      queue.pop();
      const int32_t v = move.vertex;
      const int to = move.to;
      if (side_[size_t(v)] != Side::separator || locked_[size_t(v)] ||
          gains_[size_t(v)][size_t(to)] != move.gain)
        continue;
      const int64_t grown = weights_[size_t(to)] + g_.weight[size_t(v)];
      if (grown > most_ && weights_[size_t(to)] >= weights_[size_t(1 - to)]) continue;
      locked_[size_t(v)] = 1;
      done.push_back({v, to, pulled_.size()});
      set(v, Side(to));
      for (int32_t e = g_.first[size_t(v)]; e < g_.first[size_t(v) + 1]; ++e) {
        const int32_t u = g_.adjacent[size_t(e)];
        if (side_[size_t(u)] == Side(1 - to)) {
          pulled_.push_back(u);
          set(u, Side::separator);
        } else if (side_[size_t(u)] == Side::separator && !locked_[size_t(u)]) {
          gains_[size_t(u)][size_t(1 - to)] -= g_.weight[size_t(v)];
          queue.push({gains_[size_t(u)][size_t(1 - to)], u, 1 - to});
        }
      }
      for (size_t k = done.back().pulled; k < pulled_.size(); ++k) {
        const int32_t u = pulled_[k];
        if (!locked_[size_t(u)]) enter(u);
        for (int32_t e = g_.first[size_t(u)]; e < g_.first[size_t(u) + 1]; ++e) {
          const int32_t s = g_.adjacent[size_t(e)];
          if (side_[size_t(s)] != Side::separator || locked_[size_t(s)]) continue;
          const int64_t now = gain(s, to);
          if (now == gains_[size_t(s)][size_t(to)]) continue;
          gains_[size_t(s)][size_t(to)] = now;
          queue.push({now, s, to});
        }
      }
      if (quality() < best) best = quality(), kept = done.size();
    }
    while (done.size() > kept) {
      const Done last = done.back();
      done.pop_back();
      while (pulled_.size() > last.pulled) {
        set(pulled_.back(), Side(1 - last.to));
        pulled_.pop_back();
      }
      set(last.vertex, Side::separator);
    }
    return best < before;
  }

  const LevelGraph& g_;
  std::vector<Side> side_;
  std::array<int64_t, 3> weights_{};
  int64_t most_ = 0;
  std::vector<std::array<int64_t, 2>> gains_;
  std::vector<uint8_t> locked_;
  std::vector<int32_t> pulled_;
};

/// A region grown from `start` until it has half of the weight; its outline is the separator.
std::vector<Side> grow(const LevelGraph& g, int32_t start) {
  const int32_t n = g.vertices();
  std::vector<Side> side(size_t(n), Side::right);
  const int64_t all = std::accumulate(g.weight.begin(), g.weight.end(), int64_t(0));
  int64_t inside = 0;
  const auto take = [&](int32_t v) {
    side[size_t(v)] = Side::left;
    inside += g.weight[size_t(v)];
    for (int32_t e = g.first[size_t(v)]; e < g.first[size_t(v) + 1]; ++e) {
      Side& other = side[size_t(g.adjacent[size_t(e)])];
      if (other == Side::right) other = Side::separator;
    }
  };
  take(start);
  while (2 * inside < all) {
    int32_t next = -1;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t v = 0; v < n; ++v) {
      if (side[size_t(v)] != Side::separator) continue;
      int64_t cost = -int64_t(g.weight[size_t(v)]);
      for (int32_t e = g.first[size_t(v)]; e < g.first[size_t(v) + 1]; ++e) {
        const int32_t u = g.adjacent[size_t(e)];
        if (side[size_t(u)] == Side::right) cost += g.weight[size_t(u)];
      }
      if (cost < least) least = cost, next = v;
    }
    for (int32_t v = 0; v < n && next < 0; ++v)  // another component
      if (side[size_t(v)] == Side::right) next = v;
    if (next < 0) break;
    take(next);
  }
  return side;
}

}  // namespace

std::vector<Side> find_separator(const OrderingGraph& graph) {
  Sequence random;
  std::vector<LevelGraph> levels(1);
  levels[0] = {graph.first, graph.adjacent, std::vector<int32_t>(graph.adjacent.size(), 1), graph.weight};
  std::vector<std::vector<int32_t>> maps;
  const int64_t all = std::accumulate(graph.weight.begin(), graph.weight.end(), int64_t(0));
  const int64_t heaviest = std::max<int64_t>(1, 3 * all / (2 * kCoarsest));
  while (levels.back().vertices() > kCoarsest) {
    std::vector<int32_t> map;
    LevelGraph next = coarsen(levels.back(), heaviest, random, map);
    if (next.vertices() > 0.95 * levels.back().vertices()) break;
    levels.push_back(std::move(next)), maps.push_back(std::move(map));
  }

  const LevelGraph& coarsest = levels.back();
  std::vector<Side> side;
  Labelling::Quality best{};
  for (int k = 0; k < kStarts; ++k) {
    Labelling trial(coarsest, grow(coarsest, int32_t(random.below(uint32_t(coarsest.vertices())))));
    trial.refine();
    if (side.empty() || trial.quality() < best) side = trial.sides(), best = trial.quality();
  }
  for (size_t level = maps.size(); level-- > 0;) {
    const std::vector<int32_t>& map = maps[level];
    std::vector<Side> finer(map.size());
    for (size_t v = 0; v < map.size(); ++v) finer[v] = side[size_t(map[v])];
    Labelling labels(levels[level], std::move(finer));
    labels.refine();
    side = labels.sides();
  }
  return side;
}

}  // namespace lockstep::solve
