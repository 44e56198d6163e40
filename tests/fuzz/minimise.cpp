#include "minimise.hpp"

#include <map>
#include <set>

#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/dead_code.hpp"

namespace lockstep::fuzz {

using namespace ir;

namespace {

bool holds_jump(const Function& f, Id id) {
  const Op op = f[id].op;
  if (op == Op::break_ || op == Op::continue_ || op == Op::return_) return true;
  if (op != Op::if_) return false;
  for (uint32_t b : f[id].blocks)
    for (Id inner : f.blocks[b])
      if (holds_jump(f, inner)) return true;
  return false;
}

/// Values that end loops: conditions of jumps, variables that a loop's block reads and sets, and what they are set to.
std::set<Id> loop_ends(const Function& f) {
  std::set<Id> kept;
  for (const Instruction& loop : f.instructions) {
    if (loop.op == Op::if_ && holds_jump(f, Id(&loop - f.instructions.data()))) kept.insert(loop.args[0]);
    if (loop.op != Op::loop) continue;
    std::map<Id, Id> reads;  // by variable
    for (Id id : f.blocks[loop.blocks[0]]) {
      const Instruction& i = f[id];
      if (i.op == Op::get) reads.emplace(i.args[0], id);
      if (i.op == Op::set && reads.contains(i.args[0])) kept.insert({id, i.args[1], reads[i.args[0]]});
    }
  }
  return kept;
}

class Minimiser {
 public:
  Minimiser(Program program, const std::function<bool(const Program&)>& fails, int tries)
      : best_(std::move(program)), fails_(fails), tries_(tries) {}

  Program run() {
    bool progress = true;
    while (progress && tries_ > 0) {
      progress = drop_statements();
      progress |= values_to_constants();
      Program clean = best_;
      compile::dead_code(clean.function);
      attempt(std::move(clean));
    }
    return std::move(best_);
  }

 private:
  bool attempt(Program candidate) {
    if (tries_-- <= 0) return false;
    try {
      ir::verify(candidate.function);
      if (!fails_(candidate)) return false;
    } catch (const std::exception&) { return false; }
    best_ = std::move(candidate);
    return true;
  }

  /// Whole statements, the last first. Jumps stay: without them a loop may not end.
  bool drop_statements() {
    bool any = false;
    std::set<Id> kept = loop_ends(best_.function);
    for (uint32_t b = 0; b < best_.function.blocks.size(); ++b)
      for (size_t k = best_.function.blocks[b].size(); k-- > 0;) {
        if (k >= best_.function.blocks[b].size()) continue;
        const Id id = best_.function.blocks[b][k];
        const Instruction& i = best_.function[id];
        const bool effect = i.type == Type::none || i.op == Op::atomic || i.op == Op::group_reduce;
        if (!effect || kept.contains(id) || holds_jump(best_.function, id)) continue;
        if (compile::use_counts(best_.function)[id] != 0) continue;
        Program candidate = best_;
        auto& block = candidate.function.blocks[b];
        block.erase(block.begin() + std::ptrdiff_t(k));
        compile::compact(candidate.function);
        const size_t before = best_.function.blocks.size();
        if (attempt(std::move(candidate))) {
          any = true;
          kept = loop_ends(best_.function);
        }
        if (best_.function.blocks.size() != before) break;  // blocks have other numbers now
      }
    return any;
  }

  bool values_to_constants() {
    bool any = false;
    const std::set<Id> kept = loop_ends(best_.function);
    for (Id id = Id(best_.function.instructions.size()); id-- > 0;) {
      if (id >= best_.function.instructions.size()) continue;
      const Instruction& i = best_.function[id];
      if (i.type == Type::none || i.op == Op::constant || i.op == Op::variable || i.op == Op::loop_index ||
          i.lanes > 1 || kept.contains(id))
        continue;
      Program candidate = best_;
      Instruction& c = candidate.function[id];
      const Type type = c.type;
      c = Instruction{Op::constant};
      c.type = type;
      any |= attempt(std::move(candidate));
    }
    return any;
  }

  Program best_;
  const std::function<bool(const Program&)>& fails_;
  int tries_;
};

}  // namespace

Program minimise(Program program, const std::function<bool(const Program&)>& fails, int tries) {
  compile::compact(program.function);
  return Minimiser(std::move(program), fails, tries).run();
}

}  // namespace lockstep::fuzz
