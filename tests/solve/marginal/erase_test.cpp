// Blocks and terms that leave a problem: what is left is a problem that was built without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "../evaluate/problems.hpp"
#include "core/refusal.hpp"
#include "lockstep/solve/covariance.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve::test {
namespace {

using lockstep::test::refusal;

Context cpu() {
  ContextOptions options;
  options.device = "cpu";
  return Context(options);
}

/// A problem of springs and anchors, and a list of its contents, from which another one can be built.
struct Model {
  Problem problem;
  BlockSet before, points, behind;
  struct Spring {
    TermSet terms;
    std::vector<int64_t> blocks;
    double length;
    bool enabled = true;
    double weight = 1;
  };
  std::map<int64_t, std::vector<double>> values;  // by number of the block
  std::map<int64_t, bool> fixed;
  std::vector<Spring> springs;
  std::mt19937_64 random;

  explicit Model(uint64_t seed = 0) : random(seed) {
    // Sets around the one that changes: their numbers move.
    before = problem.add_blocks("before", euclidean(3), random_numbers(6, 1));
    points = problem.add_blocks("points", euclidean(3), {});
    behind = problem.add_blocks("behind", se2(), random_numbers(9, 2));
    problem.add_terms(anchor(3), {before}, std::vector<int32_t>{0, 1}, std::vector<double>{1, 2});
    problem.add_terms(anchor(3), {behind}, std::vector<int32_t>{0, 1, 2}, std::vector<double>{1, 2, 3});
  }
  static TermType anchor(int size) {
    return {"anchor", {size}, 1, [size](const TermArguments& a) {
              std::vector<Value> r;
              for (int k = 0; k < size; ++k) r.push_back(a.x(0, k) - a.data(0));
              return r;
            }};
  }
  /// The same content, built again, its blocks in the order of their numbers.
  Problem anew() const {
    Problem p;
    const BlockSet b = p.add_blocks("before", euclidean(3), problem.values(before));
    std::vector<double> all;
    std::map<int64_t, int32_t> place;
    for (const auto& [number, v] : values)
      place.emplace(number, int32_t(place.size())), all.insert(all.end(), v.begin(), v.end());
    const BlockSet q = p.add_blocks("points", euclidean(3), all);
    const BlockSet c = p.add_blocks("behind", se2(), problem.values(behind));
    p.add_terms(anchor(3), {b}, std::vector<int32_t>{0, 1}, std::vector<double>{1, 2});
    p.add_terms(anchor(3), {c}, std::vector<int32_t>{0, 1, 2}, std::vector<double>{1, 2, 3});
    for (const auto& [number, f] : fixed) p.fix(q, place.at(number), f);
    for (const Spring& s : springs) {
      std::vector<int32_t> at;
      for (const int64_t k : s.blocks) at.push_back(place.at(k));
      const TermSet terms = s.blocks.size() == 1
                                ? p.add_terms(anchor(3), {q}, at, std::vector<double>{s.length})
                                : p.add_terms(spring_type({RobustLoss::Kind::huber, 0.5}), {q, q}, at,
                                              std::vector<double>{s.length});
      if (s.weight != 1) p.weigh(terms, s.weight);
      p.enable(terms, s.enabled);
    }
    return p;
  }

