// Groups kernels: one group at a time on one thread. What holds barriers runs once per group with uniform
// control; each longest run of statements without barriers is a region, a loop over the group's vectors of
// lanes. Values and variables that live across regions are in scratch memory, one entry per vector.
#include <optional>

#include "compile/llvm/analysis/prefetch.hpp"
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/loops/kernel_code.hpp"
#include "compile/llvm/lower_op.hpp"
#include "compile/native/groups_plan.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

class GroupCode;

/// One region's vector of lanes.
class RegionCode : public LaneCode {
 public:
  RegionCode(GroupCode& group, CodeUnit& unit, const Divergence& divergence, int width, int region,
             Value* vector_index)
      : LaneCode(unit, divergence, nullptr, width),
        group_(group),
        region_(region),
        vector_index_(vector_index) {}
  BasicBlock* imports = nullptr;  // where values from outside are loaded; dominates the region's code
  /// Variables go back to memory. A region works on copies, which become registers.
  void keep_variables();

 protected:
  Slot import(Id id) override;
  void defined(Id id) override;
  Value* outer_storage(Id variable) override;
  Value* outer_array(uint64_t number) override;
  void returning() override;

 private:
  struct Kept {
    Value *copy, *memory;
    llvm::Type* type;
  };
  Slot recompute(Id id);
  GroupCode& group_;
  const int region_;
  Value* vector_index_;
  std::vector<Kept> written_;
};

/// Pure operations on values of the group's level.
class GroupLevelCode : public LaneCode {
 public:
  GroupLevelCode(CodeUnit& unit, const Divergence& divergence, int width,
                 const std::unordered_map<Id, Value*>& values)
      : LaneCode(unit, divergence, nullptr, width), values_(values) {}
  Value* compute(Id id) { return pure(id)[0]; }

 protected:
  Slot import(Id id) override { return {values_.at(id)}; }

 private:
  const std::unordered_map<Id, Value*>& values_;
};

class GroupCode {
 public:
  explicit GroupCode(CodeUnit& unit)
      : u(unit),
        b(unit.b()),
        f(unit.f()),
        width(unit.width()),
        vectors((f.group_lanes() + width - 1) / width),
        divergence(f, lane_scope(f, width), nullptr, width),
        group_divergence(f, LaneScope::group),
        plan(f, group_divergence, unit.parts()),
        prefetch(f, divergence, unit.interleaved()) {
    if (plan.regions() > 1 && plan.lanes_return()) {
      returned = u.scratch(int64_t(vectors) * width);
      returned_type = llvm::FixedVectorType::get(b.getInt8Ty(), unsigned(width));
    }
  }

  void emit() {
    const CountedLoop z = open_loop(u, u.box_low(2), u.box_high(2));
    const CountedLoop y = open_loop(u, u.box_low(1), u.box_high(1));
    const CountedLoop x = open_loop(u, u.box_low(0), u.box_high(0));
    coord = {x.index, y.index, z.index};
    GroupLevelCode& code = at_group.emplace(u, group_divergence, width, group_values);
    code.coord = coord;
    code.first_lane = b.getInt32(0);
    end = u.new_block("group_end");
    if (returned)
      for (int v = 0; v < vectors; ++v)
        b.CreateStore(llvm::Constant::getNullValue(returned_type),
                      entry_of(returned, returned_type, b.getInt32(uint32_t(v))));
    if (block(0)) b.CreateBr(end);
    b.SetInsertPoint(end);
    close_loop(u, x, 1);
    close_loop(u, y, 1);
    close_loop(u, z, 1);
    u.finish();
  }

  bool recomputable(Id id) const {
    return plan.recomputable(id, [this](Id given) { return group_values.contains(given); });
  }
  /// Scratch entry of a vector.
  Value* entry_of(Value* base, llvm::Type* type, Value* vector) {
    return b.CreateGEP(type, base, b.CreateZExt(vector, b.getInt64Ty()));
  }
  llvm::Type* slot_type(Id id) {
    llvm::Type* type = lane_type(u.context(), f[id].type);
    return divergence[id].is_varying() ? llvm::FixedVectorType::get(type, unsigned(width)) : type;
  }
  /// Memory of a value or variable that crosses regions: registers where the group is one vector.
  Value* context_of(Id id, llvm::Type* type) {
    Value*& base = contexts[id];
    if (!base)
      base = vectors == 1 ? static_cast<Value*>(u.local(type)) : u.scratch(vectors * stride_of(type));
    return base;
  }
  /// Memory of a value that decides for the group: the lanes that are left agree on it, whichever they are.
  llvm::AllocaInst* decision(Id id) {
    llvm::AllocaInst*& slot = decisions[id];
    if (!slot) {
      slot = u.local(lane_type(u.context(), f[id].type), "decision");
      llvm::IRBuilder<> entry(slot->getNextNode());
      entry.CreateStore(llvm::Constant::getNullValue(slot->getAllocatedType()), slot);
    }
    return slot;
  }
  int64_t stride_of(llvm::Type* type) { return int64_t(u.module().getDataLayout().getTypeAllocSize(type)); }

