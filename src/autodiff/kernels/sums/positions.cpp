#include "autodiff/kernels/sums/positions.hpp"

#include <algorithm>

#include "autodiff/kernels/plain_form.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

class IndexedReads {
 public:
  IndexedReads(const Plan& plan, uint32_t buffer)
      : plan_(plan), f_(plan.f), buffer_(buffer), kinds_(plan.f.instructions.size(), Kind::open) {}

  std::vector<Id> find() {
    if (f_.domain != Domain::points || !all_in(0, true) || !indexed_) return {};
    return reads_;
  }

 private:
  enum class Kind : uint8_t { open, other, steady, loaded };  // loaded: made of elements of buffers

  bool all_in(uint32_t block, bool once) {
    bool all = true;
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      if (i.op == Op::load && i.imm == buffer_ && plan_.activity.active[id] &&
          !is_own_point(f_, i.args[0], buffer_)) {
        const Kind kind = kind_of(i.args[0]);
        all &= once && kind != Kind::other;
        indexed_ |= kind == Kind::loaded;
        reads_.push_back(id);
      }
      for (uint32_t inner : i.blocks)
        if (inner != kNoBlock)
          all &= all_in(inner, once && i.op == Op::if_ && kind_of(i.args[0]) != Kind::other);
    }
    return all;
  }
  Kind kind_of(Id id) {
    Kind& kind = kinds_[id];
    if (kind != Kind::open) return kind;
    const Instruction& i = f_[id];
    const bool load = i.op == Op::load && f_.buffers[i.imm].access == Access::read;
    if (is_float(i.type) || !(load || is_pure(i.op))) return kind = Kind::other;
    Kind all = load ? Kind::loaded : Kind::steady;
    for (Id a : i.args)
      if (a != kNone && all != Kind::other) {
        const Kind part = kind_of(a);
        all = part == Kind::other ? part : std::max(all, part);
      }
    return kinds_[id] = all;
  }

  const Plan& plan_;
  const Function& f_;
  uint32_t buffer_;
  std::vector<Kind> kinds_;
  std::vector<Id> reads_;
  bool indexed_ = false;
};

/// Emits what the positions are made of, each value where a read needs it first.
class Positions {
 public:
  Positions(const Plan& plan, uint32_t buffer, Builder& b)
      : f_(plan.f), reads_(plan.reads[buffer]), b_(b), value_(plan.f.instructions.size(), kNone) {}

  void run(uint32_t buffer, bool own) {
    for (size_t k = 0; k < reads_.size(); ++k) position_.push_back(b_.variable(b_.i32(-1)));
    block(0);
    for (size_t k = 0; k < reads_.size(); ++k) update(k, b_.get(position_[k]));
    if (own) update(reads_.size(), b_.convert(Type::i32, own_point(b_, buffer)));
  }

 private:
  void update(size_t k, Id now) {
    const auto count = uint32_t(b_.function().buffers.size());
    const uint32_t positions = count - 2, changed = count - 1;
    const Id at = lane_word(b_, positions, b_.i32(int32_t(k)));
    b_.if_(b_.op(Op::ine, {b_.emit(Op::load, Type::i32, {at}, positions), now}), [&] {
      b_.emit(Op::store, Type::none, {at, now}, positions);
      b_.emit(Op::atomic, Type::u32, {b_.constant(kIndexType, 0), b_.u32(1)},
              AtomicTarget{AtomicOp::or_, false, changed}.bits());
    });
  }
  void block(uint32_t number) {
    for (Id id : f_.blocks[number]) {
      const Instruction& i = f_[id];
      if (const auto read = std::ranges::find(reads_, id); read != reads_.end())
        b_.set(position_[size_t(read - reads_.begin())], b_.convert(Type::i32, emit(i.args[0])));
      if (i.op != Op::if_ || !contains_read(id)) continue;
      const Id condition = emit(i.args[0]);
      b_.if_(condition, [&] { branch(i.blocks[0]); }, [&] { branch(i.blocks[1]); });
    }
  }
  /// Its values are not seen behind it.
  void branch(uint32_t number) {
    const std::vector<Id> outside = value_;
    block(number);
    value_ = outside;
  }
  bool contains_read(Id id) const {
    bool any = std::ranges::find(reads_, id) != reads_.end();
    for (uint32_t inner : f_[id].blocks)
      if (inner != kNoBlock)
        for (Id k : f_.blocks[inner]) any = any || contains_read(k);
    return any;
  }
  Id emit(Id id) {
    if (value_[id] != kNone) return value_[id];
    Instruction i = f_[id];
    for (Id& a : i.args)
      if (a != kNone) a = emit(a);
    b_.at(i.place);
    return value_[id] = b_.append(i);
  }

  const Function& f_;
  const std::vector<Id>& reads_;
  Builder& b_;
  std::vector<Id> value_, position_;
};

}  // namespace

std::vector<Id> indexed_reads(const Plan& plan, uint32_t buffer) { return IndexedReads(plan, buffer).find(); }
void emit_positions(const Plan& plan, uint32_t buffer, Builder& b) {
  Positions(plan, buffer, b).run(buffer, plan.own[buffer]);
}

}  // namespace lockstep::gradients
