// Groups kernels: one group at a time. What holds barriers runs once per group with uniform control; a region is a loop
// over the group's vectors of lanes. Values and variables that live across regions are in scratch memory, one entry per
// vector.
#include "compile/native/groups_plan.hpp"
#include "compile/wasm/kernel_code.hpp"
#include "compile/wasm/lane_code.hpp"
#include "compile/wasm/lower_op.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::wasm {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

class GroupCode;

/// One region's vector of lanes.
class RegionCode : public LaneCode {
 public:
  RegionCode(GroupCode& group, Unit& unit, const Divergence& divergence, int region,
             const Value& vector_index)
      : LaneCode(unit, divergence), group_(group), region_(region), vector_index_(vector_index) {}
  Bytes imports;  // where values from outside are loaded; runs before the region's code
  /// Variables go back to memory. A region works on copies.
  void keep_variables();

 protected:
  Slot import(Id id) override;
  void defined(Id id) override;
  Value outer_storage(Id variable) override;
  std::optional<MemoryPlace> outer_array(uint64_t number) override;
  void returning() override;

 private:
  template <class Emit>
  void before_region(Emit emit) {
    Bytes* const here = body_.redirect(&imports);
    const Value mask = std::exchange(mask_, Value());
    emit();
    mask_ = mask;
    body_.redirect(here);
  }
  GroupCode& group_;
  const int region_;
  Value vector_index_;
  std::vector<std::pair<Id, Value>> written_;
};

/// Pure operations on values of the group's level.
class GroupLevelCode : public LaneCode {
 public:
  GroupLevelCode(Unit& unit, const Divergence& divergence, const std::unordered_map<Id, Value>& values)
      : LaneCode(unit, divergence), values_(values) {}
  Value compute(Id id) { return pure(id)[0]; }

 protected:
  Slot import(Id id) override { return {values_.at(id)}; }

 private:
  const std::unordered_map<Id, Value>& values_;
};

class GroupCode {
 public:
  explicit GroupCode(Unit& unit)
      : u(unit),
        b(unit.b()),
        body(unit.body()),
        f(unit.f()),
        vectors((f.group_lanes() + kLanes - 1) / kLanes),
        divergence(f, ir::lane_scope(f, kLanes), nullptr, kLanes),
        group_divergence(f, ir::LaneScope::group),
        plan(f, group_divergence) {
    if (plan.regions() > 1 && plan.lanes_return()) returned = entries(Type::boolean, true);
  }

  void emit() {
    counted_loop(b, u.box_low(2), u.box_high(2), 1, [&](const Value& z) {
      counted_loop(b, u.box_low(1), u.box_high(1), 1, [&](const Value& y) {
        counted_loop(b, u.box_low(0), u.box_high(0), 1, [&](const Value& x) {
          coord = {x, y, z};
          GroupLevelCode& code = at_group.emplace(u, group_divergence, group_values);
          code.coord = coord;
          code.first_lane = Builder::i32(0);
          // Values that decide are set by lanes that are left; where none is, by this.
          for (const ir::Block& block : f.blocks)
            for (Id id : block)
              if (plan.decides(id)) b.assign(decision(id), Builder::constant(f[id].type, 0));
          if (returned)
            for (int v = 0; v < vectors; ++v) store_entry(*returned, Builder::i32(v), b.no_lanes());
          end = body.block();
          block(0);
          body.end();
        });
      });
    });
  }

  bool recomputable(Id id) const {
    return plan.recomputable(id, [this](Id given) { return group_values.contains(given); });
  }

  // ── scratch memory with an entry per vector of lanes ──
  static int64_t entry_bytes(Type type, bool vector) { return vector && is_wide(type) ? 32 : 16; }
  MemoryPlace entries(Type type, bool vector) {
    return u.scratch(vectors * entry_bytes(type, vector), Storage::f32);
  }
  void push_entry(const MemoryPlace& place, const Value& v, int64_t bytes) {
    b.push(place.base);
    b.push(b.mul(v, Builder::i32(bytes)));
    body.op(kAddI32);
  }
  void store_entry(const MemoryPlace& place, const Value& v, const Value& x) {
    for (int k = 0; k < x.parts(); ++k) {
      push_entry(place, v, entry_bytes(x.type, x.vector));
      b.push(x, k);
      body.memory(x.vector ? kStore : scalar_opcode(x.type, true), place.offset + uint32_t(16 * k));
    }
  }
  Value load_entry(const MemoryPlace& place, const Value& v, Type type, bool vector) {
    Value x{type, vector, false, 0, {}};
    for (int k = 0; k < x.parts(); ++k) {
      push_entry(place, v, entry_bytes(type, vector));
      body.memory(vector ? kLoad : scalar_opcode(type, false), place.offset + uint32_t(16 * k));
      b.pop_part(x, k);
    }
    return x;
  }
  static Opcode scalar_opcode(Type type, bool store) {
    static constexpr Opcode kLoads[] = {kLoadI32, kLoadI64, kLoadF32, kLoadF64},
                            kStores[] = {kStoreI32, kStoreI64, kStoreF32, kStoreF64};
    const int form = (is_float(type) ? 2 : 0) + (is_wide(type) ? 1 : 0);
    return store ? kStores[form] : kLoads[form];
  }
  /// Memory of a value or variable that crosses regions.
  const MemoryPlace& context_of(Id id) {
    const auto [entry, first] = contexts.try_emplace(id);
    if (first) entry->second = entries(f[id].type, divergence[id].is_varying());
    return entry->second;
  }
  /// A value that decides for the group: the lanes that are left agree on it, whichever they are.
  const Value& decision(Id id) {
    Value& value = decisions[id];
    if (!value) value = b.variable(f[id].type, false);
    return value;
  }