  CodeUnit& u;
  llvm::IRBuilder<>& b;
  const ir::Function& f;
  const int width, vectors;
  const Divergence divergence, group_divergence;
  const GroupsPlan plan;
  const PrefetchPlan prefetch;
  std::array<Value*, 3> coord{};
  std::unordered_map<Id, Value*> group_values;  // at the group's level, in registers
  std::unordered_map<Id, Value*> contexts;
  std::unordered_map<Id, llvm::AllocaInst*> decisions;
  std::unordered_map<uint64_t, Value*> array_contexts;
  Value* returned = nullptr;
  llvm::Type* returned_type = nullptr;
  Id reduced = ir::kNone;  // operand of the reduction that ends the open region
  Value* reduce_memory = nullptr;
  BasicBlock* end = nullptr;

 private:
  struct Loop {
    BasicBlock *latch, *exit;
  };

  /// Prefetches the addresses that this vector's lanes of the next group along x will touch.
  void prefetch_next(Value* first_lane) {
    BasicBlock *begin = u.new_block("prefetch"), *done = u.new_block("prefetch_done");
    Value* next = b.CreateNSWAdd(coord[0], b.getInt32(1));
    b.CreateCondBr(b.CreateICmpSLT(next, u.box_high(0)), begin, done);
    b.SetInsertPoint(begin);
    PrefetchCode code(u, divergence, width, prefetch);
    code.coord = {next, coord[1], coord[2]};
    code.first_lane = first_lane;
    code.run(f.blocks[0], lanes_that_exist(code), done);
  }
  /// Mask of a vector's lanes, null for all.
  Value* lanes_that_exist(LaneCode& code) {
    if (f.group_lanes() % width == 0) return nullptr;
    Value* left = b.CreateSub(b.getInt32(uint32_t(f.group_lanes())), code.first_lane);
    return b.CreateICmpSLT(code.iota(b.getInt32Ty()), code.splat(left));
  }

  bool block(uint32_t number) {
    return plan.walk(
        number, [&](Id id) { group_values[id] = at_group->compute(id); },
        [&](std::vector<Id>& ids, Id reduction) {
          if (reduction != ir::kNone) reduced = f[reduction].args[0];
          region(ids);
          if (reduction != ir::kNone) reduce(reduction);
        },
        [&](Id id) { return group_statement(id); });
  }

  bool group_statement(Id id) {
    const Instruction& i = f[id];
    switch (i.op) {
      case Op::barrier: return true;
      case Op::return_: b.CreateBr(end); return false;
      case Op::break_: b.CreateBr(loops.back().exit); return false;
      case Op::continue_: b.CreateBr(loops.back().latch); return false;
      case Op::if_: return branch(i);
      default: return loop(i);
    }
  }

  bool branch(const Instruction& i) {
    BasicBlock *then = u.new_block("group_then"), *otherwise = u.new_block("group_else"),
               *join = u.new_block("group_join");
    b.CreateCondBr(group_value(i.args[0]), then, otherwise);
    for (int k = 0; k < 2; ++k) {
      b.SetInsertPoint(k == 0 ? then : otherwise);
      if (i.blocks[k] == ir::kNoBlock || block(i.blocks[k])) b.CreateBr(join);
    }
    b.SetInsertPoint(join);
    if (!llvm::pred_empty(join)) return true;
    b.CreateUnreachable();
    return false;
  }

