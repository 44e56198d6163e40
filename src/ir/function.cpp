#include "lockstep/ir/function.hpp"

#include <fmt/format.h>

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
