#include "compile/llvm/analysis/record_sums.hpp"

#include <algorithm>

namespace lockstep::compile::simd {

namespace {

using ir::Id;
using ir::Instruction;
using ir::Op;

class SumFinder {
 public:
  SumFinder(const ir::Function& f, const ir::Divergence& divergence, const InterleavedTable& interleaved,
            const ir::Block& body)
      : f_(f), divergence_(divergence), interleaved_(interleaved), body_(body) {}

  std::optional<RecordSum> find(Id loop) {
    if (!place_values() || !place_variables(loop) || !complete() || !alike()) return {};
    return std::move(sum_);
  }

 private:
  static bool computes(Op op) {
    switch (op) {
      case Op::fadd:
      case Op::fsub:
      case Op::fmul:
      case Op::fneg:
      case Op::select: return true;
      default: return false;
    }
  }
  /// The record that a load belongs to, where each lane reads one of its own.
  const Interleaved* record(Id id) const {
    const Instruction& i = f_[id];
    if (i.op != Op::load && i.op != Op::shared_load) return nullptr;
    const Interleaved* set = interleaved_.find(id);
    if (!set || i.lanes != 1 || !is_float(i.type) || !divergence_[i.args[0]].is_varying()) return nullptr;
    const Storage storage = i.op == Op::load ? f_.buffers[i.imm].storage : f_.shared[i.imm].storage;
    return size_of(storage) >= 4 ? set : nullptr;
  }
  std::optional<int> component(Id id) const {
    const auto found = sum_.component.find(id);
    return found == sum_.component.end() ? std::nullopt : std::optional(found->second);
  }
  bool place(Id id, int c) { return sum_.component.emplace(id, c).first->second == c; }

  /// Components of what is computed from records, and of the variables that take it.
  bool place_values() {
    for (const Id id : body_) {
      const Instruction& i = f_[id];
      const bool placed =
          i.op == Op::coord || i.op == Op::lane || i.op == Op::local_id || i.op == Op::extract;
      if (i.lanes != 1 || placed) return false;
      if (i.op == Op::get) {
        gets_.push_back(id);
      } else if (const Interleaved* set = record(id)) {
        const auto member = std::find_if(set->members.begin(), set->members.end(),
                                         [&](const Interleaved::Member& m) { return m.access == id; });
        place(id, int(member->offset - set->first_offset));
        width_ = std::max(width_, set->width);
      } else if (i.op == Op::set) {
        const auto c = component(i.args[1]);
        if (!c || !place(i.args[0], *c) || !place(id, *c)) return false;
      } else if (i.op != Op::loop_index && i.op != Op::load && i.op != Op::shared_load &&
                 !ir::is_pure(i.op)) {
        return false;
      } else if (!place_result(id)) {
        return false;
      }
    }
    return true;
  }
  /// A result has the component of its operands. Those out of variables are known where the other operand is.
  bool place_result(Id id) {
    const Instruction& i = f_[id];
    for (int k = 0; k < i.arg_count(); ++k)
      if (const auto c = component(i.args[k]); c && !place(id, *c)) return false;
    return !component(id) || computes(i.op);
  }

  /// Each variable begins with a constant in the block of the loop, and changes nowhere else.
  bool place_variables(Id loop) {
    for (const Id id : gets_) {
      const auto c = component(f_[id].args[0]);
      if (!c || !place(id, *c)) return false;
    }
    std::unordered_map<Id, int> known;  // variables
    for (const ir::Block& block : f_.blocks) {
      const auto at = std::find(block.begin(), block.end(), loop);
      for (auto id = block.begin(); id != block.end(); ++id) {
        const Instruction& i = f_[*id];
        const bool begins = at != block.end() && id < at && i.op == Op::variable;
        if (begins && component(*id) && f_[i.args[0]].op == Op::constant) known.emplace(*id, *component(*id));
        if (i.op == Op::set && component(i.args[0]) && !component(*id)) return false;
      }
    }
    if (known.empty() || int64_t(known.size()) != width_ || known.size() > Interleaved::kMost) return false;
    sum_.variables.resize(known.size(), ir::kNone), sum_.initial.resize(known.size(), ir::kNone);
    for (const auto& [id, c] : known)
      if (c < int(known.size())) sum_.variables[size_t(c)] = id, sum_.initial[size_t(c)] = f_[id].args[0];
    const Id first = sum_.variables[0];
    return first != ir::kNone && std::all_of(sum_.variables.begin(), sum_.variables.end(), [&](Id id) {
             return id != ir::kNone && f_[id].type == f_[first].type && divergence_[id].is_varying();
           });
  }

  /// All operands that are records are known as such, and nothing else takes records.
  bool complete() const {
    for (const Id id : body_) {
      const Instruction& i = f_[id];
      const bool here = component(id).has_value();
      if (i.op == Op::get || i.op == Op::set || record(id)) {
        if (!here) return false;
        continue;
      }
      for (int k = 0; k < i.arg_count(); ++k) {
        const bool of_record = component(i.args[k]).has_value();
        if (of_record && (!here || component(i.args[k]) != component(id))) return false;
        // A record is computed with others of its component; a condition is none.
        const bool condition = i.op == Op::select && k == 0;
        if (here && of_record == condition) return false;
      }
    }
    return true;
  }

  /// The statements of each component are those of the first.
  bool alike() const {
    std::vector<std::vector<Id>> of(sum_.variables.size());
    std::unordered_map<Id, size_t> number;
    for (const Id id : body_)
      if (const auto c = component(id)) {
        if (*c >= sum_.count()) return false;
        number[id] = of[size_t(*c)].size();
        of[size_t(*c)].push_back(id);
      }
    for (size_t c = 1; c < of.size(); ++c) {
      if (of[c].size() != of[0].size()) return false;
      for (size_t k = 0; k < of[c].size(); ++k)
        if (!matches(of[0][k], of[c][k], int(c), number)) return false;
    }
    return true;
  }
  bool matches(Id a, Id b, int c, const std::unordered_map<Id, size_t>& number) const {
    const Instruction &x = f_[a], &y = f_[b];
    if (x.op != y.op || x.type != y.type) return false;
    if (const Interleaved* set = record(a)) return set == record(b) && set->width == width_;
    const int first = x.op == Op::set ? 1 : 0;  // the variable stands for its component
    if (x.op == Op::get) return x.args[0] == sum_.variables[0] && y.args[0] == sum_.variables[size_t(c)];
    for (int k = first; k < x.arg_count(); ++k) {
      const auto at = number.find(x.args[k]), other = number.find(y.args[k]);
      if ((at == number.end()) != (other == number.end())) return false;
      if (at == number.end() ? x.args[k] != y.args[k] : at->second != other->second) return false;
    }
    return true;
  }

  const ir::Function& f_;
  const ir::Divergence& divergence_;
  const InterleavedTable& interleaved_;
  const ir::Block& body_;
  RecordSum sum_;
  std::vector<Id> gets_;
  int64_t width_ = 0;
};

}  // namespace

std::optional<RecordSum> find_record_sum(const ir::Function& function, const ir::Divergence& divergence,
                                         const InterleavedTable& interleaved, Id loop) {
  const Instruction& i = function[loop];
  if (i.op != Op::for_ || !divergence.masked(loop)) return {};
  return SumFinder(function, divergence, interleaved, function.blocks[i.blocks[0]]).find(loop);
}

}  // namespace lockstep::compile::simd