  Unit& u;
  Builder& b;
  Body& body;
  const ir::Function& f;
  const int vectors;
  const Divergence divergence, group_divergence;
  const simd::GroupsPlan plan;
  std::array<Value, 3> coord{};
  std::unordered_map<Id, Value> group_values;  // at the group's level
  std::unordered_map<Id, MemoryPlace> contexts;
  std::unordered_map<uint64_t, MemoryPlace> array_contexts;
  std::unordered_map<Id, Value> decisions;
  std::optional<MemoryPlace> returned, reduce_memory;

 private:
  struct Loop {
    Label latch, exit;
  };

  bool block(uint32_t number) {
    return plan.walk(
        number, [&](Id id) { group_values[id] = at_group->compute(id); },
        [&](std::vector<Id>& ids, Id reduction) {
          if (reduction != ir::kNone && !reduce_memory)
            reduce_memory = u.scratch(int64_t(vectors) * 32, Storage::f32);
          region(ids);
          if (reduction != ir::kNone) reduce(reduction);
        },
        [&](Id id) { return group_statement(id); });
  }

  bool group_statement(Id id) {
    const Instruction& i = f[id];
    switch (i.op) {
      case Op::barrier: return true;
      case Op::return_: body.branch(end); return false;
      case Op::break_: body.branch(loops.back().exit); return false;
      case Op::continue_: body.branch(loops.back().latch); return false;
      case Op::if_: return branch(i);
      default: return loop(i);
    }
  }

  bool branch(const Instruction& i) {
    b.push(group_value(i.args[0]));
    body.if_();
    bool open = block(i.blocks[0]);
    body.else_();
    open |= i.blocks[1] == ir::kNoBlock || block(i.blocks[1]);
    body.end();
    if (!open) body.op(kUnreachable);
    return open;
  }

  bool loop(const Instruction& i) {
    const bool counted = i.op == Op::for_;
    Value counter, last, step;
    Id index = ir::kNone;
    if (counted) {
      index = f.blocks[i.blocks[0]][0];
      last = b.copy(group_value(i.args[1]));
      step = Builder::constant(f[i.args[2]].type, f[i.args[2]].imm);
      counter = b.variable(f[index].type, false);
      b.assign(counter, group_value(i.args[0]));
      group_values[index] = counter;
    }
    Loop labels;
    labels.exit = body.block();
    const Label again = body.loop();
    if (counted) {
      const bool down = is_wide(step.type) ? int64_t(step.bits) < 0 : int32_t(step.bits) < 0;
      b.push(down ? b.less(last, counter) : b.less(counter, last));
      body.op(kEqzI32);
      body.branch_if(labels.exit);
    }
    labels.latch = body.block();
    loops.push_back(labels);
    bool passes = block(i.blocks[0]);
    loops.pop_back();
    passes |= body.end();
    if (passes) {
      if (counted) b.assign(counter, next_counter(b, f, i, counter, step));
      body.branch(again);
    } else {
      body.op(kUnreachable);
    }
    body.end();
    if (body.end()) return true;
    body.op(kUnreachable);
    return false;
  }

  /// A value that all lanes agree on, at the group's level.
  Value group_value(Id id) {
    const auto found = group_values.find(id);
    return found != group_values.end() ? found->second : decision(id);
  }

