#include <algorithm>

#include "autodiff/kernels/plain_form.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/differentiate.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

bool overwrites(const Kernel& kernel, const std::string& buffer) try {
  const ir::Function f = gradients::plain_form(ir::traced_form(kernel));
  return f.domain == ir::Domain::points && std::ranges::any_of(f.blocks[0], [&](ir::Id id) {
           const ir::Instruction& i = f[id];
           return i.op == ir::Op::store && f.buffers[i.imm].name == buffer &&
                  gradients::is_own_point(f, i.args[0], uint32_t(i.imm));
         });
} catch (const InputError&) {
  return false;  // no plain form
}

}  // namespace lockstep
