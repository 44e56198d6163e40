// The key that instances of one batch share: the expression of their residuals without the numbers in it, and how
// its leaves are found in an instance's blocks and data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autodiff/host_program.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// A manifold whose plus() was traced: leaves 0 … ambient - 1 are x, the next ones delta.
struct TracedManifold {
  Manifold manifold;
  std::unique_ptr<autodiff::Tape> graph, minus_graph;
  std::vector<Value> plus;
  std::vector<Value> slopes;        // d plus / d delta, (ambient, tangent)
  std::vector<Value> minus;         // of x, then from; empty where the manifold has none
  std::vector<Value> minus_slopes;  // d minus / d x, (tangent, ambient)
  /// The same on the host.
  struct Numbers {
    autodiff::HostProgram<double> plus, slopes, minus, minus_slopes;
  } numbers;
  std::string key;  // equal for equal formulas
  bool euclidean = false;
};
/// Throws InputError where sizes are not positive or plus() gives another number of values.
std::shared_ptr<const TracedManifold> trace_manifold(const Manifold& manifold, const std::string& where);

/// The canonical form of residuals: equal keys mean equal kernels.
struct ExpressionKey {
  struct Leaf {
    int slot = -1;  // -1: a datum of the instance
    int index = 0;  // component of the block, or number of the datum
  };
  autodiff::Topology topology;  // the bytes; leaves and constants are an instance's own
  std::vector<Leaf> leaves;     // by canonical number
  std::vector<std::shared_ptr<const TracedManifold>> slots;  // by first visit
  int data = 0;                                              // data that are used, by first visit
  int constants = 0;       // numbers in the expression, then those of the loss
  int loss_constants = 0;  // the loss's scale, or the numbers of its expression
  int rows = 0;            // residuals
  RobustLoss::Kind loss = RobustLoss::Kind::none;
  std::shared_ptr<const autodiff::Topology> loss_expression;  // of s, where the loss is an expression
  bool energy = false;
  bool weighted = false;                 // an instance has a weight
  std::shared_ptr<const HostTerm> host;  // the residuals are its, not the topology's
  int host_number = 0;                   // of the host terms of a problem, from 1 on
  std::string key;
  std::string label;  // for kernel names: the first term type's name; no part of the key

  bool has_loss() const { return loss != RobustLoss::Kind::none; }
  /// Takes over a loss: its kind and expression. Its numbers are appended to `numbers`.
  void set_loss(const RobustLoss& given, std::vector<double>& numbers, const std::string& where);
  /// rho(s) of the numbers of the loss.
  Value rho(const Value& s, std::span<const Value> numbers) const;
  /// The residuals (or the energy) in `graph`, of leaves and constants of that graph; no loss.
  std::vector<Value> residuals(autodiff::Tape& graph, std::span<const Value> leaves,
                               std::span<const Value> constants) const;
};

/// Where a leaf of an expression that is being canonicalised comes from: a component of block `block` (any
/// number that distinguishes blocks of the instance), or datum `component` where block < 0.
struct LeafSource {
  int64_t block = -1;
  int component = 0;
};
struct Canonical {
  ExpressionKey expression;       // without `slots`, which the caller knows; the key lacks them, too
  std::vector<int64_t> blocks;    // of the instance, by slot
  std::vector<int> data;          // datum of the instance, by its canonical number
  std::vector<double> constants;  // without the loss's scale
};
Canonical canonicalise(std::span<const Value> residuals,
                       const std::function<LeafSource(uint32_t leaf)>& source);
/// Completes the key by what is not part of the expression.
void complete_key(ExpressionKey& expression);

}  // namespace lockstep::solve
