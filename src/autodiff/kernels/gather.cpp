#include "autodiff/kernels/gather.hpp"

#include "autodiff/kernels/plain_form.hpp"
#include "autodiff/kernels/replay.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

struct Shift {
  int32_t by;
  Rule rule;
};

/// The coordinate at an axis of the point plus a constant, as the kernel language writes it.
class ShiftReader {
 public:
  ShiftReader(const Function& f, uint32_t buffer, int axis)
      : f_(f), size_(uint64_t(buffer) * 8 + uint64_t(axis)), dimension_(uint64_t(f.rank - 1 - axis)) {}

  std::optional<Shift> read(Id id) const {
    const Instruction& i = f_[id];
    if (i.op == Op::clamp_index && is_size(i.args[1])) {
      const auto inner = plain(i.args[0]);
      return inner ? std::optional(Shift{*inner, Rule::clamp}) : std::nullopt;
    }
    if (i.op == Op::select) return periodic(i);
    const auto inner = plain(id);
    return inner ? std::optional(Shift{*inner, Rule::inside}) : std::nullopt;
  }

 private:
  bool is_point(Id id) const { return f_[id].op == Op::coord && f_[id].imm == dimension_; }
  bool is_size(Id id) const {
    const Instruction& i = f_[id];
    if (i.op == Op::convert) return is_size(i.args[0]);
    return i.op == Op::shape && i.imm == size_;
  }
  std::optional<int32_t> constant(Id id) const {
    return f_[id].op == Op::constant ? std::optional(int32_t(f_[id].imm)) : std::nullopt;
  }
  std::optional<int32_t> plain(Id id) const {
    if (is_point(id)) return 0;
    const Instruction& i = f_[id];
    return i.op == Op::iadd && is_point(i.args[0]) ? constant(i.args[1]) : std::nullopt;
  }
  /// select(p + s rem n is outside, that one period further, that)
  std::optional<Shift> periodic(const Instruction& i) const {
    const Instruction &test = f_[i.args[0]], &further = f_[i.args[1]], &shifted = f_[i.args[2]];
    if (shifted.op != Op::iadd || !is_point(shifted.args[0]) || f_[shifted.args[1]].op != Op::irem) return {};
    const Instruction& rest = f_[shifted.args[1]];
    const auto by = constant(rest.args[0]);
    if (!by || !is_size(rest.args[1]) || further.args[0] != i.args[2] || !is_size(further.args[1])) return {};
    const bool low = test.op == Op::ilt && test.args[0] == i.args[2] && further.op == Op::iadd && *by < 0;
    const bool high = test.op == Op::ile && test.args[1] == i.args[2] && further.op == Op::isub && *by > 0;
    return low || high ? std::optional(Shift{*by, Rule::periodic}) : std::nullopt;
  }

  const Function& f_;
  uint64_t size_, dimension_;
};

class Gather {
 public:
  Gather(const Plan& plan, uint32_t gradient, Builder& b) : plan_(plan), gradient_(gradient), b_(b) {}

  void run(const std::vector<ShiftedRead>& reads) {
    const Type type = value_type(b_.function().buffers[gradient_].storage);
    sum_ = b_.variable(b_.number(type, 0));
    for (int d = 0; d < plan_.f.rank; ++d) {
      own_[size_t(d)] = b_.emit(Op::coord, Type::i32, {}, uint64_t(d));
      size_[size_t(d)] = b_.emit(Op::extent, Type::i32, {}, uint64_t(d));
    }
    for (const ShiftedRead& read : reads) axis(read, 0, own_, kNone);
    b_.emit(Op::store, Type::none, {own_point(b_, gradient_), b_.get(sum_)}, gradient_);
  }

 private:
  Id plus(Id a, Id b) { return b_.op(Op::iadd, {a, b}, kNoWrap); }
  Id plus(Id a, int32_t n) { return plus(a, b_.i32(n)); }

