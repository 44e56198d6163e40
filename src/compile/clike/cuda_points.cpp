#include "compile/clike/cuda_points.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "compile/passes/dead_code.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

constexpr int kMaxInstructionsRepeated = 120;

char letter(int axis) { return "xyz"[axis]; }

/// "x, y" with one coordinate replaced.
std::string point_arguments(const ir::Function& f, int axis, const std::string& replaced) {
  std::string out;
  for (int a = 0; a < f.rank; ++a)
    out += fmt::format(", {}", a == axis ? replaced : std::string(1, letter(a)));
  return out;
}

int64_t signed_constant(const Instruction& i) {
  return is_wide(i.type) ? int64_t(i.imm) : int32_t(uint32_t(i.imm));
}

/// coordinate = coord(axis) + offset?
bool match_coordinate(const ir::Function& f, Id id, int& axis, int64_t& offset) {
  const Instruction& i = f[id];
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

/// The extent's own source, through a conversion, so that equal extents are seen as one.
std::pair<Op, uint64_t> extent_key(const ir::Function& f, Id id) {
  const Instruction* i = &f[id];
  if (i->op == Op::convert) i = &f[i->args[0]];
  return {i->op, i->imm};
}
bool is_extent(const ir::Function& f, Id id) {
  const Op kind = extent_key(f, id).first;
  return kind == Op::shape || kind == Op::extent || kind == Op::param;
}

/// A periodic shift as the language writes it: with c = coord(axis) + offset % extent, c + extent where c < 0, or
/// c - extent where extent <= c, else c.
struct Period {
  int axis = 0;
  Id coord = ir::kNone, offset = ir::kNone, extent = ir::kNone;
};
bool match_period(const ir::Function& f, Id id, Period& found) {
  const Instruction& i = f[id];
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
  found = {int(f[coord].imm), coord, f[shift].args[0], extent};
  return true;
}

}  // namespace

PointsPlan choose_points(const ir::Function& f) {
  if (f.domain != ir::Domain::points || f.group[0] > 0 || !f.locals.empty()) return {};
  int instructions = 0, accesses = 0;
  for (Id id : f.blocks[0]) {
    switch (f[id].op) {
      case Op::for_:
      case Op::loop:
      case Op::if_:
      case Op::atomic:
      case Op::return_:
      case Op::variable: return {};
      case Op::load:
      case Op::store:
        if (f[id].lanes > 1) return {};
        ++accesses;
        break;
      default: break;
    }
    ++instructions;
  }
  if (accesses == 0 || instructions > kMaxInstructionsRepeated) return {};
  // A stencil that reaches across rows shares them between the points of a lane.
  const StencilReach reach = stencil_reach(f);
  const bool across = std::any_of(reach.reaches.begin(), reach.reaches.end(),
                                  [](const auto& r) { return r.axis > 0 && r.low < r.high; });
  return {across ? 1 : 0, 4};
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

ir::Function inside_form(const ir::Function& f) {
  ir::Function inner = f;
  for (const ir::Block& block : f.blocks)
    for (Id id : block) {
      Period period;
      if (!match_period(f, id, period)) continue;
      Instruction& moved = inner[id];
      moved.op = Op::iadd;
      moved.flags = ir::kNoWrap;
      moved.args = Instruction::operands({period.coord, period.offset});
    }
  compile::dead_code(inner);
  return inner;
}

std::string point_parameters(const ir::Function& f) {
  std::string out;
  for (int a = 0; a < f.rank; ++a) out += fmt::format(", const int {}", letter(a));
  return out;
}

std::string points_kernel_body(const ir::Function& f, const std::array<int32_t, 3>& block,
                               const PointsPlan& plan, const StencilReach& reach,
                               const std::vector<std::string>& extents) {
  std::string out, outside;
  const bool repeated = plan.points > 1;
  for (int a = 0; a < f.rank; ++a) {
    const char c = letter(a);
    const std::string lane = fmt::format("blockIdx.{} * {}u + threadIdx.{}", c,
                                         block[size_t(a)] * (a == 0 && plan.axis == 0 ? plan.points : 1), c);
    if (repeated && a == plan.axis && a > 0)
      out += fmt::format("  const int {} = a.offset_{} + int(({}) * {}u);\n", c, c, lane, plan.points);
    else
      out += fmt::format("  const int {} = a.offset_{} + int({});\n", c, c, lane);
    outside += fmt::format("{}u32({}) >= u32(a.extent_{})", outside.empty() ? "" : " || ", c, c);
  }
  out += fmt::format("  if ({}) return;\n", outside);

  const char c = letter(plan.axis);
  const int step = plan.axis == 0 ? block[0] : 1;
  const std::string shifted = step == 1 ? fmt::format("{} + k", c) : fmt::format("{} + {} * k", c, step);
  const auto calls = [&](std::string_view function, std::string_view indent, bool guarded) {
    if (!repeated) return fmt::format("{}{}(a{});\n", indent, function, point_arguments(f, -1, ""));
    std::string text = guarded ? "" : fmt::format("{}#pragma unroll\n", indent);
    text += fmt::format("{}for (int k = 0; k < {}; ++k)", indent, plan.points);
    if (guarded) text += fmt::format("\n{}  if (u32({}) + {}u * k < u32(a.extent_{}))", indent, c, step, c);
    return text + fmt::format(" {}(a{});\n", function, point_arguments(f, plan.axis, shifted));
  };

  // Lanes whose points and stencils all lie inside need no guards and no clamps.
  const int last = step * (plan.points - 1);
  std::string inside;
  const auto require = [&](std::string condition) {
    inside += fmt::format("{}{}", inside.empty() ? "" : " && ", condition);
  };
  if (repeated) require(fmt::format("u32({}) + {}u < u32(a.extent_{})", c, last, c));
  for (size_t r = 0; r < extents.size(); ++r) {
    const StencilReach::Reach& at = reach.reaches[r];
    if (at.low < 0) require(fmt::format("{} >= {}", letter(at.axis), -at.low));
    require(fmt::format("{} + {} < {}", letter(at.axis), at.high + (at.axis == plan.axis ? last : 0),
                        extents[r]));
  }
  if (inside.empty()) return out + calls("point", "  ", false);
  out += fmt::format("  if ({}) {{\n", inside);
  out += calls(extents.empty() ? "point" : "inner_point", "    ", false);
  out += "    return;\n  }\n";
  return out + calls("point", "  ", true);
}

}  // namespace lockstep::clike
