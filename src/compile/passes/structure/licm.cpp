#include "compile/passes/structure/licm.hpp"

#include "compile/passes/rewrite.hpp"
#include "ir/meaning.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

class Motion {
 public:
  explicit Motion(Function& f) : f_(f), depth_(f.instructions.size(), 0) {}

  void run() { block(0, 0); }

 private:
  /// `loops`: loops around this block. The depth of a value is the number of loops around its place.
  void block(uint32_t b, uint32_t loops) {
    Block out;
    const Block old = std::move(f_.blocks[b]);
    f_.blocks[b] = {};
    for (Id id : old) {
      const Instruction& i = f_[id];
      depth_[id] = loops;
      if (i.op == Op::if_) {
        block(i.blocks[0], loops);
        block(i.blocks[1], loops);
      } else if (i.op == Op::for_ || i.op == Op::loop) {
        block(i.blocks[0], loops + 1);
        bool certain = i.op == Op::loop || surely_runs(i);
        hoist(i.blocks[0], loops, certain, out);
      }
      out.push_back(id);
    }
    f_.blocks[b] = std::move(out);
  }

  /// Moves what does not change in the loop, of which `body` is a part, to `out`.
  void hoist(uint32_t body, uint32_t loops, bool& certain, Block& out) {
    Block kept;
    for (Id id : f_.blocks[body]) {
      const Instruction& i = f_[id];
      bool moves =
          (is_pure(i.op) || (certain && (i.op == Op::call ||  // which need not end where it would not run
                                         (i.op == Op::load && f_.buffers[i.imm].access == Access::read)))) &&
          i.op != Op::uniform;  // of the lanes that come here
      for (int k = 0, n = i.arg_count(); k < n && moves; ++k) moves = depth_[i.args[k]] <= loops;
      if (moves) {
        depth_[id] = loops;
        out.push_back(id);
        continue;
      }
      kept.push_back(id);
      if (i.op == Op::if_) {
        bool branch = false;
        hoist(i.blocks[0], loops, branch, out);
        hoist(i.blocks[1], loops, branch, out);
      }
      if (may_jump(id)) certain = false;
    }
    f_.blocks[body] = std::move(kept);
  }

  bool may_jump(Id id) const {
    const Instruction& i = f_[id];
    if (i.op == Op::break_ || i.op == Op::continue_ || i.op == Op::return_) return true;
    for (uint32_t b : i.blocks)
      if (b != kNoBlock)
        for (Id inner : f_.blocks[b])
          if (may_jump(inner)) return true;
    return false;
  }

  bool surely_runs(const Instruction& loop) const {
    const Instruction &begin = f_[loop.args[0]], &end = f_[loop.args[1]], &step = f_[loop.args[2]];
    if (begin.op != Op::constant || end.op != Op::constant) return false;
    const bool up = is_wide(step.type) ? int64_t(step.imm) > 0 : int32_t(step.imm) > 0;
    const uint64_t args[] = {up ? begin.imm : end.imm, up ? end.imm : begin.imm};
    return meaning::evaluate(Op::ilt, begin.type, Type::boolean, args) != 0;
  }

  Function& f_;
  std::vector<uint32_t> depth_;
};

}  // namespace

void licm(Function& f) { Motion(f).run(); }

}  // namespace lockstep::compile
