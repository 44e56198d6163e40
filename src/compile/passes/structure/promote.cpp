#include "compile/passes/structure/promote.hpp"

#include "compile/passes/rewrite.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

void arrays_to_variables(Function& f) {
  std::vector<bool> fixed(f.locals.size(), true);
  walk(f, 0, [&](uint32_t, size_t, Id id) {
    const Instruction& i = f[id];
    if (i.op != Op::local_load && i.op != Op::local_store) return;
    const Instruction& index = f[i.args[0]];
    fixed[i.imm] =
        fixed[i.imm] && index.op == Op::constant && uint32_t(index.imm) < uint64_t(f.locals[i.imm].count);
  });
  constexpr int64_t kMostElements = 256;
  std::vector<std::vector<Id>> variables(f.locals.size());
  std::vector<uint64_t> kept(f.locals.size(), 0);
  std::vector<ArrayDecl> arrays;
  const Block body = std::move(f.blocks[0]);
  f.blocks[0] = {};
  Builder builder(f);
  for (size_t a = 0; a < f.locals.size(); ++a) {
    kept[a] = arrays.size();
    if (!fixed[a] || f.locals[a].count > kMostElements) {
      fixed[a] = false;
      arrays.push_back(f.locals[a]);
      continue;
    }
    const Id zero = builder.constant(value_type(f.locals[a].storage), 0);
    for (int64_t k = 0; k < f.locals[a].count; ++k) variables[a].push_back(builder.variable(zero));
  }
  f.blocks[0].insert(f.blocks[0].end(), body.begin(), body.end());
  walk(f, 0, [&](uint32_t, size_t, Id id) {
    Instruction& i = f[id];
    if (i.op != Op::local_load && i.op != Op::local_store) return;
    if (!fixed[i.imm]) {
      i.imm = kept[i.imm];
      return;
    }
    i.args[0] = variables[i.imm][f[i.args[0]].imm];
    i.op = i.op == Op::local_load ? Op::get : Op::set;
    i.imm = 0;
  });
  f.locals = std::move(arrays);
}

class Forwarding {
 public:
  explicit Forwarding(Function& f)
      : f_(f), replaced_(f.instructions.size()), known_(f.instructions.size(), kNone) {}

  void run() {
    block(0);
    replaced_.apply(f_);
  }

 private:
  void set_known(Id variable, Id value) {
    undo_.emplace_back(variable, known_[variable]);
    known_[variable] = value;
  }
  /// Forgets what `block` and the blocks inside it set.
  void forget(uint32_t block) {
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      if (i.op == Op::set) set_known(i.args[0], kNone);
      for (uint32_t b : i.blocks)
        if (b != kNoBlock) forget(b);
    }
  }
  /// Runs a nested block and takes back what it learned.
  void nested(uint32_t b) {
    const size_t mark = undo_.size();
    block(b);
    while (undo_.size() > mark) {
      known_[undo_.back().first] = undo_.back().second;
      undo_.pop_back();
    }
  }

  void block(uint32_t b) {
    Block kept;
    for (Id id : f_.blocks[b]) {
      Instruction& i = f_[id];
      replaced_.apply(i);
      switch (i.op) {
        case Op::variable: set_known(id, i.args[0]); break;
        case Op::set: set_known(i.args[0], i.args[1]); break;
        case Op::get:
          if (const Id value = known_[i.args[0]]; value != kNone) {
            replaced_.set(id, value);
            continue;
          }
          set_known(i.args[0], id);
          break;
        case Op::if_:
          nested(i.blocks[0]);
          nested(i.blocks[1]);
          forget(i.blocks[0]);
          forget(i.blocks[1]);
          break;
        case Op::for_:
        case Op::loop:
          forget(i.blocks[0]);
          nested(i.blocks[0]);
          break;
        default: break;
      }
      kept.push_back(id);
    }
    f_.blocks[b] = std::move(kept);
  }

  Function& f_;
  Replacement replaced_;
  std::vector<Id> known_;
  std::vector<std::pair<Id, Id>> undo_;
};

}  // namespace

void promote(Function& f) {
  arrays_to_variables(f);
  Forwarding(f).run();
}

}  // namespace lockstep::compile
