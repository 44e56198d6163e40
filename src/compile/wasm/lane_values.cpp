// Values: scalars for what the lanes share, vectors for the rest.
#include "compile/wasm/lane_code.hpp"
#include "compile/wasm/lower_op.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::wasm {

using ir::Id;
using ir::Instruction;
using ir::Op;

LaneCode::LaneCode(Unit& unit, const Divergence& divergence, const Assumptions* assumptions)
    : u_(unit),
      b_(unit.b()),
      body_(unit.body()),
      f_(unit.f()),
      divergence_(divergence),
      assumptions_(assumptions),
      slots_(unit.f().instructions.size()) {
  find_releases();
}

Slot LaneCode::import(Id id) {
  throw InternalError("a value used before its definition", f_.name, ir::print(f_, id));
}

Slot& LaneCode::slot(Id id) {
  if (!slots_[id][0]) slots_[id] = import(id);
  return slots_[id];
}

Value LaneCode::first_active() {
  if (!mask_ || mask_.constant) return Builder::i32(0);
  b_.push(b_.bitmask(mask_));
  body_.op(kCtzI32);
  return b_.pop(Type::i32);
}

Value LaneCode::scalar(Id id) {
  const Value v = slot(id)[0];
  // A value that its author declares uniform may have been computed by lane.
  return v.vector ? b_.lane(v, first_active()) : v;
}

Value LaneCode::vector(Id id, int component) {
  const Value v = slot(id)[size_t(component)];
  if (v.vector) return v;
  return spread(id, v);
}

Value LaneCode::spread(Id id, const Value& v) {
  const Form& form = divergence_[id];
  return form.kind == Form::linear ? b_.ramp(v, form.stride) : b_.splat(v);
}

Slot LaneCode::position(Id id) {
  const Instruction& i = f_[id];
  if (i.op == Op::coord) return {coord[i.imm]};
  const bool vector = divergence_[id].is_varying();
  const Value lane = vector ? b_.ramp(first_lane, 1) : first_lane;
  if (i.op == Op::lane) return {lane};
  const auto constant = [&](int64_t v) { return Builder::like(b_.retype(lane, Type::u32), uint64_t(v)); };
  const auto part = [&](Op op, const Value& x, int64_t by) {
    return b_.retype(lower_op(b_, op, b_.retype(x, Type::u32), constant(by)), Type::i32);
  };
  const int64_t x = f_.group[0], y = f_.group[1];
  if (f_.group[i.imm] == 1) return {b_.retype(constant(0), Type::i32)};
  switch (i.imm) {
    case 0: return {f_.group_lanes() == x ? lane : part(Op::irem, lane, x)};
    case 1: return {part(Op::irem, part(Op::idiv, lane, x), y)};
    default: return {part(Op::idiv, lane, x * y)};
  }
}

Value LaneCode::apply(const Instruction& i, const Value& x, const Value& y, const Value& z) {
  switch (i.op) {
    case Op::select: return b_.select(x, y, z);
    case Op::convert: return lower_convert(b_, x, i.type);
    case Op::bitcast: return b_.bitcast(x, i.type);
    case Op::clamp_index: return b_.max(b_.min(x, b_.sub(y, Builder::like(y, 1))), Builder::like(y, 0));
    default: break;
  }
  if (ir::is_math(i.op))
    throw InternalError("an elementary function that no pass expanded", f_.name,
                        "compile::lower before code generation");
  return lower_op(b_, i.op, x, y, z);
}

Slot LaneCode::pure(Id id) {
  const Instruction& i = f_[id];
  switch (i.op) {
    case Op::constant: return {Builder::constant(i.type, i.imm)};
    case Op::param: return {u_.param(i.imm)};
    case Op::shape: return {u_.shape(i.imm)};
    case Op::stride: return {u_.stride(i.imm)};
    case Op::extent: return {u_.extent(i.imm)};
    case Op::coord:
    case Op::local_id:
    case Op::lane: return position(id);
    case Op::extract: return {slot(i.args[0])[i.imm]};
    default: break;
  }
  if (assumptions_) {
    if (const int operand = assumptions_->operand(f_, id); operand >= 0) return slot(i.args[size_t(operand)]);
    if (const auto known = assumptions_->settled.find(id); known != assumptions_->settled.end())
      return {Builder::constant(Type::boolean, known->second)};
  }
  if (i.op == Op::uniform) return slot(i.args[0]);  // by lane where its operand is; scalar() takes one
  const int count = i.arg_count();
  const bool scalars = !divergence_[id].is_varying();
  std::array<Value, 3> x;
  for (int k = 0; k < count; ++k) {
    const Id operand = i.args[size_t(k)];
    const bool one_for_all =
        (i.op == Op::select && k == 0) || ((i.op == Op::shl || i.op == Op::shr) && k == 1);
    x[size_t(k)] =
        scalars || (one_for_all && divergence_.uniform(operand)) ? scalar(operand) : vector(operand);
  }
  return {apply(i, x[0], x[1], x[2])};
}

}  // namespace lockstep::compile::wasm
