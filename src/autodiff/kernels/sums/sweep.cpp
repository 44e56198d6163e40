#include "autodiff/kernels/sums/sweep.hpp"

#include "autodiff/kernels/plain_form.hpp"
#include "autodiff/kernels/replay.hpp"
#include "autodiff/kernels/roles.hpp"
#include "autodiff/kernels/sums/expansion.hpp"
#include "compile/passes/rewrite.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

/// Whether all lanes have this value.
bool is_common(const Function& f, Id id) {
  const Op op = f[id].op;
  if (op == Op::convert) return is_common(f, f[id].args[0]);
  return op == Op::constant || op == Op::param || op == Op::shape || op == Op::extent;
}
bool is_number(const Function& f, Id id, int32_t number) {
  return f[id].op == Op::constant && f[id].type == Type::i32 && int32_t(f[id].imm) == number;
}

/// Whether the element that is read is that of the loop's counter. Under a rule for positions outside this is so if there
/// are none.
bool reads_counter(const Function& f, Id load, const Instruction& loop) {
  const auto buffer = uint32_t(f[load].imm);
  const std::vector<Id> at = coordinates_of(f, f[load].args[0], buffer);
  if (at.size() != 1) return false;
  const Id counter = f.blocks[loop.blocks[0]][0];
  const Instruction& i = f[at[0]];
  if (i.op != Op::clamp_index) return at[0] == counter;
  const Instruction &last = f[loop.args[1]], &end = last.op == Op::convert ? f[last.args[0]] : last;
  return i.args[0] == counter && is_number(f, loop.args[0], 0) && end.op == Op::shape &&
         end.imm == uint64_t(buffer) * 8;
}

bool has_loops(const Function& f, uint32_t block) {
  bool any = false;
  compile::walk(f, block,
                [&](uint32_t, size_t, Id id) { any |= f[id].op == Op::for_ || f[id].op == Op::loop; });
  return any;
}

template <class T>
void sweep(const Plan& plan, uint32_t buffer, Builder& b) {
  const auto gradient = uint32_t(b.function().buffers.size() - 1);
  const Id element = b.emit(Op::coord, Type::i32, {}), lanes = b.emit(Op::extent, Type::i32, {});
  const Id own = own_point(b, gradient);
  const auto each = [&](const auto& use) {
    if (plan.own[buffer]) use(Val<T>::from(b.emit(Op::load, detail::kType<T>, {own}, gradient - 1)));
    b.for_(b.i32(0), lanes, 1, [&](Id lane) {
      for (Id read : swept_reads(plan, buffer))
        use(Val<T>::from(emit_contribution_of_pass(plan, b, read, lane, element)));
    });
  };
  store_sum(sum_of<T>(each), each,
            [&](const Val<T>& sum) { b.emit(Op::store, Type::none, {own, sum.id()}, gradient); });
}

}  // namespace

std::vector<Id> swept_reads(const Plan& plan, uint32_t buffer) {
  const Function& f = plan.f;
  std::vector<Id> reads;
  if (f.rank != 1 || f.buffers[buffer].rank != 1) return {};
  for (Id loop : f.blocks[0]) {
    const Instruction& i = f[loop];
    if (i.op != Op::for_ || !is_straight(plan, loop)) continue;
    bool all = is_common(f, i.args[0]) && is_common(f, i.args[1]) && is_number(f, i.args[2], 1) &&
               !has_loops(f, i.blocks[0]);
    compile::walk(f, 0, [&](uint32_t, size_t, Id id) {
      if (f[id].op != Op::load || f[id].imm != buffer || !plan.activity.active[id]) return;
      if (is_own_point(f, f[id].args[0], buffer)) return;
      all = all && reads_counter(f, id, i);
      reads.push_back(id);
    });
    return all ? reads : std::vector<Id>{};
  }
  return {};
}

void emit_sweep(const Plan& plan, uint32_t buffer, Builder& b) {
  if (wide_enough(plan.f.buffers[buffer].storage) == Storage::f64)
    sweep<f64>(plan, buffer, b);
  else
    sweep<f32>(plan, buffer, b);
}

}  // namespace lockstep::gradients
