#include "compile/llvm/analysis/distribute.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/divergence.hpp"

namespace lockstep::compile::simd {

using ir::Divergence;
using ir::Form;
using ir::Function;
using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

/// Sets of one loop that must stay together, and what they compute from.
struct Part {
  std::vector<Id> sets;
  std::unordered_set<Id> values;  // in the loop's body, gets included
};

class Distributor {
 public:
  Distributor(Function& f, const Divergence& divergence, const VectorTarget& target, int width)
      : f_(f), divergence_(divergence), registers_(target.registers), lanes_(target.lanes), width_(width) {}

  std::unordered_set<Id> made;

  void block(uint32_t number) {
    ir::Block out;
    const ir::Block old = f_.blocks[number];
    for (Id id : old) {
      for (uint32_t inner : f_[id].blocks)
        if (inner != ir::kNoBlock) block(inner);
      out.push_back(id);
      if (f_[id].op != Op::for_) continue;
      for (Id part : distribute(id)) out.push_back(part);
    }
    f_.blocks[number] = std::move(out);
  }

 private:
  /// The loops that follow `loop`, which keeps the first part.
  std::vector<Id> distribute(Id loop) {
    const ir::Block body = f_.blocks[f_[loop].blocks[0]];
    const auto parts = independent_parts(body);
    if (!parts || parts->size() < 2 || pressure(join(*parts, 0, parts->size())) <= registers_) return {};
    const std::vector<Part> loops = grouped(*parts);
    if (loops.size() < 2 || !cheap_to_repeat(loops)) return {};
    std::vector<Id> result;
    for (size_t k = 1; k < loops.size(); ++k) result.push_back(copy_of(loop, body, loops[k]));
    ir::Block& first = f_.blocks[f_[loop].blocks[0]];
    std::erase_if(first, [&](Id id) { return !belongs(id, loops[0]); });
    return result;
  }

  bool belongs(Id id, const Part& part) const {
    return f_[id].op == Op::loop_index || part.values.contains(id) ||
           std::find(part.sets.begin(), part.sets.end(), id) != part.sets.end();
  }

  static bool is_load(Op op) { return op == Op::load || op == Op::shared_load; }

  /// Nothing where the body holds more than values, loads and one set of each variable.
  std::optional<std::vector<Part>> independent_parts(const ir::Block& body) const {
    std::map<Id, Id> set_of;  // of a variable
    for (Id id : body) {
      const Instruction& i = f_[id];
      if (i.op == Op::set) {
        if (!set_of.emplace(i.args[0], id).second) return {};
      } else if (i.op == Op::get) {
        if (set_of.contains(i.args[0])) return {};  // the value of this pass
      } else if (i.op != Op::loop_index && !is_load(i.op) && !ir::is_pure(i.op)) {
        return {};
      }
    }
    const std::unordered_set<Id> inside(body.begin(), body.end());
    std::vector<Part> parts;
    for (Id id : body) {
      if (f_[id].op != Op::set) continue;
      Part part{{id}, {}};
      needs(f_[id].args[1], inside, part.values);
      for (Id value : part.values)
        if (f_[value].op == Op::get && f_[value].args[0] != f_[id].args[0] &&
            set_of.contains(f_[value].args[0]))
          return {};  // sums that use each other
      parts.push_back(std::move(part));
    }
    return parts;
  }
  void needs(Id id, const std::unordered_set<Id>& inside, std::unordered_set<Id>& values) const {
    if (!inside.contains(id) || f_[id].op == Op::loop_index || !values.insert(id).second) return;
    for (int k = 0; k < f_[id].arg_count(); ++k) needs(f_[id].args[k], inside, values);
  }

  static Part join(const std::vector<Part>& parts, size_t begin, size_t end) {
    Part all;
    for (size_t k = begin; k < end; ++k) {
      all.sets.insert(all.sets.end(), parts[k].sets.begin(), parts[k].sets.end());
      all.values.insert(parts[k].values.begin(), parts[k].values.end());
    }
    return all;
  }

  int registers(Id id) const {
    const int bits = is_wide(f_[id].type) ? 64 : 32;
    return std::max(1, width_ * bits / (lanes_ * 32));
  }
  /// Vector registers of a loop of these sets: the variables, operands that several sets share, and one more.
  int pressure(const Part& part) const {
    int count = 1;
    std::map<Id, int> uses;
    for (Id set : part.sets) {
      if (divergence_[f_[set].args[0]].is_varying()) count += registers(f_[set].args[0]);
      const Instruction& value = f_[f_[set].args[1]];
      for (int k = 0; k < value.arg_count(); ++k) ++uses[value.args[k]];
    }
    for (const auto& [id, n] : uses)
      if (n > 1 && divergence_[id].is_varying() && f_[id].op != Op::get) count += registers(id);
    return count;
  }

  /// As few loops as fit, of equal size.
  std::vector<Part> grouped(const std::vector<Part>& parts) const {
    for (size_t loops = 2; loops <= parts.size() / 2; ++loops) {
      if (parts.size() % loops != 0) continue;
      const size_t each = parts.size() / loops;
      std::vector<Part> result;
      int most = 0;
      for (size_t k = 0; k < parts.size(); k += each) {
        result.push_back(join(parts, k, k + each));
        most = std::max(most, pressure(result.back()));
      }
      if (most <= registers_) return result;
    }
    return {};
  }

  /// Values that several loops compute are scalars, rows of memory and conversions of them.
  bool cheap_to_repeat(const std::vector<Part>& loops) const {
    std::map<Id, int> uses;
    for (const Part& part : loops)
      for (Id id : part.values) ++uses[id];
    return std::all_of(uses.begin(), uses.end(), [&](const auto& entry) {
      const auto& [id, n] = entry;
      const Instruction& i = f_[id];
      if (n == 1 || divergence_[id].kind <= Form::linear || i.op == Op::extract || i.op == Op::get)
        return true;
      if (!is_load(i.op)) return false;
      const Form& index = divergence_[i.args[0]];
      return index.is_uniform() || (index.kind == Form::linear && index.stride == i.lanes);
    });
  }

  Id copy_of(Id loop, const ir::Block& body, const Part& part) {
    std::map<Id, Id> number;
    ir::Block block;
    for (Id id : body) {
      if (!belongs(id, part)) continue;
      Instruction i = f_[id];
      for (Id& a : i.args)
        if (const auto found = number.find(a); found != number.end()) a = found->second;
      number[id] = Id(f_.instructions.size());
      block.push_back(number[id]);
      f_.instructions.push_back(i);
    }
    Instruction copy = f_[loop];
    copy.blocks[0] = uint32_t(f_.blocks.size());
    f_.blocks.push_back(std::move(block));
    const Id id = Id(f_.instructions.size());
    f_.instructions.push_back(copy);
    made.insert(id);
    return id;
  }

  Function& f_;
  const Divergence& divergence_;
  const int registers_, lanes_, width_;
};

}  // namespace

Distributed distribute_loops(const Function& lowered, const VectorTarget& target, int width) {
  Distributed result{lowered, {}};
  const Divergence divergence(lowered, lane_scope(lowered, width), nullptr, width);
  Distributor distributor(result.function, divergence, target, width);
  distributor.block(0);
  result.parts = std::move(distributor.made);
  return result;
}

}  // namespace lockstep::compile::simd
