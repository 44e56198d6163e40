// The grid of both kinds of sweep along z: its sizes and offsets, the
// planes of a group's chunk, and the cells that its lanes bring into shared
// memory.
#pragma once

#include <functional>
#include <optional>

#include "lockstep/device.hpp"
#include "pde/kernels/kernels.hpp"

namespace lockstep::pde {

/// Declares nx, ny, nz, chunk (planes of a group), for batches chunks (of a
/// member) and for parts first_plane and end_plane. Volumes are contiguous.
struct SweptGrid {
  const Discretisation& d;
  Cell cells;
  Index chunk, chunks;        // chunks: empty where there is one member
  Index first, end;           // of the planes that are swept; empty: all
  Index plane_cells, volume;  // offsets

  SweptGrid(Parameters& p, const Discretisation& d, const KernelForm& form);
  /// A coordinate that may lie outside the grid: wrapped or clamped. For
  /// coordinates that are computed once.
  Index inside(int axis, const Index& c) const;
  /// The same along z, where no coordinate lies more than one period outside.
  Index inside_plane(const Index& z) const;
  /// Offset of a cell in its plane.
  Index in_plane(const Index& x, const Index& y) const { return y.offset() * cells[0].offset() + x.offset(); }
};

/// The arguments of those parameters.
void set_sweep(Arguments& a, const Discretisation& d, int64_t chunk);

/// The planes begin to end of a member that a group sweeps.
struct Chunk {
  Index member;  // empty where there is one
  Index begin, end;
  Chunk(const SweptGrid& grid, const Index& number);
  /// A plane of the member where the planes of all members follow each other.
  Index member_plane(const SweptGrid& grid, const Index& plane) const;
};

/// Offset of a component of a field at a cell, whose place in its plane is `in_plane`.
Index field_offset(const SweptGrid& grid, const Chunk& chunk, const KernelForm& form, int field_index,
                   int component, const Index& plane, const Index& in_plane);

/// Cells that a lane brings into a staged plane, one after the other or several
/// side by side.
struct StagePlace {
  Index place, offset;  // in the staged plane, in the grid's plane
  std::optional<Val<bool>> here,
      beyond;  // whether this lane copies at all; whether the cells lie beyond
               // an edge

  /// Copy `number` of `copies` by groups of `lanes`, of cells at (column, row)
  /// of a staged plane whose first cell is `first`.
  StagePlace(const SweptGrid& grid, const Index& lane, int from, int lanes, int copies, int width, int wide,
             const Index& column, const Index& row, const std::array<Index, 2>& first);
  /// Traces `work` for the lanes that copy. Its argument specifies whether the
  /// cells are beyond an edge.
  void run(const std::function<void(bool beyond)>& work) const;
};

/// The shared array of a group: asynchronous copies where elements are stored
/// as they are computed with, else loads and stores.
class Staging {
 public:
  Staging(const KernelForm& form, int64_t count, bool direct)
      : array_(form.scratch(), count), direct_(direct) {}
  const AnyShared& array() const { return array_; }
  AnyVal load(const Index& at) const { return array_.load(at); }
  /// Copies `wide` elements, or beyond an edge the edge's cell again and again.
  void bring(const AnyGrid& from, const Index& to, const Index& offset, int wide, bool beyond) const;
  void close() const {
    if (direct_) async_commit();
  }
  /// Waits until `open` stages are on their way at most.
  void wait(int open) const {
    if (direct_) async_wait(open);
  }

 private:
  AnyShared array_;
  bool direct_;
};

}  // namespace lockstep::pde
