// The kernels of the two-sweep path: a group streams a tile along z. A lane keeps its own columns in
// registers; the current plane of the tile and the cells next to it are in shared memory.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "pde/kernels/edges.hpp"
#include "pde/kernels/swept_grid.hpp"

namespace lockstep::pde {

/// Lanes of a group along x and y, adjacent rows of a lane, planes of a chunk, elements of an asynchronous
/// copy, groups that should share a multiprocessor.
struct HalfShape {
  int x = 32, y = 16, rows = 1, chunk = 64, wide = 1, blocks = 1;
  int tall() const { return y * rows; }
  int lanes() const { return x * y; }
  std::string key() const;  // of the kernel; the chunk is an argument
};

enum class SweepHalf : uint8_t {
  residual,  // fields -> cotangents
  adjoint,   // fields and cotangents -> gradients
};

/// A component of a field at a level, or a cotangent, and the axes along which its neighbours are needed.
struct HalfChannel {
  Access::Kind kind;
  int field_index, level, component;  // component: the residual's number for cotangents
  std::array<bool, 3> spread{};
  bool beside() const { return spread[0] || spread[1]; }
};

/// The data that a half reads, and the part of it that a group holds.
struct HalfLayout {
  HalfLayout(const Discretisation& d, SweepHalf half, const std::vector<FieldLevel>& outputs,
             const HalfShape& shape);
  int find(const Datum& x) const;
  /// Elements of a plane of one channel, of all channels that need neighbours in the plane.
  int plane() const { return width * height; }
  int slot() const { return staged * plane(); }
  int64_t bytes(int element) const { return int64_t(element) * 2 * slot(); }

  std::vector<HalfChannel> channels;    // those with neighbours in the plane come first
  int staged = 0;                       // how many those are
  std::array<int, 3> reach{};           // of the half's differences
  int left = 0, width = 0, height = 0;  // cells next to the tile along x; sizes of a staged plane
};

/// Traces a half into the current kernel. Parameters of both: fields (rank 4), cotangents (rank 4), those of
/// SweptGrid, scales, parameters; of the residual half: mask, seeds; of the adjoint half: gradients of
/// `outputs`.
class HalfSweep {
 public:
  HalfSweep(Parameters& p, const Group<3>& g, const Discretisation& d, const KernelForm& form, SweepHalf half,
            const std::vector<FieldLevel>& outputs, const HalfShape& shape);
  void trace();

 private:
  using Values = std::vector<AnyVal>;
  /// One of the lane's rows.
  struct Place {
    Index x, y;                               // inside the grid
    Val<bool> inside;                         // whether the cell is in the grid
    Index place;                              // in a staged plane
    Index offset;                             // in a plane of the grid
    std::vector<std::vector<AnyVar>> column;  // by channel: planes z - depth … z + depth
    std::optional<AnyVar> mask;
  };
  /// Cells next to the tile along an axis that a lane loads.
  struct Side {
    int axis;
    StagePlace at;
  };

  // half_sweep.cpp
  void place_rows();
  void place_sides(int axis);
  Index stacked(const Index& number, const Index& plane, const Index& in_plane) const;
  Index in_volume(int field_index, int component, const Index& plane, const Index& in_plane) const;
  Index offset(const HalfChannel& c, const Index& plane, const Index& in_plane) const;
  const AnyGrid& buffer(const HalfChannel& c) const;
  AnyVal load(const HalfChannel& c, const Index& plane, const Index& in_plane) const;
  int depth(const HalfChannel& c) const { return c.spread[2] ? layout_.reach[2] : 0; }
  void bring(const Index& plane, const Index& slot) const;
  void share(const Place& row, int channel, const Index& slot, const AnyVal& value) const;
  void step(const Index& z);

  // half_compute.cpp
  /// Shared loads of a plane, by channel, column and row.
  using Memo = std::map<std::tuple<int, int, int>, AnyVal>;
  Tracer::Load loads(int row, const Index& slot, Memo& memo) const;
  std::optional<Val<bool>> edge_of_group(const Index& z) const;
  void compute(const Index& z, const Index& slot, bool edges) const;
  Values cotangents_of(Tracer& tracer, const Place& row) const;

  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  SweepHalf half_;
  const std::vector<FieldLevel>& outputs_;
  HalfShape shape_;
  HalfLayout layout_;
  std::vector<Value> values_;  // of the half, at the own cell and its neighbours
  FieldArrays arrays_;
  std::optional<AnyGrid> mask_;
  AnyGrid cotangents_;
  std::optional<FieldArrays> gradients_;
  SweptGrid grid_;
  Chunk chunk_;
  Tracer::Scalars scalars_;
  Values seeds_;
  std::optional<Staging> staged_;  // where any channel has neighbours in the plane
  Index lane_, lane_x_, lane_y_;
  std::array<Index, 2> tile_;
  std::vector<Place> rows_;
  std::vector<Side> sides_;
  std::array<EdgeWidth, 3> edge_;  // cells at the ends of each axis whose rows differ
  std::optional<AnyVar> head_;     // of the two staged planes, the place of the current one
};

/// Values that a half computes of fields and cotangents at the own cell, and those of neighbours.
std::vector<Value> half_values(const Plan& plan, SweepHalf half, const std::vector<FieldLevel>& outputs);

Kernel half_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, SweepHalf half,
                   std::vector<FieldLevel> outputs, HalfShape shape);

}  // namespace lockstep::pde
