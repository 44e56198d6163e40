// Rows of points: the values that their vectors share, the addresses where their elements begin, the vectors known to be inside.
#pragma once

#include "compile/native/peeling.hpp"
#include "compile/wasm/lane_code.hpp"

namespace lockstep::compile::wasm {

/// Values that are the same for the launch, or for a row. Each is computed in `section`, before the loop, when code of the
/// loop first uses it.
class Invariants : public LaneCode {
 public:
  /// `outer`: those of the launch; none for these themselves.
  Invariants(Unit& unit, const Divergence& divergence, Invariants* outer = nullptr);

  bool holds(ir::Id id);
  /// A scalar.
  Value value(ir::Id id);
  /// The value in all lanes.
  Value in_all_lanes(ir::Id id);
  /// The value that `emit` computes, in the section.
  Value in_section(const std::function<Value()>& emit);
  Bytes section;

 protected:
  Slot import(ir::Id id) override;

 private:
  Invariants* outer_;
  std::unordered_map<ir::Id, bool> held_;
  std::unordered_map<ir::Id, Value> spread_;
};

/// The accesses of a row whose elements follow each other along x.
class RowPlaces {
 public:
  RowPlaces(Unit& unit, Invariants& row) : u_(unit), row_(row) {}
  /// The address of element 0 of x + law; the row's inner part will hold none that is outside of the buffer.
  LaneCode::RowStart start(const MemoryPlace& place, const simd::Affine& law);
  /// The least and the greatest x, as i64, at which vectors are inside of all buffers.
  void narrow(Value& low, Value& high);

 private:
  struct Place {
    MemoryPlace place;
    std::vector<simd::Affine::Term> terms;
    int64_t least, most;
    Value address;
  };
  Value sum(const Place& place, Type type);
  Unit& u_;
  Invariants& row_;
  std::vector<Place> places_;
};

/// A vector of points: values of the row come from `row`. With `places`, one of the row's inner part.
class PointCode : public LaneCode {
 public:
  PointCode(Unit& unit, const Divergence& divergence, const Assumptions* assumptions, Invariants* row,
            RowPlaces* places)
      : LaneCode(unit, divergence, assumptions), row_(row), places_(places) {}

 protected:
  Slot import(ir::Id id) override { return outside(id) ? Slot{row_->value(id)} : LaneCode::import(id); }
  bool outside(ir::Id id) override { return row_ && row_->holds(id); }
  Value spread(ir::Id id, const Value& v) override {
    return outside(id) ? row_->in_all_lanes(id) : LaneCode::spread(id, v);
  }
  std::optional<RowStart> row_start(const Access& access) override;

 private:
  Invariants* row_;
  RowPlaces* places_;
};

}  // namespace lockstep::compile::wasm
