#include "compile/passes/expressions/expand_math.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <unordered_map>

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

namespace {

class MathExpansion {
 public:
  MathExpansion(Function& f, const LowerOptions& options)
      : f_(f), options_(options), replaced_(f.instructions.size()) {}

  /// Expands the elementary functions in the code. True if there were any.
  bool run() {
    const size_t count = f_.blocks.size();
    for (uint32_t b = 0; b < count; ++b) block(b);
    if (replaced_.any()) replaced_.apply(f_);
    return replaced_.any();
  }

 private:
  bool wanted(const Instruction& i) const {
    return is_math(i.op) &&
           !(options_.numerics == Numerics::fast && has_fast_form(i.op, i.type, options_.target));
  }

  void block(uint32_t b) {
    std::unordered_map<Id, math::SinCosIds> angles;  // sine and cosine of one operand in this block
    bool any = false;
    for (Id id : f_.blocks[b]) {
      const Instruction& i = f_[id];
      any |= wanted(i);
      if (!wanted(i) || (i.op != Op::sin && i.op != Op::cos)) continue;
      math::SinCosIds& both = angles.try_emplace(i.args[0], kNone, kNone).first->second;
      Id& first = i.op == Op::sin ? both.sin : both.cos;
      if (first == kNone) first = id;
    }
    if (!any) return;
    const Block old = std::move(f_.blocks[b]);
    f_.blocks[b] = {};
    Builder builder(f_);
    builder.set_current(b);
    for (Id id : old) {
      if (!wanted(f_[id])) {
        f_.blocks[b].push_back(id);
        continue;
      }
      if (replaced_[id] != id) continue;  // with its partner
      Instruction i = f_[id];
      const auto angle = angles.find(i.args[0]);
      replaced_.apply(i);
      const bool paired = angle != angles.end() && angle->second.sin != kNone && angle->second.cos != kNone;
      if (paired && (id == angle->second.sin || id == angle->second.cos)) {
        const math::SinCosIds both = math::expand_sincos(builder, i.args[0]);
        replaced_.set(angle->second.sin, both.sin);
        replaced_.set(angle->second.cos, both.cos);
      } else {
        replaced_.set(id, math::expand(builder, i.op, std::span(i.args.data(), size_t(i.arg_count()))));
      }
    }
  }

  Function& f_;
  const LowerOptions& options_;
  Replacement replaced_;
};

}  // namespace

void expand_math(Function& f, const LowerOptions& options) {
  // A body may use other elementary functions: repeat until none is left.
  for (int round = 0; MathExpansion(f, options).run(); ++round)
    if (round == 8)
      throw InternalError("elementary functions that expand into each other without end",
                          fmt::format("kernel {}", f.name), "bodies of elementary operations");
}

}  // namespace lockstep::compile
