#include "ir/uniformity.hpp"

namespace lockstep::ir {

namespace {

constexpr Form kUniformForm{Form::uniform, true, false, 0};
constexpr Form kVaryingForm{Form::varying, false, false, 0};

Form linear(int64_t stride, bool exact, bool clamped) {
  if (stride == 0 && !clamped) return {Form::uniform, exact, false, 0};
  return {Form::linear, exact, clamped, stride};
}

int64_t signed_value(const Instruction& constant) {
  switch (constant.type) {
    case Type::i32: return int32_t(constant.imm);
    case Type::u32: return int64_t(uint32_t(constant.imm));
    default: return int64_t(constant.imm);
  }
}

Form join(const Form& a, const Form& b) {
  if (a.kind == Form::unset) return b;
  if (b.kind == Form::unset) return a;
  if (a.kind != b.kind || a.stride != b.stride) return kVaryingForm;
  return {a.kind, a.exact && b.exact, a.clamped || b.clamped, a.stride};
}

}  // namespace

struct Uniformity::Flow {
  uint32_t level = 0;    // divergent structures around this place; lanes behind a divergent jump count as one
  bool partial = false;  // some lanes of the scope may be absent
  Id loop = kNone;       // innermost
  uint32_t loop_level = 0;  // level at the start of its body
};

Uniformity::Uniformity(const Function& function, Scope scope)
    : f_(function),
      scope_(scope),
      forms_(function.instructions.size()),
      locals_(function.locals.size()),
      level_(function.instructions.size(), 0),
      divergent_(function.instructions.size(), false),
      partial_(function.instructions.size(), false),
      loses_lanes_(function.instructions.size(), false) {
  do pass();
  while (changed_);
}

void Uniformity::pass() {
  changed_ = false;
  divergent_return_ = false;
  block(0, {});
}

void Uniformity::merge(Id id, const Form& form) {
  const Form joined = join(forms_[id], form);
  if (joined == forms_[id]) return;
  forms_[id] = joined;
  changed_ = true;
}

/// Gives whether a divergent break_ or continue_ took lanes away until the end of the innermost loop's body.
bool Uniformity::block(uint32_t number, const Flow& flow) {
  const auto set_flag = [&](std::vector<bool>& flags, Id id) {
    if (flags[id]) return;
    flags[id] = true;
    changed_ = true;
  };
  bool left = false;
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    const uint32_t level = flow.level + left;
    const bool partial = flow.partial || left || divergent_return_;
    partial_[id] = partial;
    switch (i.op) {
      case Op::variable:
        level_[id] = level;
        merge(id, forms_[i.args[0]]);
        break;
      case Op::set: merge(i.args[0], level > level_[i.args[0]] ? kVaryingForm : forms_[i.args[1]]); break;
      case Op::local_store: {
        const bool same = level == 0 && forms_[i.args[0]].kind <= Form::uniform;
        const Form joined = join(locals_[i.imm], same ? forms_[i.args[1]] : kVaryingForm);
        changed_ |= !(joined == locals_[i.imm]);
        locals_[i.imm] = joined;
        break;
      }
      case Op::if_: {
        if (forms_[i.args[0]].kind > Form::uniform) set_flag(divergent_, id);
        Flow inner = flow;
        inner.level = level + divergent_[id];
        inner.partial = partial || divergent_[id];
        for (uint32_t b : i.blocks) left |= block(b, inner);
        break;
      }
      case Op::for_:
      case Op::loop: {
        if (i.op == Op::for_) {
          if (forms_[i.args[0]].kind > Form::uniform || forms_[i.args[1]].kind > Form::uniform)
            set_flag(divergent_, id);
          merge(f_.blocks[i.blocks[0]][0], forms_[i.args[0]]);
        }
        Flow inner;
        inner.level = inner.loop_level = level + divergent_[id];
        inner.partial = partial || divergent_[id] || loses_lanes_[id];
        inner.loop = id;
        const bool before = divergent_return_;
        block(i.blocks[0], inner);
        // Lanes that returned in one pass are absent from the whole of the next.
        if (divergent_return_ && !before) set_flag(loses_lanes_, id);
        break;
      }
      case Op::break_:
      case Op::continue_:
        if (level == flow.loop_level) break;  // all lanes of this pass go
        if (i.op == Op::break_) set_flag(divergent_, flow.loop);
        left = true;
        break;
      case Op::return_: divergent_return_ |= partial; break;
      case Op::loop_index: break;  // merged by its loop
      default:
        if (i.type != Type::none)
          if (const Form form = evaluate(id); form.kind != Form::unset) merge(id, form);
    }
  }
  return left;
}

