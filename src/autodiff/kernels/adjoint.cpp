#include "autodiff/kernels/adjoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "autodiff/kernels/partials.hpp"
#include "autodiff/kernels/plain_form.hpp"
#include "autodiff/kernels/record.hpp"
#include "autodiff/kernels/replay.hpp"
#include "autodiff/kernels/sums/exact_sum.hpp"
#include "compile/passes/rewrite.hpp"
#include "ir/divergence.hpp"
#include "lockstep/error.hpp"

namespace lockstep::gradients {

using namespace ir;

Id own_point(Builder& b, uint32_t buffer) {
  const int rank = b.function().buffers[buffer].rank;
  Id sum = kNone;
  for (int axis = 0; axis < rank; ++axis) {
    Id term = b.convert(kIndexType, b.emit(Op::coord, Type::i32, {}, uint64_t(rank - 1 - axis)));
    if (axis < rank - 1)
      term = b.op(Op::imul, {term, b.emit(Op::stride, kIndexType, {}, uint64_t(buffer) * 8 + uint64_t(axis))},
                  kNoWrap);
    sum = sum == kNone ? term : b.op(Op::iadd, {sum, term}, kNoWrap);
  }
  return sum;
}

namespace {

class Adjoint : Replay {
 public:
  Adjoint(const Plan& plan, Builder& b)
      : Replay(plan, b),
        bounded_(plan.in_lanes && plan.record != kNoBlock),
        record_(b, plan),
        adjoint_(plan.f.instructions.size(), kNone),
        kept_(plan.f.instructions.size(), false),
        inner_(plan.f.instructions.size(), false) {
    find_inner_uses();
    if (plan.f.domain == Domain::groups) forms_.emplace(plan.f, LaneScope::group);
  }

  void run() {
    const Function& f = plan_.f;
    for (uint32_t k = 0; k < f.locals.size(); ++k) {
      clear(k);
      shadow_.push_back(plan_.activity.locals.active[k] ? new_array({kNone, k, false, 0}) : kNoBlock);
      if (shadow_[k] != kNoBlock) clear(shadow_[k]);
    }
    clear_shared();
    if (bounded_) fits_ = b_.variable(b_.boolean(true));
    for (size_t k = 0; k < f.scalars.size(); ++k)
      term_.push_back(plan_.terms[k] == kNoBlock ? kNone : zero_variable(f.scalars[k].type));
    for (uint32_t k = 0; k < f.buffers.size(); ++k)
      own_.push_back(plan_.own[k] ? zero_variable(value_type(f.buffers[k].storage)) : kNone);
    for (const std::vector<Id>& reads : plan_.reads)
      for (Id read : reads) listed_[read] = zero_variable(at(read).type);
    reverse(0, 0, b_.i32(0));
    for (size_t k = 0; k < term_.size(); ++k)
      if (term_[k] != kNone)
        b_.emit(Op::store, Type::none, {lane_offset(b_, plan_.terms[k]), b_.get(term_[k])}, plan_.terms[k]);
    for (uint32_t k = 0; k < own_.size(); ++k) {
      for (size_t n = 0; n < plan_.reads[k].size(); ++n) list(k, n, listed_.at(plan_.reads[k][n]));
      if (own_[k] != kNone) finish_own(k, own_[k]);
    }
    if (bounded_)
      b_.if_(b_.op(Op::bnot, {b_.get(fits_)}),
             [&] { note_words(b_, plan_.record, b_.i32(kLaneRecordWords + 1)); });
  }

  Id contribution(Id load, const std::array<Id, 3>& point) {
    point_ = point;
    wanted_ = load;
    reverse(0, 0, b_.i32(0));
    return contribution_;
  }
  /// In the pass of the loop around the read whose counter is `counter`; 0 if there is none.
  Id contribution_of_pass(Id load, Id lane, Id counter) {
    point_[0] = lane;
    wanted_ = load;
    pass_ = counter;
    contribution_ = zero_variable(at(load).type);
    reverse(0, 0, b_.i32(0));
    return b_.get(contribution_);
  }

