// Operand and result types of the rows of ops.def.
#pragma once

#include <string_view>

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

struct Signature {
  char domain;  // F floats, I integers, L integers and bool, N numbers, A all; 0 for structural rows
  char result;  // T as the operands, B boolean, I i32
};

inline Signature signature(Op op) {
  static constexpr char F = 'F', I = 'I', L = 'L', T = 'T', B = 'B';
  static constexpr Signature kTable[] = {
#define LOCKSTEP_OP(name, arity, domain, result, ...) {domain, result},
#define LOCKSTEP_MATH(name, ...) {F, T},
#define LOCKSTEP_STRUCTURAL(name) {0, 0},
#include "lockstep/ir/ops.def"
  };
  return kTable[size_t(op)];
}

inline bool in_domain(char domain, Type type) {
  switch (domain) {
    case 'F': return is_float(type);
    case 'I': return is_integer(type);
    case 'L': return is_integer(type) || type == Type::boolean;
    case 'N': return is_integer(type) || is_float(type);
    default: return type != Type::none;
  }
}

inline std::string_view words(char domain) {
  switch (domain) {
    case 'F': return "f32 or f64";
    case 'I': return "an integer type";
    case 'L': return "an integer type or bool";
    case 'N': return "a number";
    default: return "a value";
  }
}

inline Type result_type(Op op, Type operand) {
  const char result = signature(op).result;
  return result == 'B' ? Type::boolean : result == 'I' ? Type::i32 : operand;
}

}  // namespace lockstep::ir