  bool loop(const Instruction& i) {
    const bool counted = i.op == Op::for_;
    BasicBlock *header = u.new_block("group_loop"), *body = u.new_block("group_body");
    const Loop blocks{u.new_block("group_latch"), u.new_block("group_exit")};
    llvm::AllocaInst* counter = nullptr;
    Value *last = nullptr, *step = nullptr;
    Id index = ir::kNone;
    if (counted) {
      index = f.blocks[i.blocks[0]][0];
      Value* first = group_value(i.args[0]);
      last = group_value(i.args[1]);
      step = group_value(i.args[2]);
      counter = u.local(first->getType(), "counter");
      b.CreateStore(first, counter);
    }
    b.CreateBr(header);
    b.SetInsertPoint(header);
    if (counted) {
      const Instruction& constant = f[i.args[2]];
      const bool down = is_wide(constant.type) ? int64_t(constant.imm) < 0 : int32_t(constant.imm) < 0,
                 sgn = is_signed(constant.type);
      Value* now = group_values[index] = b.CreateLoad(counter->getAllocatedType(), counter);
      using llvm::CmpInst;
      b.CreateCondBr(b.CreateICmp(sgn ? (down ? CmpInst::ICMP_SGT : CmpInst::ICMP_SLT)
                                      : (down ? CmpInst::ICMP_UGT : CmpInst::ICMP_ULT),
                                  now, last),
                     body, blocks.exit);
    } else {
      b.CreateBr(body);
    }
    b.SetInsertPoint(body);
    loops.push_back(blocks);
    if (block(i.blocks[0])) b.CreateBr(blocks.latch);
    loops.pop_back();
    b.SetInsertPoint(blocks.latch);
    if (llvm::pred_empty(blocks.latch)) {
      b.CreateUnreachable();
    } else {
      if (counted)
        b.CreateStore(next_counter(b, f, i, b.CreateLoad(counter->getAllocatedType(), counter), step),
                      counter);
      b.CreateBr(header);
    }
    b.SetInsertPoint(blocks.exit);
    if (!llvm::pred_empty(blocks.exit)) return true;
    b.CreateUnreachable();
    return false;
  }

  /// A value that all lanes agree on, at the group's level.
  Value* group_value(Id id) {
    if (const auto found = group_values.find(id); found != group_values.end()) return found->second;
    llvm::AllocaInst* slot = decision(id);
    return b.CreateLoad(slot->getAllocatedType(), slot);
  }

  void region(const std::vector<Id>& ids) {
    std::optional<CountedLoop> loop;
    Value* v = b.getInt32(0);
    if (vectors > 1) {
      loop = open_loop(u, v, b.getInt32(uint32_t(vectors)));
      v = loop->index;
    }
    if (reduced != ir::kNone && !reduce_memory) reduce_memory = u.scratch(int64_t(vectors) * width * 8);
    RegionCode code(*this, u, divergence, width, plan.region(ids[0]), v);
    code.coord = coord;
    code.first_lane = b.CreateNSWMul(v, b.getInt32(uint32_t(width)));
    if (plan.region(ids[0]) == plan.largest_region() && !prefetch.empty()) prefetch_next(code.first_lane);
    Value* mask = lanes_that_exist(code);
    code.imports = u.new_block("imports");
    BasicBlock *body = u.new_block("region"), *done = u.new_block("region_done");
    b.CreateBr(code.imports);
    b.SetInsertPoint(code.imports);
    if (returned) {
      Value* gone = b.CreateLoad(returned_type, entry_of(returned, returned_type, v));
      Value* here = b.CreateICmpEQ(gone, llvm::Constant::getNullValue(returned_type));
      mask = mask ? b.CreateAnd(mask, here) : here;
      Value* bits = b.CreateBitCast(mask, b.getIntNTy(unsigned(width)));
      b.CreateCondBr(b.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0)), body, done);
    } else {
      b.CreateBr(body);
    }
    b.SetInsertPoint(body);
    BasicBlock* after = u.new_block("region_end");
    code.run(ids, mask, after);
    code.keep_variables();
    b.CreateBr(done);
    b.SetInsertPoint(done);
    if (loop) close_loop(u, *loop, 1);
  }

  /// The balanced tree of control.hpp over the lanes in reduce_memory.
  void reduce(Id id) {
    const auto reduction = ir::Reduction(f[id].imm);
    const Type type = f[id].type;
    llvm::Type* vector = llvm::FixedVectorType::get(lane_type(u.context(), type), unsigned(width));
    const auto at = [&](Value* k) { return entry_of(reduce_memory, vector, k); };
    int s = f.group_lanes() / 2;
    for (; s >= width; s /= 2) {
      const CountedLoop loop = open_loop(u, b.getInt32(0), b.getInt32(uint32_t(s / width)));
      Value* upper = b.CreateLoad(vector, at(b.CreateAdd(loop.index, b.getInt32(uint32_t(s / width)))));
      Value* lower = b.CreateLoad(vector, at(loop.index));
      b.CreateStore(lower_reduction(b, reduction, type, lower, upper), at(loop.index));
      close_loop(u, loop, 1);
    }
    Value* v = b.CreateLoad(vector, at(b.getInt32(0)));
    for (; s > 0; s /= 2) {
      std::vector<int> order;
      for (int l = 0; l < width; ++l) order.push_back((l + s) % width);
      v = lower_reduction(b, reduction, type, v, b.CreateShuffleVector(v, order));
    }
    group_values[id] = b.CreateExtractElement(v, uint64_t(0));
    reduced = ir::kNone;
  }

  std::vector<Loop> loops;
  std::optional<GroupLevelCode> at_group;
};

