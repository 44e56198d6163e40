// Kernels of the rollout. Every sum over rows or columns has one order for every path, device and size of a
// group: 32 chains, number j of which adds the elements k = j, j + 32 … in order by fma, then a tree: chain j + chain
// j + 16, those j + 8, and so on. A warp, a vector unit and a lane alone can all follow it.
//
// In the portable kernels rows are in blocks of P next to each other, columns one after another, so that neighbouring
// lanes read neighbouring words; the columns of U, P and V are in the order of chain_place:
//   zr     (M blocks, K, 2 P)  U_z then U_r; K is D rounded up to 32
//   n      (M blocks, K, P)    U_h
//   input  (M blocks, I, 3 P)  W_z, W_r, W_h
//   bias   (M blocks, 4, P)    b_z + rb_z, b_r + rb_r, b_h, rb_h; with fp8 also the scales of U_z, U_r, U_h
//   pre    (G blocks, 3, P)    W x + b without feature 0, for each of G = M B groups
//   work   (G, 3, R)           h, r h (or the next h), z; R rows with those that fill up the last block
//   head   classic: w of h filled up to R, w of s; two-hot: P, P_b, V of h, V of s, V_b, column by column
//   out    (3, G, Y) losses, norms, entropies; two-hot: (4, G, Y), with variances
// Rows and columns that fill up are 0 and stay 0.
#pragma once

#include "device/variants/variants.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

const variants::Computation& rollout_computation();

inline constexpr int kChains = 32, kAtOnce = 4;
/// Position of column k among `columns`, a multiple of kChains: kAtOnce chains are adjacent.
inline int64_t chain_place(int64_t k, int64_t columns) {
  return k % kChains / kAtOnce * (columns * kAtOnce / kChains) + k / kChains * kAtOnce + k % kAtOnce;
}

/// Share of the uniform distribution in the classes of a categorical; bins are in [-limit, limit] before symexp.
inline constexpr double kUniformShare = 0.01;

/// Shape of the heads that a kernel is traced for.
using HeadKey = std::tuple<Heads, int, int, int>;
struct HeadShape {
  Heads heads = Heads::classic;
  int categoricals = 0, categorical_classes = 0, bins = 0;  // two-hot
  int classes() const { return categoricals * categorical_classes; }
  HeadKey key() const { return {heads, categoricals, categorical_classes, bins}; }
};
HeadShape head_shape(const RolloutModel& model, Heads heads);

/// W: type of the elements of U: T, or with f32 bf16 and uint8_t (e4m3). One launch for all steps, by groups of P lanes and no fewer than 32. `capacity`: rows that shared memory holds; 0: h is in `work`.
template <class T, class W = T>
Kernel one_launch_kernel(GruForm form, const HeadShape& head, int p, int capacity);
template <class T>
int64_t shared_bytes(const HeadShape& head, int capacity);

/// The same steps as launches over (G, blocks, P): W x + b, h0 and the loss at the start; z, r and r h (reset_after: the
/// next h); the next h of reset_before; and over G groups the head.
template <class T>
struct StepKernels {
  Kernel begin, gates, candidate, head;
};
template <class T, class W = T>
StepKernels<T> step_kernels(GruForm form, const HeadShape& head);

/// The same by groups of 32 lanes, one for each chain of kRowsAtOnce rows; P = 1, columns in their order. Over G D /
/// kRowsAtOnce groups, rounded up for each of G: gates and candidate; over G: the head. Of classic heads every group of
/// the gates takes the loss of the step before from h itself; `head` then gives the last step's.
inline constexpr int kRowsAtOnce = 4;
inline int64_t row_groups(int64_t hidden) { return (hidden + kRowsAtOnce - 1) / kRowsAtOnce; }
template <class T>
struct RowKernels {
  Kernel gates, candidate, head;
};
template <class T, class W = T>
RowKernels<T> row_kernels(GruForm form, const HeadShape& head);

}  // namespace lockstep::forecast
