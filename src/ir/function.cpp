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
int64_t number_of(const Instruction& constant) {
  return constant.type == Type::i32 ? int64_t(int32_t(constant.imm)) : int64_t(constant.imm);
}
/// A bound of a value that its own operations show: of min(x, 64) from above, of max(x, 64) from below.
std::optional<int64_t> bound(const Function& f, Id id, Op toward, int depth = 0) {
  const Instruction& i = f[id];
  if (i.op == Op::constant) return number_of(i);
  if (i.op != toward || depth > 4) return {};
  const auto a = bound(f, i.args[0], toward, depth + 1), b = bound(f, i.args[1], toward, depth + 1);
  if (!a || !b) return a ? a : b;
  return toward == Op::imin ? std::min(*a, *b) : std::max(*a, *b);
}
}  // namespace

bool may_overstep(const Function& f, const Instruction& loop) {
  const Instruction& constant = f[loop.args[2]];
  const Type type = constant.type;
  const int64_t step = is_wide(type) ? int64_t(constant.imm) : int64_t(int32_t(constant.imm));
  if (step == 1 || step == -1) return false;
  if (is_wide(type) || type == kIndexType) return true;
  const auto last = bound(f, loop.args[1], step > 0 ? Op::imin : Op::imax);
  if (!last) return true;
  const int64_t least = type == Type::u32 ? 0 : INT32_MIN, most = type == Type::u32 ? UINT32_MAX : INT32_MAX;
  return step > 0 ? *last > most - (step - 1) : *last < least - (step + 1);
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