 private:
  /// How to come back to the state before a statement.
  struct Entry {
    std::vector<std::pair<Recorded, Id>> variables;     // their values
    std::vector<std::pair<Recorded, uint32_t>> arrays;  // and the local arrays with their copies
    Id base = kNone, passes = kNone;                    // of a loop: first word of its record
  };

  void finish_own(uint32_t k, Id variable) {
    const uint32_t buffer = plan_.gradient[k];
    switch (plan_.gradients[k]) {
      case Flow::listed:
      case Flow::swept: return list(k, plan_.reads[k].size(), variable);
      case Flow::summed: return add_exactly(buffer, own_point(b_, k), b_.get(variable));
      default: b_.emit(Op::store, Type::none, {own_point(b_, buffer), b_.get(variable)}, buffer);
    }
  }
  /// Stores a contribution of the lane to buffer `k`.
  void list(uint32_t k, size_t number, Id variable) {
    const Id offset = lane_word(b_, plan_.gradient[k], b_.i32(int32_t(number)));
    b_.emit(Op::store, Type::none, {offset, b_.get(variable)}, plan_.gradient[k]);
  }
  Id zero_variable(Type type) { return b_.variable(b_.number(type, 0)); }

  // ── local arrays ──
  uint32_t new_array(const Recorded& like) {
    return add_array(b_, declaration(like).storage, share_of(like));
  }
  template <class Body>
  void each_element(uint32_t array, Body body) {
    b_.for_(b_.i32(0), b_.i32(int32_t(b_.function().locals[array].count)), 1, [&](Id k) { body(k); });
  }
  Id element(uint32_t array, Id k) {
    return b_.emit(Op::local_load, value_type(b_.function().locals[array].storage), {k}, array);
  }
  void set_element(uint32_t array, Id k, Id v) { b_.emit(Op::local_store, Type::none, {k, v}, array); }
  void clear(uint32_t array) {
    const Id zero = b_.number(value_type(b_.function().locals[array].storage), 0);
    each_element(array, [&](Id k) { set_element(array, k, zero); });
  }
  /// The elements of an array that this lane keeps, with their places among these.
  template <class Body>
  void each_kept(const Recorded& r, Body body) {
    if (!r.shared) return each_element(r.array, [&](Id k) { body(k, k); });
    const int lanes = plan_.f.group_lanes();
    b_.for_(b_.emit(Op::lane, Type::i32, {}), b_.i32(int32_t(declaration(r).count)), lanes,
            [&](Id k) { body(k, b_.op(Op::idiv, {k, b_.i32(lanes)})); });
  }
  Id element(const Recorded& r, Id k) {
    if (!r.shared) return element(r.array, k);
    return b_.emit(Op::shared_load, value_type(declaration(r).storage), {k}, r.array);
  }
  void set_element(const Recorded& r, Id k, Id v) {
    b_.emit(r.shared ? Op::shared_store : Op::local_store, Type::none, {k, v}, r.array);
  }
  void meet() { b_.emit(Op::barrier, Type::none); }
  /// Of arrays that may be kept before they are filled.
  void clear_shared() {
    std::vector<Recorded> needed;
    for (uint32_t k = 0; k < plan_.f.shared.size(); ++k)
      if (plan_.activity.shared.needed[k]) needed.push_back({kNone, k, true, 0});
    together(needed, [&] {
      for (const Recorded& r : needed)
        each_kept(r, [&](Id k, Id) { set_element(r, k, b_.number(value_type(declaration(r).storage), 0)); });
    });
  }
  /// `access` between barriers where it touches a shared array.
  template <class List, class Access>
  void together(const List& list, Access access) {
    const bool shared = std::ranges::any_of(list, [](const auto& r) { return is_shared(r); });
    if (shared) meet();
    access();
    if (shared) meet();
  }
  static bool is_shared(const Recorded& r) { return r.shared; }
  static bool is_shared(const std::pair<Recorded, uint32_t>& kept) { return kept.first.shared; }

