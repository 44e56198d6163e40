// Traces the cell-wise parts of a discretised plan into a kernel: loads at neighbours, differences with their
// boundary rows, residuals, and gradients by the transposed differences.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "lockstep/kernel/dynamic.hpp"
#include "pde/language/discretisation.hpp"

namespace lockstep::pde {

using Offset = std::array<int, 3>;  // of a neighbour: x, y, z
using Cell = std::array<Index, 3>;  // coordinates, or numbers of cells, along x, y, z

/// A value in memory that a tracer requests: a field, a tangent, a cotangent or a carried value at a
/// neighbour.
struct Datum {
  Access::Kind kind;
  int field_index, component, level;  // component: the number of a cotangent or of a carried row
  Offset at;
  auto key() const { return std::make_tuple(int(kind), field_index, component, level, at[0], at[1], at[2]); }
};

/// Cells at both ends of an axis whose rows differ from the inner one even when it is read with clamped
/// coordinates.
struct EdgeWidth {
  int low = 0, high = 0;
  explicit operator bool() const { return low > 0 || high > 0; }
  int at(bool end) const { return end ? high : low; }
  void widen(const std::vector<Row>& rows, const std::vector<Tap>& taps);
};

/// One end of an axis, for cells that are known to lie within so many of it.
struct End {
  bool high;
  int width;
};

/// An axis of differences f[1] - f[-1] (or their negatives) whose changed rows see beyond an end minus the own
/// cell. With clamped coordinates they are the inner row up to a sign of f[-1] and of the whole.
struct OddEnds {
  bool low = false, high = false;
  static std::optional<OddEnds> of(const std::vector<Row>& rows, const std::vector<Tap>& taps);
};

class Tracer {
 public:
  /// Of a cell, by its place: the factor of f[-1], and of the whole with the axis' scale.
  struct OddFactors {
    AnyVal back, scale;
  };
  /// A difference to be scaled: by the axis' scale where `scale` is empty.
  struct Change {
    AnyVal value, scale;
  };
  using Load = std::function<AnyVal(const Datum&)>;
  /// Numbers common to all kernels: the scales (scale0 …), the plan's parameters (parameter0 …) and profiles
  /// (profile0 …, rank 2).
  struct Scalars {
    std::vector<AnyVal> scales, parameters;
    std::vector<AnyGrid> profiles;
    /// Tangents of parameters and profiles (parameter_tangent0 …, profile_tangent0 …), where the kernel has them.
    std::vector<AnyVal> parameter_tangents;
    std::vector<AnyGrid> profile_tangents;
    bool tangents = false;
    Scalars(Parameters& p, const Discretisation& d, Type type, bool with_tangents = false);
  };

  /// `own`: coordinates of the lane's cell, already inside the grid along wrapping axes; `size`: cells along
  /// each axis.
  Tracer(const Discretisation& d, Type type, const Scalars& scalars, const Cell& own, const Cell& size,
         Load load);

  /// Coordinate of a neighbour: wrapped, or clamped to the grid.
  Index coordinate(int axis, int offset);
  Cell neighbour(const Offset& at) {
    return {coordinate(0, at[0]), coordinate(1, at[1]), coordinate(2, at[2])};
  }
  /// A value of the plan's graph at a neighbour.
  AnyVal value(const Value& v, const Offset& at = {0, 0, 0});
  /// Gradient of a target, summed in the canonical order: planes below, the own plane, planes above.
  /// `difference` gives differences along x and y where they are known already.
  AnyVal gradient(const Target& target, const std::function<Change(const Term&)>& difference = {});
  /// From now on for inner cells only: no rows that boundaries change.
  void without_edges() { edges_ = false; }

