#include "lockstep/ir/function.hpp"

#include <fmt/format.h>

#include <optional>

namespace lockstep::ir {

namespace {
struct OpRow {
  std::string_view name;
  uint8_t arity;
  bool elementary, math;
};
constexpr OpRow kRows[] = {
#define LOCKSTEP_OP(name, arity, ...) {#name, arity, true, false},
#define LOCKSTEP_MATH(name, arity, ...) {#name, arity, false, true},
#define LOCKSTEP_STRUCTURAL(name) {#name, 0, false, false},
#include "lockstep/ir/ops.def"
};
const OpRow& row(Op op) { return kRows[size_t(op)]; }
}  // namespace

std::string_view name(Op op) { return row(op).name; }
std::string_view operand_types(Op op) {
  switch (types_of(op).domain) {
    case 'F': return "f32 or f64";
    case 'I': return "an integer type";
    case 'L': return "an integer type or bool";
    default: return "nothing";
  }
}
int arity(Op op) { return row(op).arity; }
bool is_elementary(Op op) { return row(op).elementary; }
bool is_math(Op op) { return row(op).math; }

size_t Function::argument_numbers() const {
  size_t count = scalars.size() + structs.size();
  for (const StructParam& s : structs) count -= s.type->fields.size();
  return count;
}
const StructParam* Function::struct_at(size_t scalar) const {
  for (const StructParam& s : structs)
    if (scalar >= s.first && scalar < s.first + s.type->fields.size()) return &s;
  return nullptr;
}

std::string place_text(const Function& function, Place place) {
  const size_t file = place >> kLineBits;
  const uint32_t line = place & ((Place(1) << kLineBits) - 1);
  return line == 0 || file >= function.files.size() ? "" : fmt::format("{}:{}", function.files[file], line);
}
std::string where_of(const Function& function, Place place) {
  const std::string line = place_text(function, place ? place : function.place);
  const std::string_view what = function.domain == Domain::values ? "function" : "kernel";
  return line.empty() ? fmt::format("{} {}", what, function.name)
                      : fmt::format("{} {}, near {}", what, function.name, line);
}

bool is_pure(Op op) {
  if (is_elementary(op) || is_math(op)) return true;
  switch (op) {
    case Op::constant:
    case Op::select:
    case Op::convert:
    case Op::bitcast:
    case Op::uniform:
    case Op::rounded:
    case Op::coord:
    case Op::extent:
    case Op::local_id:
    case Op::lane:
    case Op::param:
    case Op::shape:
    case Op::stride:
    case Op::clamp_index:
    case Op::extract: return true;
    default: return false;
  }
}

bool Function::has_barriers() const {
  for (const Block& block : blocks)
    for (Id id : block)
      if (Op op = instructions[id].op; op == Op::barrier || op == Op::group_reduce) return true;
  return false;
}

int depth_of(const Function& function, uint32_t block) {
  int depth = 0;
  for (Id id : function.blocks[block]) {
    const Instruction& i = function[id];
    if (i.op == Op::call) depth = std::max(depth, depth_of(function.functions[i.imm]));
    for (uint32_t inner : i.blocks)
      if (inner != kNoBlock) depth = std::max(depth, 1 + depth_of(function, inner));
  }
  return depth;
}

namespace {

struct Range {
  int64_t least, most;
};

Range all_of(Type type) { return type == Type::u32 ? Range{0, UINT32_MAX} : Range{INT32_MIN, INT32_MAX}; }

/// Where a 32-bit integer lies as far as its own operations show: axes, their quotients and products, least and greatest.
Range range_of(const Function& f, Id id, int depth = 0) {
  const Instruction& i = f[id];
  const Range all = all_of(i.type), axis{0, f.long_axes ? INT32_MAX : INT32_MAX - kLongAxis};
  const auto of = [&](int k) { return range_of(f, i.args[size_t(k)], depth + 1); };
  if (i.op == Op::constant) {
    const int64_t number = i.type == Type::i32 ? int64_t(int32_t(i.imm)) : int64_t(i.imm);
    return {number, number};
  }
  if (i.op == Op::extent || i.op == Op::shape) return axis;
  if (i.op == Op::convert && f[i.args[0]].op == Op::shape) return axis;
  if ((i.type != Type::i32 && i.type != Type::u32) || depth > 6) return all;
  if (i.op == Op::imin || i.op == Op::imax) {
    const Range a = of(0), b = of(1);
    return i.op == Op::imin ? Range{std::min(a.least, b.least), std::min(a.most, b.most)}
                            : Range{std::max(a.least, b.least), std::max(a.most, b.most)};
  }
  if (i.op == Op::irem && f[i.args[1]].op == Op::constant) {
    const int64_t divisor = of(1).most;
    if (divisor > 0) return {i.type == Type::u32 ? 0 : 1 - divisor, divisor - 1};
  }
  if (i.op == Op::isub) {
    const Range a = of(0), b = of(1), r{a.least - b.most, a.most - b.least};
    return r.least >= all.least && r.most <= all.most ? r : all;
  }
  if (i.op == Op::idiv || i.op == Op::imul || i.op == Op::iadd) {
    const Range a = of(0), b = of(1);
    if (a.least < 0 || b.least < (i.op == Op::idiv ? 1 : 0)) return all;
    const Range r = i.op == Op::idiv   ? Range{a.least / b.most, a.most / b.least}
                    : i.op == Op::imul ? Range{a.least * b.least, a.most * b.most}
                                       : Range{a.least + b.least, a.most + b.most};
    return r.most <= all.most ? r : all;
  }
  return all;
}

}  // namespace

bool may_overstep(const Function& f, const Instruction& loop) {
  const Instruction& constant = f[loop.args[2]];
  const Type type = constant.type;
  if (is_wide(type) || type == kIndexType) return int64_t(constant.imm) != 1 && int64_t(constant.imm) != -1;
  const int64_t step = int32_t(constant.imm);
  if (step == 1 || step == -1) return false;
  const Range last = range_of(f, loop.args[1]), all = all_of(type);
  return step > 0 ? last.most > all.most - (step - 1) : last.least < all.least - (step + 1);
}

const Instruction& result_of(const Function& function) { return function[function.blocks[0].back()]; }

bool Function::uses(Type type) const {
  for (const Function& called : functions)
    if (called.uses(type)) return true;
  for (const Block& block : blocks)
    for (Id id : block)
      if (instructions[id].type == type) return true;
  for (const BufferParam& buffer : buffers)
    if (value_type(buffer.storage) == type) return true;
  for (const ArrayDecl& array : shared)
    if (value_type(array.storage) == type) return true;
  return false;
}

}  // namespace lockstep::ir
