#include "compile/llvm/shapes.hpp"

namespace lockstep::compile::simd {

using ir::Id;
using ir::Instruction;
using ir::kNone;
using ir::Op;

namespace {

constexpr Shape kUniform{Shape::uniform, true, 0};
constexpr Shape kVarying{Shape::varying, false, 0};

Shape linear(int64_t stride, bool exact) {
  return stride == 0 ? Shape{Shape::uniform, exact, 0} : Shape{Shape::linear, exact, stride};
}

Shape join(const Shape& a, const Shape& b) {
  if (a.kind == Shape::unset) return b;
  if (b.kind == Shape::unset) return a;
  if (a.is_varying() || b.is_varying() || a.stride != b.stride) return kVarying;
  return {a.kind, a.exact && b.exact, a.stride};
}

int64_t signed_constant(const Instruction& i) {
  return is_wide(i.type)       ? int64_t(i.imm)
         : i.type == Type::u32 ? int64_t(uint32_t(i.imm))
                               : int64_t(int32_t(i.imm));
}

bool is_loop(Op op) { return op == Op::for_ || op == Op::loop; }

}  // namespace

Shapes::Shapes(const ir::Function& function, LaneScope scope, const Assumptions* assumptions)
    : f_(function),
      scope_(scope),
      assumptions_(assumptions),
      shapes_(function.instructions.size()),
      parting_(function.instructions.size(), false) {
  std::vector<Id> path;
  find_uses(0, path);
  do {
    changed_ = false;
    block(0);
  } while (changed_);
}

void Shapes::find_uses(uint32_t number, std::vector<Id>& path) {
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
      if (b != ir::kNoBlock) find_uses(b, path);
    path.pop_back();
  }
}

void Shapes::merge(Id id, const Shape& shape) {
  const Shape joined = join(shapes_[id], shape);
  if (joined == shapes_[id]) return;
  shapes_[id] = joined;
  changed_ = true;
}

void Shapes::assign(Id id) {
  const Id variable = f_[id].args[0], value = f_[id].args[1];
  bool loop_above = false;
  for (size_t p = depth_[variable]; p < path_.size(); ++p) {
    const Instruction& structure = f_[path_[p]];
    if (structure.op == Op::if_) {
      if (shapes_[structure.args[0]].kind > Shape::uniform) return merge(variable, kVarying);
      continue;
    }
    const Loop loop = loop_flags(path_[p]);
    if (loop.continues) return merge(variable, kVarying);
    // Lanes that left the loop keep the old value; nobody sees that if all reads stand in the same run of the
    // loop.
    if (loop.leaves && (loop_above || loop_of_reads_[variable] != path_[p])) return merge(variable, kVarying);
    loop_above = true;
  }
  merge(variable, shapes_[value]);
}

void Shapes::jump(Id id) {
  const Op op = f_[id].op;
  bool parts = false;
  Id loop = kNone;
  for (size_t p = path_.size(); p-- > 0;) {
    const Instruction& structure = f_[path_[p]];
    if (structure.op == Op::if_) {
      parts |= shapes_[structure.args[0]].kind > Shape::uniform;
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
  if (op == Op::continue_) raise(loops_[loop].continues);
  if (op == Op::return_) {
    raise(parting_return_);
    for (Id structure : path_)
      if (is_loop(f_[structure].op)) raise(loops_[structure].returns);
  }
}

void Shapes::block(uint32_t number) {
  for (Id id : f_.blocks[number]) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::variable: merge(id, shapes_[i.args[0]]); break;
      case Op::set: assign(id); break;
      case Op::break_:
      case Op::continue_:
      case Op::return_: jump(id); break;
      case Op::loop_index: break;
      case Op::if_:
      case Op::loop:
      case Op::for_:
        if (i.op == Op::for_) {
          const Shape &begin = shapes_[i.args[0]], &end = shapes_[i.args[1]];
          if (begin.kind != Shape::unset) merge(f_.blocks[i.blocks[0]][0], {begin.kind, false, begin.stride});
          if (begin.kind > Shape::uniform || end.kind > Shape::uniform) raise(loops_[id].leaves);
        }
        path_.push_back(id);
        for (uint32_t b : i.blocks)
          if (b != ir::kNoBlock) block(b);
        path_.pop_back();
        break;
      default:
        if (i.type == Type::none) break;
        if (const auto shape = evaluate(id)) merge(id, *shape);
    }
  }
}