  // ── state ──
  std::set<uint32_t> shared_stores(uint32_t block) const {
    std::set<uint32_t> arrays;
    compile::walk(plan_.f, block, [&](uint32_t, size_t, Id k) {
      if (at(k).op == Op::shared_store) arrays.insert(uint32_t(at(k).imm));
    });
    return arrays;
  }
  /// Shared arrays but those that the block around the statement has `changed` are as they were when it began.
  Entry keep(Id id, const std::set<uint32_t>& changed) {
    Entry entry;
    for (const Recorded& r : read_in(id))
      if (r.variable != kNone)
        entry.variables.emplace_back(r, b_.get(value(r.variable)));
      else if (!r.shared || changed.contains(r.array))
        entry.arrays.emplace_back(r, new_array(r));
    together(entry.arrays, [&] {
      for (const auto& [r, to] : entry.arrays)
        each_kept(r, [&](Id k, Id slot) { set_element(to, slot, element(r, k)); });
    });
    return entry;
  }
  void come_back(const Entry& entry) {
    for (const auto& [r, v] : entry.variables) b_.set(value(r.variable), v);
    together(entry.arrays, [&] {
      for (const auto& [r, from] : entry.arrays)
        each_kept(r, [&](Id k, Id slot) { set_element(r, k, element(from, slot)); });
    });
  }
  Id plus(Id a, int n) { return n == 0 ? a : b_.op(Op::iadd, {a, b_.i32(n)}, kNoWrap); }
  Id times(Id a, int n) { return b_.op(Op::imul, {a, b_.i32(n)}, kNoWrap); }
  Id sum(Id a, Id b) { return b_.op(Op::iadd, {a, b}, kNoWrap); }

  template <class Each>
  void each_word(Id loop, Id first, Each each) {
    record_.of_loop(loop, bounded_ ? kLaneRecordWords : own_words(loop).value_or(0), bounded_);
    int word = 0;
    for (const Recorded& r : recorded_in(loop)) {
      const Id at = plus(first, word);
      word += r.words;
      if (r.variable != kNone) {
        each(r, kNone, at);
        continue;
      }
      const int one = r.words / share_of(r);
      each_kept(r, [&](Id k, Id slot) { each(r, k, sum(at, times(slot, one))); });
    }
  }
  void save_pass(Id loop, Id first) {
    together(recorded_in(loop), [&] {
      each_word(loop, first, [&](const Recorded& r, Id k, Id at) {
        record_.save(at, k == kNone ? b_.get(value(r.variable)) : element(r, k));
      });
    });
  }
  void restore_pass(Id loop, Id first) {
    together(recorded_in(loop), [&] {
      each_word(loop, first, [&](const Recorded& r, Id k, Id word) {
        if (k == kNone)
          b_.set(value(r.variable), same_for_all(r.variable, record_.restore(word, at(r.variable).type)));
        else
          set_element(r, k, record_.restore(word, value_type(declaration(r).storage)));
      });
    });
  }

  /// A record does not show that all lanes of a group have one value.
  Id same_for_all(Id variable, Id v) {
    return forms_ && forms_->uniform(variable) ? b_.emit(Op::uniform, b_.type(v), {v}) : v;
  }

  // ── the first run ──
  /// Runs a loop with its record from word `base` on; gives the number of its passes.
  Id record(Id id, Id base) {
    const Instruction& i = at(id);
    const int words = words_of(id);
    const bool counted = i.op == Op::for_;
    if (counted && words == 0) {
      forward(id);
      return passes(id);
    }
    const Id pass = b_.variable(b_.i32(0));
    loop(id, [&] {
      const Id k = b_.get(pass);
      if (words > 0) save_pass(id, sum(base, times(k, words)));
      b_.set(pass, plus(k, 1));
      forward_block(i.blocks[0], body_start(plan_.f, i));
    });
    const Id count = counted ? passes(id) : b_.get(pass);
    const Id all = !counted && meets(id) ? b_.emit(Op::uniform, Type::i32, {count}) : count;
    if (!bounded_ || words == 0) return all;
    // Passes without a record are not taken back: the launch is repeated.
    const Id fits = b_.op(Op::ile, {all, b_.i32(kLaneRecordWords / words)});
    b_.set(fits_, b_.op(Op::band, {b_.get(fits_), fits}));
    return b_.select(fits, all, b_.i32(0));
  }

