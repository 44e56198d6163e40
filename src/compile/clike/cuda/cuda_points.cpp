#include "compile/clike/cuda/cuda_points.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

constexpr int kMaxInstructionsRepeated = 120;
constexpr int kMaxRegistersOfRows = 64;

char letter(int axis) { return "xyz"[axis]; }

/// "x, y" with one coordinate replaced.
std::string point_arguments(const ir::Function& f, int axis, const std::string& replaced) {
  std::string out;
  for (int a = 0; a < f.rank; ++a)
    out += fmt::format(", {}", a == axis ? replaced : std::string(1, letter(a)));
  return out;
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
  const StencilReach reach = compile::stencil_reach(f);
  const bool across = std::any_of(reach.reaches.begin(), reach.reaches.end(),
                                  [](const auto& r) { return r.axis > 0 && r.low < r.high; });
  return {across ? 1 : 0, 4};
}

std::optional<PointsPlan> choose_columns(const ir::Function& f, const compile::ColumnsForm& form) {
  const PointsPlan plain = choose_points(f);
  const int accesses = form.rows + form.sides + form.stores;
  const bool shares = form.loads_of_rows > form.rows && form.sides <= form.rows;
  if (plain.points == 1 || !shares || 2 * accesses > form.accesses_of_points ||
      compile::kColumns * form.rows + form.sides > kMaxRegistersOfRows)
    return {};
  // Along the slowest axis of the stencil's reach, so that values read again are in registers.
  PointsPlan plan{0, 1, compile::kColumns};
  for (const auto& r : compile::stencil_reach(f).reaches)
    if (r.low < r.high && r.axis > plan.axis) plan.axis = r.axis;
  if (plan.axis > 0) plan.points = plain.points;
  return plan;
}

std::string point_parameters(const ir::Function& f) {
  std::string out;
  for (int a = 0; a < f.rank; ++a) out += fmt::format(", const int {}", letter(a));
  return out;
}

namespace {

/// Conditions joined by a word.
struct Joined {
  std::string_view word;
  std::string text{};
  void add(const std::string& condition) { text += (text.empty() ? "" : std::string(word)) + condition; }
};

/// The lanes' coordinates, the first of their points.
struct Coordinates {
  const ir::Function& f;
  const std::array<int32_t, 3>& block;
  const PointsPlan& plan;

  std::string declare(int a) const {
    const char c = letter(a);
    const bool apart = a == 0 && plan.axis == 0 && plan.columns == 1;
    const std::string lane =
        fmt::format("blockIdx.{} * {}u + threadIdx.{}", c, block[size_t(a)] * (apart ? plan.points : 1), c);
    const int each = a == 0 ? plan.columns : a == plan.axis ? plan.points : 1;
    if (each > 1) return fmt::format("  const int {} = a.offset_{} + int(({}) * {}u);\n", c, c, lane, each);
    return fmt::format("  const int {} = a.offset_{} + int({});\n", c, c, lane);
  }
  std::string outside(int first) const {
    Joined out{" || "};
    for (int a = first; a < f.rank; ++a)
      out.add(fmt::format("u32({}) >= u32(a.extent_{})", letter(a), letter(a)));
    return out.text;
  }
  int step() const { return plan.axis == 0 ? block[0] : 1; }
  /// Lanes whose points and stencils all lie inside need no guards and no clamps. Empty: all lanes.
  std::string all_inside(const Inside& inside, int first_axis) const {
    const char c = letter(plan.axis);
    const int last = step() * (plan.points - 1);
    Joined out{" && "};
    if (plan.points > 1) out.add(fmt::format("u32({}) + {}u < u32(a.extent_{})", c, last, c));
    for (size_t r = 0; r < inside.extents.size(); ++r) {
      const StencilReach::Reach& at = inside.reach.reaches[r];
      if (at.axis < first_axis) continue;
      if (at.low < 0) out.add(fmt::format("{} >= {}", letter(at.axis), -at.low));
      out.add(fmt::format("{} + {} < {}", letter(at.axis), at.high + (at.axis == plan.axis ? last : 0),
                          inside.extents[r]));
    }
    return out.text;
  }
  /// Calls for the points of a lane.
  std::string calls(std::string_view function, std::string_view indent, bool guarded) const {
    if (plan.points == 1) return fmt::format("{}{}(a{});\n", indent, function, point_arguments(f, -1, ""));
    const char c = letter(plan.axis);
    const std::string shifted =
        step() == 1 ? fmt::format("{} + k", c) : fmt::format("{} + {} * k", c, step());
    std::string text = guarded ? "" : fmt::format("{}#pragma unroll\n", indent);
    text += fmt::format("{}for (int k = 0; k < {}; ++k)", indent, plan.points);
    if (guarded) text += fmt::format("\n{}  if (u32({}) + {}u * k < u32(a.extent_{}))", indent, c, step(), c);
    return text + fmt::format(" {}(a{});\n", function, point_arguments(f, plan.axis, shifted));
  }
  /// Of all lanes here, those that lie inside and then the others. `end` ends the first.
  std::string both(const Inside& inside, int first_axis, const std::string& indent, std::string_view inner,
                   std::string_view other, std::string_view end) const {
    const std::string condition = all_inside(inside, first_axis);
    if (condition.empty()) return calls(other, indent, false);
    return fmt::format("{}if ({}) {{\n", indent, condition) +
           calls(inside.extents.empty() ? other : inner, indent + "  ", false) +
           fmt::format("{}  {};\n{}}}\n", indent, end, indent) + calls(other, indent, true);
  }
};

}  // namespace

