// The kernels of the two-sweep path: a group streams a tile along z. A lane keeps its own columns in
// registers; the current plane of the tile, with the cells beside it, stands in shared memory.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "pde/kernels/edges.hpp"
#include "pde/kernels/kernels.hpp"

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

/// Traces a stage into the current kernel. Arguments of the residual stage: fields (rank 4), [mask],
/// cotangents (rank 4), of the adjoint stage: fields, cotangents, gradients by `outputs`; then cells along x,
/// y, z, planes of a chunk, [chunks], scales, parameters, for the residual stage seeds.
class Stream {
 public:
  Stream(const Discretisation& d, const KernelForm& form, StreamStage stage,
         const std::vector<FieldLevel>& outputs, const StreamShape& shape);
  void trace();

 private:
  using Id = ir::Id;
  using Values = std::vector<Id>;
  /// One of the lane's rows.
  struct Place {
    std::array<Id, 3> own;       // inside the grid; the plane is the step's
    Id inside;                   // whether the cell is in the grid
    Id place;                    // in a staged plane
    Id offset;                   // in a plane of the grid
    std::vector<Values> column;  // by channel: variables of planes z - depth … z + depth
    Id mask = ir::kNone;         // variable
  };
  /// Cells beside the tile that a lane brings in.
  struct Side {
    int axis;
    Id place, offset;
    Id guard;    // whether this lane copies at all, or none
    Id outside;  // whether a wide copy lies beyond the grid, or none
  };

  // stream.cpp
  void declare();
  void place();
  void place_sides(int axis);
  Id inside(int axis, Id c);
  Id inside_plane(Id z);
  Id stacked(Id number, Id plane, Id in_plane) const;
  Id in_volume(int field_index, int component, Id plane, Id in_plane) const;
  Id offset(const StreamChannel& c, Id plane, Id in_plane) const;
  const RawBuffer& buffer(const StreamChannel& c) const;
  Id load(const StreamChannel& c, Id plane, Id in_plane) const;
  int depth(const StreamChannel& c) const { return c.spread[2] ? layout_.reach[2] : 0; }
  void bring(Id plane, Id slot);
  void share(const Place& row, int channel, Id slot, Id value);
  void step(Id z);

  // stream_compute.cpp
  Tracer::Load loads(int row, Id slot);
  Id edge_of_group(Id z);
  void compute(Id z, Id slot, bool edges);

  bool direct() const { return form_.storage == form_.scratch() && !form_.rows; }

  ir::Builder& b_;
  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  StreamStage stage_;
  const std::vector<FieldLevel>& outputs_;
  StreamShape shape_;
  StreamLayout layout_;
  std::vector<Value> values_;  // of the stage, at the own cell and its neighbours
  std::vector<FieldLevel> fields_;
  std::optional<FieldArrays> arrays_, gradients_;
  std::optional<RawBuffer> mask_, cotangents_;
  uint32_t staged_ = 0;
  std::array<Id, 3> cells_{}, tile_{};
  Id plane_cells_ = ir::kNone, volume_ = ir::kNone, lane_ = ir::kNone, begin_ = ir::kNone, end_ = ir::kNone,
     head_ = ir::kNone, member_ = ir::kNone;
  Tracer::Scalars scalars_;
  Values seeds_;
  std::vector<Place> rows_;
  std::vector<Side> sides_;
  std::array<EdgeWidth, 3> edge_;                 // cells at the ends of each axis whose rows differ
  std::map<std::tuple<int, int, int>, Id> memo_;  // shared loads of the current plane
  Edges edges_;
};

/// Values that a stage computes of fields and cotangents at the own cell, and those of neighbours.
std::vector<Value> stream_values(const Plan& plan, StreamStage stage, const std::vector<FieldLevel>& outputs);

Kernel stream_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, StreamStage stage,
                     std::vector<FieldLevel> outputs, StreamShape shape);

}  // namespace lockstep::pde