  void reverse(uint32_t block, size_t start, Id base) {
    const Block& list = plan_.f.blocks[block];
    const std::set<uint32_t> changed = shared_stores(block);
    std::map<Id, Entry> entries;
    Id top = base;
    for (size_t k = start; k < list.size(); ++k) {
      const Id id = list[k];
      const Instruction& i = at(id);
      b_.at(i.place);
      if (i.blocks[0] == kNoBlock || !has_adjoint(id)) {
        forward(id);
        continue;
      }
      Entry& entry = entries[id] = keep(id, changed);
      if (i.op == Op::if_) {
        forward(id);
        continue;
      }
      if (pass_ != kNone) continue;  // nothing needs what the loop computes
      entry.base = top;
      entry.passes = record(id, top);
      const int words = record_.in_lanes() ? 0 : words_of(id);
      if (words > 0) top = sum(top, times(entry.passes, words));
    }
    for (size_t k = start; k < list.size(); ++k) {
      const Id id = list[k];
      kept_[id] = plan_.activity.active[id] && (inner_[id] || at(id).op == Op::variable);
      adjoint_[id] = kept_[id] ? zero_variable(at(id).type) : kNone;
    }
    for (size_t k = list.size(); k-- > start;) {
      const Id id = list[k];
      if (!has_adjoint(id)) continue;
      b_.at(at(id).place);
      if (at(id).blocks[0] == kNoBlock)
        backward(id);
      else
        backward_flow(id, entries[id], top);
    }
  }

  /// A statement in which lanes meet may touch shared arrays before its first barrier and after its last one.
  void backward_flow(Id id, const Entry& entry, Id top) {
    const bool apart = !plan_.f.shared.empty() && meets(id);
    if (apart) meet();
    backward_inside(id, entry, top);
    if (apart) meet();
  }
  void backward_inside(Id id, const Entry& entry, Id top) {
    const Instruction& i = at(id);
    come_back(entry);
    if (i.op == Op::if_)
      return b_.if_(
          value(i.args[0]), [&] { reverse(i.blocks[0], 0, top); }, [&] { reverse(i.blocks[1], 0, top); });
    if (pass_ != kNone) return reverse_pass(i, top);
    const int words = words_of(id);
    // Upward, because the compilers of GPUs unroll downward loops badly or not at all.
    b_.for_(b_.i32(0), entry.passes, 1, [&](Id k) {
      const Id pass = b_.op(Op::isub, {plus(entry.passes, -1), k}, kNoWrap);
      if (words > 0) restore_pass(id, sum(entry.base, times(pass, words)));
      if (i.op == Op::for_) {
        const Id begin = value(i.args[0]);
        const Id step = b_.constant(b_.type(begin), at(i.args[2]).imm);
        value_[plan_.f.blocks[i.blocks[0]][0]] =
            b_.op(Op::iadd, {begin, b_.op(Op::imul, {b_.convert(b_.type(begin), pass), step})});
      }
      reverse(i.blocks[0], body_start(plan_.f, i), top);
    });
  }

  /// One pass of a for_ with step 1, from its counter.
  void reverse_pass(const Instruction& i, Id top) {
    const Id within = b_.op(
        Op::band, {b_.op(Op::ile, {value(i.args[0]), pass_}), b_.op(Op::ilt, {pass_, value(i.args[1])})});
    b_.if_(within, [&] {
      value_[plan_.f.blocks[i.blocks[0]][0]] = pass_;
      reverse(i.blocks[0], 1, top);
    });
  }

  // ── adjoints ──
  Id take(Id id) { return kept_[id] ? b_.get(adjoint_[id]) : adjoint_[id]; }
  void add(Id id, Id g) {
    if (g == kNone || !plan_.activity.active[id]) return;
    if (kept_[id])
      b_.set(adjoint_[id], b_.op(Op::fadd, {b_.get(adjoint_[id]), g}));
    else
      adjoint_[id] = adjoint_[id] == kNone ? g : b_.op(Op::fadd, {adjoint_[id], g});
  }

