#include "ir/long_axes.hpp"

#include <utility>

namespace lockstep::ir {

namespace {

/// A point's coordinate plus a shift of more than 0, as BufferRef::offset_at adds them.
bool is_shifted(const Function& f, Id id) {
  const Instruction& i = f[id];
  if (i.op != Op::iadd || i.type != Type::i32 || !(i.flags & kNoWrap) || f[i.args[0]].op != Op::coord)
    return false;
  const Instruction* shift = &f[i.args[1]];
  if (shift->op == Op::irem) shift = &f[shift->args[0]];  // less than a period
  return shift->op == Op::constant && int32_t(shift->imm) > 0;
}

class LongAxes {
 public:
  explicit LongAxes(Function f) : shifted_(f.instructions.size()), f_(std::move(f)) {
    for (Id id = 0; id < shifted_.size(); ++id) shifted_[id] = is_shifted(f_, id);
  }

  Function run() {
    for (Block& block : f_.blocks) {
      for (Id id : std::exchange(block, {})) {
        place_ = f_[id].place;
        block_ = &block;
        rewrite(id);
        block.push_back(id);
      }
    }
    f_.long_axes = true;
    return std::move(f_);
  }

 private:
  Id add(Op op, Type type, std::initializer_list<Id> args, uint64_t imm = 0) {
    Instruction i{op};
    i.type = type;
    i.args = Instruction::operands(args);
    i.imm = imm;
    i.place = place_;
    f_.instructions.push_back(i);
    block_->push_back(Id(f_.instructions.size() - 1));
    return block_->back();
  }
  Id as_unsigned(Id id) { return add(Op::bitcast, Type::u32, {id}); }

  void rewrite(Id id) {
    const Instruction i = f_[id];
    if (shifted_[id] || (i.op == Op::isub && shifted_[i.args[0]])) {
      f_[id].flags &= uint8_t(~kNoWrap);
    } else if (i.op == Op::clamp_index && shifted_[i.args[0]]) {
      const Id last = add(Op::isub, Type::i32, {i.args[1], add(Op::constant, Type::i32, {}, 1)});
      const Id least = add(Op::imin, Type::u32, {as_unsigned(i.args[0]), as_unsigned(last)});
      f_[id].op = Op::bitcast;
      f_[id].args = Instruction::operands({least});
    } else if (i.op == Op::ile && shifted_[i.args[1]]) {  // the end of a period
      const Id size = as_unsigned(i.args[0]), at = as_unsigned(i.args[1]);
      f_[id].args = Instruction::operands({size, at});
    }
  }

  std::vector<bool> shifted_;
  Function f_;
  Block* block_ = nullptr;
  Place place_ = 0;
};

}  // namespace

Function with_long_axes(Function f) { return LongAxes(std::move(f)).run(); }

}  // namespace lockstep::ir
