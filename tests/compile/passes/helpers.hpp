#pragma once

#include "compile/passes/rewrite.hpp"
#include "lockstep/ir/builder.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

/// Number of instructions of one operation in blocks.
inline int count(const ir::Function& f, ir::Op op) {
  int n = 0;
  compile::walk(f, 0, [&](uint32_t, size_t, ir::Id id) { n += f[id].op == op; });
  return n;
}
/// The first instruction of one operation; kNone where there is none.
inline ir::Id find(const ir::Function& f, ir::Op op) {
  ir::Id found = ir::kNone;
  compile::walk(f, 0, [&](uint32_t, size_t, ir::Id id) {
    if (found == ir::kNone && f[id].op == op) found = id;
  });
  return found;
}
template <class Body>
ir::Function traced(Body body, KernelOptions options = {}) {
  return kernel("test.pass", body, options).function();
}
/// The value of the kernel's first store.
inline const ir::Instruction& stored(const ir::Function& f) { return f[f[find(f, ir::Op::store)].args[1]]; }

}  // namespace lockstep
