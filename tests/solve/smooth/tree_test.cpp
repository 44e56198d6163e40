// Orders and trees that change at their top, compared with plain elimination and dense algebra.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <random>
#include <set>

#include "solve/smooth/clique_tree.hpp"

namespace lockstep::solve::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Plain elimination of variables, one by one: those that each is joined with then.
std::vector<std::set<int32_t>> fill_of(const std::vector<int32_t>& order, const Elements& elements) {
  std::vector<std::set<int32_t>> cliques, out(order.size());
  for (int32_t e = 0; e < elements.count(); ++e) cliques.emplace_back(elements[e].begin(), elements[e].end());
  for (const int32_t v : order) {
    std::set<int32_t> joined;
    std::erase_if(cliques, [&](const std::set<int32_t>& c) {
      if (!c.contains(v)) return false;
      joined.insert(c.begin(), c.end());
      return true;
    });
    joined.erase(v);
    out[size_t(v)] = joined;
    cliques.push_back(joined);
  }
  return out;
}

TEST(EliminationOrder, FrontsHoldTheFillAndKeepTheGroups) {
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 200; ++trial) {
    const int32_t n = 1 + int32_t(engine() % 30);
    std::vector<int32_t> weights;
    std::vector<int32_t> groups;
    for (int32_t v = 0; v < n; ++v)
      weights.push_back(1 + int32_t(engine() % 6)), groups.push_back(int32_t(engine() % 3));
    Elements elements;
    for (int32_t e = 0; e < 2 * n; ++e) {
      std::set<int32_t> clique;
      for (uint64_t k = 0; k < 1 + engine() % 3; ++k) clique.insert(int32_t(engine() % uint64_t(n)));
      elements.add(std::vector<int32_t>(clique.begin(), clique.end()));
    }
    const std::vector<EliminationFront> fronts = elimination_fronts(weights, groups, elements);
    std::vector<int32_t> order, front_of(size_t(n), -1), seen(size_t(elements.count()), 0);
    for (size_t f = 0; f < fronts.size(); ++f)
      for (const int32_t v : fronts[f].pivots) order.push_back(v), front_of[size_t(v)] = int32_t(f);
    ASSERT_EQ(order.size(), size_t(n));
    const std::vector<std::set<int32_t>> fill = fill_of(order, elements);
    for (size_t f = 0; f < fronts.size(); ++f) {
      std::set<int32_t> inside(fronts[f].pivots.begin(), fronts[f].pivots.end());
      inside.insert(fronts[f].rows.begin(), fronts[f].rows.end());
      ASSERT_EQ(inside.size(), fronts[f].pivots.size() + fronts[f].rows.size());
      for (const int32_t v : fronts[f].pivots) {
        EXPECT_EQ(groups[size_t(v)], groups[size_t(fronts[f].pivots[0])]);
        for (const int32_t u : fill[size_t(v)]) EXPECT_TRUE(inside.contains(u)) << trial;
      }
      for (const int32_t u : fronts[f].rows) {
        EXPECT_GT(front_of[size_t(u)], int32_t(f));
        EXPECT_GE(groups[size_t(u)], groups[size_t(fronts[f].pivots[0])]);
      }
      for (const int32_t c : fronts[f].children) {
        EXPECT_EQ(fronts[size_t(c)].parent, int32_t(f));
        bool own = false;
        for (const int32_t u : fronts[size_t(c)].rows) {
          own |= front_of[size_t(u)] == int32_t(f);
          EXPECT_TRUE(inside.contains(u));
        }
        EXPECT_TRUE(own);
      }
      for (const int32_t e : fronts[f].elements) {
        ++seen[size_t(e)];
        bool own = false;
        for (const int32_t u : elements[e]) {
          own |= front_of[size_t(u)] == int32_t(f);
          EXPECT_TRUE(inside.contains(u));
        }
        EXPECT_TRUE(own);
      }
    }
    for (const int32_t count : seen) EXPECT_EQ(count, 1);
  }
}

/// Random quadratics of variables that are added to a tree, and the equivalent dense problem.
class Growing {
 public:
  explicit Growing(uint64_t seed) : engine_(seed) {}

  void add_variable() {
    const int32_t v = int32_t(widths_.size());
    widths_.push_back(1 + int32_t(engine_() % 3));
    tree.set_variable(v, widths_.back(), 1);
    fresh_.push_back(v);
    add_quadratic({v});
    if (v > 0) add_quadratic({v - 1, v});
  }
  void add_loop() {
    const int32_t n = int32_t(widths_.size()), a = int32_t(engine_() % uint64_t(n)),
                  b = int32_t(engine_() % uint64_t(n));
    if (a != b) add_quadratic({b, a});
  }
  /// Other numbers for a quadratic, as if it were relinearised.
  void change_one() {
    const size_t k = engine_() % quadratics_.size();
    fill(quadratics_[k]);
    for (const int32_t v : quadratics_[k].variables) anywhere_.push_back(v);
  }
  void update(double change) {
    std::erase_if(pivots_, [&](int32_t v) { return tree.clique_of(v) < 0; });
    CliqueTree::Affected affected = tree.affected(pivots_, anywhere_);
    affected.variables.insert(affected.variables.end(), fresh_.begin(), fresh_.end());
    std::vector<uint8_t> in(widths_.size(), 0);
    for (const int32_t v : affected.variables) in[size_t(v)] = 1;
    std::vector<QuadraticView> views;
    for (const Quadratic& q : quadratics_)
      if (std::ranges::all_of(q.variables, [&](int32_t v) { return in[size_t(v)] != 0; }))
        views.push_back({q.variables, q.gram.data(), q.size});
    affected_share += double(affected.variables.size()) / double(widths_.size()), ++updates;
    auto replacement = tree.eliminate(affected.variables, std::vector<int32_t>(affected.variables.size(), 1),
                                      views, affected.orphans);
    ASSERT_FALSE(replacement.undetermined);
    tree.replace(affected, std::move(replacement));
    std::vector<int32_t> moved;
    tree.substitute(change, moved);
    pivots_.clear(), anywhere_.clear(), fresh_.clear();
  }

