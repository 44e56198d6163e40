// Separators and elimination orders of graphs whose separators are known.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "solve/linear/cholesky/nested_dissection.hpp"
#include "solve/linear/cholesky/sparse_cholesky.hpp"

namespace lockstep::solve {
namespace {

OrderingGraph graph_of(int32_t n, const std::set<std::pair<int32_t, int32_t>>& edges) {
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(n));
  for (const auto& [a, b] : edges) rows[size_t(a)].push_back(b), rows[size_t(b)].push_back(a);
  OrderingGraph graph;
  graph.first = {0};
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    graph.adjacent.insert(graph.adjacent.end(), row.begin(), row.end());
    graph.first.push_back(int32_t(graph.adjacent.size()));
    graph.weight.push_back(1);
  }
  return graph;
}

/// A triangulated grid, closed to a torus where `closed`.
OrderingGraph sheet(int32_t side, bool closed) {
  std::set<std::pair<int32_t, int32_t>> edges;
  const auto join = [&](int32_t r, int32_t c, int32_t dr, int32_t dc) {
    const int32_t row = r + dr, column = c + dc;
    if (!closed && (row >= side || column >= side)) return;
    const int32_t a = r * side + c, b = row % side * side + column % side;
    edges.emplace(std::min(a, b), std::max(a, b));
  };
  for (int32_t r = 0; r < side; ++r)
    for (int32_t c = 0; c < side; ++c) join(r, c, 0, 1), join(r, c, 1, 0), join(r, c, 1, 1);
  return graph_of(side * side, edges);
}

bool is_permutation(std::vector<int32_t> order, int32_t n) {
  std::sort(order.begin(), order.end());
  std::vector<int32_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

/// Sum of squared column lengths of the factor, by elimination on sets.
double operations(const OrderingGraph& graph, const std::vector<int32_t>& order) {
  std::vector<int32_t> place(order.size());
  for (size_t k = 0; k < order.size(); ++k) place[size_t(order[k])] = int32_t(k);
  std::vector<std::set<int32_t>> below(order.size());
  double sum = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const int32_t v = order[k];
    for (int32_t e = graph.first[size_t(v)]; e < graph.first[size_t(v) + 1]; ++e)
      if (const int32_t p = place[size_t(graph.adjacent[size_t(e)])]; p > int32_t(k)) below[k].insert(p);
    const double length = double(below[k].size()) + 1;
    sum += length * length;
    if (below[k].empty()) continue;
    const size_t parent = size_t(*below[k].begin());
    below[parent].insert(std::next(below[k].begin()), below[k].end());
    below[k].clear();
  }
  return sum;
}

void expect_separator(const OrderingGraph& graph, const std::vector<Side>& side) {
  ASSERT_EQ(side.size(), graph.weight.size());
  for (int32_t v = 0; v < graph.vertices(); ++v)
    for (int32_t e = graph.first[size_t(v)]; e < graph.first[size_t(v) + 1]; ++e) {
      const Side a = side[size_t(v)], b = side[size_t(graph.adjacent[size_t(e)])];
      ASSERT_FALSE((a == Side::left && b == Side::right) || (a == Side::right && b == Side::left)) << v;
    }
}

TEST(Separator, PartsGridsNearTheirMiddle) {
  for (const int32_t side : {12, 40, 90}) {
    const OrderingGraph graph = sheet(side, false);
    const std::vector<Side> found = find_separator(graph);
    expect_separator(graph, found);
    const auto size = [&](Side s) { return std::count(found.begin(), found.end(), s); };
    EXPECT_LE(size(Side::separator), side * 5 / 4) << "a row has as many";
    EXPECT_LE(std::max(size(Side::left), size(Side::right)), 0.61 * side * side);
  }
}

TEST(Separator, WeightsCount) {
  // A ladder whose middle rungs are heavy: the cheapest cut is next to them.
  std::set<std::pair<int32_t, int32_t>> edges;
  const int32_t length = 200;
  for (int32_t k = 0; k < length; ++k) {
    edges.emplace(2 * k, 2 * k + 1);
    if (k + 1 < length) edges.emplace(2 * k, 2 * k + 2), edges.emplace(2 * k + 1, 2 * k + 3);
  }
  OrderingGraph graph = graph_of(2 * length, edges);
  for (int32_t k = 194; k < 206; ++k) graph.weight[size_t(k)] = 3;
  const std::vector<Side> found = find_separator(graph);
  expect_separator(graph, found);
  int64_t weight = 0;
  for (int32_t v = 0; v < graph.vertices(); ++v)
    if (found[size_t(v)] == Side::separator) weight += graph.weight[size_t(v)];
  EXPECT_EQ(weight, 2);
}