  void backward(Id id) {
    const Instruction& i = at(id);
    switch (i.op) {
      case Op::set: {
        const Id g = b_.get(adjoint_[i.args[0]]);
        b_.set(adjoint_[i.args[0]], b_.number(b_.type(g), 0));
        return add(i.args[1], g);
      }
      case Op::store: return backward_store(i, uint32_t(i.imm));
      case Op::atomic: return backward_store(i, AtomicTarget::from_bits(i.imm).array);
      case Op::local_store: {
        const Id k = value(i.args[0]), g = element(shadow_[i.imm], k);
        set_element(shadow_[i.imm], k, b_.number(b_.type(g), 0));
        return add(i.args[1], g);
      }
      case Op::shared_store:
        return add(i.args[1], take_exactly(plan_.shared[i.imm], shared_element(i), at(i.args[1]).type));
      case Op::barrier: return meet();
      default: break;
    }
    const Id g = take(id);
    if (g == kNone) {
      if (i.op == Op::group_reduce) meet();
      return;
    }
    switch (i.op) {
      case Op::group_reduce: {
        const Id all = b_.emit(i.op, i.type, {g}, uint64_t(Reduction::add));
        if (Reduction(i.imm) == Reduction::add) return add(i.args[0], all);
        const Id mine = share_in_extreme(b_, value(i.args[0]), value(id));
        return add(i.args[0], b_.select(mine, all, b_.number(i.type, 0)));
      }
      case Op::shared_load:
        return add_exactly(plan_.shared[i.imm], b_.convert(kIndexType, shared_element(i)), g);
      case Op::variable:
      case Op::get: return add(i.args[0], g);
      case Op::param:
        if (const Id term = wanted_ == kNone ? term_[i.imm] : kNone; term != kNone)
          b_.set(term, b_.op(Op::fadd, {b_.get(term), g}));
        return;
      case Op::load:
        if (wanted_ == kNone) return backward_load(id, g);
        if (id == wanted_ && pass_ != kNone) b_.set(contribution_, g);
        if (id == wanted_ && pass_ == kNone) contribution_ = g;
        return;
      case Op::local_load: {
        const Id k = value(i.args[0]);
        return set_element(shadow_[i.imm], k, b_.op(Op::fadd, {element(shadow_[i.imm], k), g}));
      }
      default: break;
    }
    std::array<Id, 3> args{kNone, kNone, kNone};
    const size_t count = size_t(i.arg_count());
    for (size_t k = 0; k < count; ++k) args[k] = value(i.args[k]);
    for (size_t k = 0; k < count; ++k)
      if (plan_.activity.active[i.args[k]]) {
        const Id part = partial(i, k, args, value(id), g, at(i.args[k]).type);
        add(i.args[k], plan_.activity.hidden[id] ? unless_zero(b_, g, part) : part);
      }
  }
  /// The number of a shared array's element among those of all groups.
  Id shared_element(const Instruction& i) {
    const Id group = b_.convert(Type::i32, place_number(b_));
    return sum(times(group, int(plan_.f.shared[i.imm].count)), value(i.args[0]));
  }
  /// Of a store, which takes the cotangent, or of an addition, which reads it.
  void backward_store(const Instruction& i, uint32_t to) {
    if (plan_.cotangents[to] == Flow::none) return;
    const uint32_t buffer = plan_.cotangent[to];
    const Id offset = value(i.args[0]), g = b_.emit(Op::load, at(i.args[1]).type, {offset}, buffer);
    if (plan_.cotangents[to] == Flow::memory)
      b_.emit(Op::store, Type::none, {offset, b_.number(b_.type(g), 0)}, buffer);
    add(i.args[1], g);
  }
  void backward_load(Id id, Id g) {
    const Instruction& i = at(id);
    const uint32_t buffer = plan_.gradient[i.imm];
    const Id offset = value(i.args[0]);
    if (const Id own = own_[i.imm]; own != kNone && is_own_point(plan_.f, i.args[0], uint32_t(i.imm)))
      return b_.set(own, b_.op(Op::fadd, {b_.get(own), g}));
    switch (plan_.gradients[i.imm]) {
      case Flow::none:
      case Flow::added:
      case Flow::single:
      case Flow::gathered:
      case Flow::swept: return;
      case Flow::memory: {
        const Id before = b_.emit(Op::load, b_.type(g), {offset}, buffer);
        b_.emit(Op::store, Type::none, {offset, b_.op(Op::fadd, {before, g})}, buffer);
        return;
      }
      case Flow::summed: return add_exactly(buffer, offset, g);
      case Flow::listed: return b_.set(listed_.at(id), g);
    }
  }

