#include "autodiff/kernels/widen.hpp"

#include "autodiff/kernels/roles.hpp"
#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

bool is_narrow(Storage s) { return s == Storage::f32 || s == Storage::f16 || s == Storage::bf16; }

class Widening {
 public:
  explicit Widening(Function& f) : f_(f) {}

  /// False where there is none.
  bool run() {
    if (f_.reporting || !f_.structs.empty()) return false;
    for (BufferParam& b : f_.buffers) storage(b.storage);
    for (ArrayDecl& a : f_.locals) storage(a.storage);
    for (ArrayDecl& a : f_.shared) storage(a.storage);
    for (ScalarParam& s : f_.scalars) s.type = type(s.type);
    std::vector<Id> bits;  // of floats
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) {
      if (f_[id].op == Op::bitcast && f_[f_[id].args[0]].type == Type::f32 && f_[id].type == Type::u32)
        bits.push_back(id);
    });
    for (Id id : bits) f_[id].type = Type::u64;
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) { instruction(id); });
    compile::Replacement same(f_.instructions.size());
    compile::walk(f_, 0, [&](uint32_t, size_t, Id id) {
      if (f_[id].op == Op::convert && f_[id].type == f_[f_[id].args[0]].type) same.set(id, f_[id].args[0]);
    });
    same.apply(f_);
    return possible_ && any_;
  }

 private:
  void storage(Storage& s) {
    any_ |= is_narrow(s);
    if (is_narrow(s)) s = Storage::f64;
  }
  Type type(Type t) {
    any_ |= t == Type::f32;
    return t == Type::f32 ? Type::f64 : t;
  }
  void instruction(Id id) {
    Instruction& i = f_[id];
    if (i.op == Op::constant && i.type == Type::f32)
      i.imm = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(i.imm))));
    for (Id a : i.args)
      if (a != kNone && is_bits(a)) possible_ &= i.op == Op::bitcast && is_float(i.type);
    if (i.op == Op::bitcast && i.type == Type::f32) possible_ &= is_bits(i.args[0]);
    i.type = type(i.type);
  }
  bool is_bits(Id id) const { return f_[id].op == Op::bitcast && f_[id].type == Type::u64; }

  Function& f_;
  bool possible_ = true, any_ = false;
};

}  // namespace

std::optional<Kernel> widened(const Kernel& kernel) {
  Function f = traced_form(kernel);
  compile::inline_all_calls(f);
  if (!Widening(f).run()) return std::nullopt;
  try {
    return Kernel::trace(kernel.name() + ".f64", f.domain, f.rank,
                         KernelOptions{f.group, f.min_blocks, f.contract}, [&](Builder& b) {
                           copy_frame(f, b.function());
                           b.function().buffers = f.buffers;
                           b.function().shapes = f.shapes;
                           for (BufferParam& p : b.function().buffers) p.position = -1;
                           b.function().instructions = f.instructions;
                           b.function().blocks = f.blocks;
                         });
  } catch (const InputError&) {
    return std::nullopt;  // wide accesses of more bytes than there are
  }
}

}  // namespace lockstep::gradients
