// The kernels of the two-sweep path: a group streams a tile along z. A lane keeps its own columns in
// registers; the current plane of the tile, with the cells beside it, stands in shared memory.
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
struct StreamShape {
  int x = 32, y = 16, rows = 1, chunk = 64, wide = 1, blocks = 1;
  int tall() const { return y * rows; }
  int lanes() const { return x * y; }
  std::string key() const;  // of the kernel; the chunk is an argument
};

enum class StreamStage : uint8_t {
  residual,  // fields -> cotangents
  adjoint,   // fields and cotangents -> gradients
};

/// A component of a field at a level, or a cotangent, and the axes along which its neighbours are needed.
struct StreamChannel {
  Access::Kind kind;
  int field_index, level, component;  // component: the residual's number for cotangents
  std::array<bool, 3> spread{};
  bool beside() const { return spread[0] || spread[1]; }
};

/// What a stage reads, and what a group of it holds.
struct StreamLayout {
  StreamLayout(const Discretisation& d, StreamStage stage, const std::vector<FieldLevel>& outputs,
               const StreamShape& shape);
  int find(const Datum& x) const;
  /// Elements of a plane of one channel, of all channels that have neighbours beside.
  int plane() const { return width * height; }
  int slot() const { return staged * plane(); }
  int64_t bytes(int element) const { return int64_t(element) * 2 * slot(); }

  std::vector<StreamChannel> channels;  // those with neighbours beside come first
  int staged = 0;                       // how many those are
  std::array<int, 3> reach{};           // of the stage's differences
  int left = 0, width = 0, height = 0;  // cells beside the tile along x; sizes of a staged plane
};

/// Traces a stage into the current kernel. Parameters of both: fields (rank 4), cotangents (rank 4), those of
/// SweptGrid, scales, parameters; of the residual stage: mask, seeds; of the adjoint stage: gradients of
/// `outputs`.
class Stream {
 public:
  Stream(Parameters& p, const Group<3>& g, const Discretisation& d, const KernelForm& form, StreamStage stage,
         const std::vector<FieldLevel>& outputs, const StreamShape& shape);
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
  /// Cells beside the tile along an axis that a lane brings in.
  struct Side {
    int axis;
    StagePlace at;
  };

  // stream.cpp
  void place_rows();
  void place_sides(int axis);
  Index stacked(const Index& number, const Index& plane, const Index& in_plane) const;
  Index in_volume(int field_index, int component, const Index& plane, const Index& in_plane) const;
  Index offset(const StreamChannel& c, const Index& plane, const Index& in_plane) const;
  const AnyGrid& buffer(const StreamChannel& c) const;
  AnyVal load(const StreamChannel& c, const Index& plane, const Index& in_plane) const;
  int depth(const StreamChannel& c) const { return c.spread[2] ? layout_.reach[2] : 0; }
  void bring(const Index& plane, const Index& slot) const;
  void share(const Place& row, int channel, const Index& slot, const AnyVal& value) const;
  void step(const Index& z);

  // stream_compute.cpp
  /// Shared loads of a plane, by channel, column and row.
  using Memo = std::map<std::tuple<int, int, int>, AnyVal>;
  Tracer::Load loads(int row, const Index& slot, Memo& memo) const;
  std::optional<Val<bool>> edge_of_group(const Index& z) const;
  void compute(const Index& z, const Index& slot, bool edges) const;
  Values cotangents_of(Tracer& tracer, const Place& row) const;

  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  StreamStage stage_;
  const std::vector<FieldLevel>& outputs_;
  StreamShape shape_;
  StreamLayout layout_;
  std::vector<Value> values_;  // of the stage, at the own cell and its neighbours
  FieldArrays arrays_;
  std::optional<AnyGrid> mask_;
  AnyGrid cotangents_;
  std::optional<FieldArrays> gradients_;
  SweptGrid grid_;
  Chunk chunk_;
  Tracer::Scalars scalars_;
  Values seeds_;
  std::optional<Staging> staged_;  // where any channel has neighbours beside
  Index lane_, lane_x_, lane_y_;
  std::array<Index, 2> tile_;
  std::vector<Place> rows_;
  std::vector<Side> sides_;
  std::array<EdgeWidth, 3> edge_;  // cells at the ends of each axis whose rows differ
  std::optional<AnyVar> head_;     // of the two staged planes, the place of the current one
};

/// Values that a stage computes of fields and cotangents at the own cell, and those of neighbours.
std::vector<Value> stream_values(const Plan& plan, StreamStage stage, const std::vector<FieldLevel>& outputs);

Kernel stream_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, StreamStage stage,
                     std::vector<FieldLevel> outputs, StreamShape shape);

}  // namespace lockstep::pde