  /// Values that blocks inside of their own use.
  void find_inner_uses() {
    std::vector<uint32_t> home(plan_.f.instructions.size(), kNoBlock);
    compile::walk(plan_.f, 0, [&](uint32_t block, size_t, Id id) {
      home[id] = block;
      for (Id a : at(id).args)
        if (a != kNone && home[a] != block) inner_[a] = true;
    });
  }

  std::optional<Divergence> forms_;  // of groups kernels
  bool bounded_;                     // the lane's arrays may be too short for its records
  Id fits_ = kNone;                  // a variable: whether all did up to now
  Record record_;
  std::vector<Id>
      adjoint_;  // of values of the blocks that are reversed now: a value, or a variable where kept_
  std::vector<bool> kept_, inner_;
  std::vector<uint32_t> shadow_;              // adjoints of local arrays
  Id wanted_ = kNone, contribution_ = kNone;  // of one load
  Id pass_ = kNone;                           // counter of the one pass that the load is in
  std::vector<Id> term_, own_;  // sums of the lane for scalars and for its own element of buffers
  std::map<Id, Id> listed_;     // contributions by read
};

/// Words of records that arrays of the lanes do not hold, by one run forward.
class Count : Replay {
 public:
  Count(const Plan& plan, Builder& b) : Replay(plan, b) {}
  void run() {
    const auto buffer = uint32_t(b_.function().buffers.size() - 1);
    const Id words = count(0, 0);
    b_.if_(b_.op(Op::ilt, {b_.i32(kLaneRecordWords), words}), [&] { note_words(b_, buffer, words); });
  }

 private:
  Id most() { return b_.i32(kMostWords); }
  Id count(uint32_t block, size_t start) {
    const Block& list = plan_.f.blocks[block];
    const Id sum = b_.variable(b_.i32(0)), deep = b_.variable(b_.i32(0));
    const auto inside = [&](uint32_t inner, size_t from) {
      const Id words = count(inner, from);
      b_.set(deep, b_.op(Op::imax, {b_.get(deep), words}));
    };
    for (size_t k = start; k < list.size(); ++k) {
      const Id id = list[k];
      const Instruction& i = at(id);
      if (!records(id)) {
        forward(id);
      } else if (i.op == Op::if_) {
        b_.if_(value(i.args[0]), [&] { inside(i.blocks[0], 0); }, [&] { inside(i.blocks[1], 0); });
      } else {
        const bool counted = i.op == Op::for_ && !records_inside(id);
        const Id counter = b_.variable(b_.i32(0));
        if (counted) forward(id);
        if (!counted)
          loop(id, [&] {
            b_.set(counter, b_.op(Op::iadd, {b_.get(counter), b_.i32(1)}));
            inside(i.blocks[0], body_start(plan_.f, i));
          });
        const Id passes = counted ? this->passes(id) : b_.get(counter);
        const int words = std::max(words_of(id), 1);
        const Id whole =
            b_.op(Op::imul, {b_.op(Op::imin, {passes, b_.i32(kMostWords / words)}), b_.i32(words_of(id))});
        b_.set(sum, b_.op(Op::imin, {b_.op(Op::iadd, {b_.get(sum), whole}), most()}));
      }
    }
    return b_.op(Op::imin, {b_.op(Op::iadd, {b_.get(sum), b_.get(deep)}), most()});
  }
};

}  // namespace

Id lane_word(Builder& b, uint32_t buffer, Id word) { return word_offset(b, buffer, word, lane_number(b)); }
void emit_adjoint(const Plan& plan, Builder& b) { Adjoint(plan, b).run(); }
Id emit_contribution(const Plan& plan, Builder& b, Id load, const std::array<Id, 3>& point) {
  return Adjoint(plan, b).contribution(load, point);
}
Id emit_contribution_of_pass(const Plan& plan, Builder& b, Id load, Id lane, Id element) {
  return Adjoint(plan, b).contribution_of_pass(load, lane, element);
}
BufferParam record_words() {
  BufferParam words{"record_words", Storage::i32, 1, Access::read_write};
  words.atomic = true;
  return words;
}
void emit_count(const Plan& plan, Builder& b) { Count(plan, b).run(); }

}  // namespace lockstep::gradients