Slot RegionCode::recompute(Id id) {
  for (int k = 0; k < f_[id].arg_count(); ++k) slot(f_[id].args[k]);
  return pure(id);
}

Slot RegionCode::import(Id id) {
  if (const auto found = group_.group_values.find(id); found != group_.group_values.end())
    return {found->second};
  const auto here = b_.saveIP();
  Value* const mask = mask_;
  mask_ = nullptr;
  if (auto* terminator = imports->getTerminator())
    b_.SetInsertPoint(terminator);
  else
    b_.SetInsertPoint(imports);
  Slot result;
  if (group_.recomputable(id)) {
    result = recompute(id);
  } else {
    if (f_[id].lanes > 1)
      throw InternalError("a wide load that is taken apart behind a barrier", f_.name, "extract before it");
    llvm::Type* type = group_.slot_type(id);
    result = {b_.CreateLoad(type, group_.entry_of(group_.context_of(id, type), type, vector_index_))};
  }
  mask_ = mask;
  b_.restoreIP(here);
  return result;
}

void RegionCode::defined(Id id) {
  if (f_[id].op == Op::group_reduce) {
    llvm::Type* type = vector_type(lane_type(u_.context(), f_[id].type));
    b_.CreateStore(vector(f_[id].args[0]), group_.entry_of(group_.reduce_memory, type, vector_index_));
    return;
  }
  if (group_.plan.decides(id) && !group_.group_values.contains(id))
    b_.CreateStore(scalar(id), group_.decision(id));
  if (f_[id].type == Type::none || f_[id].op == Op::variable || f_[id].lanes > 1 || !group_.plan.crosses(id))
    return;
  if (group_.recomputable(id)) return;
  llvm::Type* type = group_.slot_type(id);
  Value* value = type->isVectorTy() ? vector(id) : scalar(id);
  b_.CreateStore(value, group_.entry_of(group_.context_of(id, type), type, vector_index_));
}

Value* RegionCode::outer_storage(Id variable) {
  if (!group_.plan.crosses(variable)) return nullptr;
  llvm::Type* type = group_.slot_type(variable);
  Value* copy = u_.local(type);
  const auto here = b_.saveIP();
  if (auto* terminator = imports->getTerminator()) b_.SetInsertPoint(terminator);
  Value* memory = group_.entry_of(group_.context_of(variable, type), type, vector_index_);
  b_.CreateStore(b_.CreateLoad(type, memory), copy);
  b_.restoreIP(here);
  if (group_.plan.writes(region_, variable)) written_.push_back({copy, memory, type});
  return copy;
}

void RegionCode::keep_variables() {
  for (const Kept& v : written_) b_.CreateStore(b_.CreateLoad(v.type, v.copy), v.memory);
}

Value* RegionCode::outer_array(uint64_t number) {
  if (!group_.plan.array_crosses(number)) return nullptr;
  const ir::ArrayDecl& array = f_.locals[number];
  llvm::Type* type =
      llvm::ArrayType::get(vector_type(element_type(u_.context(), array.storage)), uint64_t(array.count));
  Value*& base = group_.array_contexts[number];
  if (!base)
    base = group_.vectors == 1 ? static_cast<Value*>(u_.local(type))
                               : u_.scratch(group_.vectors * group_.stride_of(type) + kPadding);
  const auto here = b_.saveIP();
  if (auto* terminator = imports->getTerminator()) b_.SetInsertPoint(terminator);
  Value* pointer = group_.entry_of(base, type, vector_index_);
  b_.restoreIP(here);
  return pointer;
}

void RegionCode::returning() {
  if (!group_.returned) return;
  Value* at = group_.entry_of(group_.returned, group_.returned_type, vector_index_);
  Value* now = b_.CreateSExt(mask_ ? mask_ : full_mask(), group_.returned_type);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(group_.returned_type, at), now), at);
}

}  // namespace

void emit_groups(CodeUnit& unit) { GroupCode(unit).emit(); }

}  // namespace lockstep::compile::simd
