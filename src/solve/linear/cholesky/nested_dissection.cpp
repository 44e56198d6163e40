#include "solve/linear/cholesky/nested_dissection.hpp"

#include <tbb/parallel_invoke.h>

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>
#include <array>
#include <numeric>
#include <span>

namespace lockstep::solve {
namespace {

constexpr int32_t kTaskVertices = 2000;     // larger parts are dissected side by side
constexpr double kLargestSeparator = 0.25;  // of the weight; denser graphs have no use for one

/// Writes the vertices of `graph`, which are `names` outside, in their order.
void dissect(const OrderingGraph& graph, std::span<const int32_t> names, std::span<int32_t> out) {
  const int32_t n = graph.vertices();
  const auto finish = [&] {
    const std::vector<int32_t> order = minimum_degree(graph);
    for (size_t k = 0; k < order.size(); ++k) out[k] = names[size_t(order[k])];
  };
  if (n <= kLeafVertices) return finish();
  const std::vector<Side> side = find_separator(graph);
  std::array<int64_t, 3> weights{};
  std::array<std::vector<int32_t>, 3> members;
  for (int32_t v = 0; v < n; ++v) {
    weights[size_t(side[size_t(v)])] += graph.weight[size_t(v)];
    members[size_t(side[size_t(v)])].push_back(v);
  }
  const int64_t all = weights[0] + weights[1] + weights[2];
  if (members[0].empty() || members[1].empty() || double(weights[2]) > kLargestSeparator * double(all))
    return finish();

  std::array<OrderingGraph, 2> parts;
  std::array<std::vector<int32_t>, 2> part_names;
  std::vector<int32_t> number(static_cast<size_t>(n));
  for (size_t p = 0; p < 2; ++p)
    for (size_t k = 0; k < members[p].size(); ++k) number[size_t(members[p][k])] = int32_t(k);
  for (size_t p = 0; p < 2; ++p) {
    parts[p].first = {0};
    for (const int32_t v : members[p]) {
      for (int32_t e = graph.first[size_t(v)]; e < graph.first[size_t(v) + 1]; ++e) {
        const int32_t u = graph.adjacent[size_t(e)];
        if (side[size_t(u)] == Side(p)) parts[p].adjacent.push_back(number[size_t(u)]);
      }
      parts[p].first.push_back(int32_t(parts[p].adjacent.size()));
      parts[p].weight.push_back(graph.weight[size_t(v)]);
      part_names[p].push_back(names[size_t(v)]);
    }
  }
  const auto left = out.first(members[0].size()), right = out.subspan(members[0].size(), members[1].size());
  const auto last = out.subspan(members[0].size() + members[1].size());
  for (size_t k = 0; k < members[2].size(); ++k) last[k] = names[size_t(members[2][k])];
  if (n > kTaskVertices) {
    tbb::parallel_invoke([&] { dissect(parts[0], part_names[0], left); },
                         [&] { dissect(parts[1], part_names[1], right); });
  } else {
    dissect(parts[0], part_names[0], left);
    dissect(parts[1], part_names[1], right);
  }
}

}  // namespace

std::vector<int32_t> nested_dissection(const OrderingGraph& graph) {
  std::vector<int32_t> names(static_cast<size_t>(graph.vertices())), order(names.size());
  std::iota(names.begin(), names.end(), 0);
  dissect(graph, names, order);
  return order;
}

std::vector<int32_t> minimum_degree(const OrderingGraph& graph) {
  const int n = graph.vertices();
  Eigen::SparseMatrix<double> matrix(n, n);
  std::vector<Eigen::Triplet<double, int>> entries;
  for (int v = 0; v < n; ++v) {
    entries.emplace_back(v, v, 1.0);
    for (int32_t e = graph.first[size_t(v)]; e < graph.first[size_t(v) + 1]; ++e)
      if (graph.adjacent[size_t(e)] > v) entries.emplace_back(graph.adjacent[size_t(e)], v, 1.0);
  }
  matrix.setFromTriplets(entries.begin(), entries.end());
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> ordered;
  Eigen::AMDOrdering<int> amd;
  amd(matrix.selfadjointView<Eigen::Lower>(), ordered);
  return {ordered.indices().data(), ordered.indices().data() + n};
}

}  // namespace lockstep::solve
