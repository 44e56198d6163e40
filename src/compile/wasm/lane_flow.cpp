// Control flow under execution masks, variables, and how long values keep their locals.
#include "compile/wasm/lane_code.hpp"
#include "compile/wasm/lower_op.hpp"

namespace lockstep::compile::wasm {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {
constexpr Id kUnplaced = ir::kNone;
}

/// A value's locals are free behind the last statement of its own block that uses it, or holds a use of it.
void LaneCode::find_releases() {
  std::vector<Id> last(f_.instructions.size(), kUnplaced);
  std::vector<uint32_t> home(f_.instructions.size());
  for (uint32_t number = 0; number < f_.blocks.size(); ++number)
    for (Id id : f_.blocks[number]) {
      home[id] = number;
      last[id] = id;
    }
  // The statement around the current one in each open block.
  std::vector<Id> around(f_.blocks.size(), kUnplaced);
  const std::function<void(uint32_t)> visit = [&](uint32_t number) {
    for (Id id : f_.blocks[number]) {
      around[number] = id;
      const Instruction& i = f_[id];
      for (int k = 0; k < i.arg_count(); ++k) {
        const Id operand = i.args[size_t(k)];
        last[operand] = around[home[operand]];
      }
      for (uint32_t inner : i.blocks)
        if (inner != ir::kNoBlock) visit(inner);
    }
  };
  visit(0);
  for (Id id = 0; id < last.size(); ++id)
    if (last[id] != kUnplaced) releases_[last[id]].push_back(id);
}

void LaneCode::run(std::span<const Id> ids, const Value& mask) {
  mask_ = mask;
  flow_ = last_flow_ = 0;
  if (divergence_.parting_return()) {
    returned_ = b_.variable(Type::boolean, true);
    b_.assign(returned_, b_.no_lanes());
  }
  all_done_ = body_.block();
  statements(ids, all_done_);
  body_.end();
}

bool LaneCode::statements(std::span<const Id> ids, Label end) {
  ++depth_;
  bool open = true;
  for (size_t k = 0; k < ids.size() && open; ++k) {
    open = outside(ids[k]) || statement(ids[k], end);
    const auto released = releases_.find(ids[k]);
    if (released == releases_.end()) continue;
    for (Id id : released->second) {
      slots_[id] = {};
      variables_.erase(id);
    }
  }
  --depth_;
  return open;
}

/// False where control does not continue behind the statement.
bool LaneCode::statement(Id id, Label end) {
  const Instruction& i = f_[id];
  switch (i.op) {
    case Op::if_: return branch(id, end);
    case Op::for_:
    case Op::loop: return loop(id, end);
    case Op::break_:
    case Op::continue_:
    case Op::return_: return jump(id, end);
    case Op::variable: define_variable(id); break;
    case Op::set: assign(id); break;
    case Op::get: slots_[id] = {b_.copy(storage(i.args[0]).value)}; break;
    case Op::loop_index: break;
    case Op::load:
    case Op::shared_load: load_instruction(id); break;
    case Op::store:
    case Op::shared_store: store_instruction(id); break;
    case Op::local_load: slots_[id] = {local_load(id)}; break;
    case Op::local_store: local_store(id); break;
    case Op::atomic: slots_[id] = {atomic(id)}; break;
    case Op::async_copy: async_copy(id); break;
    case Op::barrier:
    case Op::async_commit:
    case Op::async_wait: break;
    case Op::group_reduce: break;  // groups_code.cpp takes the operand in defined()
    default: slots_[id] = pure(id); break;
  }
  if (depth_ == 1) defined(id);
  return true;
}

Value LaneCode::any(const Value& mask) { return mask ? b_.any(mask) : Builder::constant(Type::boolean, 1); }
Value LaneCode::both(const Value& mask, const Value& condition) {
  return mask ? b_.and_(mask, condition) : condition;
}
Value LaneCode::without(const Value& mask, const Value& lost) {
  if (!mask) return b_.not_(lost);
  b_.push(mask), b_.push(lost);
  body_.op(kAndNot);
  return b_.pop(Type::boolean, true);
}
void LaneCode::add_to(const Value& set, const Value& mask) {
  b_.assign(set, mask ? b_.or_(set, mask) : b_.all_lanes());
}
void LaneCode::branch_unless(const Value& condition, Label to) {
  if (condition.constant && condition.bits != 0) return;
  b_.push(condition);
  body_.op(kEqzI32);
  body_.branch_if(to);
}

/// Behind a statement that may have parted lanes: continue with those of `before` that remain, else skip to `end`.
void LaneCode::continue_with_remaining(const Value& before, Label end) {
  mask_ = before;
  const auto drop = [&](const Value& lost) {
    if (lost) mask_ = without(mask_, lost);
  };
  if (!loops_.empty()) {
    drop(loops_.back().broken);
    drop(loops_.back().continued);
  }
  drop(returned_);
  flow_ = ++last_flow_;
  branch_unless(any(mask_), end);
}

bool LaneCode::branch(Id id, Label end) {
  const Instruction& i = f_[id];
  const Value before = mask_;
  const int flow = flow_;
  const auto has = [&](int k) {
    return i.blocks[size_t(k)] != ir::kNoBlock && !f_.blocks[i.blocks[size_t(k)]].empty();
  };
  const auto side = [&](int k, Label after) {
    const bool open = statements(f_.blocks[i.blocks[size_t(k)]], after);
    mask_ = before;
    flow_ = flow;
    return open;
  };
  bool open = true;
  if (divergence_.uniform(i.args[0])) {
    if (!has(0) && !has(1)) return true;
    b_.push(scalar(i.args[0]));
    const Label join = body_.if_();
    open = has(0) ? side(0, join) : true;
    body_.else_();
    open |= has(1) ? side(1, join) : true;
    open |= body_.end();
  } else {
    const Value condition = vector(i.args[0]);
    for (int k = 0; k < 2; ++k) {
      if (!has(k)) continue;
      mask_ = k == 0 ? both(before, condition) : without(before, condition);
      flow_ = ++last_flow_;
      b_.push(b_.any(mask_));
      const Label after = body_.if_();
      side(k, after);
      body_.end();
    }
  }
  if (!open) {
    body_.op(kUnreachable);
    return false;
  }
  if (divergence_.may_lose_lanes(id)) continue_with_remaining(before, end);
  return true;
}

bool LaneCode::jump(Id id, Label end) {
  const Op op = f_[id].op;
  if (op == Op::return_) returning();
  if (divergence_.parting(id)) {
    add_to(op == Op::return_  ? returned_
           : op == Op::break_ ? loops_.back().broken
                              : loops_.back().continued,
           mask_);
    body_.branch(end);
  } else {
    body_.branch(op == Op::return_ ? all_done_ : op == Op::break_ ? loops_.back().exit : loops_.back().latch);
  }
  return false;
}

bool LaneCode::loop(Id id, Label end) {
  const Instruction& i = f_[id];
  const Value before = mask_;
  const int flow = flow_;
  Loop loop = open_masked_loop(id);
  if (i.op == Op::for_) loop.counter = loop_counter(i);
  loop.exit = body_.block();
  const Label again = body_.loop();
  const Value live = loop_test(i, loop, before);
  loop.latch = body_.block();
  loops_.push_back(loop);
  mask_ = live;
  if (divergence_.masked(id)) flow_ = ++last_flow_;
  bool passes = statements(f_.blocks[i.blocks[0]], loop.latch);
  passes |= body_.end();
  loops_.pop_back();
  mask_ = before;
  flow_ = flow;
  if (passes) {
    if (i.op == Op::for_) {
      const Value step = pure(i.args[2])[0];  // a constant
      b_.assign(loop.counter.now,
                next_counter(b_, f_, i, loop.counter.now, loop.counter.now.vector ? b_.splat(step) : step));
    }
    body_.branch(again);
  } else {
    body_.op(kUnreachable);
  }
  body_.end();
  if (!body_.end()) {
    body_.op(kUnreachable);
    return false;
  }
  if (divergence_.may_lose_lanes(id)) continue_with_remaining(before, end);
  return true;
}

/// The sets of the lanes that left the loop or this pass.
LaneCode::Loop LaneCode::open_masked_loop(Id id) {
  Loop loop;
  if (!divergence_.masked(id)) return loop;
  loop.broken = b_.variable(Type::boolean, true);
  b_.assign(loop.broken, b_.no_lanes());
  if (divergence_.masked_continue(id)) loop.continued = b_.variable(Type::boolean, true);
  return loop;
}

LaneCode::Counter LaneCode::loop_counter(const Instruction& i) {
  Counter counter;
  const Id id = f_.blocks[i.blocks[0]][0];
  const Form& index = divergence_[id];
  const bool by_lane = index.is_varying();
  counter.tested_by_lane = !index.is_uniform() || !divergence_.uniform(i.args[1]);
  counter.now = b_.variable(f_[id].type, by_lane);
  b_.assign(counter.now, by_lane ? vector(i.args[0]) : scalar(i.args[0]));
  counter.last = counter.tested_by_lane ? vector(i.args[1]) : scalar(i.args[1]);
  return counter;
}

/// Leaves the loop where no lanes remain; gives the lanes of this pass.
Value LaneCode::loop_test(const Instruction& i, const Loop& loop, Value live) {
  if (loop.continued) b_.assign(loop.continued, b_.no_lanes());
  if (loop.broken) {
    live = without(live, loop.broken);
    if (returned_) live = without(live, returned_);
  }
  if (i.op != Op::for_) {
    if (loop.broken) branch_unless(any(live), loop.exit);
    return live;
  }
  const Id index = f_.blocks[i.blocks[0]][0];
  const Instruction& step = f_[i.args[2]];
  const bool down = is_wide(step.type) ? int64_t(step.imm) < 0 : int32_t(step.imm) < 0;
  const Value& counter = loop.counter.now;
  slots_[index] = {counter};
  const Value now = loop.counter.tested_by_lane ? vector(index) : counter;
  Value inside = down ? b_.less(loop.counter.last, now) : b_.less(now, loop.counter.last);
  if (!loop.counter.tested_by_lane) {
    if (loop.broken) branch_unless(any(live), loop.exit);
    branch_unless(inside, loop.exit);
    return live;
  }
  // Lanes of a linear counter that passed the end of its type are below the first.
  if (!counter.vector && !divergence_[index].is_uniform() && ir::may_overstep(f_, i))
    inside = b_.and_(inside, b_.less_equal(b_.splat(counter), now));
  add_to(loop.broken, b_.not_(inside));
  live = both(live, inside);
  branch_unless(any(live), loop.exit);
  return live;
}

LaneCode::Variable& LaneCode::storage(Id id) {
  const auto [entry, first] = variables_.try_emplace(id);
  if (first) {
    entry->second.value = outer_storage(id);
    if (!entry->second.value) entry->second.value = b_.variable(f_[id].type, divergence_[id].is_varying());
  }
  return entry->second;
}

void LaneCode::define_variable(Id id) {
  Variable& v = storage(id);
  v.flow = flow_;
  b_.assign(v.value, v.value.vector ? vector(f_[id].args[0]) : scalar(f_[id].args[0]));
}

void LaneCode::assign(Id id) {
  const Instruction& i = f_[id];
  const Variable v = storage(i.args[0]);
  Value value = v.value.vector ? vector(i.args[1]) : scalar(i.args[1]);
  if (v.value.vector && mask_ && flow_ != v.flow) value = b_.select(mask_, value, v.value);
  b_.assign(v.value, value);
}

}  // namespace lockstep::compile::wasm
