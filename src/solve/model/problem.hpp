// What a Problem holds.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "solve/model/expression_key.hpp"

namespace lockstep::solve {

/// Blocks that were added together. Blocks are numbered over all sets, set after set; so are their numbers
/// in the state and their tangent coordinates.
struct SetState {
  std::string name;
  std::shared_ptr<const TracedManifold> manifold;
  int64_t count = 0, first_block = 0, first_ambient = 0, first_tangent = 0;

  int ambient() const { return manifold->manifold.ambient; }
  int tangent() const { return manifold->manifold.tangent; }
};

/// Instances that were added together.
struct Segment {
  int64_t count = 0;
  std::vector<int32_t> blocks;    // (count, slots): block numbers over all sets
  std::vector<double> data;       // (count, data)
  std::vector<double> constants;  // (count or 1, constants)
  bool own_constants = false;     // one row for each instance
};

/// Instances of one expression, in the order in which they were added.
struct Batch {
  std::string name;  // of the first term type
  std::shared_ptr<const ExpressionKey> expression;
  std::vector<Segment> segments;
  int64_t instances = 0;
};

struct Problem::State {
  std::vector<SetState> sets;
  std::vector<double> values;        // (ambient numbers)
  std::vector<uint8_t> fixed;        // by block
  std::vector<double> lower, upper;  // by ambient number; empty where nothing is bound
  std::vector<Batch> batches;
  std::unordered_map<std::string, size_t> batch_of;  // by the expression's key
  int64_t blocks = 0, ambient = 0, tangent = 0, rows = 0;

  struct LooseLeaf {
    int32_t block;
    int32_t component;
    int32_t set;
  };
  std::unique_ptr<autodiff::Graph> graph;  // of loose residuals
  std::vector<LooseLeaf> loose_leaves;     // by leaf number
  std::vector<uint32_t> leaf_of;           // 1 + leaf number by ambient number; 0: none yet

  /// The set a block belongs to.
  const SetState& set_of(int64_t block) const;
  Batch& batch(ExpressionKey&& expression, const std::string& name);
  /// Throws InputError where a unit vector among the values has another length.
  void check_unit_vectors() const;
};

}  // namespace lockstep::solve
