// Code for one vector of lanes: values as scalars or vectors by their form, divergence by execution masks.
//
// Invariant: every emitted block runs with at least one active lane, so that a uniform access is safe as a
// scalar one. Any statement that may deactivate lanes is followed by a test that skips the rest of the block if
// none is left.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "compile/llvm/code_unit.hpp"
#include "ir/divergence.hpp"

namespace lockstep::compile::simd {

using ir::Assumptions;
using ir::Divergence;
using ir::Form;
using ir::LaneScope;

/// One value: a scalar (uniform), the first lane's scalar (linear) or a vector; wide loads have several.
using Slot = std::array<llvm::Value*, 4>;

class LaneCode {
 public:
  LaneCode(CodeUnit& unit, const Divergence& divergence, const Assumptions* assumptions, int width);
  virtual ~LaneCode() = default;

  /// Points: coordinates of the first lane. Groups: the group's number, and the first lane's number.
  std::array<llvm::Value*, 3> coord{};
  llvm::Value* first_lane = nullptr;

  /// Emits `ids`; the builder ends in `end`. `mask`: lanes that exist, null for all.
  void run(std::span<const ir::Id> ids, llvm::Value* mask, llvm::BasicBlock* end);

  llvm::Value* scalar(ir::Id id);
  llvm::Value* vector(ir::Id id, int component = 0);
  llvm::Value* splat(llvm::Value* scalar);
  llvm::Value* iota(llvm::Type* type, int64_t stride = 1);
  llvm::Type* vector_type(llvm::Type* lane) { return llvm::FixedVectorType::get(lane, unsigned(width_)); }

 protected:
  /// A value from outside of what run() emits; groups supply it.
  virtual Slot import(ir::Id id);
  /// Called after the definition of each value at the top level of run().
  virtual void defined(ir::Id) {}
  /// Memory of a variable or local array that outlives this run, or null.
  virtual llvm::Value* outer_storage(ir::Id) { return nullptr; }
  virtual llvm::Value* outer_array(uint64_t) { return nullptr; }
  /// Called where the active lanes end.
  virtual void returning() {}

  Slot& slot(ir::Id id);
  /// Value of a pure instruction whose operands are at hand.
  Slot pure(ir::Id id);
  llvm::Value* first_active();
  virtual bool statement(ir::Id id, llvm::BasicBlock* end);
  llvm::Value* address(const MemoryPlace& place, llvm::Value* index, int64_t more = 0);
  /// `body` for each lane's index.
  void for_lanes(llvm::Value* index, const std::function<void(llvm::Value*)>& body);
  llvm::Value* full_mask();

  CodeUnit& u_;
  llvm::IRBuilder<>& b_;
  const ir::Function& f_;
  const Divergence& divergence_;
  const Assumptions* assumptions_;
  const int width_;
  llvm::Value* mask_ = nullptr;

 private:
  struct Counter {
    llvm::AllocaInst* memory = nullptr;
    llvm::Value* last = nullptr;
    bool vector = false;          // differs by lane
    bool tested_by_lane = false;  // it or its bound does
  };
  struct Loop {
    llvm::BasicBlock *latch = nullptr, *exit = nullptr;
    llvm::Value *broken = nullptr, *continued = nullptr;  // lanes; broken: of loops that lanes leave apart
    Counter counter;
  };
  struct Variable {
    llvm::Value* pointer = nullptr;
    llvm::Type* type = nullptr;
    bool vector = false;
    int flow = 0;  // mask identity at the definition
  };

  // lane_flow.cpp
  bool statements(std::span<const ir::Id> ids, llvm::BasicBlock* end);
  bool branch(ir::Id id, llvm::BasicBlock* end);
  bool loop(ir::Id id, llvm::BasicBlock* end);
  Loop open_masked_loop(ir::Id id);
  Counter loop_counter(const ir::Instruction& i);
  llvm::Value* loop_test(const ir::Instruction& i, const Loop& loop, llvm::Value* live,
                         llvm::BasicBlock* body);
  void next_pass(const ir::Instruction& i, const Counter& counter);
  bool jump(ir::Id id, llvm::BasicBlock* end);
  bool continue_with_remaining(llvm::Value* before, llvm::BasicBlock* end);
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* without(llvm::Value* mask, llvm::Value* lost);
  llvm::Value* both(llvm::Value* mask, llvm::Value* condition);
  void add_to(llvm::Value* set, llvm::Value* mask);
  const Variable& storage(ir::Id id);
  void variable(ir::Id id);
  void assign(ir::Id id);

  // lane_values.cpp
  llvm::Value* apply(const ir::Instruction& i, bool scalars, llvm::Value* x, llvm::Value* y, llvm::Value* z);
  Slot position(ir::Id id);
  llvm::Value* lane_number();
  Slot call(ir::Id id);