  /// The parts of `gradient` for kernels that sweep along z: what the own plane adds to `sum` (empty: nothing
  /// yet), and what this plane adds to the plane `to` above (positive) or below. `point` and `difference`
  /// give the target's pointwise part and its differences along x and y where they are known already.
  AnyVal add_own_plane(const Target& target, const AnyVal& sum, const AnyVal& point = {},
                       const std::function<Change(const Term&)>& difference = {});
  AnyVal add_to_plane(const Target& target, int to, const AnyVal& sum);
  /// A difference in a target's own plane, not scaled; without `edges` only what inner cells need.
  AnyVal own_difference(const Target& target, const Term& term, bool edges);
  /// The difference that a leaf stands for; without `edges` only what inner cells need.
  AnyVal difference(const Access& a, const Offset& at, bool edges);
  /// Both at a cell near an end of their axis, from what an inner cell has: that end's rows take its place.
  AnyVal difference_at(const End& end, const Access& a, const AnyVal& inner);
  AnyVal own_difference_at(const End& end, const Target& target, const Term& term, const AnyVal& inner);
  /// Both for any cell of an axis with OddEnds, without a branch.
  AnyVal difference_by(const OddFactors& factors, const Access& a);
  Change own_difference_by(const OddFactors& factors, const Target& target, const Term& term);
  AnyVal scale(Stencil stencil, int axis) const {
    return scalars_.scales[size_t(d_.scale_index(stencil, axis))];
  }
  /// From now on the leaf's value at the own cell is `value`.
  void set_difference(uint32_t leaf, const AnyVal& value) { known_[leaf] = value; }
  /// Whether sums of the target begin with 0 instead of their first part.
  bool starts_at_zero(const Target& target) const;
  /// Whether any z term of the target reaches `to` planes away.
  bool reaches(const Target& target, int to) const;

 private:
  AnyVal datum(const Datum& d);
  AnyVal access(const Access& a, const Offset& at);
  /// The parts of a difference: the inner row, the rows that edges change, the value at an offset, and what a parameter
  /// gives to the low (0) or high (1) side; without `side_value` the affine part is left out, without `constant` what
  /// the mesh's numbers give to it. `extends`: beyond an edge the value is that of the edge's cell.
  struct Taken {
    const std::vector<Tap>& taps;
    const std::vector<Row>& rows;
    std::function<AnyVal(int)> get;
    std::function<AnyVal(size_t)> side_value;
    bool extends = true, constant = true;
    /// Whether the row differs from the inner one even when that is read with clamped coordinates.
    bool changes(const Row& row) const;
  };
  /// Whether the term's g, requested beyond an edge, is that of the edge's cell: what is stored is read there, but
  /// differences along the term's own axis would be those of a cell that does not exist.
  bool extends(const Term& term) const;
  Taken taken(const Access& a, const Offset& at);
  Taken taken(const Target& target, const Term& term);
  AnyVal combine(const std::vector<Tap>& taps, const std::function<AnyVal(int)>& get);
  AnyVal edge_row(const Row& row, const Taken& t);
  AnyVal with_edges(const AnyVal& inner, const Taken& t, int axis, const Offset& at);
  AnyVal at_end(const AnyVal& inner, const Taken& t, int axis, const End& end, const AnyVal& scale);
  AnyVal side_value(const Access& a, size_t end, const Offset& at);
  Val<bool> row_condition(const Row& row, int axis, int offset);
  /// Weight of plane z + k in the transposed operator's row of plane z, times the scale.
  AnyVal plane_weight(const Target& target, const Term& term, int k, int row_offset);

  const Discretisation& d_;
  Type type_;
  Scalars scalars_;
  Cell own_, size_;
  Load load_;
  std::map<std::pair<int, int>, Index> coordinates_;
  std::map<std::tuple<int, bool, int>, Val<bool>> conditions_;
  std::map<std::tuple<int, int, int, int, int, int, int>, AnyVal> data_;
  std::map<Offset, std::unique_ptr<autodiff::Lowering>> at_;
  std::map<uint32_t, AnyVal> known_;
  bool edges_ = true;
};

}  // namespace lockstep::pde
