// Code for one vector of lanes: values as scalars or vectors by their form, divergence by execution masks.
//
// Invariant: every emitted block runs with at least one active lane, so that a uniform access is safe as a scalar one.
// Any statement that may deactivate lanes is followed by a test that skips the rest of the block if none is left.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "compile/wasm/unit.hpp"
#include "ir/divergence.hpp"

namespace lockstep::compile::wasm {

using ir::Assumptions;
using ir::Divergence;
using ir::Form;

/// One value: a scalar (uniform), the first lane's scalar (linear) or a vector; wide loads have several.
using Slot = std::array<Value, 4>;

class LaneCode {
 public:
  LaneCode(Unit& unit, const Divergence& divergence, const Assumptions* assumptions = nullptr);
  virtual ~LaneCode() = default;

  /// Where a row of elements begins that are known to be inside of their array: a vector's are those from coord[0] +
  /// `offset` on, element 0 is at the address.
  struct RowStart {
    Value address;
    int64_t offset;
  };

  /// Points: coordinates of the first lane. Groups: the group's number, and the first lane's number.
  std::array<Value, 3> coord{};
  Value first_lane;

  /// Emits `ids`. `mask`: lanes that exist, none for all.
  void run(std::span<const ir::Id> ids, const Value& mask);

  Value scalar(ir::Id id);
  Value vector(ir::Id id, int component = 0);

 protected:
  /// A value from outside of what run() emits; groups supply it.
  virtual Slot import(ir::Id id);
  /// Whether import() has the value though it is defined in what run() emits.
  virtual bool outside(ir::Id) { return false; }
  /// A scalar value in all lanes.
  virtual Value spread(ir::Id id, const Value& v);
  /// Called after the definition of each value at the top level of run().
  virtual void defined(ir::Id) {}
  /// A variable's copy, or memory of a local array, that outlives this run; none where it does not.
  virtual Value outer_storage(ir::Id) { return {}; }
  virtual std::optional<MemoryPlace> outer_array(uint64_t) { return {}; }
  /// Called where the active lanes end.
  virtual void returning() {}
  struct Access {
    MemoryPlace place;
    ir::Id index;
    int components;
    ir::Place line;
  };
  virtual std::optional<RowStart> row_start(const Access&) { return {}; }

  Slot& slot(ir::Id id);
  /// Value of a pure instruction whose operands are at hand.
  Slot pure(ir::Id id);
  /// The active lanes: all where there is no mask.
  Value active() { return mask_ ? mask_ : b_.all_lanes(); }

  Unit& u_;
  Builder& b_;
  Body& body_;
  const ir::Function& f_;
  const Divergence& divergence_;
  const Assumptions* assumptions_;
  Value mask_;

 private:
  struct Counter {
    Value now, last;
    bool tested_by_lane = false;
  };
  struct Loop {
    Label latch, exit;
    Value broken, continued;  // masks of the lanes that left the loop, or this pass
    Counter counter;
  };
  struct Variable {
    Value value;
    int flow = 0;  // mask identity at the definition
  };

  // lane_flow.cpp
  void find_releases();
  bool statements(std::span<const ir::Id> ids, Label end);
  bool statement(ir::Id id, Label end);
  bool branch(ir::Id id, Label end);
  bool loop(ir::Id id, Label end);
  Loop open_masked_loop(ir::Id id);
  Counter loop_counter(const ir::Instruction& i);
  Value loop_test(const ir::Instruction& i, const Loop& loop, Value live);
  bool jump(ir::Id id, Label end);
  void continue_with_remaining(const Value& before, Label end);
  Value any(const Value& mask);
  Value both(const Value& mask, const Value& condition);
  Value without(const Value& mask, const Value& lost);
  void add_to(const Value& set, const Value& mask);
  void branch_unless(const Value& condition, Label to);
  Variable& storage(ir::Id id);
  void define_variable(ir::Id id);
  void assign(ir::Id id);

  // lane_values.cpp
  Value first_active();
  Value apply(const ir::Instruction& i, const Value& x, const Value& y, const Value& z);
  Slot position(ir::Id id);

  // lane_memory.cpp
  static Access lanes_of(const Access& access);
  void check(const Access& access, const Value& index, int count);
  void check_lanes(const Access& access, const Value& index);
  /// Of the lanes' elements: one, those of a row in order, each lane several of a row, or any.
  enum class Pattern : uint8_t { uniform, row, wide_row, apart };
  Pattern checked(const Access& access);
  Slot load(const Access& access);
  void store(const Access& access, const std::array<Value, 4>& values);
  void load_instruction(ir::Id id);
  void store_instruction(ir::Id id);
  void async_copy(ir::Id id);
  Value atomic(ir::Id id);
  Value local_load(ir::Id id);
  void local_store(ir::Id id);
  MemoryPlace local_array(uint64_t number);
  Value local_elements(const Value& index);
  void push_address(const MemoryPlace& place, const Value& index);
  std::function<void()> row_address(const Access& access, const Value& index);
  Value load_one(const MemoryPlace& place, const Value& index, int more = 0);
  void store_one(const MemoryPlace& place, const Value& index, const Value& value, int more = 0);
  Value load_row(const Access& access, const Value& index);
  void store_row(const Access& access, const Value& index, const Value& value);
  Slot load_wide_row(const Access& access);
  void store_wide_row(const Access& access, const std::vector<Value>& values);
  /// `whole` where all lanes are active, else `apart`.
  template <class Whole, class Apart>
  void whole_or_apart(Whole whole, Apart apart) {
    if (!mask_) return whole();
    b_.push(b_.all(mask_));
    body_.if_();
    whole();
    body_.else_();
    apart();
    body_.end();
  }
  Value gather(const MemoryPlace& place, const Value& index, int more);
  void scatter(const MemoryPlace& place, const Value& index, const Value& value, int more);
  /// `body` for each active lane, in order.
  void for_active_lanes(const std::function<void(int)>& body);

  std::vector<Slot> slots_;
  std::unordered_map<ir::Id, Variable> variables_;
  std::unordered_map<uint64_t, MemoryPlace> local_arrays_;
  std::unordered_map<ir::Id, std::vector<ir::Id>>
      releases_;  // by statement: values that nothing behind it uses
  std::vector<Loop> loops_;
  Value returned_;
  Label all_done_;
  int depth_ = 0;  // nesting inside run()
  int flow_ = 0;   // identity of the current mask
  int last_flow_ = 0;
};

}  // namespace lockstep::compile::wasm
