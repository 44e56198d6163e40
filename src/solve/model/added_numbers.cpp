#include "solve/model/added_numbers.hpp"

#include <algorithm>

#include "autodiff/topology.hpp"
#include "core/memo.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {
namespace {

using Added = std::vector<std::optional<AddedNumber>>;

bool same_formula(const Value& a, const Value& b) {
  const autodiff::Topology of_a = autodiff::topology(std::span(&a, 1)),
                           of_b = autodiff::topology(std::span(&b, 1));
  return of_a.bytes == of_b.bytes && of_a.leaves == of_b.leaves && of_a.constants == of_b.constants;
}

Added find_added(const TracedManifold& manifold) {
  const size_t ambient = manifold.plus.size(), tangent = size_t(manifold.manifold.tangent);
  Added added(ambient);
  std::vector<std::vector<uint32_t>> leaves;  // x, then delta, that each number depends on
  for (const Value& number : manifold.plus) leaves.push_back(autodiff::leaves_of(std::span(&number, 1)));
  const auto moves = [&](size_t number, size_t coordinate) {
    return std::find(leaves[number].begin(), leaves[number].end(), uint32_t(ambient + coordinate)) !=
           leaves[number].end();
  };
  autodiff::Tape graph;  // the manifold's own is read by others meanwhile
  std::vector<Value> leaf;
  for (size_t k = 0; k < ambient + tangent; ++k) leaf.push_back(graph.variable("x"));
  for (size_t c = 0; c < tangent; ++c)
    for (size_t k = 0; k < ambient; ++k) {
      size_t moved = 0;
      for (size_t other = 0; other < ambient; ++other) moved += moves(other, c);
      if (moved != 1 || leaves[k].size() != 2 || !moves(k, c)) continue;
      const Value sum = leaf[k] + leaf[ambient + c];
      const bool angle = same_formula(manifold.plus[k], wrap(sum));
      if (angle || same_formula(manifold.plus[k], sum)) added[k] = AddedNumber{int(c), angle};
    }
  return added;
}

}  // namespace

Added added_numbers(const TracedManifold& manifold) {
  if (!manifold.euclidean) {
    static Memo<std::string, Added> known(100);
    return known.get(manifold.key, [&] { return find_added(manifold); });
  }
  Added added(manifold.plus.size());
  for (size_t k = 0; k < added.size(); ++k) added[k] = AddedNumber{int(k)};
  return added;
}

}  // namespace lockstep::solve
