// Loops that add up records (analysis/record_sums.hpp): one lane after the other, the components of a record side
// by side in a vector.
#include "compile/llvm/analysis/record_sums.hpp"
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/lower_op.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

/// One lane of a vector, in scalars.
class LaneCode::OneLane : public LaneCode {
 public:
  using Memory = std::unordered_map<Id, Value*>;  // vectors of values that differ by lane
  OneLane(LaneCode& all, int lane, Memory& memory)
      : LaneCode(all.u_, all.divergence_, all.assumptions_, 1), all_(all), lane_(lane), memory_(memory) {}

  /// Brings values from outside of the loop, in front of it.
  void fetch_operands(const ir::Block& body) {
    std::vector<bool> inside(f_.instructions.size(), false);
    for (const Id id : body) inside[id] = true;
    for (const Id id : body) {
      const Instruction& i = f_[id];
      for (int k = 0; k < i.arg_count(); ++k)
        if (!inside[i.args[k]] && f_[i.args[k]].op != Op::variable) slot(i.args[k]);
    }
  }
  /// One pass: the sums behind it.
  Value* pass(const RecordSum& sum, const ir::Block& body, Value* index, Value* sums) {
    slots_[body[0]] = {index};
    sums_ = sums;
    for (const Id id : body)
      if (!sum.on_records(id))
        plain(id);
      else if (sum.component.at(id) == 0)
        on_records(id);
    return sums_;
  }

 protected:
  Slot import(Id id) override {
    const Form& form = divergence_[id];
    // Bounds are in memory from the start: a lane that is off has no pass.
    const bool stored = memory_.contains(id);
    if (!stored && form.is_uniform()) return {all_.scalar(id)};
    if (!stored && form.kind == Form::linear) {
      Value* first = all_.scalar(id);
      return {b_.CreateAdd(first, llvm::ConstantInt::get(first->getType(), uint64_t(form.stride * lane_)))};
    }
    Value*& memory = memory_[id];
    llvm::Type* type = vector_type(lane_type(u_.context(), f_[id].type))->getScalarType();
    if (!memory) {
      Value* vector = all_.vector(id);
      memory = u_.local(vector->getType());
      b_.CreateStore(vector, memory);
    }
    // Volatile, or the optimiser would shuffle the vector instead.
    return {b_.CreateLoad(type, b_.CreateConstGEP1_64(type, memory, uint64_t(lane_)), true)};
  }

 private:
  MemoryPlace array(const Instruction& i) { return i.op == Op::load ? u_.buffer(i.imm) : u_.shared(i.imm); }
  Value* read(const Instruction& i, llvm::Type* type) {
    const MemoryPlace place = array(i);
    llvm::LoadInst* one =
        b_.CreateAlignedLoad(type, address(place, scalar(i.args[0])), alignment(place.storage));
    annotate(one, place);
    return one;
  }
  void plain(Id id) {
    const Instruction& i = f_[id];
    if (i.op == Op::loop_index) return;
    if (i.op == Op::load || i.op == Op::shared_load) {
      const Storage storage = array(i).storage;
      slots_[id] = {widen(b_, storage, read(i, element_type(u_.context(), storage)))};
    } else {
      slots_[id] = pure(id);
    }
  }
  /// A statement of the first component, on all of them.
  void on_records(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::load:
      case Op::shared_load: records_[id] = read(i, sums_->getType()); break;
      case Op::get: records_[id] = sums_; break;
      case Op::set: sums_ = records_.at(i.args[1]); break;
      case Op::select:
        records_[id] = b_.CreateSelect(scalar(i.args[0]), records_.at(i.args[1]), records_.at(i.args[2]));
        break;
      default: {
        Value* x[2] = {};
        for (int k = 0; k < i.arg_count(); ++k) x[k] = records_.at(i.args[k]);
        records_[id] = lower_op(b_, i.op, i.type, x[0], x[1], nullptr);
      }
    }
  }

  LaneCode& all_;
  const int lane_;
  Memory& memory_;
  std::unordered_map<Id, Value*> records_;
  Value* sums_ = nullptr;
};

/// The loops of neighbouring lanes: together for as many passes as all of them have, so that their additions
/// overlap and one branch serves them all, then each to its end.
class LaneCode::LaneLoops {
 public:
  LaneLoops(LaneCode& all, const RecordSum& sum, Id loop)
      : all_(all), b_(all.b_), sum_(sum), i_(all.f_[loop]), body_(all.f_.blocks[i_.blocks[0]]) {}

  void add(int lane, OneLane::Memory& memory, Value* begin) {
    One& one = lanes_.emplace_back(One{std::make_unique<OneLane>(all_, lane, memory)});
    one.code->fetch_operands(body_);
    one.index = one.code->scalar(i_.args[0]), one.last = one.code->scalar(i_.args[1]);
    one.sums = begin;
  }
  void run() {
    if (all_.f_[i_.args[2]].imm == 1) together();
    for (One& one : lanes_) alone(one);
  }
  void sums(std::vector<Value*>& to) const {
    for (const One& one : lanes_) to.push_back(one.sums);
  }

