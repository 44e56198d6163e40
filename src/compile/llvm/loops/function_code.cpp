// Functions that kernels call: one vector of lanes, under the mask of the caller.
#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/loops/kernel_code.hpp"

namespace lockstep::compile::simd {

using llvm::Value;

namespace {

class FunctionCode : public LaneCode {
 public:
  FunctionCode(CodeUnit& unit, const Divergence& divergence)
      : LaneCode(unit, divergence, nullptr, unit.width()) {}
  std::vector<Value*> results;

 protected:
  bool statement(ir::Id id, llvm::BasicBlock* end) override {
    if (f_[id].op != ir::Op::result) return LaneCode::statement(id, end);
    for (int k = 0; k < f_[id].arg_count(); ++k) results.push_back(vector(f_[id].args[size_t(k)]));
    return true;
  }
};

}  // namespace

void emit_function(CodeUnit& u) {
  auto& b = u.b();
  const Divergence divergence(u.f(), LaneScope::row);
  FunctionCode code(u, divergence);
  code.run(u.f().blocks[0], u.function()->getArg(unsigned(u.f().scalars.size())), u.new_block("end"));
  if (code.results.size() == 1) return u.finish(code.results[0]);
  Value* all = llvm::UndefValue::get(u.function()->getReturnType());
  for (unsigned k = 0; k < code.results.size(); ++k) all = b.CreateInsertValue(all, code.results[k], k);
  u.finish(all);
}

}  // namespace lockstep::compile::simd
