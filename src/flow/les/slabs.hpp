// A flow on all ranks of a group: each computes some columns of modes and some rows of points. What the kernels of
// fused.hpp leave in memory between them is exchanged, so that each number is computed as one rank computes it.
#pragma once

#include <functional>

#include "flow/les/fused.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::flow {

/// Collective calls. Arrays are whole on each rank; a rank's own columns or rows of them are valid.
class Slabs {
 public:
  /// Throws GroupError, on every rank, where a rank would have no rows or columns, or devices share lines in other ways.
  Slabs(const parallel::Group& group, const Device& device, const FusedShape& shape);

  /// Groups of the kernels.
  parallel::Range row_groups() const { return share_of(shape_.row_groups(), group_.rank()); }
  parallel::Range column_groups() const { return share_of(shape_.column_groups(), group_.rank()); }

  /// Of arrays (arrays, kx, y, numbers): the own rows from the columns of all ranks, and the other way round.
  void to_rows(const Buffer& array) const;
  void to_columns(const Buffer& array) const;
  /// Of (members, row groups, numbers), all.
  void gather_speeds(const Buffer& speeds) const;
  /// Of a spectrum (members, ky, kx, 2), or turned (members, kx, ky, 2), all.
  void gather_columns(const Buffer& spectrum, bool turned) const;

 private:
  using Window = std::function<Buffer(int rank)>;
  parallel::Range share_of(int64_t groups, int rank) const {
    return parallel::share(groups, rank, group_.size());
  }
  parallel::Range columns(int rank) const;
  parallel::Range rows(int rank) const;
  /// Sends `mine(rank)` to each other rank and receives `theirs(rank)`.
  void exchange(const Window& mine, const Window& theirs) const;

  parallel::Group group_;
  Device device_;
  FusedShape shape_;
};

}  // namespace lockstep::flow
