// The rows of ops.def that a Value graph knows, so that tests leave none out.
#pragma once

#include <vector>

#include "lockstep/autodiff.hpp"
#include "math/oracle.hpp"

namespace lockstep::testing {

enum class RowKind { VALUE, CONDITION, LOGIC };
struct Row {
  autodiff::Op op;
  RowKind kind;
  int arity;
  bool math;  // an elementary function, else an operation of the machine
};

inline std::vector<Row> graph_rows() {
  return {
#define LOCKSTEP_NODE(name, word, kind, arity, ...) {autodiff::Op::name, RowKind::kind, arity, false},
#define LOCKSTEP_MATH(name, arity, ...) {autodiff::Op::name, RowKind::VALUE, arity, true},
#include "lockstep/ir/ops.def"
  };
}

namespace wide {
/// A row on its operands; b is not read where it has one operand.
template <class T>
T row(autodiff::Op op, T a, T b) {
  using autodiff::Op;
  switch (op) {
#define LOCKSTEP_NODE(name, word, kind, arity, op, host, ...) \
  case Op::name: return host;
#define LOCKSTEP_MATH(name, arity, cuda, wgsl, host, ...) \
  case Op::name: return host;
#include "lockstep/ir/ops.def"
    default: throw InternalError("no such row", std::string(autodiff::name(op)), "a row of ops.def");
  }
}
}  // namespace wide

}  // namespace lockstep::testing
