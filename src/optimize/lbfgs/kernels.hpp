// Kernels of L-BFGS without vector recursions (Chen, Wang, Zhou, "Large-scale L-BFGS using MapReduce", 2014):
// the two loops need nothing of the vectors but their products, so all products with what a trial brought
// are one pass, the loops run on numbers, and the direction is one combination.
#pragma once

#include <algorithm>

#include "lockstep/device.hpp"

namespace lockstep::optimize {

// Places of the numbers that a trial leaves: two of their own, then one for each row of partial sums. g is
// the gradient at the trial, s the step to it, y the change of the gradient, W the inverse of the scaling
// diagonal or 1.
inline constexpr int kLbfgsCost = 0, kLbfgsPairs = 1;  // pairs that the direction was formed of
inline constexpr int kLbfgsFirstRow = 2;
inline constexpr int kLbfgsStartSlope = 2;   // gradient before the step times the direction
inline constexpr int kLbfgsStateSquare = 3;  // of the blocks that are not fixed
inline constexpr int kLbfgsSS = 4, kLbfgsGS = 5, kLbfgsYS = 6, kLbfgsGWG = 7, kLbfgsYWY = 8, kLbfgsYWG = 9;
inline constexpr int kLbfgsGradientMax = 10;  // largest |g|; NaN among them shows in g W g alone
/// Then five of each older pair, the newest first: g s_k, g W y_k, y s_k, y W y_k, s y_k.
inline constexpr int kLbfgsOlder = 11;

/// Sizes that follow from the number of pairs kept and the lengths of the vectors.
struct LbfgsLayout {
  static constexpr int kPairsOfGroup = 5;    // older pairs that one group multiplies with
  static constexpr int kMostHistory = 1000;  // pairs
  static constexpr int kDirectionUnroll = 1, kProductsUnroll = 2;  // elements of a lane in one turn
  int history = 1;
  bool scaled = false;
  Storage real = Storage::f32, sums = Storage::f64, state = Storage::f32;
  int64_t size = 0, numbers_of_point = 0;  // of the gradient; of the point

  /// Whether directions come from products alone. Where sums have no more digits than the vectors, the
  /// products' errors would show in directions of ill-conditioned problems: the loops run on vectors.
  bool by_products() const { return size_of(sums) > size_of(real); }
  int slots() const { return history + 1; }  // pairs, and the one that a trial makes
  int parts() const {
    return by_products() ? std::max(1, (history - 1 + kPairsOfGroup - 1) / kPairsOfGroup) : 1;
  }
  int numbers() const { return kLbfgsOlder + (by_products() ? 5 * kPairsOfGroup * parts() : 0); }
  int rows() const { return numbers() - kLbfgsFirstRow; }
  int head() const { return 2; }  // of the memory: the slot that the next trial fills, pairs before it
  /// Then s_a y_b and y_a W y_b by slot; for loops those of a = b.
  int memory() const { return head() + 2 * slots() * (by_products() ? slots() : 1); }
  /// Of g, then s and y of each pair, the newest first. For loops: the scale between them, then 1 / s y of
  /// each pair, then the first loop's numbers.
  int coefficients() const { return 1 + 2 * history; }
  /// Elements of a chunk: a multiple of what a group takes in one turn, and few enough chunks that their sums
  /// cost little.
  static int64_t chunk(int64_t count, int unroll);
  static int64_t chunks(int64_t count, int unroll) {
    return (count + chunk(count, unroll) - 1) / chunk(count, unroll);
  }
  int64_t columns() const {
    return std::max({chunks(size, kDirectionUnroll), chunks(size, kProductsUnroll),
                     chunks(numbers_of_point, kProductsUnroll)});
  }
};

/// step = t direction.
Kernel lbfgs_step(const LbfgsLayout& layout);
/// One group: takes the pair of the accepted trial into `memory` where it has curvature, and turns the two
/// loops into coefficients. By products.
Kernel lbfgs_coefficients(const LbfgsLayout& layout);
/// step = combination of gradient and pairs; partial sums of gradient times step.
Kernel lbfgs_direction(const LbfgsLayout& layout);
/// One group: takes the pair in and prepares the loops on vectors.
Kernel lbfgs_take(const LbfgsLayout& layout);
/// A pass of the loops: the update by the pair before and partial sums of the product with the pair of an
/// age. down: q -= alpha y, product with s (first: q is the gradient); turn: the last of these, the scale,
/// product with y; up: r += (alpha - beta) s, product with y; last: the last of these, step = -r, gradient
/// times step.
enum class LbfgsLoop : uint8_t { first, down, turn, up, last };
Kernel lbfgs_loop(const LbfgsLayout& layout, LbfgsLoop pass);
/// trial: y = gradient - earlier; s and y into their slot; partial sums of all products. stored: s and y are
/// those of the slot already. probe: products without older pairs, and no slot written.
enum class LbfgsPass : uint8_t { trial, stored, probe };
Kernel lbfgs_products(const LbfgsLayout& layout, LbfgsPass pass);
/// earlier = gradient; state = candidate.
Kernel lbfgs_accept(const LbfgsLayout& layout);
/// Partial sums of the squares of the state, where `masked` of those with a mask.
Kernel lbfgs_squares(const LbfgsLayout& layout, bool masked);
/// Sums of the rows of partial sums, in addition to the cost and the number of pairs.
Kernel lbfgs_totals(const LbfgsLayout& layout);

}  // namespace lockstep::optimize
