#include "compile/native/peeling.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

constexpr size_t kMaxBounds = 48;
constexpr int64_t kNear = 64;  // a constant bound this close to 0 is taken for the row's beginning

int64_t signed_constant(const Instruction& i) {
  return is_wide(i.type) ? int64_t(i.imm) : int64_t(int32_t(i.imm));
}

void add(Affine& to, const Affine& from, int sign) {
  for (const Affine::Term& t : from.terms) to.terms.push_back({t.id, sign * t.sign});
  to.constant += sign * from.constant;
}

Affine fixed(const ir::Function& f, Id id) {
  if (f[id].op == Op::constant) return {{}, signed_constant(f[id])};
  return {{{id, 1}}, 0};
}

bool mentions_extent(const ir::Function& f, Id id) {
  const Instruction& i = f[id];
  if (i.op == Op::shape || i.op == Op::extent) return true;
  for (int k = 0; k < i.arg_count(); ++k)
    if (mentions_extent(f, i.args[k])) return true;
  return false;
}

class PeelingFinder {
 public:
  explicit PeelingFinder(const ir::Function& f) : f_(f) {
    if (f.domain == ir::Domain::points)
      for (const ir::Block& block : f.blocks)
        for (Id id : block) visit(id);
  }
  Peeling result;

 private:
  void visit(Id id) {
    if (result.bounds.size() + 4 > kMaxBounds) return;
    const Instruction& i = f_[id];
    if (i.op == Op::clamp_index && is_signed(i.type)) return inside(id, i.args[0], i.args[1]);
    if ((i.op == Op::imin || i.op == Op::imax) && is_signed(i.type)) return one_sided(id);
    if (i.op != Op::ilt && i.op != Op::ile && i.op != Op::ieq && i.op != Op::ine) return;
    if (f_[i.args[0]].type == Type::u32) {
      const Instruction &c = f_[i.args[0]], &n = f_[i.args[1]];
      if (i.op == Op::ilt && c.op == Op::bitcast && n.op == Op::bitcast) inside(id, c.args[0], n.args[0]);
      return;
    }
    if (!is_signed(f_[i.args[0]].type)) return;
    for (int k = 0; k < 2; ++k)
      if (const auto x = along(i.args[k]); x && fixed_for_launch(f_, i.args[1 - k]))
        return compare(id, *x, i.args[1 - k], k == 0);
  }

  std::optional<Affine> along(Id id) const {
    return along_x(f_, id, result.assumptions, [&](Id other) { return fixed_for_launch(f_, other); });
  }

  /// 0 <= coordinate < size.
  void inside(Id id, Id coordinate, Id size) {
    const auto x = along(coordinate);
    if (!x || !fixed_for_launch(f_, size)) return;
    at_least(*x, {});
    at_most(*x, fixed(f_, size), -1);
    result.assumptions.settled[id] = true;
  }

  /// min(x + …, end) and max(x + …, start) give their row position.
  void one_sided(Id id) {
    const Instruction& i = f_[id];
    for (int k = 0; k < 2; ++k) {
      const auto x = along(i.args[k]);
      const Id limit = i.args[1 - k];
      if (!x || !fixed_for_launch(f_, limit)) continue;
      if (i.op == Op::imax ? !near_start(limit) : !mentions_extent(f_, limit)) return;
      within_i32(*x);
      if (i.op == Op::imax)
        at_least(*x, fixed(f_, limit));
      else
        at_most(*x, fixed(f_, limit), 0);
      result.assumptions.settled[id] = k == 0;
      return;
    }
  }

  bool near_start(Id bound) const {
    return f_[bound].op == Op::constant && std::abs(signed_constant(f_[bound])) <= kNear;
  }
  /// The position does not wrap.
  void within_i32(const Affine& x) {
    at_least(x, {{}, INT32_MIN});
    at_most(x, {{}, INT32_MAX}, 0);
  }

  void compare(Id id, const Affine& x, Id bound, bool x_left) {
    const Op op = f_[id].op;
    const bool start = near_start(bound);
    if (!start && !mentions_extent(f_, bound)) return;
    const Affine b = fixed(f_, bound);
    within_i32(x);
    bool outcome;
    if (op == Op::ieq || op == Op::ine) {
      outcome = op == Op::ine;
      if (start)
        at_least(x, b, 1);
      else
        at_most(x, b, -1);
    } else {
      const bool strict = op == Op::ilt;
      // Inner points lie above a bound at the start and below one at the end.
      if (start)
        at_least(x, b, x_left ? !strict : strict);
      else
        at_most(x, b, x_left ? -int(strict) : -int(!strict));
      outcome = x_left != start;
    }
    result.assumptions.settled[id] = outcome;
  }

  void at_least(const Affine& x, const Affine& b, int64_t more = 0) { bound(true, x, b, more); }
  void at_most(const Affine& x, const Affine& b, int64_t more) { bound(false, x, b, more); }
  void bound(bool low, Affine x, const Affine& b, int64_t more) {
    add(x, b, -1);
    x.constant -= more;
    result.bounds.push_back({low, std::move(x)});
  }

  const ir::Function& f_;
};

}  // namespace

std::optional<Affine> along_x(const ir::Function& f, Id id, const Assumptions& known,
                              const std::function<bool(Id)>& is_fixed) {
  const Instruction& i = f[id];
  switch (i.op) {
    case Op::coord: return i.imm == 0 ? std::optional(Affine{}) : std::nullopt;
    case Op::convert:
      return is_signed(i.type) && f[i.args[0]].type == Type::i32 ? along_x(f, i.args[0], known, is_fixed)
                                                                 : std::nullopt;
    case Op::iadd:
    case Op::isub: {
      if (!is_signed(i.type)) return std::nullopt;
      for (int k = 0; k < (i.op == Op::iadd ? 2 : 1); ++k) {
        auto a = along_x(f, i.args[k], known, is_fixed);
        if (!a || !is_fixed(i.args[1 - k])) continue;
        add(*a, fixed(f, i.args[1 - k]), i.op == Op::iadd ? 1 : -1);
        return a;
      }
      return std::nullopt;
    }
    case Op::select: {
      const auto settled = known.settled.find(i.args[0]);
      return settled == known.settled.end() ? std::nullopt
                                            : along_x(f, i.args[settled->second ? 1 : 2], known, is_fixed);
    }
    default: {
      const int operand = known.operand(f, id);
      return operand < 0 ? std::nullopt : along_x(f, i.args[operand], known, is_fixed);
    }
  }
}

bool fixed_for_launch(const ir::Function& f, Id id) {
  const Instruction& i = f[id];
  if (!is_integer(i.type)) return false;
  switch (i.op) {
    case Op::constant:
    case Op::param:
    case Op::shape:
    case Op::stride:
    case Op::extent: return true;
    case Op::coord:
    case Op::local_id:
    case Op::lane:
    case Op::extract: return false;
    default: break;
  }
  if (!ir::is_pure(i.op) || ir::is_math(i.op)) return false;
  for (int k = 0; k < i.arg_count(); ++k)
    if (!fixed_for_launch(f, i.args[k])) return false;
  return true;
}

Peeling find_peeling(const ir::Function& function) { return PeelingFinder(function).result; }

}  // namespace lockstep::compile::simd
