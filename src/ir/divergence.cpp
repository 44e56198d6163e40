#include "ir/divergence.hpp"

namespace lockstep::ir {

namespace {

constexpr Form kUniformForm{Form::uniform, true, 0};
constexpr Form kVaryingForm{Form::varying, false, 0};

Form linear(int64_t stride, bool exact) {
  return stride == 0 ? Form{Form::uniform, exact, 0} : Form{Form::linear, exact, stride};
}

Form join(const Form& a, const Form& b) {
  if (a.kind == Form::unset) return b;
  if (b.kind == Form::unset) return a;
  if (a.is_varying() || b.is_varying() || a.stride != b.stride) return kVaryingForm;
  return {a.kind, a.exact && b.exact, a.stride};
}

int64_t signed_constant(const Instruction& i) {
  return is_wide(i.type)       ? int64_t(i.imm)
         : i.type == Type::u32 ? int64_t(uint32_t(i.imm))
                               : int64_t(int32_t(i.imm));
}

bool is_loop(Op op) { return op == Op::for_ || op == Op::loop; }

}  // namespace

LaneScope lane_scope(const Function& f, int width) {
  const bool row = f.domain != Domain::groups || f.group[0] % width == 0 || f.group[0] == f.group_lanes();
  return row ? LaneScope::row : LaneScope::linear;
}

Divergence::Divergence(const Function& function, LaneScope scope, const Assumptions* assumptions, int width)
    : f_(function),
      scope_(scope),
      assumptions_(assumptions),
      width_(width),
      forms_(function.instructions.size()),
      locals_(function.locals.size()),
      parting_(function.instructions.size(), false) {
  std::vector<Id> path;
  find_uses(0, path);
  do {
    changed_ = false;
    block(0);
  } while (changed_);
  if (scope_ != LaneScope::group) return;
  partial_.resize(function.instructions.size(), false);
  mark_partial(0, false);
}

/// Gives whether a divergent break_ or continue_ took lanes away until the end of the innermost loop's body.
bool Divergence::mark_partial(uint32_t number, bool partial) {
  bool left = false;
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    const bool here = partial || left || returned_;
    partial_[id] = here;
    if (i.op == Op::if_) {
      for (uint32_t b : i.blocks)
        if (b != kNoBlock) left |= mark_partial(b, here || forms_[i.args[0]].kind > Form::uniform);
    } else if (is_loop(i.op)) {
      // Lanes that returned in one pass are absent from the whole of the next.
      const Loop loop = loop_flags(id);
      mark_partial(i.blocks[0], here || loop.leaves || loop.returns);
    } else if (i.op == Op::return_) {
      returned_ |= here;
    } else if (i.op == Op::break_ || i.op == Op::continue_) {
      left |= parting_[id];
    }
  }
  return left;
}

void Divergence::find_uses(uint32_t number, std::vector<Id>& path) {
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    if (i.op == Op::variable) depth_[id] = path.size();
    if (i.op == Op::get) {
      Id loop = kNone;
      for (size_t p = depth_[i.args[0]]; p < path.size() && loop == kNone; ++p)
        if (is_loop(f_[path[p]].op)) loop = path[p];
      const auto [entry, first] = loop_of_reads_.emplace(i.args[0], loop);
      if (!first && entry->second != loop) entry->second = kNone;
    }
    path.push_back(id);
    for (uint32_t b : i.blocks)
      if (b != kNoBlock) find_uses(b, path);
    path.pop_back();
  }
}

void Divergence::merge(Id id, const Form& form) {
  const Form joined = join(forms_[id], form);
  if (joined == forms_[id]) return;
  forms_[id] = joined;
  changed_ = true;
}

void Divergence::assign(Id id) {
  const Id variable = f_[id].args[0], value = f_[id].args[1];
  bool loop_above = false;
  for (size_t p = depth_[variable]; p < path_.size(); ++p) {
    const Instruction& structure = f_[path_[p]];
    if (structure.op == Op::if_) {
      if (forms_[structure.args[0]].kind > Form::uniform) return merge(variable, kVaryingForm);
      continue;
    }
    const Loop loop = loop_flags(path_[p]);
    if (skipped_[path_[p]]) return merge(variable, kVaryingForm);
    // Lanes that left the loop keep the old value. This has no effect if all reads are in the same run of the
    // loop.
    if (loop.leaves && (loop_above || loop_of_reads_[variable] != path_[p]))
      return merge(variable, kVaryingForm);
    loop_above = true;
  }
  merge(variable, forms_[value]);
}