std::optional<Shape> Shapes::evaluate(Id id) const {
  const Instruction& i = f_[id];
  if (i.flags & ir::kUniform) return kUniform;
  const auto arg = [&](int k) -> const Shape& { return shapes_[i.args[k]]; };
  const bool settled = assumptions_ && assumptions_->settled.contains(id);
  switch (i.op) {
    case Op::constant:
    case Op::param:
    case Op::shape:
    case Op::stride:
    case Op::extent:
    case Op::group_reduce: return kUniform;
    case Op::coord:
    case Op::local_id:
    case Op::lane: return position(i);
    case Op::atomic:
    case Op::local_load: return kVarying;
    case Op::clamp_index:
    case Op::imin:
    case Op::imax:
      if (settled) {
        const Shape& operand = arg(assumptions_->operand(f_, id));
        return operand.kind == Shape::unset ? std::nullopt : std::optional(operand);
      }
      break;
    case Op::load:
    case Op::shared_load:
      if (arg(0).kind == Shape::unset) return std::nullopt;
      return arg(0).is_uniform() ? kUniform : kVarying;
    case Op::get: return arg(0).kind == Shape::unset ? std::nullopt : std::optional(arg(0));
    default: break;
  }
  if (settled) return kUniform;
  bool all_uniform = true;
  for (int k = 0, n = i.arg_count(); k < n; ++k) {
    if (arg(k).kind == Shape::unset) return std::nullopt;
    all_uniform &= arg(k).is_uniform();
  }
  return all_uniform ? kUniform : arithmetic(i);
}

Shape Shapes::position(const Instruction& i) const {
  const Shape along_x = linear(1, true);
  if (f_.domain == ir::Domain::points) return i.op == Op::coord && i.imm > 0 ? kUniform : along_x;
  if (i.op == Op::coord) return kUniform;
  if (i.op == Op::lane)
    return f_.group_lanes() == 1 ? kUniform : scope_ == LaneScope::group ? kVarying : along_x;
  if (f_.group[i.imm] == 1) return kUniform;
  if (scope_ == LaneScope::group) return kVarying;
  if (scope_ == LaneScope::row) return i.imm > 0 ? kUniform : along_x;
  return i.imm == 0 && f_.group[1] * f_.group[2] == 1 ? along_x : kVarying;
}

/// At least one operand is not uniform.
Shape Shapes::arithmetic(const Instruction& i) const {
  if (!is_integer(i.type)) return kVarying;
  const int count = i.arg_count();
  if (i.op == Op::select) {
    return shapes_[i.args[0]].is_uniform() ? join(shapes_[i.args[1]], shapes_[i.args[2]]) : kVarying;
  }
  for (int k = 0; k < count; ++k)
    if (shapes_[i.args[k]].is_varying()) return kVarying;
  const Shape &a = shapes_[i.args[0]], &b = shapes_[i.args[count > 1 ? 1 : 0]];
  const auto constant = [&](int k) -> const Instruction* {
    const Instruction& c = f_[i.args[k]];
    return c.op == Op::constant ? &c : nullptr;
  };
  const bool exact = (i.flags & ir::kNoWrap) != 0 && a.exact && b.exact;
  constexpr int64_t kLargest = int64_t(1) << 30;
  switch (i.op) {
    case Op::iadd: return linear(a.stride + b.stride, exact);
    case Op::isub: return linear(a.stride - b.stride, exact);
    case Op::ineg: return linear(-a.stride, false);
    case Op::imul: {
      const int which = constant(0) ? 0 : 1;
      if (!constant(which)) return kVarying;
      const int64_t factor = signed_constant(*constant(which)), stride = which == 0 ? b.stride : a.stride;
      int64_t product;
      if (__builtin_mul_overflow(factor, stride, &product) || product > kLargest || product < -kLargest)
        return kVarying;
      return linear(product, exact);
    }
    case Op::shl: {
      if (!constant(1)) return kVarying;
      const int64_t shift = signed_constant(*constant(1)) & (is_wide(i.type) ? 63 : 31);
      if (shift > 24 || a.stride > 64 || a.stride < -64) return kVarying;
      return linear(a.stride << shift, false);
    }
    case Op::bitcast: return linear(a.stride, false);
    case Op::convert: {
      const Type from = f_[i.args[0]].type;
      if (!is_integer(from)) return kVarying;
      if (is_wide(i.type) && !is_wide(from)) return a.exact && is_signed(from) ? a : kVarying;
      return linear(a.stride, false);
    }
    default: return kVarying;
  }
}

}  // namespace lockstep::compile::simd