  // lane_memory.cpp, lane_atomics.cpp
  struct Access {
    MemoryPlace place;
    ir::Id index;
    int components;
    uint8_t flags;
  };
  Slot load(const Access& access);
  void store(const Access& access, const std::array<llvm::Value*, 4>& values, bool uniform_values);
  void load_instruction(ir::Id id);
  void store_instruction(ir::Id id);
  void async_copy(ir::Id id);
  // lane_spread.cpp
  /// How far lanes lie from the first one.
  struct Spread {
    std::vector<int64_t> fixed, scaled;  // by lane; scaled: times the value of `factor`, empty without one
    ir::Id factor = ir::kNone;
    bool exact = false;  // in unbounded integers
  };
  std::optional<Spread> spread(ir::Id id);
  static std::optional<Spread> sum(const Spread& a, const Spread& b, int sign, bool no_wrap);
  std::optional<Spread> product(const Spread& a, ir::Id factor, bool no_wrap);
  llvm::Value* first_of(ir::Id id);
  llvm::Value* distance(const Spread& s, int l);
  llvm::Value* follow_each_other(const Spread& s, int count);
  llvm::Value* spread_load(const MemoryPlace& place, llvm::Value* first, const Spread& s, int count);
  void spread_store(const MemoryPlace& place, llvm::Value* first, const Spread& s, int count,
                    llvm::Value* values);
  llvm::Value* load_spread(const MemoryPlace& place, ir::Id index, int count);
  bool store_spread(const MemoryPlace& place, ir::Id index, int count, llvm::Value* values, bool streaming);
  // lane_interleaved.cpp
  using Records = std::array<llvm::Value*, 4>;  // one vector of lanes per element of a record
  bool load_interleaved(ir::Id id);
  bool store_interleaved(ir::Id id);
  bool same_forms(const Interleaved& set);
  Records gather_records(const MemoryPlace& place, llvm::Value* index, int count);
  void scatter_records(const MemoryPlace& place, llvm::Value* index, const Records& values, int count);
  Records load_rows(const MemoryPlace& place, llvm::Value* first, int stride, int count);
  void store_rows(const MemoryPlace& place, llvm::Value* first, const Records& values, int count,
                  bool streaming);
  llvm::Value* spread_mask(int count, int part);
  Records transposed(const std::vector<llvm::Value*>& lanes, int size, bool words);
  // lane_records.cpp
  class OneLane;
  class LaneLoops;
  bool sum_records(ir::Id loop);
  Slot local_load(ir::Id id);
  void local_store(ir::Id id);
  struct AtomicAccess {
    MemoryPlace place;
    ir::AtomicOp op;
    Type type;
  };
  Slot atomic(ir::Id id);
  llvm::Value* atomic_once(const AtomicAccess& access, llvm::Value* index, llvm::Value* value,
                           llvm::Value* compare, bool plain);
  llvm::Value* atomic_loop(const AtomicAccess& access, const std::array<llvm::Value*, 3>& operands,
                           bool plain);
  static llvm::Align alignment(Storage storage) { return llvm::Align(uint64_t(size_of(storage))); }
  llvm::Value* gather(const MemoryPlace& place, llvm::Value* index);
  void scatter(const MemoryPlace& place, llvm::Value* index, llvm::Value* values);
  void for_active_lanes(const std::function<void(llvm::Value*)>& body);
  bool is_clamped_row(ir::Id id, std::vector<ir::Id>& may_wrap);
  std::optional<ir::Id> find_two_rows(ir::Id id);
  llvm::Value* first_in_row(ir::Id id, ir::Id choice, int arm);
  llvm::Value* two_rows_load(const MemoryPlace& place, ir::Id id, ir::Id choice);
  llvm::Value* scattered_load(const MemoryPlace& place, ir::Id id);
  llvm::Value* either(llvm::Value* condition, const std::function<llvm::Value*()>& yes,
                      const std::function<llvm::Value*()>& no);
  llvm::Value* permuted_load(const MemoryPlace& place, llvm::Value* index);
  llvm::Value* gather_narrow(const MemoryPlace& place, llvm::Value* index);
  void plain_store(const MemoryPlace& place, llvm::Value* pointer, llvm::Value* value, llvm::Value* mask,
                   bool streaming);
  llvm::Value* local_array(uint64_t number);
  llvm::Value* repeat_mask(int components);
  llvm::Value* mask_bits();
  void annotate(llvm::Instruction* access, const MemoryPlace& place);

  std::vector<Slot> slots_;
  std::unordered_map<ir::Id, Variable> storage_;
  std::unordered_map<uint64_t, llvm::Value*> local_arrays_;
  std::vector<Loop> loops_;
  llvm::Value* returned_ = nullptr;
  llvm::BasicBlock* all_done_ = nullptr;
  int depth_ = 0;  // nesting inside run()
  int flow_ = 0;   // identity of the current mask
  int last_flow_ = 0;
};

}  // namespace lockstep::compile::simd