std::string points_kernel_body(const ir::Function& f, const std::array<int32_t, 3>& block,
                               const PointsPlan& plan, const Inside& inside) {
  const Coordinates at{f, block, plan};
  std::string out;
  for (int a = 0; a < f.rank; ++a) out += at.declare(a);
  out += fmt::format("  if ({}) return;\n", at.outside(0));
  return out + at.both(inside, 0, "  ", "inner_point", "point", "return");
}

std::string columns_kernel_body(const ir::Function& f, const std::array<int32_t, 3>& block,
                                const PointsPlan& plan, const Inside& inside, const std::string& aligned,
                                const std::vector<std::string>& extents) {
  const Coordinates at{f, block, plan};
  const int n = plan.columns;
  std::string out;
  for (int a = 1; a < f.rank; ++a) out += at.declare(a);
  if (f.rank > 1) out += fmt::format("  if ({}) return;\n", at.outside(1));

  // Rows that begin anywhere: columns a block apart.
  out +=
      fmt::format("  if (!({})) {{\n    #pragma unroll 1\n    for (int c = 0; c < {}; ++c) {{\n", aligned, n);
  out += fmt::format("      const int x = a.offset_x + int(blockIdx.x * {}u + threadIdx.x + {}u * c);\n",
                     block[0] * n, block[0]);
  out += "      if (u32(x) >= u32(a.extent_x)) return;\n";
  out += at.both(inside, 0, "      ", "inner_point", "point", "continue");
  out += "    }\n    return;\n  }\n";

  out += at.declare(0);
  Joined whole{" && "};
  whole.add(fmt::format("u32(x) + {}u < u32(a.extent_x)", n - 1));
  for (const std::string& extent : extents) whole.add(fmt::format("x + {} < {}", n - 1, extent));
  out += fmt::format("  if (u32(x) >= u32(a.extent_x)) return;\n  if ({}) {{\n", whole.text);
  out += at.both(inside, 1, "    ", "inner_columns", "columns", "return");
  out += "    return;\n  }\n";
  out += fmt::format("  const int first = x;\n  for (int c = 0; c < {}; ++c) {{\n", n);
  out += "    const int x = first + c;\n    if (u32(x) >= u32(a.extent_x)) return;\n";
  return out + at.calls("point", "    ", true) + "  }\n";
}

}  // namespace lockstep::clike
