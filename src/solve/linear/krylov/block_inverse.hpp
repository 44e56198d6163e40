// Inverse diagonal blocks as a preconditioner, fused with the vector updates of conjugate gradients.
#pragma once

#include <vector>

#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

/// Blocks of one size that lie side by side in tangent vectors.
struct BlockPart {
  int width = 0;
  int64_t count = 0, first_tangent = 0;
  Buffer triangles;  // (count, width (width + 1) / 2): upper triangles of the blocks B
  Buffer damping;    // the same of J^T J, whose diagonal is the damping's
  Buffer inverse;    // (width (width + 1) / 2, count)
  int64_t groups() const { return (count + 255) / 256; }
  int64_t numbers() const { return count * width; }
};

/// One part for each set of blocks; sets of blocks wider than kWidestInverse are taken number by number.
std::vector<BlockPart> block_parts(const Evaluator::State& state);

/// inverse = (B + lambda clamp(diag J^T J, low, high))^-1 by LDL^T; a direction whose pivot falls below
/// 1e-12 of its diagonal (1e-6 in f32) is left out, as is one whose diagonal is 0 (a fixed block).
/// `parameters`: lambda, two numbers that are not read, low, high.
void invert_blocks(const Device& device, const BlockPart& part, const Buffer& parameters);

/// to = factor inverse from, for the part's blocks.
void apply_inverse(const Device& device, const BlockPart& part, double factor, const Buffer& from,
                   const Buffer& to);

/// z = inverse r and two sums over the part's blocks, one of each group of 256 blocks: r z, r r. Before,
/// where `step`: x += alpha p, r -= alpha q with alpha = scalars[2], left alone where alpha is 0.
void precondition(const Device& device, const BlockPart& part, bool step, const Buffer& scalars,
                  const Buffer& p, const Buffer& q, const Buffer& x, const Buffer& r, const Buffer& z,
                  const Buffer& rz, const Buffer& rr);

/// The kernels of invert_blocks() and precondition() for the blocks of a set, or of invert_blocks() and
/// apply_inverse() where it is eliminated; to be traced when they are called.
std::vector<std::function<Kernel()>> block_kernels(const Evaluator::State& state, const SetState& set,
                                                   bool eliminated);

/// Tangent coordinates that take no part in a linear system, on a device. Nothing is launched where none were
/// ever given, so that problems without bounds pay nothing.
class HeldCoordinates {
 public:
  void set(std::vector<uint8_t> held) { held_ = std::move(held); }
  void upload(const Device& device, int64_t tangent);
  /// v = 0 at held coordinates of a tangent vector.
  void clear_in(const Buffer& v) const;
  /// Their elements of the blocks' diagonals become 0, which invert_blocks() leaves out.
  void leave_out(const BlockPart& part) const;

 private:
  std::vector<uint8_t> held_;
  Device device_;
  Buffer flags_;  // u32 by tangent coordinate
};

}  // namespace lockstep::solve