/// A local array is uniform where all lanes store the same at the same places.
void Divergence::local_store(const Instruction& i) {
  bool same = forms_[i.args[0]].kind <= Form::uniform;
  for (Id structure : path_)
    same &= f_[structure].op == Op::if_ ? forms_[f_[structure].args[0]].kind <= Form::uniform
                                        : !loop_flags(structure).leaves && !loop_flags(structure).continues;
  const Form joined = join(locals_[i.imm], same ? forms_[i.args[1]] : kVaryingForm);
  if (joined == locals_[i.imm]) return;
  locals_[i.imm] = joined;
  changed_ = true;
}

void Divergence::jump(Id id) {
  const Op op = f_[id].op;
  bool parts = false;
  Id loop = kNone;
  for (size_t p = path_.size(); p-- > 0;) {
    const Instruction& structure = f_[path_[p]];
    if (structure.op == Op::if_) {
      parts |= forms_[structure.args[0]].kind > Form::uniform;
      continue;
    }
    if (loop == kNone) loop = path_[p];
    if (op != Op::return_) break;
    parts |= loop_flags(path_[p]).leaves || loop_flags(path_[p]).continues;
  }
  if (op == Op::break_) parts |= loop_flags(loop).continues;
  if (!parts) return;
  if (!parting_[id]) parting_[id] = changed_ = true;
  if (op == Op::break_) raise(loops_[loop].leaves);
  if (op == Op::continue_) {
    raise(loops_[loop].continues);
    skipped_[loop] = true;
  }
  if (op == Op::return_) {
    raise(parting_return_);
    for (Id structure : path_)
      if (is_loop(f_[structure].op)) raise(loops_[structure].returns);
  }
}

void Divergence::block(uint32_t number) {
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::variable: merge(id, forms_[i.args[0]]); break;
      case Op::set: assign(id); break;
      case Op::local_store: local_store(i); break;
      case Op::break_:
      case Op::continue_:
      case Op::return_: jump(id); break;
      case Op::loop_index: break;
      case Op::if_:
      case Op::loop:
      case Op::for_:
        if (i.op == Op::for_) {
          const Form &begin = forms_[i.args[0]], &end = forms_[i.args[1]];
          if (begin.kind != Form::unset) merge(f_.blocks[i.blocks[0]][0], counter_form(i, begin));
          if (begin.kind > Form::uniform || end.kind > Form::uniform) raise(loops_[id].leaves);
        }
        skipped_[id] = false;
        path_.push_back(id);
        for (uint32_t b : i.blocks)
          if (b != kNoBlock) block(b);
        path_.pop_back();
        break;
      default:
        if (i.type == Type::none) break;
        if (const auto form = evaluate(id)) merge(id, *form);
    }
  }
}

/// A counter that may step past the end of its type leaves the line of its lanes there. Upwards, with lanes above the first,
/// loop tests tell these (they are below the first); else each lane counts by itself.
Form Divergence::counter_form(const Instruction& loop, const Form& begin) const {
  const Instruction& step = f_[loop.args[2]];
  const bool up = is_wide(step.type) ? int64_t(step.imm) > 0 : int32_t(step.imm) > 0;
  if (begin.kind == Form::linear && (!up || begin.stride < 0) && may_overstep(f_, loop)) return kVaryingForm;
  return {begin.kind, false, begin.stride};
}

std::optional<Form> Divergence::evaluate(Id id) const {
  const Instruction& i = f_[id];
  const auto arg = [&](int k) -> const Form& { return forms_[i.args[k]]; };
  const bool settled = assumptions_ && assumptions_->settled.contains(id);
  switch (i.op) {
    case Op::param:  // what a function takes may differ by lane
      return f_.domain == Domain::values ? kVaryingForm : kUniformForm;
    case Op::constant:
    case Op::shape:
    case Op::stride:
    case Op::extent:
    case Op::uniform:
    case Op::group_reduce: return kUniformForm;
    case Op::coord:
    case Op::local_id:
    case Op::lane: return position(i);
    case Op::atomic: return kVaryingForm;
    case Op::local_load:
      // Vectors of lanes keep their local arrays by lane.
      if (scope_ != LaneScope::group || arg(0).kind > Form::uniform) return kVaryingForm;
      return locals_[i.imm].kind == Form::unset ? kUniformForm : locals_[i.imm];
    case Op::clamp_index:
    case Op::imin:
    case Op::imax:
      if (settled) {
        const Form& operand = arg(assumptions_->operand(f_, id));
        return operand.kind == Form::unset ? std::nullopt : std::optional(operand);
      }
      break;
    case Op::load:
    case Op::shared_load:
      if (arg(0).kind == Form::unset) return std::nullopt;
      return arg(0).is_uniform() ? kUniformForm : kVaryingForm;
    case Op::get: return arg(0).kind == Form::unset ? std::nullopt : std::optional(arg(0));
    default: break;
  }
  if (settled) return kUniformForm;
  bool all_uniform = true;
  for (int k = 0, n = i.arg_count(); k < n; ++k) {
    if (arg(k).kind == Form::unset) return std::nullopt;
    all_uniform &= arg(k).is_uniform();
  }
  return all_uniform ? kUniformForm : arithmetic(id);
}

