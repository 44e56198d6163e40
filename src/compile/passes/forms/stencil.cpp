#include "compile/passes/forms/stencil.hpp"

#include <algorithm>

#include "compile/passes/expressions/simplify.hpp"
#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/dead_code.hpp"

namespace lockstep::compile {

using ir::Id;
using ir::Instruction;
using ir::Op;

int64_t signed_constant(const Instruction& i) {
  return is_wide(i.type) ? int64_t(i.imm) : int32_t(uint32_t(i.imm));
}

bool match_coordinate(const ir::Function& f, Id value, int& axis, int64_t& offset) {
  const Instruction& i = f[value];
  if (i.op == Op::coord) {
    axis = int(i.imm);
    offset = 0;
    return true;
  }
  if (i.op != Op::iadd && i.op != Op::isub) return false;
  const Instruction &a = f[i.args[0]], &b = f[i.args[1]];
  if (a.op == Op::coord && b.op == Op::constant) {
    axis = int(a.imm);
    offset = i.op == Op::iadd ? signed_constant(b) : -signed_constant(b);
    return true;
  }
  if (i.op == Op::iadd && a.op == Op::constant && b.op == Op::coord) {
    axis = int(b.imm);
    offset = signed_constant(a);
    return true;
  }
  return false;
}

std::pair<Op, uint64_t> extent_key(const ir::Function& f, Id extent) {
  const Instruction* i = &f[extent];
  if (i->op == Op::convert) i = &f[i->args[0]];
  return {i->op, i->imm};
}
bool is_extent(const ir::Function& f, Id value) {
  const Op kind = extent_key(f, value).first;
  return kind == Op::shape || kind == Op::extent || kind == Op::param;
}

bool match_period(const ir::Function& f, Id value, Period& found) {
  const Instruction& i = f[value];
  if (i.op != Op::select) return false;
  const Id c = i.args[2];
  if (f[c].op != Op::iadd) return false;
  Id coord = f[c].args[0], shift = f[c].args[1];
  if (f[coord].op != Op::coord) std::swap(coord, shift);
  if (f[coord].op != Op::coord || f[shift].op != Op::irem || f[f[shift].args[0]].op != Op::constant)
    return false;
  const Id extent = f[shift].args[1];
  if (!is_extent(f, extent)) return false;
  const Instruction &condition = f[i.args[0]], &carried = f[i.args[1]];
  const auto pair = [](const Instruction& of, Op op, Id a, Id b) {
    return of.op == op && of.args[0] == a && of.args[1] == b;
  };
  const bool low = condition.op == Op::ilt && condition.args[0] == c &&
                   f[condition.args[1]].op == Op::constant && f[condition.args[1]].imm == 0 &&
                   (pair(carried, Op::iadd, c, extent) || pair(carried, Op::iadd, extent, c));
  const bool high = pair(condition, Op::ile, extent, c) && pair(carried, Op::isub, c, extent);
  if (!low && !high) return false;
  found = {int(f[coord].imm), coord, f[shift].args[0], extent, low};
  return true;
}

bool match_within(const ir::Function& f, const Instruction& i, Within& found) {
  if (i.op != Op::ilt || f[i.args[0]].op != Op::bitcast || f[i.args[1]].op != Op::bitcast) return false;
  if (f[i.args[0]].type != Type::u32) return false;
  const Id at = f[i.args[0]].args[0];
  found.extent = f[i.args[1]].args[0];
  return f[at].type == Type::i32 && f[found.extent].type == Type::i32 &&
         match_coordinate(f, at, found.axis, found.offset) && is_extent(f, found.extent);
}

StencilReach stencil_reach(const ir::Function& f) {
  StencilReach all;
  if (f.domain != ir::Domain::points) return all;
  for (const ir::Block& block : f.blocks)
    for (Id id : block) {
      const Instruction& i = f[id];
      Period period;
      int axis = 0;
      int64_t offset = 0;
      Id extent = i.args[1];
      if (match_period(f, id, period)) {
        axis = period.axis;
        offset = signed_constant(f[period.offset]);
        extent = period.extent;
      } else if (i.op != Op::clamp_index) {
        continue;
      } else if (!match_coordinate(f, i.args[0], axis, offset) || !is_extent(f, extent)) {
        all.complete = false;
        continue;
      }
      auto found = std::find_if(all.reaches.begin(), all.reaches.end(), [&](const StencilReach::Reach& r) {
        return r.axis == axis && extent_key(f, r.extent) == extent_key(f, extent);
      });
      if (found == all.reaches.end()) found = all.reaches.insert(all.reaches.end(), {axis, extent, 0, 0});
      found->low = std::min(found->low, offset);
      found->high = std::max(found->high, offset);
    }
  return all;
}

ir::Function inside_form(const ir::Function& f, std::array<bool, 3> axes) {
  ir::Function inner = f;
  const StencilReach reach = stencil_reach(f);
  const auto reached = [&](const Within& within) {
    return std::any_of(reach.reaches.begin(), reach.reaches.end(), [&](const StencilReach::Reach& r) {
      return r.axis == within.axis && extent_key(f, r.extent) == extent_key(f, within.extent) &&
             r.low <= within.offset && within.offset <= r.high;
    });
  };
  Replacement plain(f.instructions.size());
  bool settled = false;
  for (const ir::Block& block : f.blocks)
    for (Id id : block) {
      Period period;
      int axis = 0;
      int64_t offset = 0;
      if (f[id].op == Op::clamp_index && match_coordinate(f, f[id].args[0], axis, offset) &&
          axes[size_t(axis)])
        plain.set(id, f[id].args[0]);
      if (Within within; match_within(f, f[id], within) && axes[size_t(within.axis)] && reached(within)) {
        Instruction& holds = inner[id];
        holds.op = Op::constant;
        holds.args = Instruction::operands({});
        holds.imm = 1;
        settled = true;
      }
      if (!match_period(f, id, period) || !axes[size_t(period.axis)]) continue;
      Instruction& moved = inner[id];
      moved.op = Op::iadd;
      moved.flags = ir::kNoWrap;
      moved.args = Instruction::operands({period.coord, period.offset});
    }
  plain.apply(inner);
  if (settled) simplify(inner);
  dead_code(inner);
  return inner;
}

}  // namespace lockstep::compile
