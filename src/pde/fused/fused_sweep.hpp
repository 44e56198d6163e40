// The kernel of the fused path: one group sweeps a tile along z; planes of the
// fields wait in shared memory.
#pragma once

#include <map>
#include <tuple>

#include "pde/fused/fused_layout.hpp"
#include "pde/kernels/edges.hpp"
#include "pde/kernels/swept_grid.hpp"

namespace lockstep::pde {

/// A group of the sweep: its parameters, the cells that its lanes take, and the
/// variables that pass from one plane to the next. Parameters: fields (rank 4),
/// mask, gradients of `outputs`, carried_in, carried_out, partial (sums,
/// groups), those of SweptGrid, scales, parameters, seeds.
class FusedSweep {
 public:
  FusedSweep(Parameters& p, const Group<3>& g, const Discretisation& d, const KernelForm& form,
             const std::vector<FieldLevel>& outputs, const FusedShape& shape, Type sum);
  void trace();

 private:
  friend class FusedStep;
  using Values = std::vector<AnyVal>;
  using Variables = std::vector<AnyVar>;
  /// Partial gradients of the planes around the current one, by row and target.
  struct Pending {
    int row;
    size_t output;
    const Target* target;
    Variables planes;             // [0] = plane z-back, …; the newest plane begins in its
                                  // first step
    std::optional<AnyVar> point;  // the pointwise part of the plane below the current slot
    int carried;                  // row of what the next part of a trajectory takes up, or -1
  };
  /// A cell of the tile or around it.
  struct Spot {
    Index x, y;          // coordinates as the tile counts them, perhaps beyond the grid
    Index own_x, own_y;  // wrapped or clamped
    Index staged,
        cotangent;    // places in a staged plane and in a plane of cotangents
    Index offset;     // of the own cell in a plane of the grid
    Val<bool> owned;  // whether the cell is in the grid
  };
  struct RingPass {
    Val<bool> lane_in_ring;
    bool full;
    Spot spot;
    Variables next;
  };

  // fused_sweep.cpp
  void place_rows();
  void place_ring();
  void place_stages();
  void expect_gradients();
  void start();
  void finish();
  Spot spot(const Index& column, const Index& row) const;
  Variables zeros(size_t count) const;
  Index offset(int field_index, int component, const Index& plane, const Index& in_plane) const;
  Index mask_offset(const Index& plane, const Index& in_plane) const;
  Index carried_offset(int row, const Index& plane, const Index& in_plane) const;
  void load_next(const Spot& c, const Index& plane, Variables& next) const;
  void load_carried(int row, const Index& above, const Index& below);
  void fetch(const Index& plane, const Index& slot) const;
  size_t own_channels() const { return channels_.own.size() + (form_.mask ? 1 : 0); }
  bool follows() const;  // whether other levels add to complete sums

  const Discretisation& d_;
  const Plan& plan_;
  KernelForm form_;
  const std::vector<FieldLevel>& outputs_;
  FusedShape shape_;
  Type sum_;
  Channels channels_;
  FusedLayout layout_;
  int forward_, back_;
  std::vector<size_t> sum_of_;  // residuals of one term and weight share a sum
  FieldArrays arrays_;
  std::optional<AnyGrid> mask_;
  FieldArrays gradients_;
  std::optional<AnyGrid> carried_in_, carried_out_;
  AnyGrid partial_;
  SweptGrid grid_;
  Tracer::Scalars scalars_;
  Values seeds_;
  Staging staged_;
  AnyShared cotangents_;  // of two planes
  Index lane_x_, lane_y_, lane_, group_;
  std::array<Index, 2> tile_;
  Chunk chunk_;
  Index first_, last_;  // planes whose residuals the group computes
  std::vector<Spot> rows_;
  std::vector<RingPass> ring_;
  std::vector<StagePlace> stages_;

  std::vector<std::optional<AnyVar>> sums_;  // of squared cotangents, by residual
  std::vector<Pending> pending_;
  AnyVar head_, cotangent_head_;    // places of the current plane
  std::vector<Variables> next_;     // by row: own channels and the mask of the plane that comes next
  std::vector<Variables> carried_;  // by row: gradients of the plane that comes
                                    // next, cotangents of the done one
  std::vector<std::vector<Variables>> queue_;  // by row and staged channel: planes z-forward … z+forward-1
  std::vector<Variables> kept_cotangent_;      // by row: of the plane below the current slot
  std::vector<std::vector<Variables>> older_cotangent_;  // by row and carry: of the planes below that one
};

/// One plane of a sweep: residuals of the plane while the gradients of the
/// plane below are completed.
class FusedStep {
 public:
  /// Takes what was loaded for plane z. Without z: the end, which has no
  /// residuals.
  FusedStep(FusedSweep& sweep, const Index& z);
  /// Residuals of plane z: of the tile's rows, and of the cells around it.
  void residuals();
  /// Gradients of a plane, whose cotangents are in the other half of the
  /// shared array.
  void gradients(const Index& plane);
  /// Keeps the values of this plane that the next one needs.
  void keep();

 private:
  using Values = FusedSweep::Values;
  using Sums = std::vector<std::pair<const FusedSweep::Pending*, AnyVal>>;
  /// Values already read from shared memory in a plane.
  struct Memo {
    std::map<std::tuple<int, int, int, int>, AnyVal> staged;
    std::map<std::tuple<int, int, int>, AnyVal> cotangents;
  };
  /// The plane whose gradients are completed.
  struct Below {
    Index z, cotangents;  // place of its cotangents
    Val<bool> owned;      // whether it is one of the chunk
  };

  void take(const Index& z);
  void row_residuals(int row);
  void store_done(int row, const Val<bool>& owned);
  void ring();
  void ring_residuals(FusedSweep::RingPass& pass);
  void add_loss(int row, const Val<bool>& owned);
  void row_gradients(int row, const Below& below);
  void flush(int row, const Below& below);
  Sums complete(Sums sums, const Index& plane, int below);
  void store(const Sums& list, const Index& plane, const FusedSweep::Spot& c) const;
  void store_cotangents(const FusedSweep::Spot& c, const Values& values) const;
  AnyVal cotangent_of(const AnyVal& residual, size_t k, const AnyVal& mask) const;
  Tracer::Load residual_load(int row);
  AnyVal staged_value(int channel, int row, const Offset& at, int plane);
  AnyVal cotangent_value(int residual, int row, const Offset& at, const Below& below);
  AnyVal own_cotangent(int residual, int row, int below) const;
  Val<bool> in_chunk(const Index& z) const { return s_.chunk_.begin <= z && z < s_.chunk_.end; }
  Cell own(const FusedSweep::Spot& c, const Index& plane) const { return {c.own_x, c.own_y, plane}; }
  Tracer tracer(const Cell& own, const Tracer::Load& load) const {
    return Tracer(s_.d_, s_.form_.type(), s_.scalars_, own, s_.grid_.cells, load);
  }

  FusedSweep& s_;
  Index z_;
  Memo memo_;
  Edges edges_;
  std::map<int, Index> slots_;               // places of the planes around the current one
  std::vector<std::vector<Values>> column_;  // by row and staged channel: planes z-forward … z+forward
  Index plane_, next_plane_;                 // z inside the grid; the plane after it
  std::vector<Values> own_, carried_own_, cotangent_, neighbour_;  // by row
  std::vector<std::unique_ptr<Tracer>> tracers_;                   // by row
};

}  // namespace lockstep::pde
