#include "compile/passes/expand_math.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "compile/passes/rewrite.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/builder.hpp"
#include "math/expand.hpp"

namespace lockstep::compile {

using namespace ir;

bool has_fast_form(Op op, Type type, Target target) {
  struct Forms {
    std::string_view cuda, wgsl;
  };
  static constexpr Forms kForms[] = {
#define LOCKSTEP_OP(...) {"", ""},
#define LOCKSTEP_MATH(name, arity, cuda_fast, wgsl_fast, ...) {cuda_fast, wgsl_fast},
#define LOCKSTEP_STRUCTURAL(...) {"", ""},
#include "lockstep/ir/ops.def"
  };
  if (!is_math(op) || type != Type::f32) return false;
  if (target == Target::cuda) return !kForms[size_t(op)].cuda.empty();
  if (target == Target::wgsl) return !kForms[size_t(op)].wgsl.empty();
  return false;
}

void expand_math(Function& f, const LowerOptions& options) {
  const auto wanted = [&](const Instruction& i) {
    return is_math(i.op) &&
           !(options.numerics == Numerics::fast && has_fast_form(i.op, i.type, options.target));
  };
  // A body may use other elementary functions: repeat until none is left.
  for (int round = 0;; ++round) {
    Replacement replaced(f.instructions.size());
    const size_t block_count = f.blocks.size();
    for (uint32_t b = 0; b < block_count; ++b) {
      bool any = false;
      for (Id id : f.blocks[b]) any |= wanted(f[id]);
      if (!any) continue;
      const Block old = std::move(f.blocks[b]);
      f.blocks[b] = {};
      Builder builder(f);
      builder.set_current(b);
      for (Id id : old) {
        if (!wanted(f[id])) {
          f.blocks[b].push_back(id);
          continue;
        }
        Instruction i = f[id];
        replaced.apply(i);
#ifdef LOCKSTEP_NO_MATH
        throw InternalError(fmt::format("elementary function {}", name(i.op)),
                            fmt::format("kernel {}", f.name), "a build with src/math");
#else
        replaced.set(id, math::expand(builder, i.op, std::span(i.args.data(), size_t(i.arg_count()))));
#endif
      }
    }
    if (!replaced.any()) return;
    if (round == 8)
      throw InternalError("elementary functions that expand into each other without end",
                          fmt::format("kernel {}", f.name), "bodies of elementary operations");
    replaced.apply(f);
  }
}

}  // namespace lockstep::compile