Form Uniformity::evaluate(Id id) const {
  const Instruction& i = f_[id];
  if (i.flags & kUniform) return kUniformForm;
  const auto arg = [&](int k) -> const Form& { return forms_[i.args[k]]; };
  switch (i.op) {
    case Op::constant:
    case Op::extent:
    case Op::param:
    case Op::shape:
    case Op::stride:
    case Op::group_reduce: return kUniformForm;
    case Op::coord:
    case Op::local_id:
    case Op::lane: return position(i);
    case Op::get: return arg(0);
    case Op::atomic: return kVaryingForm;
    case Op::load:
    case Op::shared_load:
      return arg(0).kind == Form::unset ? Form{} : arg(0).is_uniform() ? kUniformForm : kVaryingForm;
    case Op::local_load:
      if (arg(0).kind > Form::uniform) return kVaryingForm;
      return locals_[i.imm].kind == Form::unset ? kUniformForm : locals_[i.imm];
    default: break;
  }
  bool all_uniform = true;
  for (int k = 0, n = i.arg_count(); k < n; ++k) {
    if (arg(k).kind == Form::unset) return {};
    all_uniform &= arg(k).is_uniform();
  }
  return all_uniform ? kUniformForm : arithmetic(i);
}

Form Uniformity::position(const Instruction& i) const {
  const Form along_x = linear(1, true, false);
  if (f_.domain == Domain::points) {
    if (scope_ == Scope::group) return kVaryingForm;
    return i.op == Op::coord && i.imm > 0 ? kUniformForm : along_x;
  }
  if (i.op == Op::coord) return kUniformForm;
  if (i.op == Op::lane)
    return f_.group_lanes() == 1 ? kUniformForm : scope_ == Scope::row ? along_x : kVaryingForm;
  if (f_.group[i.imm] == 1) return kUniformForm;
  if (scope_ == Scope::group) return kVaryingForm;
  return i.imm > 0 ? kUniformForm : along_x;
}

/// Integer arithmetic with at least one operand that is not uniform.
Form Uniformity::arithmetic(const Instruction& i) const {
  if (!is_integer(i.type)) return kVaryingForm;
  const auto arg = [&](int k) -> const Form& { return forms_[i.args[k]]; };
  for (int k = 0, n = i.arg_count(); k < n; ++k)
    if (arg(k).kind == Form::varying) return kVaryingForm;
  const Form &a = arg(0), &b = arg(i.arg_count() > 1 ? 1 : 0);
  const bool no_wrap = (i.flags & kNoWrap) != 0, exact = no_wrap && a.exact && b.exact,
             clamped = a.clamped || b.clamped;
  const auto constant = [&](int k) { return f_[i.args[k]].op == Op::constant; };
  switch (i.op) {
    case Op::iadd: return linear(a.stride + b.stride, exact, clamped);
    case Op::isub: return linear(a.stride - b.stride, exact, clamped);
    case Op::ineg: return linear(-a.stride, false, clamped);
    case Op::imul: {
      if (!constant(0) && !constant(1)) return kVaryingForm;
      const int64_t factor = signed_value(f_[i.args[constant(0) ? 0 : 1]]),
                    stride = constant(0) ? b.stride : a.stride;
      int64_t product;
      if (__builtin_mul_overflow(factor, stride, &product)) return kVaryingForm;
      return linear(product, exact, clamped);
    }
    case Op::shl: {
      if (!constant(1)) return kVaryingForm;
      const int64_t shift = signed_value(f_[i.args[1]]);
      int64_t product;
      if (shift < 0 || shift > 30 || __builtin_mul_overflow(a.stride, int64_t(1) << shift, &product))
        return kVaryingForm;
      return linear(product, exact, clamped);
    }
    case Op::select: {
      if (!a.is_uniform()) return kVaryingForm;
      return join(arg(1), arg(2));
    }
    case Op::clamp_index: return b.is_uniform() ? Form{Form::linear, a.exact, true, a.stride} : kVaryingForm;
    case Op::bitcast: return linear(a.stride, false, clamped);
    case Op::convert: {
      const Type from = f_[i.args[0]].type;
      if (!is_integer(from)) return kVaryingForm;
      if (is_wide(i.type) && !is_wide(from)) return a.exact && is_signed(from) ? a : kVaryingForm;
      return linear(a.stride, false, clamped);
    }
    default: return kVaryingForm;
  }
}

}  // namespace lockstep::ir
