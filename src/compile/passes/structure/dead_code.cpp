#include "compile/passes/structure/dead_code.hpp"

#include "compile/passes/rewrite.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

bool is_jump(Op op) { return op == Op::break_ || op == Op::continue_ || op == Op::return_; }
bool is_loop(Op op) { return op == Op::for_ || op == Op::loop; }

/// Cuts each block behind its first jump, and a jump at the end of a block that leads to where control goes
/// anyhow: `end` is the jump of this kind.
void cut_unreachable(Function& f, uint32_t block, Op end) {
  Block& ids = f.blocks[block];
  for (size_t k = 0; k < ids.size(); ++k)
    if (is_jump(f[ids[k]].op)) {
      ids.resize(f[ids[k]].op == end ? k : k + 1);
      break;
    }
  for (size_t k = 0; k < ids.size(); ++k) {
    const Instruction& i = f[ids[k]];
    const Op inner = is_loop(i.op)                            ? Op::continue_
                     : k + 1 == ids.size() && i.op == Op::if_ ? end
                                                              : Op::count_;
    for (uint32_t b : i.blocks)
      if (b != kNoBlock) cut_unreachable(f, b, inner);
  }
}

class Liveness {
 public:
  explicit Liveness(Function& f)
      : f_(f), live_(f.instructions.size(), false), parent_(f.instructions.size(), kNone) {
    shared_stores_.resize(f.shared.size());
    local_stores_.resize(f.locals.size());
    jumps_.resize(f.instructions.size());
    sets_.resize(f.instructions.size());
    collect(0, kNone, kNone);
    while (!work_.empty()) {
      const Id id = work_.back();
      work_.pop_back();
      follow(id);
    }
  }
  bool operator[](Id id) const { return live_[id]; }

 private:
  void mark(Id id) {
    if (id == kNone || live_[id]) return;
    live_[id] = true;
    work_.push_back(id);
  }

  void collect(uint32_t block, Id parent, Id loop) {
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      parent_[id] = parent;
      switch (i.op) {
        case Op::store:
        case Op::atomic:
        case Op::barrier:
        case Op::group_reduce:
        case Op::async_copy:
        case Op::async_commit:
        case Op::async_wait:
        case Op::result:
        case Op::return_: mark(id); break;
        case Op::shared_store: shared_stores_[i.imm].push_back(id); break;
        case Op::local_store: local_stores_[i.imm].push_back(id); break;
        case Op::set: sets_[i.args[0]].push_back(id); break;
        case Op::break_:
        case Op::continue_: jumps_[loop].push_back(id); break;
        default: break;
      }
      for (uint32_t b : i.blocks)
        if (b != kNoBlock) collect(b, id, is_loop(i.op) ? id : loop);
    }
  }

  void follow(Id id) {
    const Instruction& i = f_[id];
    for (Id a : i.args) mark(a);
    mark(parent_[id]);
    switch (i.op) {
      case Op::shared_load: mark_all(shared_stores_[i.imm]); break;
      case Op::atomic:
        if (const auto target = AtomicTarget::from_bits(i.imm); target.shared)
          mark_all(shared_stores_[target.array]);
        break;
      case Op::local_load: mark_all(local_stores_[i.imm]); break;
      case Op::variable: mark_all(sets_[id]); break;
      case Op::for_: mark(f_.blocks[i.blocks[0]][0]); [[fallthrough]];  // its loop_index
      case Op::loop: mark_all(jumps_[id]); break;
      default: break;
    }
  }
  void mark_all(std::vector<Id>& ids) {
    for (Id id : ids) mark(id);
    ids.clear();
  }

  Function& f_;
  std::vector<bool> live_;
  std::vector<Id> parent_, work_;
  std::vector<std::vector<Id>> shared_stores_, local_stores_, jumps_, sets_;
};

}  // namespace

void dead_code(Function& f) {
  cut_unreachable(f, 0, Op::return_);
  const Liveness live(f);
  for (Block& block : f.blocks) std::erase_if(block, [&](Id id) { return !live[id]; });
  compact(f);
}

}  // namespace lockstep::compile