  size_t below(size_t n) { return size_t(random() % n); }
  std::vector<int64_t> numbers() const {
    std::vector<int64_t> out;
    for (const auto& [number, v] : values) out.push_back(number);
    return out;
  }
  void append() {
    const std::vector<double> v = random_numbers(3, random());
    problem.append_blocks(points, v);
    const int64_t number = problem.block_numbers(points).back();
    EXPECT_FALSE(values.contains(number));
    values[number] = v, fixed[number] = false;
    const TermSet terms = problem.add_terms(anchor(3), {points}, std::vector<int32_t>{int32_t(number)},
                                            std::vector<double>{0.5});
    springs.push_back({terms, {number}, 0.5});
  }
  void connect() {
    const std::vector<int64_t> all = numbers();
    if (all.size() < 2) return;
    const size_t a = below(all.size()), b = (a + 1 + below(all.size() - 1)) % all.size();
    const double length = double(random() % 100) / 100;
    const TermSet terms = problem.add_terms(spring_type({RobustLoss::Kind::huber, 0.5}), {points, points},
                                            std::vector<int32_t>{int32_t(all[a]), int32_t(all[b])},
                                            std::vector<double>{length});
    springs.push_back({terms, {all[a], all[b]}, length});
  }
  void erase_spring() {
    if (springs.empty()) return;
    const size_t k = below(springs.size());
    problem.erase(springs[k].terms);
    EXPECT_NE(refusal([&] { problem.enable(springs[k].terms); }).find("erased"), std::string::npos);
    springs.erase(springs.begin() + int64_t(k));
  }
  void erase_point() {
    const std::vector<int64_t> all = numbers();
    if (all.empty()) return;
    const std::vector<int64_t> gone{all[below(all.size())]};
    const auto has = [&](const Spring& s) { return std::ranges::find(s.blocks, gone[0]) != s.blocks.end(); };
    if (std::ranges::any_of(springs, has))
      EXPECT_NE(refusal([&] { problem.erase(points, gone); }).find("is in instance"), std::string::npos);
    for (const Spring& s : springs)
      if (has(s)) problem.erase(s.terms);
    std::erase_if(springs, has);
    problem.erase(points, gone);
    values.erase(gone[0]), fixed.erase(gone[0]);
    EXPECT_NE(refusal([&] { problem.fix(points, gone[0]); }).find("was erased"), std::string::npos);
  }
  void change() {
    if (springs.empty()) return;
    Spring& s = springs[below(springs.size())];
    if (random() % 2)
      problem.enable(s.terms, s.enabled = !s.enabled);
    else
      problem.weigh(s.terms, s.weight = 2);
    const int64_t number = s.blocks[0];
    problem.fix(points, number, fixed[number] = random() % 2);
    problem.value(points, number)[1] = values[number][1] = double(random() % 100);
  }
  void step() {
    switch (below(7)) {
      case 0:
      case 1: return append();
      case 2:
      case 3: return connect();
      case 4: return erase_spring();
      case 5: return erase_point();
      default: return change();
    }
  }
};

TEST(Erase, RandomSequencesEqualProblemsBuiltAnew) {
  Context context = cpu();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Model m(seed);
    for (int step = 0; step < 25; ++step) m.step();
    const Problem other = m.anew();
    EXPECT_EQ(m.problem.residual_count(), other.residual_count());
    EXPECT_EQ(m.problem.variable_count(), other.variable_count());
    EvaluateOptions options;
    options.normal = true;
    const Evaluation a = evaluate(m.problem, context, options), b = evaluate(other, context, options);
    EXPECT_NEAR(a.cost, b.cost, 1e-13 * b.cost) << seed;
    expect_near(a.gradient, b.gradient, 1e-13, "gradient");
    EXPECT_EQ(a.normal.column, b.normal.column) << seed;
    expect_near(a.normal.values, b.normal.values, 1e-13, "J^T J");
    // Rows come in the order of adding in both.
    expect_near(a.residuals, b.residuals, 1e-14, "residuals");
  }
}

TEST(Erase, WhatIsHeldDoesNotGrow) {
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(3), random_numbers(30, 1));
  std::vector<TermSet> springs;
  const auto add = [&](int64_t a, int64_t b) {
    springs.push_back(problem.add_terms(spring_type(), {points, points},
                                        std::vector<int32_t>{int32_t(a), int32_t(b)},
                                        std::vector<double>{0.3}));
  };
  for (int k = 0; k < 9; ++k) add(k, k + 1);
  size_t largest = 0;
  for (int64_t frame = 0; frame < 20000; ++frame) {
    problem.append_blocks(points, std::vector<double>{0, double(frame), 1});
    add(frame + 9, frame + 10);
    problem.erase(springs.front());
    springs.erase(springs.begin());
    problem.erase(points, std::vector<int64_t>{frame});
    size_t held =
        problem.state().terms.size() + problem.state().batches.size() + problem.state().values.size();
    for (const Batch& b : problem.state().batches) held += b.segments.size();
    largest = std::max(largest, held);
  }
  EXPECT_LT(largest, 120u);
  EXPECT_EQ(problem.block_count(points), 10);
  EXPECT_EQ(problem.block_numbers(points).front(), 20000);
}

TEST(Erase, CovariancesAndNotesSayTheNumbersThatUsersKnow) {
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(3), random_numbers(15, 1));
  for (int k = 2; k < 5; ++k)
    problem.add_terms(Model::anchor(3), {points}, std::vector<int32_t>{k}, std::vector<double>{double(k)});
  problem.erase(points, std::vector<int64_t>{0, 1});
  Context context = cpu();
  const Covariance covariance(problem, context);
  EXPECT_NEAR(covariance.block(points, 4)[0], 1, 1e-15);
  EXPECT_EQ(covariance.marginals(points).size(), 27u);
  EXPECT_NE(refusal([&] { covariance.block(points, 1); }).find("block 1 of points, which was erased"),
            std::string::npos);
  EXPECT_NE(refusal([&] { problem.erase(points, std::vector<int64_t>{7}); }).find("block 7"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::solve::test
