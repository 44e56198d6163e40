#include "autodiff/kernels/replay.hpp"

#include <algorithm>
#include <set>

#include "autodiff/kernels/plain_form.hpp"
#include "compile/passes/rewrite.hpp"

namespace lockstep::gradients {

using namespace ir;

Replay::Replay(const Plan& plan, Builder& b)
    : plan_(plan), b_(b), value_(plan.f.instructions.size(), kNone) {}

void Replay::copy(Id id) {
  Instruction i = at(id);
  if (i.op == Op::coord && point_[i.imm] != kNone) {
    value_[id] = point_[i.imm];
    return;
  }
  for (Id& a : i.args)
    if (a != kNone) a = value_[a];
  value_[id] = b_.append(i);
}

void Replay::forward(Id id) {
  const Instruction& i = at(id);
  b_.at(i.place);
  switch (i.op) {
    case Op::store: return;
    case Op::atomic: value_[id] = b_.number(i.type, 0); return;  // which nothing needs: plan.cpp
    case Op::if_:
      return b_.if_(
          value(i.args[0]), [&] { forward_block(i.blocks[0], 0); }, [&] { forward_block(i.blocks[1], 0); });
    case Op::for_:
    case Op::loop: return loop(id, [&] { forward_block(i.blocks[0], body_start(plan_.f, i)); });
    default: return copy(id);
  }
}
void Replay::forward_block(uint32_t block, size_t start) {
  const Block& list = plan_.f.blocks[block];
  for (size_t k = start; k < list.size(); ++k) forward(list[k]);
}

void Replay::loop(Id id, const std::function<void()>& body) {
  const Instruction& i = at(id);
  const Block& list = plan_.f.blocks[i.blocks[0]];
  if (i.op == Op::for_) {
    const Instruction& step = at(i.args[2]);
    const int64_t by =
        is_wide(step.type) || step.type == kIndexType ? int64_t(step.imm) : int64_t(int32_t(step.imm));
    return b_.for_(value(i.args[0]), value(i.args[1]), by, [&](Id index) {
      value_[list[0]] = index;
      body();
    });
  }
  b_.loop([&] {
    for (size_t k = 0; k < body_start(plan_.f, i); ++k) forward(list[k]);
    body();
  });
}

Id Replay::passes(Id id) {
  const Instruction& i = at(id);
  const Id begin = value(i.args[0]), end = value(i.args[1]);
  const Type type = b_.type(begin);
  const uint64_t bits = at(i.args[2]).imm;
  const int64_t step = is_wide(type) || type == kIndexType ? int64_t(bits) : int64_t(int32_t(bits));
  const bool up = step > 0;
  const Id some = b_.op(Op::ilt, {up ? begin : end, up ? end : begin});
  const Id span = b_.op(Op::isub, {up ? end : begin, up ? begin : end});
  const Type natural = type == Type::i32 ? Type::u32 : type == Type::i64 ? Type::u64 : type;
  const Id distance = natural == type ? span : b_.bitcast(natural, span);
  const Id one = b_.number(natural, 1), by = b_.number(natural, double(up ? step : -step));
  const Id last = b_.op(Op::idiv, {b_.op(Op::isub, {distance, one}), by});
  return b_.select(some, b_.convert(Type::i32, b_.op(Op::iadd, {last, one})), b_.i32(0));
}

namespace {
int words_of_type(Type type) { return is_wide(type) || type == kIndexType ? 2 : 1; }
}  // namespace

std::vector<Recorded> Replay::read_in(Id id) const {
  std::set<Id> inside, variables;
  std::set<std::pair<bool, uint32_t>> arrays;  // whether shared, number
  const auto look = [&](uint32_t, size_t, Id k) {
    const Instruction& i = at(k);
    if (i.op == Op::variable) inside.insert(k);
    if (i.op == Op::get && plan_.activity.needed[k]) variables.insert(i.args[0]);
    if ((i.op == Op::local_load || i.op == Op::shared_load) && plan_.activity.needed[k])
      arrays.insert({touches_shared(i), uint32_t(i.imm)});
  };
  for (uint32_t block : at(id).blocks)
    if (block != kNoBlock) compile::walk(plan_.f, block, look);
  std::vector<Recorded> all;
  for (Id v : variables)
    if (!inside.contains(v)) all.push_back({v, 0, false, words_of_type(at(v).type)});
  for (const auto& [shared, array] : arrays) {
    Recorded r{kNone, array, shared, 0};
    r.words = share_of(r) * words_of_type(value_type(declaration(r).storage));
    all.push_back(r);
  }
  return all;
}
int Replay::share_of(const Recorded& r) const {
  const int64_t count = declaration(r).count, lanes = r.shared ? plan_.f.group_lanes() : 1;
  return int((count + lanes - 1) / lanes);
}
bool Replay::meets(Id id) const {
  const Instruction& i = at(id);
  bool any = i.op == Op::barrier || i.op == Op::group_reduce;
  for (uint32_t block : i.blocks)
    if (block != kNoBlock)
      for (Id k : plan_.f.blocks[block]) any = any || meets(k);
  return any;
}

std::vector<Recorded> Replay::recorded_in(Id loop) const {
  std::set<Id> set;
  std::set<std::pair<bool, uint32_t>> stored;
  compile::walk(plan_.f, at(loop).blocks[0], [&](uint32_t, size_t, Id k) {
    if (at(k).op == Op::set) set.insert(at(k).args[0]);
    if (at(k).op == Op::local_store || at(k).op == Op::shared_store)
      stored.insert({touches_shared(at(k)), uint32_t(at(k).imm)});
  });
  std::vector<Recorded> changed;
  for (const Recorded& r : read_in(loop))
    if (r.variable != kNone ? set.contains(r.variable) : stored.contains({r.shared, r.array}))
      changed.push_back(r);
  return changed;
}
int Replay::words_of(Id loop) const {
  int words = 0;
  for (const Recorded& r : recorded_in(loop)) words += r.words;
  return words;
}
bool Replay::has_adjoint(Id id) const {
  const Instruction& i = at(id);
  const Activity& a = plan_.activity;
  if (i.blocks[0] == kNoBlock) {
    if (i.op == Op::store) return a.active[i.args[1]] || plan_.cotangents[i.imm] == Flow::memory;
    if (i.op == Op::set) return a.active[i.args[0]];
    if (i.op == Op::atomic) return a.active[i.args[1]];
    if (i.op == Op::local_store) return a.locals.active[i.imm];
    if (i.op == Op::shared_store) return a.shared.active[i.imm];
    if (i.op == Op::barrier || i.op == Op::group_reduce)
      return a.active[id] || std::ranges::find(a.shared.active, true) != a.shared.active.end();
    return a.active[id];
  }
  bool any = false;
  for (uint32_t block : i.blocks)
    if (block != kNoBlock)
      for (Id k : plan_.f.blocks[block]) any = any || has_adjoint(k);
  return any;
}
bool Replay::records(Id id) const {
  const Instruction& i = at(id);
  if (i.blocks[0] == kNoBlock || !has_adjoint(id)) return false;
  return (i.op != Op::if_ && words_of(id) > 0) || records_inside(id);
}
bool Replay::records_inside(Id id) const {
  for (uint32_t block : at(id).blocks)
    if (block != kNoBlock)
      for (Id k : plan_.f.blocks[block])
        if (records(k)) return true;
  return false;
}

std::optional<int64_t> Replay::own_words(Id loop) const {
  const int words = words_of(loop);
  if (words == 0) return 0;
  const Instruction& i = at(loop);
  if (i.op != Op::for_) return {};
  const Instruction &begin = at(i.args[0]), &end = at(i.args[1]), &step = at(i.args[2]);
  if (begin.op != Op::constant || end.op != Op::constant || begin.type != Type::i32) return {};
  const int64_t by = int32_t(step.imm), span = int64_t(int32_t(end.imm)) - int32_t(begin.imm);
  return std::max<int64_t>((span + by - (by > 0 ? 1 : -1)) / by, 0) * words;
}
std::optional<int64_t> Replay::constant_words(uint32_t block) const {
  int64_t own = 0, inner = 0;
  for (Id id : plan_.f.blocks[block]) {
    if (!records(id)) continue;
    const Instruction& i = at(id);
    for (uint32_t b : i.blocks) {
      const auto words = b == kNoBlock ? 0 : constant_words(b);
      if (!words) return {};
      inner = std::max(inner, *words);
    }
    if (i.op == Op::if_) continue;
    const auto words = own_words(id);
    if (!words) return {};
    own += *words;
  }
  return own + inner;
}

namespace {
struct Looker : Replay {
  using Replay::constant_words;
  using Replay::has_adjoint;
  using Replay::records;
  using Replay::Replay;
  using Replay::words_of;
};
}  // namespace

bool is_straight(const Plan& plan, Id loop) {
  Function nothing;
  Builder b(nothing);
  const Looker looker(plan, b);
  if (plan.f.domain != Domain::points) return false;
  for (Flow flow : plan.cotangents)
    if (flow == Flow::memory) return false;
  for (bool active : plan.activity.locals.active)
    if (active) return false;
  for (Id id : plan.f.blocks[0])
    if (plan.f[id].blocks[0] != kNoBlock && looker.has_adjoint(id) != (id == loop)) return false;
  return loop == kNone || looker.words_of(loop) == 0;
}

bool has_records(const Plan& plan, Place& first) {
  Function nothing;
  Builder b(nothing);
  const Looker looker(plan, b);
  bool any = false;
  compile::walk(plan.f, 0, [&](uint32_t, size_t, Id id) {
    const Instruction& i = plan.f[id];
    if (any || (i.op != Op::for_ && i.op != Op::loop) || !looker.has_adjoint(id) || looker.words_of(id) == 0)
      return;
    any = true;
    first = i.place;
  });
  return any;
}

std::optional<int64_t> constant_words(const Plan& plan) {
  Function nothing;
  Builder b(nothing);
  return Looker(plan, b).constant_words(0);
}

}  // namespace lockstep::gradients
