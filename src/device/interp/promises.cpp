#include "device/interp/promises.hpp"

#include <algorithm>

#include "device/interp/machine.hpp"

namespace lockstep::interp {

using ir::Id;
using ir::Instruction;
using ir::kNone;
using ir::Op;

namespace {

bool is_index_op(const ir::Function& f, Id id, Op op) {
  return f[id].op == op && (f[id].flags & ir::kNoWrap) != 0;
}
/// A coordinate as the author gave it; conversions from other types than integers are the author's own.
Id narrow(const ir::Function& f, Id id) {
  if (f[id].op != Op::convert) return id;
  const Type from = f[f[id].args[0]].type;
  return from == Type::i32 || from == Type::u32 ? f[id].args[0] : id;
}

/// The coordinate in `coordinate * stride of the axis`, or kNone.
Id scaled_coordinate(const ir::Function& f, Id id, uint64_t buffer, int axis) {
  if (!is_index_op(f, id, Op::imul)) return kNone;
  const Instruction& stride = f[f[id].args[1]];
  if (stride.op != Op::stride || stride.imm != buffer * 8 + uint64_t(axis)) return kNone;
  return narrow(f, f[id].args[0]);
}

/// The coordinates of an element offset in the form that the kernel language writes,
/// ((c0 * stride0) + (c1 * stride1)) + c2, slowest first; empty for another form.
std::vector<Id> coordinates(const ir::Function& f, uint64_t buffer, Id offset) {
  const int rank = f.buffers[buffer].rank;
  std::vector<Id> found(static_cast<size_t>(rank));
  for (int axis = rank - 1; axis > 0; --axis) {
    if (!is_index_op(f, offset, Op::iadd)) return {};
    const Id term = f[offset].args[1];
    found[size_t(axis)] = axis == rank - 1 ? narrow(f, term) : scaled_coordinate(f, term, buffer, axis);
    if (found[size_t(axis)] == kNone) return {};
    offset = f[offset].args[0];
  }
  found[0] = scaled_coordinate(f, offset, buffer, 0);
  return found[0] == kNone ? std::vector<Id>() : found;
}

/// Whether a coordinate lies inside its axis by what it is.
bool certain(const ir::Function& f, Id coordinate, uint64_t buffer, int axis) {
  const Instruction& c = f[coordinate];
  const ir::BufferParam& param = f.buffers[buffer];
  if (c.op == Op::coord) return param.by_point && c.imm == uint64_t(param.rank - 1 - axis);
  if (c.op != Op::clamp_index) return false;
  const Instruction& size = f[narrow(f, c.args[1])];
  return size.op == Op::shape && size.imm == buffer * 8 + uint64_t(axis);
}

}  // namespace

std::vector<AxisCheck> axis_checks(const Program& program, const Instruction& access) {
  const ir::Function& f = program.function;
  const bool copy = access.op == Op::async_copy;
  const uint64_t buffer = copy ? uint32_t(access.imm) : access.imm;
  const int rank = f.buffers[buffer].rank;
  if (rank < 2) return {};  // the element offset itself is checked
  const std::vector<Id> found = coordinates(f, buffer, access.args[copy ? 1 : 0]);
  std::vector<AxisCheck> checks;
  for (int axis = 0; axis < int(found.size()); ++axis) {
    const Id c = found[size_t(axis)];
    const int lanes = axis == rank - 1 ? access.lanes : 1;
    if (lanes > 1 || !certain(f, c, buffer, axis))
      checks.push_back({uint32_t(buffer), axis, program.slot[c], lanes, is_wide(f[c].type)});
  }
  return checks;
}

void check_axes(Machine& m, const Code& c) {
  for (uint32_t k = c.a; k < c.a + c.b; ++k) {
    const AxisCheck& check = m.program->axis_checks[k];
    const int64_t at = check.wide ? int64_t(m.r[check.slot]) : int64_t(int32_t(m.r[check.slot]));
    const int64_t size = m.buffers[check.buffer].shape[size_t(check.axis)];
    if (at >= 0 && at + check.lanes <= size) continue;
    if (size == 0) continue;  // checked by element number: an empty buffer has none, or is a row of zeros
    m.report(FindingKind::out_of_bounds, c.source);
    std::fill_n(m.r + c.dst, c.more, uint64_t(0));
    ++m.pc;  // past the access
    return;
  }
}

void check_uniform(Machine& m, const Code& c) {
  std::vector<uint64_t> place{c.source};
  for (uint32_t k = c.b; k < c.b + c.c; ++k) place.push_back(m.r[m.program->turn_slots[k]]);
  const auto [first, fresh] = m.agreed.try_emplace(std::move(place), m.r[c.a]);
  if (!fresh && first->second != m.r[c.a]) m.report(FindingKind::not_uniform, c.source);
}

}  // namespace lockstep::interp
