// Control flow under execution masks, variables.
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {
llvm::Constant* no_lanes(llvm::Type* mask) { return llvm::Constant::getNullValue(mask); }
}  // namespace

void LaneCode::run(std::span<const Id> ids, Value* mask, BasicBlock* end) {
  mask_ = mask;
  flow_ = last_flow_ = 0;
  all_done_ = end;
  if (divergence_.parting_return()) {
    llvm::Type* type = vector_type(b_.getInt1Ty());
    returned_ = u_.local(type, "returned");
    b_.CreateStore(no_lanes(type), returned_);
  }
  if (statements(ids, end)) b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

bool LaneCode::statements(std::span<const Id> ids, BasicBlock* end) {
  ++depth_;
  bool open = true;
  for (size_t k = 0; k < ids.size() && open; ++k) open = statement(ids[k], end);
  --depth_;
  return open;
}

/// False where control does not continue behind the statement.
bool LaneCode::statement(Id id, BasicBlock* end) {
  const Instruction& i = f_[id];
  switch (i.op) {
    case Op::if_: return branch(id, end);
    case Op::for_:
    case Op::loop: return sum_records(id) || loop(id, end);
    case Op::break_:
    case Op::continue_:
    case Op::return_: return jump(id, end);
    case Op::variable: variable(id); break;
    case Op::set: assign(id); break;
    case Op::get: {
      const Variable& s = storage(i.args[0]);
      slots_[id] = {b_.CreateLoad(s.type, s.pointer)};
      break;
    }
    case Op::loop_index: break;
    case Op::load:
    case Op::shared_load: load_instruction(id); break;
    case Op::store:
    case Op::shared_store: store_instruction(id); break;
    case Op::local_load: slots_[id] = local_load(id); break;
    case Op::local_store: local_store(id); break;
    case Op::atomic: slots_[id] = atomic(id); break;
    case Op::call: slots_[id] = call(id); break;
    case Op::async_copy: async_copy(id); break;
    case Op::barrier:
    case Op::async_commit:
    case Op::async_wait: break;
    case Op::group_reduce: break;  // group_code.cpp takes the operand in defined()
    default: slots_[id] = pure(id); break;
  }
  if (depth_ == 1) defined(id);
  return true;
}

Value* LaneCode::any(Value* mask) {
  if (!mask) return b_.getTrue();
  Value* bits = b_.CreateBitCast(mask, b_.getIntNTy(unsigned(width_)));
  return b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}
Value* LaneCode::both(Value* mask, Value* condition) {
  return mask ? b_.CreateAnd(mask, condition) : condition;
}
Value* LaneCode::without(Value* mask, Value* lost) { return both(mask, b_.CreateNot(lost)); }
void LaneCode::add_to(Value* set, Value* mask) {
  Value* old = b_.CreateLoad(vector_type(b_.getInt1Ty()), set);
  b_.CreateStore(b_.CreateOr(old, mask ? mask : full_mask()), set);
}

/// Behind a statement that may have parted lanes: continue with those of `before` that remain, else skip to
/// `end`.
bool LaneCode::continue_with_remaining(Value* before, BasicBlock* end) {
  mask_ = before;
  llvm::Type* type = vector_type(b_.getInt1Ty());
  const auto drop = [&](Value* lost) {
    if (lost) mask_ = without(mask_, b_.CreateLoad(type, lost));
  };
  if (!loops_.empty()) {
    drop(loops_.back().broken);
    drop(loops_.back().continued);
  }
  drop(returned_);
  flow_ = ++last_flow_;
  BasicBlock* rest = u_.new_block("rest");
  b_.CreateCondBr(any(mask_), rest, end);
  b_.SetInsertPoint(rest);
  return true;
}

bool LaneCode::branch(Id id, BasicBlock* end) {
  const Instruction& i = f_[id];
  Value* const before = mask_;
  const int flow = flow_;
  BasicBlock* join = u_.new_block("join");
  const auto has = [&](int k) { return i.blocks[k] != ir::kNoBlock && !f_.blocks[i.blocks[k]].empty(); };
  const auto side = [&](int k, BasicBlock* begin, BasicBlock* after) {
    b_.SetInsertPoint(begin);
    if (statements(f_.blocks[i.blocks[k]], after)) b_.CreateBr(after);
    mask_ = before;
    flow_ = flow;
  };
  if (divergence_.uniform(i.args[0])) {
    BasicBlock* then = has(0) ? u_.new_block("then") : join;
    BasicBlock* otherwise = has(1) ? u_.new_block("else") : join;
    if (then == otherwise) {
      join->eraseFromParent();
      return true;
    }
    b_.CreateCondBr(scalar(i.args[0]), then, otherwise);
    if (has(0)) side(0, then, join);
    if (has(1)) side(1, otherwise, join);
  } else {
    Value* condition = vector(i.args[0]);
    for (int k = 0; k < 2; ++k) {
      if (!has(k)) continue;
      Value* mask = k == 0 ? both(before, condition) : without(before, condition);
      BasicBlock *begin = u_.new_block(k == 0 ? "then" : "else"), *after = u_.new_block("after");
      b_.CreateCondBr(any(mask), begin, after);
      mask_ = mask;
      flow_ = ++last_flow_;
      side(k, begin, after);
      b_.SetInsertPoint(after);
    }
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  if (llvm::pred_empty(join)) {
    b_.CreateUnreachable();
    return false;
  }
  return divergence_.may_lose_lanes(id) ? continue_with_remaining(before, end) : true;
}

bool LaneCode::jump(Id id, BasicBlock* end) {
  const Op op = f_[id].op;
  if (op == Op::return_) returning();
  if (divergence_.parting(id)) {
    add_to(op == Op::return_  ? returned_
           : op == Op::break_ ? loops_.back().broken
                              : loops_.back().continued,
           mask_);
    b_.CreateBr(end);
  } else {
    b_.CreateBr(op == Op::return_ ? all_done_ : op == Op::break_ ? loops_.back().exit : loops_.back().latch);
  }
  return false;
}

bool LaneCode::loop(Id id, BasicBlock* end) {
  const Instruction& i = f_[id];
  Value* const before = mask_;
  const int flow = flow_;
  Loop loop = open_masked_loop(id);
  if (i.op == Op::for_) loop.counter = loop_counter(i);
  BasicBlock *header = u_.new_block("loop"), *body = u_.new_block("body");
  b_.CreateBr(header);

  b_.SetInsertPoint(header);
  Value* const live = loop_test(i, loop, before, body);
  b_.SetInsertPoint(body);
  loops_.push_back(loop);
  mask_ = live;
  if (divergence_.masked(id)) flow_ = ++last_flow_;
  if (statements(f_.blocks[i.blocks[0]], loop.latch)) b_.CreateBr(loop.latch);
  loops_.pop_back();
  mask_ = before;
  flow_ = flow;

  b_.SetInsertPoint(loop.latch);
  if (llvm::pred_empty(loop.latch)) {
    b_.CreateUnreachable();
  } else {
    if (i.op == Op::for_) next_pass(i, loop.counter);
    b_.CreateBr(header);
  }

  b_.SetInsertPoint(loop.exit);
  if (llvm::pred_empty(loop.exit)) {
    b_.CreateUnreachable();
    return false;
  }
  return divergence_.may_lose_lanes(id) ? continue_with_remaining(before, end) : true;
}

/// Blocks of a loop, and the sets of the lanes that left it or this pass.
LaneCode::Loop LaneCode::open_masked_loop(Id id) {
  Loop loop;
  loop.latch = u_.new_block("latch");
  loop.exit = u_.new_block("exit");
  if (!divergence_.masked(id)) return loop;
  llvm::Type* mask_type = vector_type(b_.getInt1Ty());
  loop.broken = u_.local(mask_type, "broken");
  b_.CreateStore(no_lanes(mask_type), loop.broken);
  if (divergence_.masked_continue(id)) loop.continued = u_.local(mask_type, "continued");
  return loop;
}

LaneCode::Counter LaneCode::loop_counter(const Instruction& i) {
  Counter counter;
  const Form& index = divergence_[f_.blocks[i.blocks[0]][0]];
  counter.vector = index.is_varying();
  counter.tested_by_lane = !index.is_uniform() || !divergence_.uniform(i.args[1]);
  llvm::Type* type = lane_type(u_.context(), f_[f_.blocks[i.blocks[0]][0]].type);
  counter.memory = u_.local(counter.vector ? vector_type(type) : type, "counter");
  b_.CreateStore(counter.vector ? vector(i.args[0]) : scalar(i.args[0]), counter.memory);
  counter.last = counter.tested_by_lane ? vector(i.args[1]) : scalar(i.args[1]);
  return counter;
}

/// Goes to `body` where lanes remain, else to the exit; gives the lanes of this pass.
Value* LaneCode::loop_test(const Instruction& i, const Loop& loop, Value* live, BasicBlock* body) {
  llvm::Type* mask_type = vector_type(b_.getInt1Ty());
  if (loop.continued) b_.CreateStore(no_lanes(mask_type), loop.continued);
  if (loop.broken) {
    live = without(live, b_.CreateLoad(mask_type, loop.broken));
    if (returned_) live = without(live, b_.CreateLoad(mask_type, returned_));
  }
  Value* go_on = loop.broken ? any(live) : b_.getTrue();
  if (i.op == Op::for_) {
    const Id index = f_.blocks[i.blocks[0]][0];
    const Instruction& step = f_[i.args[2]];
    const bool down = is_wide(step.type) ? int64_t(step.imm) < 0 : int32_t(step.imm) < 0;
    slots_[index] = {b_.CreateLoad(loop.counter.memory->getAllocatedType(), loop.counter.memory)};
    Value* now = loop.counter.tested_by_lane ? vector(index) : scalar(index);
    const auto test = is_signed(step.type) ? (down ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_SLT)
                                           : (down ? llvm::CmpInst::ICMP_UGT : llvm::CmpInst::ICMP_ULT);
    Value* inside = b_.CreateICmp(test, now, loop.counter.last);
    if (loop.counter.tested_by_lane) {
      // Lanes of a linear counter that passed the end of its type are below the first.
      if (!loop.counter.vector && !divergence_[index].is_uniform() && ir::may_overstep(f_, i))
        inside = b_.CreateAnd(
            inside, b_.CreateICmp(is_signed(step.type) ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE,
                                  now, splat(slots_[index][0])));
      add_to(loop.broken, b_.CreateNot(inside));
      live = both(live, inside);
      go_on = any(live);
    } else {
      go_on = loop.broken ? b_.CreateAnd(go_on, inside) : inside;
    }
  }
  b_.CreateCondBr(go_on, body, loop.exit);
  return live;
}

void LaneCode::next_pass(const Instruction& i, const Counter& counter) {
  Value* step = pure(i.args[2])[0];  // a constant
  Value* now = b_.CreateLoad(counter.memory->getAllocatedType(), counter.memory);
  b_.CreateStore(next_counter(b_, f_, i, now, counter.vector ? splat(step) : step), counter.memory);
}

const LaneCode::Variable& LaneCode::storage(Id id) {
  const auto [entry, first] = storage_.try_emplace(id);
  if (first) {
    Variable& v = entry->second;
    v.vector = divergence_[id].is_varying();
    v.type = lane_type(u_.context(), f_[id].type);
    if (v.vector) v.type = vector_type(v.type);
    v.pointer = outer_storage(id);
    if (!v.pointer) v.pointer = u_.local(v.type);
  }
  return entry->second;
}

void LaneCode::variable(Id id) {
  const Variable& v = storage(id);
  storage_[id].flow = flow_;
  b_.CreateStore(v.vector ? vector(f_[id].args[0]) : scalar(f_[id].args[0]), v.pointer);
}

void LaneCode::assign(Id id) {
  const Instruction& i = f_[id];
  const Variable& s = storage(i.args[0]);
  Value* value = s.vector ? vector(i.args[1]) : scalar(i.args[1]);
  if (s.vector && mask_ && flow_ != s.flow)
    value = b_.CreateSelect(mask_, value, b_.CreateLoad(s.type, s.pointer));
  b_.CreateStore(value, s.pointer);
}

}  // namespace lockstep::compile::simd