  /// Chooses the point that reads along axis `d` and further ones. `valid`: where the point is one; kNone: always.
  void axis(const ShiftedRead& read, int d, std::array<Id, 3> point, Id valid) {
    if (d == plan_.f.rank) return add(read, point, valid);
    const int32_t shift = read.shift[size_t(d)];
    if (shift == 0) return axis(read, d + 1, point, valid);
    const Id q = own_[size_t(d)], n = size_[size_t(d)];
    if (read.rule[size_t(d)] == Rule::periodic) {
      point[size_t(d)] = wrapped(q, -shift, n);
      return axis(read, d + 1, point, valid);
    }
    const Id p = plus(q, -shift);
    const Id inside = b_.op(Op::ilt, {b_.bitcast(Type::u32, p), b_.bitcast(Type::u32, n)});
    point[size_t(d)] = b_.emit(Op::clamp_index, Type::i32, {p, n});
    axis(read, d + 1, point, valid == kNone ? inside : b_.op(Op::band, {valid, inside}));
    if (read.rule[size_t(d)] == Rule::inside) return;
    // Lanes within |s| of the end, whose reads are clamped to it.
    const Id end = shift < 0 ? b_.i32(0) : plus(n, -1);
    if (shift == 1 || shift == -1) {  // the lane at the end itself
      const Id at_end = b_.op(Op::ieq, {q, end});
      point[size_t(d)] = q;
      return axis(read, d + 1, point, valid == kNone ? at_end : b_.op(Op::band, {valid, at_end}));
    }
    b_.if_(b_.op(Op::ieq, {q, end}), [&] {
      const Id first = shift < 0 ? b_.i32(0) : b_.op(Op::imax, {plus(n, -shift), b_.i32(0)});
      const Id last = shift < 0 ? b_.op(Op::imin, {b_.i32(-shift), n}) : n;
      b_.for_(first, last, 1, [&](Id k) {
        std::array<Id, 3> near = point;
        near[size_t(d)] = k;
        axis(read, d + 1, near, valid);
      });
    });
  }
  Id wrapped(Id q, int32_t shift, Id n) {
    const Id p = plus(q, b_.op(Op::irem, {b_.i32(shift), n}));
    if (shift < 0) return b_.select(b_.op(Op::ilt, {p, b_.i32(0)}), plus(p, n), p);
    return b_.select(b_.op(Op::ile, {n, p}), b_.op(Op::isub, {p, n}, kNoWrap), p);
  }
  void add(const ShiftedRead& read, const std::array<Id, 3>& point, Id valid) {
    Id term = emit_contribution(plan_, b_, read.load, point);
    if (term == kNone) return;
    if (valid != kNone) term = b_.select(valid, term, b_.number(b_.type(term), 0));
    b_.set(sum_, b_.op(Op::fadd, {b_.get(sum_), term}));
  }

  const Plan& plan_;
  uint32_t gradient_;
  Builder& b_;
  Id sum_ = kNone;
  std::array<Id, 3> own_{kNone, kNone, kNone}, size_{kNone, kNone, kNone};
};

}  // namespace

std::vector<ShiftedRead> shifted_reads(const Plan& plan, uint32_t buffer) {
  constexpr size_t kMostCopies = 20000;  // instructions of the gathering kernel
  const Function& f = plan.f;
  if (!is_straight(plan) || f.buffers[buffer].rank != f.rank) return {};
  std::vector<ShiftedRead> reads;
  for (Id id : f.blocks[0]) {
    if (f[id].op != Op::load || f[id].imm != buffer || !plan.activity.active[id]) continue;
    const std::vector<Id> at = coordinates_of(f, f[id].args[0], buffer);
    ShiftedRead read{id, {}, {}};
    for (int axis = 0; axis < f.rank; ++axis) {
      const auto shift = at.empty() ? std::nullopt : ShiftReader(f, buffer, axis).read(at[size_t(axis)]);
      if (!shift) return {};
      read.shift[size_t(f.rank - 1 - axis)] = shift->by;
      read.rule[size_t(f.rank - 1 - axis)] = shift->rule;
    }
    reads.push_back(read);
  }
  return reads.size() * f.instructions.size() > kMostCopies ? std::vector<ShiftedRead>{} : reads;
}

void emit_gather(const Plan& plan, const std::vector<ShiftedRead>& reads, uint32_t gradient, Builder& b) {
  Gather(plan, gradient, b).run(reads);
}

}  // namespace lockstep::gradients