 private:
  struct One {
    std::unique_ptr<OneLane> code;
    Value *index = nullptr, *last = nullptr, *sums = nullptr;
  };
  struct Blocks {
    BasicBlock *from, *header, *inside, *exit;
  };
  Blocks open() {
    const Blocks blocks{b_.GetInsertBlock(), all_.u_.new_block("lane_loop"), all_.u_.new_block("lane_body"),
                        all_.u_.new_block("lane_exit")};
    b_.CreateBr(blocks.header);
    b_.SetInsertPoint(blocks.header);
    return blocks;
  }
  llvm::PHINode* carried(const Blocks& blocks, Value* first) {
    llvm::PHINode* value = b_.CreatePHI(first->getType(), 2);
    value->addIncoming(first, blocks.from);
    return value;
  }

  void together() {
    const bool sgn = is_signed(all_.f_[i_.args[2]].type);
    Value* passes = nullptr;
    for (const One& one : lanes_) {
      llvm::Type* wide = b_.getIntNTy(2 * one.index->getType()->getIntegerBitWidth());
      Value* own =
          b_.CreateSub(b_.CreateIntCast(one.last, wide, sgn), b_.CreateIntCast(one.index, wide, sgn));
      passes = passes ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, passes, own) : own;
    }
    const Blocks blocks = open();
    llvm::PHINode* pass = carried(blocks, llvm::ConstantInt::get(passes->getType(), 0));
    std::vector<std::array<llvm::PHINode*, 2>> values;
    for (const One& one : lanes_) values.push_back({carried(blocks, one.index), carried(blocks, one.sums)});
    b_.CreateCondBr(b_.CreateICmpSLT(pass, passes), blocks.inside, blocks.exit);
    b_.SetInsertPoint(blocks.inside);
    for (size_t l = 0; l < lanes_.size(); ++l) {
      const auto [index, sums] = values[l];
      Value* next = lanes_[l].code->pass(sum_, body_, index, sums);
      index->addIncoming(b_.CreateAdd(index, llvm::ConstantInt::get(index->getType(), 1)), blocks.inside);
      sums->addIncoming(next, blocks.inside);
      lanes_[l].index = index, lanes_[l].sums = sums;
    }
    pass->addIncoming(b_.CreateAdd(pass, llvm::ConstantInt::get(pass->getType(), 1)), blocks.inside);
    b_.CreateBr(blocks.header);
    b_.SetInsertPoint(blocks.exit);
  }

  void alone(One& one) {
    const Instruction& step = all_.f_[i_.args[2]];
    const bool down = is_wide(step.type) ? int64_t(step.imm) < 0 : int32_t(step.imm) < 0;
    using llvm::CmpInst;
    const auto test = is_signed(step.type) ? (down ? CmpInst::ICMP_SGT : CmpInst::ICMP_SLT)
                                           : (down ? CmpInst::ICMP_UGT : CmpInst::ICMP_ULT);
    const Blocks blocks = open();
    llvm::PHINode *index = carried(blocks, one.index), *sums = carried(blocks, one.sums);
    b_.CreateCondBr(b_.CreateICmp(test, index, one.last), blocks.inside, blocks.exit);
    b_.SetInsertPoint(blocks.inside);
    Value* next = one.code->pass(sum_, body_, index, sums);
    index->addIncoming(next_counter(b_, all_.f_, i_, index, all_.pure(i_.args[2])[0]), blocks.inside);
    sums->addIncoming(next, blocks.inside);
    b_.CreateBr(blocks.header);
    b_.SetInsertPoint(blocks.exit);
    one.sums = sums;
  }

  LaneCode& all_;
  llvm::IRBuilder<>& b_;
  const RecordSum& sum_;
  const Instruction& i_;
  const ir::Block& body_;
  std::vector<One> lanes_;
};

/// False where the loop is none that adds up records.
bool LaneCode::sum_records(Id loop) {
  const std::optional<RecordSum> sum = find_record_sum(f_, divergence_, u_.interleaved(), loop);
  if (!sum) return false;
  const Instruction& i = f_[loop];
  const int size = sum->count() <= 2 ? 2 : 4;
  std::vector<llvm::Constant*> begin;
  for (int c = 0; c < size; ++c)
    begin.push_back(llvm::cast<llvm::Constant>(pure(sum->initial[size_t(std::min(c, sum->count() - 1))])[0]));
  // A lane that is off has nothing to add.
  OneLane::Memory memory;
  Value *first = vector(i.args[0]), *last = vector(i.args[1]);
  if (mask_) last = b_.CreateSelect(mask_, last, first);
  for (const auto& [id, value] : {std::pair(i.args[0], first), std::pair(i.args[1], last)}) {
    memory[id] = u_.local(value->getType());
    b_.CreateStore(value, memory[id]);
  }
  constexpr int kTogether = 4;
  std::vector<Value*> lanes;
  for (int l = 0; l < width_;) {
    LaneLoops loops(*this, *sum, loop);
    for (int k = 0; k < kTogether && l < width_; ++k, ++l)
      loops.add(l, memory, llvm::ConstantVector::get(begin));
    loops.run();
    loops.sums(lanes);
  }
  const Records sums = transposed(lanes, size, size_of(f_[sum->variables[0]].type) == 4);
  for (int c = 0; c < sum->count(); ++c)
    b_.CreateStore(sums[size_t(c)], storage(sum->variables[size_t(c)]).pointer);
  return true;
}

}  // namespace lockstep::compile::simd