Form Divergence::position(const Instruction& i) const {
  const Form along_x = linear(1, true);
  if (f_.domain == Domain::points && scope_ == LaneScope::group) return kVaryingForm;
  if (f_.domain == Domain::points) return i.op == Op::coord && i.imm > 0 ? kUniformForm : along_x;
  if (i.op == Op::coord) return kUniformForm;
  if (i.op == Op::lane)
    return f_.group_lanes() == 1 ? kUniformForm : scope_ == LaneScope::group ? kVaryingForm : along_x;
  if (f_.group[i.imm] == 1) return kUniformForm;
  if (scope_ == LaneScope::group) return kVaryingForm;
  if (scope_ == LaneScope::row) return i.imm > 0 ? kUniformForm : along_x;
  return i.imm == 0 && f_.group[1] * f_.group[2] == 1 ? along_x : kVaryingForm;
}

/// A power of two that divides the value of a vector's first lane.
int64_t Divergence::alignment(Id id, int depth) const {
  constexpr int64_t kMost = 1 << 20;
  const Instruction& i = f_[id];
  if (depth > 8 || !is_integer(i.type)) return 1;
  const auto of = [&](int k) { return alignment(i.args[k], depth + 1); };
  switch (i.op) {
    case Op::constant: {
      const int64_t value = signed_constant(i);
      return value == 0 ? kMost : std::min(kMost, value & -value);
    }
    case Op::lane: return width_;
    case Op::local_id: return i.imm == 0 && scope_ == LaneScope::row ? width_ : 1;
    case Op::iadd:
    case Op::isub: return std::min(of(0), of(1));
    case Op::imul: return std::min(kMost, of(0) * of(1));
    default: return 1;
  }
}

/// The largest value that a value of 0 or more takes; nothing where it may be negative or is not known.
std::optional<int64_t> Divergence::largest(Id id, int depth) const {
  const Instruction& i = f_[id];
  if (depth > 8 || !is_integer(i.type)) return {};
  const auto within = [](int64_t value) { return value <= INT32_MAX ? std::optional(value) : std::nullopt; };
  switch (i.op) {
    case Op::constant: return signed_constant(i) < 0 ? std::nullopt : within(signed_constant(i));
    case Op::lane: return f_.group_lanes() - 1;
    case Op::local_id: return f_.group[i.imm] - 1;
    case Op::band: {
      const Instruction& mask = f_[i.args[1]];
      return mask.op == Op::constant && signed_constant(mask) >= 0 ? within(signed_constant(mask))
                                                                   : std::nullopt;
    }
    case Op::irem: {
      const Instruction& by = f_[i.args[1]];
      const auto most = largest(i.args[0], depth + 1);
      if (!most || by.op != Op::constant || signed_constant(by) <= 0) return {};
      return std::min(*most, signed_constant(by) - 1);
    }
    case Op::isub: {  // x - x % n
      const Instruction& part = f_[i.args[1]];
      const bool of_it = (part.op == Op::irem || part.op == Op::band) && part.args[0] == i.args[0];
      return of_it && largest(i.args[1], depth + 1) ? largest(i.args[0], depth + 1) : std::nullopt;
    }
    case Op::iadd:
    case Op::imul: {
      const auto a = largest(i.args[0], depth + 1), b = largest(i.args[1], depth + 1);
      return a && b ? within(i.op == Op::iadd ? *a + *b : *a * *b) : std::nullopt;
    }
    default: return {};
  }
}