TEST(NestedDissection, OrdersEveryKindOfGraph) {
  std::vector<OrderingGraph> graphs{graph_of(0, {}), graph_of(1, {}), graph_of(700, {}), sheet(30, true)};
  std::set<std::pair<int32_t, int32_t>> star, clique, path, random_edges;
  std::mt19937 random(3);
  for (int32_t k = 1; k < 900; ++k) star.emplace(0, k), path.emplace(k - 1, k);
  for (int32_t a = 0; a < 250; ++a)
    for (int32_t b = a + 1; b < 250; ++b) clique.emplace(a, b);
  for (int k = 0; k < 1500; ++k) {
    const auto a = int32_t(random() % 1000), b = int32_t(random() % 1000);
    if (a != b) random_edges.emplace(std::min(a, b), std::max(a, b));
  }
  graphs.push_back(graph_of(900, star));
  graphs.push_back(graph_of(900, path));
  graphs.push_back(graph_of(250, clique));
  graphs.push_back(graph_of(1000, random_edges));
  for (const OrderingGraph& graph : graphs) {
    EXPECT_TRUE(is_permutation(nested_dissection(graph), graph.vertices())) << graph.vertices();
    EXPECT_TRUE(is_permutation(minimum_degree(graph), graph.vertices())) << graph.vertices();
  }
  EXPECT_LT(operations(graphs[4], nested_dissection(graphs[4])), 4 * 900) << "the hub of a star comes last";
}

TEST(NestedDissection, SavesOnSurfaces) {
  const OrderingGraph torus = sheet(150, true);
  const double dissected = operations(torus, nested_dissection(torus)),
               degrees = operations(torus, minimum_degree(torus));
  EXPECT_LT(dissected, 0.75 * degrees) << dissected << " " << degrees;
}

TEST(NestedDissection, IsTheSameForEveryNumberOfThreads) {
  const OrderingGraph graph = sheet(80, false);
  std::vector<int32_t> first;
  for (const size_t threads : {1, 2, 4}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    const std::vector<int32_t> order = nested_dissection(graph);
    if (first.empty()) first = order;
    EXPECT_EQ(order, first);
  }
}

TEST(SparseCholesky, SolvesDissectedSurfaces) {
  // The graph Laplacian of a torus plus a hundredth, twice over (blocks of 2).
  const OrderingGraph torus = sheet(48, true);
  BlockPattern pattern;
  std::vector<double> values;
  pattern.first = {0};
  for (int32_t v = 0; v < torus.vertices(); ++v) {
    pattern.first.push_back(2 * v + 2);
    pattern.rows.push_back(v), pattern.columns.push_back(v);
    values.insert(values.end(), {6.01, 0.005, 0.005, 6.01});
    for (int32_t e = torus.first[size_t(v)]; e < torus.first[size_t(v) + 1]; ++e) {
      if (torus.adjacent[size_t(e)] < v) continue;
      pattern.rows.push_back(torus.adjacent[size_t(e)]), pattern.columns.push_back(v);
      values.insert(values.end(), {-1, 0, 0, -1});
    }
  }
  SparseCholesky cholesky(pattern);
  ASSERT_TRUE(cholesky.factorise(values, std::vector<double>(size_t(pattern.unknowns()), 0)));
  std::vector<double> x(size_t(pattern.unknowns())), b(x.size());
  for (size_t k = 0; k < x.size(); ++k) b[k] = x[k] = std::sin(double(k));
  cholesky.solve(x);
  for (int32_t v = 0; v < torus.vertices(); ++v)
    for (int c = 0; c < 2; ++c) {
      double sum = 6.01 * x[size_t(2 * v + c)] + 0.005 * x[size_t(2 * v + 1 - c)];
      for (int32_t e = torus.first[size_t(v)]; e < torus.first[size_t(v) + 1]; ++e)
        sum -= x[size_t(2 * torus.adjacent[size_t(e)] + c)];
      ASSERT_NEAR(sum, b[size_t(2 * v + c)], 1e-11);
    }
}

}  // namespace
}  // namespace lockstep::solve
