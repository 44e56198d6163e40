// The kernel of the fused path: one group sweeps a tile along z; planes of the fields wait in shared memory.
#pragma once

#include <map>
#include <tuple>

#include "pde/kernels/edges.hpp"
#include "pde/kernels/fused_layout.hpp"

namespace lockstep::pde {

/// Traces the sweep into the current kernel. Arguments: fields (rank 4), [mask], gradients by `outputs`,
/// [what is carried in], [what is carried out], partial sums, cells along x, y, z, planes of a chunk, scales,
/// parameters, seeds. All volumes are contiguous.
class Sweep {
 public:
  Sweep(const Discretisation& d, const KernelForm& form, const std::vector<FieldLevel>& outputs,
        const FusedShape& shape, Type sum);
  void trace();

 private:
  using Id = ir::Id;
  /// Partial gradients of the planes around the current one, by row and target. The variables outlive a step.
  struct Pending {
    int row;
    size_t output;
    const Target* target;
    std::vector<Id> planes;  // [0] = plane z-back, …; the newest plane begins in its first step
    Id point;                // the pointwise part of the plane below the current slot, or none
    int carried;             // row of what the next part of a trajectory takes up, or -1
  };
  /// A cell of the tile or around it.
  struct Cell {
    Id x, y;                // coordinates as the tile counts them, perhaps beyond the grid
    std::array<Id, 3> own;  // wrapped or clamped
    Id staged, cotangent;   // places in a staged plane and in a plane of cotangents
    Id offset;              // of own in a plane of the grid
  };
  struct RingPass {
    Id lane_in_ring;
    bool full;
    Cell cell;
    std::vector<Id> next;
  };
  struct StagePlace {
    Id place, offset;
    Id guard;    // whether this lane copies at all, or none
    Id outside;  // whether a wide copy lies beyond the grid, or none
  };
  using Values = std::vector<Id>;
  using Sums = std::vector<std::pair<const Pending*, Id>>;

  // sweep.cpp
  void declare();
  void place();
  void place_ring();
  void place_stages();
  Cell cell(Id column, Id row);
  Id inside(int axis, Id c);
  Id inside_plane(Id z);
  Id offset(int field_index, int component, Id plane, Id in_plane);
  Id member_plane(Id plane);
  Id mask_offset(Id plane, Id in_plane);
  Id carried_offset(int row, Id plane, Id in_plane);
  const RawBuffer& buffer_of(const Channel& c) const;
  void load_next(const Cell& c, Id plane, Values& next);
  void load_carried(int row, Id above, Id below);
  void fetch(Id plane, Id slot);
  void find_slots();
  Id slot(int dz) const { return slots_.at(dz); }

  // sweep_step.cpp
  void step(Id z);
  void take_columns();
  void begin_residuals(Id z);
  Tracer::Load residual_load(int row);
  void residual_phase(Id z);
  void back_phase(Id z);
  void keep();
  Id shared(Id place);
  Id staged_value(int channel, int row, const Offset& at, int plane);
  Id cotangent_value(int residual, int row, const Offset& at);
  Id own_cotangent(int residual, int row, int below);
  Sums complete(Sums sums, Id plane, int below);
  void residuals(int row);
  void store_cotangents(const Cell& c, const Values& values);
  void add_loss(int row);
  void ring();
  void back(int row);
  void flush(int row);
  void store(const Sums& list, Id plane, const Cell& c);

  bool direct() const { return form_.storage == form_.scratch(); }
  static bool swept(const Target& t);
  bool follows() const;  // whether other levels add to complete sums

  ir::Builder& b_;
  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  const std::vector<FieldLevel>& outputs_;
  FusedShape shape_;
  Type sum_;
  Channels channels_;
  FusedLayout layout_;
  int forward_, back_;
  std::vector<FieldLevel> fields_;
  std::vector<size_t> sum_of_;  // residuals of one term and weight share a sum
  std::optional<FieldArrays> arrays_, gradients_;
  std::optional<RawBuffer> mask_, partial_, carried_in_, carried_out_;
  uint32_t staged_ = 0, cotangents_ = 0;
  std::array<Id, 3> cells_{};
  Id plane_cells_, volume_, lane_x_, lane_y_, lane_, group_, tile_x_, tile_y_, chunk_, chunks_, begin_, end_,
      first_, last_;
  Id member_ = ir::kNone, head_ = ir::kNone, cotangent_head_ = ir::kNone, cotangent_base_ = ir::kNone;
  Tracer::Scalars scalars_;
  Values seeds_, sums_;
  std::vector<Cell> rows_;
  std::vector<Id> owned_;
  std::vector<RingPass> ring_;
  std::vector<StagePlace> stages_;
  std::vector<Values> next_;  // by row: own channels and the mask of the plane that comes next
  std::vector<std::vector<Values>>
      queue_;  // by row and staged channel: variables of planes z-forward … z+forward-1
  std::vector<Values> kept_cotangent_;  // by row: cotangents of the plane below the current slot
  std::vector<std::vector<Values>> older_cotangent_;  // by row and carry: of the planes below that one
  std::vector<Values> carried_;  // by row: gradients of the plane that comes next, cotangents of the done one
  std::vector<Pending> pending_;

  // of the current step
  Id z_ = ir::kNone, owns_plane_ = ir::kNone, next_plane_ = ir::kNone;
  std::map<int, Id> slots_;
  std::map<std::tuple<int, int, int, int>, Id> staged_memo_;
  std::map<std::tuple<int, int, int>, Id> cotangent_memo_;
  Edges edges_;
  std::vector<std::vector<Values>> column_;  // by row and staged channel: planes z-forward … z+forward
  std::vector<Values> own_, cotangent_, neighbour_, carried_own_;
  std::vector<std::unique_ptr<Tracer>> tracers_;
};

}  // namespace lockstep::pde
