// Short names for the integer instructions that the sweep's index arithmetic is made of.
#pragma once

#include "lockstep/kernel/control.hpp"

namespace lockstep::pde::sweep_ops {

inline ir::Builder& builder() { return lockstep::detail::builder(); }
inline ir::Id constant(int v) { return builder().i32(v); }
inline ir::Id plus(ir::Id a, ir::Id b) { return builder().op(ir::Op::iadd, {a, b}, ir::kNoWrap); }
inline ir::Id plus(ir::Id a, int b) { return b == 0 ? a : plus(a, constant(b)); }
inline ir::Id minus(ir::Id a, ir::Id b) { return builder().op(ir::Op::isub, {a, b}, ir::kNoWrap); }
inline ir::Id times(ir::Id a, ir::Id b) { return builder().op(ir::Op::imul, {a, b}, ir::kNoWrap); }
inline ir::Id times(ir::Id a, int b) { return times(a, constant(b)); }
inline ir::Id remainder(ir::Id a, ir::Id b) { return builder().op(ir::Op::irem, {a, b}); }
inline ir::Id quotient(ir::Id a, ir::Id b) { return builder().op(ir::Op::idiv, {a, b}); }
inline ir::Id less(ir::Id a, ir::Id b) { return builder().op(ir::Op::ilt, {a, b}); }
inline ir::Id at_most(ir::Id a, ir::Id b) { return builder().op(ir::Op::ile, {a, b}); }
inline ir::Id equal(ir::Id a, ir::Id b) { return builder().op(ir::Op::ieq, {a, b}); }
inline ir::Id both(ir::Id a, ir::Id b) { return builder().op(ir::Op::band, {a, b}); }
inline ir::Id either(ir::Id a, ir::Id b) { return builder().op(ir::Op::bor, {a, b}); }

}  // namespace lockstep::pde::sweep_ops