  void region(const std::vector<Id>& ids) {
    if (vectors == 1) return region(ids, Builder::i32(0));
    counted_loop(b, Builder::i32(0), Builder::i32(vectors), 1, [&](const Value& v) { region(ids, v); });
  }
  void region(const std::vector<Id>& ids, const Value& v) {
    RegionCode code(*this, u, divergence, plan.region(ids[0]), v);
    code.coord = coord;
    code.first_lane = b.mul(v, Builder::i32(kLanes));
    Value mask;
    if (f.group_lanes() % kLanes != 0) {
      const Value left = b.sub(Builder::i32(f.group_lanes()), code.first_lane);
      mask = b.less(b.ramp(Builder::i32(0), 1), b.splat(left));
    }
    const Label done = body.block();
    if (returned) {
      const Value here = b.not_(load_entry(*returned, v, Type::boolean, true));
      mask = mask ? b.and_(mask, here) : here;
      b.push(b.any(mask));
      body.op(kEqzI32);
      body.branch_if(done);
    }
    const size_t begin = body.code().size();
    code.run(ids, mask);
    code.keep_variables();
    body.insert(begin, code.imports);
    body.end();
  }

  /// The balanced tree of control.hpp over the lanes in reduce_memory.
  void reduce(Id id) {
    const auto reduction = ir::Reduction(f[id].imm);
    const Type type = f[id].type;
    const auto at = [&](const Value& k) { return load_entry(*reduce_memory, k, type, true); };
    int s = f.group_lanes() / 2;
    for (; s >= kLanes; s /= 2) {
      const Value half = Builder::i32(s / kLanes);
      counted_loop(b, Builder::i32(0), half, 1, [&](const Value& k) {
        store_entry(*reduce_memory, k, lower_reduction(b, reduction, at(k), at(b.add(k, half))));
      });
    }
    Value v = at(Builder::i32(0));
    for (; s > 0; s /= 2)
      v = lower_reduction(b, reduction, v, b.by_lane([&](int l) { return b.lane(v, (l + s) % kLanes); }));
    group_values[id] = b.lane(v, 0);
  }

  std::vector<Loop> loops;
  Label end;
  std::optional<GroupLevelCode> at_group;
};

Slot RegionCode::import(Id id) {
  if (const auto found = group_.group_values.find(id); found != group_.group_values.end())
    return {found->second};
  Slot result;
  before_region([&] {
    if (group_.recomputable(id)) {
      for (int k = 0; k < f_[id].arg_count(); ++k) slot(f_[id].args[size_t(k)]);
      result = pure(id);
      return;
    }
    if (f_[id].lanes > 1)
      throw InternalError("a wide load that is taken apart behind a barrier", f_.name, "extract before it");
    result = {
        group_.load_entry(group_.context_of(id), vector_index_, f_[id].type, divergence_[id].is_varying())};
  });
  return result;
}

void RegionCode::defined(Id id) {
  if (f_[id].op == Op::group_reduce) {
    group_.store_entry(*group_.reduce_memory, vector_index_, vector(f_[id].args[0]));
    return;
  }
  if (group_.plan.decides(id) && !group_.group_values.contains(id))
    b_.assign(group_.decision(id), scalar(id));
  if (f_[id].type == Type::none || f_[id].op == Op::variable || f_[id].lanes > 1 ||
      !group_.plan.crosses(id) || group_.recomputable(id))
    return;
  group_.store_entry(group_.context_of(id), vector_index_,
                     divergence_[id].is_varying() ? vector(id) : scalar(id));
}

Value RegionCode::outer_storage(Id variable) {
  if (!group_.plan.crosses(variable)) return {};
  Value copy;
  before_region([&] {
    copy = group_.load_entry(group_.context_of(variable), vector_index_, f_[variable].type,
                             divergence_[variable].is_varying());
  });
  if (group_.plan.writes(region_, variable)) written_.emplace_back(variable, copy);
  return copy;
}

void RegionCode::keep_variables() {
  for (const auto& [variable, copy] : written_)
    group_.store_entry(group_.context_of(variable), vector_index_, copy);
}

std::optional<MemoryPlace> RegionCode::outer_array(uint64_t number) {
  if (!group_.plan.array_crosses(number)) return {};
  const ir::ArrayDecl& array = f_.locals[number];
  const int64_t each = array.count * kLanes * size_of(array.storage);
  const auto [entry, first] = group_.array_contexts.try_emplace(number);
  if (first) entry->second = u_.scratch(group_.vectors * each, array.storage);
  MemoryPlace place = entry->second;
  before_region([&] { place.base = b_.add(place.base, b_.mul(vector_index_, Builder::i32(each))); });
  return place;
}

void RegionCode::returning() {
  if (!group_.returned) return;
  const Value now = group_.load_entry(*group_.returned, vector_index_, Type::boolean, true);
  group_.store_entry(*group_.returned, vector_index_, b_.or_(now, active()));
}

}  // namespace

void emit_groups(Unit& unit) { GroupCode(unit).emit(); }

}  // namespace lockstep::compile::wasm
