// The choice alone, on problems whose answer a plain search gives.
#include "urban/plant/greedy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace lockstep::urban {
namespace {

/// The gain of a candidate next to a set, and which candidates know of each other.
struct Toy {
  size_t count = 0;
  std::function<double(const std::vector<size_t>& chosen, size_t candidate)> gain;
  std::function<bool(size_t, size_t)> near = [](size_t, size_t) { return true; };
  std::function<bool(size_t, size_t)> excludes = [](size_t, size_t) { return false; };

  GreedyChoice choose(int64_t trees, PlantSearch search) const {
    std::vector<size_t> chosen;
    GreedyProblem problem;
    problem.candidates = count;
    problem.evaluate = [&](std::span<const size_t> which) {
      std::vector<double> gains;
      for (const size_t k : which) gains.push_back(gain(chosen, k));
      return gains;
    };
    problem.choose = [&](size_t k) { chosen.push_back(k); };
    problem.changes = near;
    problem.excludes = excludes;
    return greedy(problem, trees, search);
  }

  /// Every candidate in every round.
  std::vector<size_t> plain(int64_t trees) const {
    std::vector<size_t> chosen;
    while (static_cast<int64_t>(chosen.size()) < trees) {
      size_t best = count;
      double most = 0;
      for (size_t k = 0; k < count; ++k) {
        if (std::ranges::any_of(chosen, [&](size_t c) { return c == k || excludes(c, k); })) continue;
        if (const double g = gain(chosen, k); g > most) best = k, most = g;
      }
      if (best == count) break;
      chosen.push_back(best);
    }
    return chosen;
  }
};

/// Candidates cover random stretches of a line; the gain is what is newly covered.
Toy covering(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<int, int>> parts;
  for (int k = 0; k < 40; ++k) {
    const int from = static_cast<int>(random() % 200);
    parts.emplace_back(from, from + 3 + static_cast<int>(random() % 25));
  }
  Toy toy;
  toy.count = parts.size();
  toy.gain = [parts](const std::vector<size_t>& chosen, size_t k) {
    std::set<int> covered;
    for (const size_t c : chosen)
      for (int x = parts[c].first; x < parts[c].second; ++x) covered.insert(x);
    int fresh = 0;
    for (int x = parts[k].first; x < parts[k].second; ++x) fresh += !covered.contains(x);
    return double(fresh);
  };
  toy.near = [parts](size_t a, size_t b) {
    return parts[a].first < parts[b].second && parts[b].first < parts[a].second;
  };
  return toy;
}

TEST(Greedy, ChoosesWhatThePlainSearchChooses) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Toy toy = covering(seed);
    const auto wanted = toy.plain(12);
    const GreedyChoice exact = toy.choose(12, PlantSearch::exact), lazy = toy.choose(12, PlantSearch::lazy);
    EXPECT_EQ(exact.chosen, wanted) << seed;
    EXPECT_EQ(lazy.chosen, wanted) << seed;
    EXPECT_EQ(exact.raised, 0);
    EXPECT_LT(exact.evaluations, 12 * 40 - 12 * 11 / 2) << "overlaps alone are evaluated again";
    EXPECT_LE(lazy.evaluations, exact.evaluations);
    for (size_t k = 0; k < wanted.size(); ++k)
      EXPECT_EQ(exact.gains[k], toy.gain({wanted.begin(), wanted.begin() + int64_t(k)}, wanted[k]));
  }
}

// Two candidates are worth more together: gains rise, and bounds by earlier gains do not hold.
TEST(Greedy, IsExactWhereGainsRise) {
  Toy toy;
  toy.count = 40;
  toy.gain = [](const std::vector<size_t>& chosen, size_t k) {
    double gain = k == 39 ? 0.1 : 10 - 0.1 * double(k);
    for (const size_t c : chosen) gain += k == 39 && c == 0 ? 50 : 0;
    return gain;
  };
  EXPECT_EQ(toy.plain(3), (std::vector<size_t>{0, 39, 1}));
  const GreedyChoice exact = toy.choose(3, PlantSearch::exact), lazy = toy.choose(3, PlantSearch::lazy);
  EXPECT_EQ(exact.chosen, toy.plain(3));
  EXPECT_EQ(exact.raised, 1);
  EXPECT_EQ(lazy.chosen, (std::vector<size_t>{0, 1, 2})) << "beyond the evaluated ones";
}

TEST(Greedy, EvaluatesNobodyWhomAChoiceLeavesAlone) {
  Toy toy = covering(3);
  toy.near = [](size_t, size_t) { return false; };
  EXPECT_EQ(toy.choose(5, PlantSearch::exact).evaluations, 40);
  EXPECT_EQ(toy.choose(5, PlantSearch::lazy).evaluations, 40);
}

TEST(Greedy, TakesTheFirstOfEqualsAndStopsWhereNothingHelps) {
  Toy toy;
  toy.count = 6;
  toy.gain = [](const std::vector<size_t>&, size_t k) { return k < 2 ? -1.0 : k == 5 ? 0.0 : 2.0; };
  toy.excludes = [](size_t chosen, size_t other) { return chosen + 1 == other; };
  for (const PlantSearch search : {PlantSearch::exact, PlantSearch::lazy}) {
    const GreedyChoice choice = toy.choose(6, search);
    EXPECT_EQ(choice.chosen, (std::vector<size_t>{2, 4}));
    EXPECT_EQ(choice.first_gains, (std::vector<double>{-1, -1, 2, 2, 2, 0}));
  }
}

}  // namespace
}  // namespace lockstep::urban
