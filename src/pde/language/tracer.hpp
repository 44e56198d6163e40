// Traces the cell-wise parts of a discretised plan into a kernel: loads at neighbours, differences with their
// boundary rows, residuals, and gradients by the transposed differences.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "lockstep/kernel/control.hpp"
#include "pde/language/discretisation.hpp"

namespace lockstep::pde {

using Offset = std::array<int, 3>;  // of a neighbour: x, y, z

/// A buffer of rank 4 or less that is indexed explicitly.
class RawBuffer : public lockstep::detail::BufferRef {
 public:
  RawBuffer(std::string name, Storage storage, int rank, ir::Access access);
  ir::Id load(std::initializer_list<ir::Id> at, bool streaming = false) const {
    return load_at(offset(at), streaming);
  }
  void store(std::initializer_list<ir::Id> at, ir::Id value, bool streaming = false) const {
    store_at(offset(at), value, streaming);
  }
  /// By element offset, for kernels whose buffers all have one layout.
  ir::Id load_at(ir::Id offset, bool streaming = false) const;
  void store_at(ir::Id offset, ir::Id value, bool streaming = false) const;
  /// Starts copying `lanes` elements into a shared array.
  void copy_async_at(uint32_t shared, ir::Id to, ir::Id offset, int lanes = 1) const;

 private:
  Storage storage_;
};
ir::Id add_scalar(std::string name, Type type);

/// What a tracer asks for a value in memory: a field, a tangent, a cotangent or a carried value at a
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
  void widen(const std::vector<Row>& rows, const std::vector<Tap>& taps, bool affine);
};

class Tracer {
 public:
  using Load = std::function<ir::Id(const Datum&)>;
  /// Parameters common to all kernels: the scales and the plan's parameters, declared in this order.
  struct Scalars {
    std::vector<ir::Id> scales, parameters;
  };
  static Scalars declare(const Discretisation& d, Type type);

  /// `own`: coordinates of the lane's cell, already inside the grid along wrapping axes; `size`: cells along
  /// each axis.
  Tracer(const Discretisation& d, Type type, const Scalars& scalars, std::array<ir::Id, 3> own,
         std::array<ir::Id, 3> size, Load load);

  /// Coordinate of a neighbour: wrapped, or clamped to the grid.
  ir::Id coordinate(int axis, int offset);
  std::array<ir::Id, 3> neighbour(const Offset& at) {
    return {coordinate(0, at[0]), coordinate(1, at[1]), coordinate(2, at[2])};
  }
  /// A value of the plan's graph at a neighbour.
  ir::Id value(const Value& v, const Offset& at = {0, 0, 0});
  /// Gradient of a target, summed in the canonical order: planes below, the own plane, planes above.
  /// `difference` gives differences along x and y where they are known already.
  ir::Id gradient(const Target& target, const std::function<ir::Id(const Term&)>& difference = {});
  /// From now on for inner cells only: no rows that boundaries change.
  void without_edges() { edges_ = false; }

  /// The parts of `gradient` for kernels that sweep along z: what the own plane adds to `sum` (kNone: nothing
  /// yet), and what this plane adds to the plane `to` above (positive) or below. `point` and `difference`
  /// give the target's pointwise part and its differences along x and y where they are known already.
  ir::Id add_own_plane(const Target& target, ir::Id sum, ir::Id point = ir::kNone,
                       const std::function<ir::Id(const Term&)>& difference = {});
  ir::Id add_to_plane(const Target& target, int to, ir::Id sum);
  /// A difference in a target's own plane, not scaled; without `edges` only what inner cells need.
  ir::Id own_difference(const Target& target, const Term& term, bool edges);
  /// The difference that a leaf stands for; without `edges` only what inner cells need.
  ir::Id difference(const Access& a, const Offset& at, bool edges);
  /// From now on the leaf's value at the own cell is `value`.
  void set_difference(uint32_t leaf, ir::Id value) { known_[leaf] = value; }
  /// Whether sums of the target begin with 0 instead of their first part.
  bool starts_at_zero(const Target& target) const;
  /// Whether any z term of the target reaches `to` planes away.
  bool reaches(const Target& target, int to) const;

 private:
  ir::Id datum(const Datum& d);
  ir::Id access(const Access& a, const Offset& at);
  ir::Id combine(const std::vector<Tap>& taps, const std::vector<Row>& rows, int axis, const Offset& at,
                 bool affine, bool edges, const std::function<ir::Id(int)>& get);
  ir::Id row_condition(const Row& row, int axis, int offset);
  /// Weight of plane z + k in the transposed operator's row of plane z, times the scale.
  ir::Id plane_weight(const Target& target, const Term& term, int k, int row_offset);

  const Discretisation& d_;
  Type type_;
  Scalars scalars_;
  std::array<ir::Id, 3> own_, size_;
  Load load_;
  std::map<std::pair<int, int>, ir::Id> coordinates_;
  std::map<std::tuple<int, bool, int>, ir::Id> conditions_;
  std::map<std::tuple<int, int, int, int, int, int, int>, ir::Id> data_;
  std::map<Offset, std::unique_ptr<autodiff::Lowering>> at_;
  std::map<uint32_t, ir::Id> known_;
  bool edges_ = true;
};

}  // namespace lockstep::pde
