#include "compile/passes/structure/inline_calls.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "compile/passes/rewrite.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

/// A body of so many instructions costs no more than a call.
constexpr size_t kSmall = 12;

class Inliner {
 public:
  Inliner(Function& f, const std::function<bool(uint32_t)>& wanted) : f_(f) {
    std::vector<Function> kept;
    std::swap(called_, f_.functions);
    for (uint32_t k = 0; k < called_.size(); ++k) {
      number_.push_back(wanted(k) ? kNone : uint32_t(kept.size()));
      if (number_[k] != kNone) kept.push_back(called_[k]);
    }
    f_.functions = std::move(kept);
  }

  void run() {
    compact(f_);  // a value's block has a smaller number than those inside of it
    const size_t blocks = f_.blocks.size();
    for (uint32_t b = 0; b < blocks; ++b) {
      const Block old = std::move(f_.blocks[b]);
      f_.blocks[b] = {};
      for (Id id : old) statement(b, id);
    }
    for (Instruction& i : f_.instructions)
      for (Id& a : i.args)
        if (a != kNone) a = value(a);
    compact(f_);
  }

 private:
  Id value(Id id) const {
    for (auto found = replaced_.find(id); found != replaced_.end(); found = replaced_.find(id))
      id = found->second;
    return id;
  }

  void statement(uint32_t block, Id id) {
    const Instruction i = f_[id];
    if (i.op == Op::extract)
      if (const auto call = results_.find(i.args[0]); call != results_.end()) {
        replaced_[id] = call->second[i.imm];
        return;
      }
    if (i.op != Op::call || number_[i.imm] != kNone) {
      if (i.op == Op::call) f_[id].imm = number_[i.imm];
      f_.blocks[block].push_back(id);
      return;
    }
    const Function& called = called_[i.imm];
    std::vector<Id> copies(called.instructions.size(), kNone);
    copy(called, uint32_t(i.imm), 0, block, i, copies);
    const Instruction& given = result_of(called);
    std::array<Id, 4> all{};
    for (int k = 0; k < given.arg_count(); ++k) all[size_t(k)] = copies[given.args[size_t(k)]];
    if (i.lanes == 1) replaced_[id] = all[0];
    results_[id] = all;
  }

  /// Appends a block of a called function to one of the caller.
  void copy(const Function& called, uint32_t number, uint32_t from, uint32_t to, const Instruction& call,
            std::vector<Id>& copies) {
    for (Id id : called.blocks[from]) {
      Instruction i = called[id];
      if (i.op == Op::result) continue;
      if (i.op == Op::param) {
        copies[id] = value(call.args[i.imm]);
        continue;
      }
      for (Id& a : i.args)
        if (a != kNone) a = copies[a];
      if (i.op == Op::call) i.imm = inner_first(called, number) + i.imm;
      i.place = place(called, i.place);
      copies[id] = Id(f_.instructions.size());
      f_.instructions.push_back(i);
      f_.blocks[to].push_back(copies[id]);
      for (size_t k = 0; k < 2; ++k) {
        if (i.blocks[k] == kNoBlock) continue;
        const auto inner = uint32_t(f_.blocks.size());
        f_.blocks.emplace_back();
        f_[copies[id]].blocks[k] = inner;
        copy(called, number, i.blocks[k], inner, call, copies);
      }
    }
  }

  /// Number in the caller of the first function that a called one calls.
  uint32_t inner_first(const Function& called, uint32_t number) {
    const auto [entry, fresh] = inner_.try_emplace(number, uint32_t(f_.functions.size()));
    if (fresh) f_.functions.insert(f_.functions.end(), called.functions.begin(), called.functions.end());
    return entry->second;
  }

  Place place(const Function& called, Place at) {
    const size_t file = at >> kLineBits;
    if (at == 0 || file >= called.files.size()) return 0;
    const auto found = std::find(f_.files.begin(), f_.files.end(), called.files[file]);
    const auto here = Place(found - f_.files.begin());
    if (found == f_.files.end()) f_.files.push_back(called.files[file]);
    return here << kLineBits | (at & ((Place(1) << kLineBits) - 1));
  }

  Function& f_;
  std::vector<Function> called_;
  std::vector<uint32_t> number_;        // of a called function that is kept; kNone for others
  std::map<uint32_t, uint32_t> inner_;  // see inner_first
  std::map<Id, Id> replaced_;
  std::map<Id, std::array<Id, 4>> results_;  // of a replaced call
};

}  // namespace

void inline_small_calls(Function& f) {
  if (f.functions.empty()) return;
  std::vector<int> places(f.functions.size(), 0);
  walk(f, 0, [&](uint32_t, size_t, Id id) {
    if (f[id].op == Op::call) ++places[f[id].imm];
  });
  std::vector<bool> wanted;
  for (size_t k = 0; k < f.functions.size(); ++k)
    wanted.push_back(places[k] <= 1 || f.functions[k].instructions.size() <= kSmall);
  Inliner(f, [&](uint32_t k) { return wanted[k]; }).run();
}

void inline_all_calls(Function& f) {
  if (f.functions.empty()) return;
  for (Function& called : f.functions) inline_all_calls(called);
  Inliner(f, [](uint32_t) { return true; }).run();
}

}  // namespace lockstep::compile