/// A vector that begins at a multiple of a tile's side stays in one row of the tile: of the lane's number by a
/// constant, the quotient is one for all and the rest runs along.
std::optional<Form> Divergence::part(const Instruction& i) const {
  const Form& a = forms_[i.args[0]];
  const Instruction& constant = f_[i.args[1]];
  if (width_ == 0 || a.kind != Form::linear || a.stride < 0 || constant.op != Op::constant) return {};
  const int64_t number = signed_constant(constant);
  const bool mask = i.op == Op::band, shift = i.op == Op::shr;
  if (shift ? number < 0 || number > 20 : number < 0 || number >= INT32_MAX) return {};
  const int64_t by = shift ? int64_t(1) << number : mask ? number + 1 : number;
  if (mask && (by & number) != 0) return {};
  if (by == 0 || a.stride * (width_ - 1) >= std::min(alignment(i.args[0]), by & -by)) return {};
  if (!mask && !shift && !largest(i.args[0])) return {};
  return mask || i.op == Op::irem ? linear(a.stride, true) : kUniformForm;
}

/// At least one operand is not uniform.
Form Divergence::arithmetic(Id id) const {
  const Instruction& i = f_[id];
  if (!is_integer(i.type)) return kVaryingForm;
  const int count = i.arg_count();
  if (i.op == Op::select) {
    return forms_[i.args[0]].is_uniform() ? join(forms_[i.args[1]], forms_[i.args[2]]) : kVaryingForm;
  }
  for (int k = 0; k < count; ++k)
    if (forms_[i.args[k]].is_varying()) return kVaryingForm;
  const Form &a = forms_[i.args[0]], &b = forms_[i.args[count > 1 ? 1 : 0]];
  const auto constant = [&](int k) -> const Instruction* {
    const Instruction& c = f_[i.args[k]];
    return c.op == Op::constant ? &c : nullptr;
  };
  const bool exact = a.exact && b.exact && ((i.flags & kNoWrap) != 0 || largest(id));
  constexpr int64_t kLargest = int64_t(1) << 30;
  switch (i.op) {
    case Op::iadd: return linear(a.stride + b.stride, exact);
    case Op::isub: return linear(a.stride - b.stride, exact);
    case Op::ineg: return linear(-a.stride, false);
    case Op::imul: {
      const int which = constant(0) ? 0 : 1;
      if (!constant(which)) return kVaryingForm;
      const int64_t factor = signed_constant(*constant(which)), stride = which == 0 ? b.stride : a.stride;
      int64_t product;
      if (__builtin_mul_overflow(factor, stride, &product) || product > kLargest || product < -kLargest)
        return kVaryingForm;
      return linear(product, exact);
    }
    case Op::shl: {
      if (!constant(1)) return kVaryingForm;
      const int64_t shift = signed_constant(*constant(1)) & (is_wide(i.type) ? 63 : 31);
      if (shift > 24 || a.stride > 64 || a.stride < -64) return kVaryingForm;
      return linear(a.stride << shift, false);
    }
    case Op::bitcast: return linear(a.stride, false);
    case Op::convert: {
      const Type from = f_[i.args[0]].type;
      if (!is_integer(from)) return kVaryingForm;
      if (is_wide(i.type) && !is_wide(from)) return a.exact && is_signed(from) ? a : kVaryingForm;
      return linear(a.stride, false);
    }
    case Op::idiv:
    case Op::irem:
    case Op::band:
    case Op::shr: return part(i).value_or(kVaryingForm);
    default: return kVaryingForm;
  }
}

bool Divergence::loses(uint32_t block, bool in_loop) const {
  if (block == kNoBlock) return false;
  for (Id id : f_.blocks[block]) {
    const Instruction& i = f_[id];
    const bool leaves_loop = i.op == Op::break_ || i.op == Op::continue_;
    if ((i.op == Op::return_ || (leaves_loop && !in_loop)) && parting(id)) return true;
    const bool inner = in_loop || i.op == Op::for_ || i.op == Op::loop;
    if (loses(i.blocks[0], inner) || loses(i.blocks[1], inner)) return true;
  }
  return false;
}

bool Divergence::may_lose_lanes(Id id) const {
  const auto [entry, first] = may_lose_.emplace(id, false);
  if (first) {
    const bool is_loop = f_[id].op != Op::if_;
    entry->second = loses(f_[id].blocks[0], is_loop) || loses(f_[id].blocks[1], is_loop);
  }
  return entry->second;
}

}  // namespace lockstep::ir