  std::pair<MatrixXd, VectorXd> dense(std::vector<Eigen::Index>& first) const {
    Eigen::Index n = 0;
    for (const int32_t w : widths_) first.push_back(n), n += w;
    MatrixXd h = MatrixXd::Zero(n, n);
    VectorXd g = VectorXd::Zero(n);
    for (const Quadratic& q : quadratics_) {
      std::vector<Eigen::Index> at;
      for (const int32_t v : q.variables)
        for (int32_t k = 0; k < widths_[size_t(v)]; ++k) at.push_back(first[size_t(v)] + k);
      const MatrixXd own = q.j.transpose() * q.j;
      for (size_t r = 0; r < at.size(); ++r) {
        for (size_t c = 0; c < at.size(); ++c) h(at[r], at[c]) += own(Eigen::Index(r), Eigen::Index(c));
        g(at[r]) += own(Eigen::Index(r), own.cols() - 1);
      }
    }
    return {h, g};
  }
  void expect_minimum(double tolerance) {
    std::vector<Eigen::Index> first;
    const auto [h, g] = dense(first);
    const VectorXd expected = -h.llt().solve(g);
    for (size_t v = 0; v < widths_.size(); ++v)
      for (int32_t k = 0; k < widths_[v]; ++k)
        ASSERT_NEAR(tree.step(int32_t(v))[size_t(k)], expected(first[v] + k), tolerance) << v;
  }
  void expect_covariance(const std::vector<int32_t>& which) {
    std::vector<Eigen::Index> first, at;
    const auto [h, g] = dense(first);
    const MatrixXd inverse = h.inverse();
    for (const int32_t v : which)
      for (int32_t k = 0; k < widths_[size_t(v)]; ++k) at.push_back(first[size_t(v)] + k);
    const std::vector<double> got = tree.covariance(which);
    ASSERT_EQ(got.size(), at.size() * at.size());
    for (size_t r = 0; r < at.size(); ++r)
      for (size_t c = 0; c < at.size(); ++c)
        EXPECT_NEAR(got[r * at.size() + c], inverse(at[r], at[c]), 1e-10 * inverse.diagonal().maxCoeff());
  }
  int32_t any() { return int32_t(engine_() % widths_.size()); }

  CliqueTree tree;
  double affected_share = 0;
  int updates = 0;

 private:
  struct Quadratic {
    std::vector<int32_t> variables;
    MatrixXd j;  // [J r]
    std::vector<double> gram;
    int64_t size = 0;
  };
  void add_quadratic(std::vector<int32_t> variables) {
    Quadratic q{std::move(variables), {}, {}, 0};
    fill(q);
    pivots_.insert(pivots_.end(), q.variables.begin(), q.variables.end());
    quadratics_.push_back(std::move(q));
  }
  void fill(Quadratic& q) {
    Eigen::Index columns = 1;
    for (const int32_t v : q.variables) columns += widths_[size_t(v)];
    q.j = MatrixXd::NullaryExpr(columns + 1, columns,
                                [&] { return 2 * (double(engine_() >> 11) * 0x1p-53) - 1; });
    const MatrixXd own = q.j.transpose() * q.j;
    q.gram.assign(own.data(), own.data() + own.size()), q.size = int64_t(columns);
  }

  std::mt19937_64 engine_;
  std::vector<int32_t> widths_, pivots_, anywhere_, fresh_;
  std::vector<Quadratic> quadratics_;
};

TEST(CliqueTree, IsTheDenseFactorAfterEveryChange) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    Growing g(seed);
    for (int k = 0; k < 80; ++k) {
      g.add_variable();
      if (k % 3 == 0) g.add_loop();
      if (k % 7 == 0) g.change_one();
      g.update(0);
      g.expect_minimum(1e-10);
    }
    g.expect_covariance({g.any()});
    g.expect_covariance({0, 79, 40});
    EXPECT_LT(g.affected_share / g.updates, 0.8) << seed;  // else nothing is incremental
  }
}

TEST(CliqueTree, PassesSmallChangesNotOn) {
  Growing exact(3), coarse(3);
  for (int k = 0; k < 120; ++k) {
    for (Growing* g : {&exact, &coarse}) {
      g->add_variable();
      if (k % 4 == 0) g->add_loop();
    }
    exact.update(0), coarse.update(1e-3);
    coarse.expect_minimum(0.05);
  }
  bool differs = false;
  for (int32_t v = 0; v < 120; ++v) differs |= exact.tree.step(v)[0] != coarse.tree.step(v)[0];
  EXPECT_TRUE(differs);
}

TEST(CliqueTree, NamesAVariableThatNothingHolds) {
  CliqueTree tree;
  for (int32_t v = 0; v < 3; ++v) tree.set_variable(v, 1, 1);
  // A chain of differences: nothing holds all three.
  const std::vector<double> gram{1, -1, 0.5, -1, 1, -0.5, 0.5, -0.5, 0.25};
  const std::vector<int32_t> a{0, 1}, b{1, 2}, all{0, 1, 2};
  const std::vector<QuadraticView> views{{a, gram.data(), 3}, {b, gram.data(), 3}};
  EXPECT_TRUE(tree.eliminate(all, std::vector<int32_t>(3, 1), views, {}).undetermined);
  EXPECT_EQ(tree.clique_count(), 0);
}

}  // namespace
}  // namespace lockstep::solve::test
