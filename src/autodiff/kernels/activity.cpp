#include "autodiff/kernels/activity.hpp"

#include <set>

#include "autodiff/kernels/plain_form.hpp"
#include "compile/passes/rewrite.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

class Analysis {
 public:
  Analysis(const Function& f, const Roles& roles) : f_(f), roles_(roles) {
    const size_t n = f.instructions.size();
    a_.varied.assign(n, false);
    a_.active.assign(n, false);
    a_.needed.assign(n, false);
    useful_.assign(n, false);
    for (std::vector<bool>* set : {&a_.locals.varied, &a_.locals.active, &a_.locals.needed, &useful_locals_})
      set->assign(f.locals.size(), false);
    for (std::vector<bool>* set : {&a_.shared.varied, &a_.shared.active, &a_.shared.needed, &useful_shared_})
      set->assign(f.shared.size(), false);
    compile::walk(f, 0, [&](uint32_t, size_t, Id id) { order_.push_back(id); });
  }

  void varied() {
    to_fixed_point([&](Id id) { forward(id); });
  }
  void useful() {
    to_fixed_point([&](Id id) { backward(id); });
    for (Id id : order_) a_.active[id] = a_.varied[id] && useful_[id];
    const auto activate = [](ArrayActivity& arrays, const std::vector<bool>& useful) {
      for (size_t k = 0; k < useful.size(); ++k) arrays.active[k] = arrays.varied[k] && useful[k];
    };
    activate(a_.locals, useful_locals_);
    activate(a_.shared, useful_shared_);
  }
  void needed() {
    for (Id id : order_) seed(id);
    for (Id id : order_)
      if (f_[id].op == Op::loop) head_.insert(f_.blocks[f_[id].blocks[0]][body_start(f_, f_[id]) - 1]);
    to_fixed_point([&](Id id) { close(id); });
  }
  void hidden() {
    steep_.assign(f_.instructions.size(), false);
    chosen_ = steep_;
    to_fixed_point([&](Id id) { steepen(id), choose(id); });
    a_.hidden.assign(f_.instructions.size(), false);
    for (Id id : order_) a_.hidden[id] = a_.active[id] && steep_[id] && chosen_[id];
  }
  void muted() {
    steep_.assign(f_.instructions.size(), false);
    to_fixed_point([&](Id id) { steepen(id); });
    a_.muted.assign(f_.instructions.size(), false);
    for (Id id : order_) a_.muted[id] = a_.varied[id] && steep_[id];
  }
  Activity take() { return std::move(a_); }

 private:
  template <class Step>
  void to_fixed_point(Step step) {
    do {
      changed_ = false;
      for (Id id : order_) step(id);
    } while (changed_);
  }
  void mark(std::vector<bool>& set, size_t k) {
    changed_ |= !set[k];
    set[k] = true;
  }
  bool any_varied(const Instruction& i) const {
    for (Id a : i.args)
      if (a != kNone && a_.varied[a]) return true;
    return false;
  }

  /// Those that a load or store is about.
  ArrayActivity& arrays(const Instruction& i) { return touches_shared(i) ? a_.shared : a_.locals; }
  std::vector<bool>& useful_arrays(const Instruction& i) {
    return touches_shared(i) ? useful_shared_ : useful_locals_;
  }

  void forward(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::param:
        if (roles_.input_scalars[i.imm]) mark(a_.varied, id);
        return;
      case Op::load:
        if ((roles_.input_buffers[i.imm] || roles_.output_buffers[i.imm]) && is_float(i.type))
          mark(a_.varied, id);
        return;
      case Op::set:
        if (a_.varied[i.args[1]]) mark(a_.varied, i.args[0]);
        return;
      case Op::local_store:
      case Op::shared_store:
        if (a_.varied[i.args[1]]) mark(arrays(i).varied, i.imm);
        return;
      case Op::local_load:
      case Op::shared_load:
        if (arrays(i).varied[i.imm]) mark(a_.varied, id);
        return;
      case Op::async_copy:
        if (const uint64_t buffer = i.imm & 0xffffffffu;
            roles_.input_buffers[buffer] || roles_.output_buffers[buffer])
          mark(a_.shared.varied, i.imm >> 32);
        return;
      case Op::atomic:
        if (const auto target = AtomicTarget::from_bits(i.imm);
            target.shared && is_float(i.type) && a_.varied[i.args[1]])
          mark(a_.shared.varied, target.array);
        return;
      default:
        if (is_float(i.type) && any_varied(i) && !comes_from_integers(i)) mark(a_.varied, id);
    }
  }
  /// Conversions and bit casts from integers; the functions without derivative.
  bool comes_from_integers(const Instruction& i) const {
    return !is_float(f_[i.args[0]].type) && i.op != Op::select;
  }

  bool adds_to_output(const Instruction& i) const {
    const auto target = AtomicTarget::from_bits(i.imm);
    return !target.shared && is_float(i.type) && roles_.output_buffers[target.array];
  }
  void use(Id id) {
    if (is_float(f_[id].type)) mark(useful_, id);
  }
  void backward(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::store:
        if (roles_.output_buffers[i.imm]) use(i.args[1]);
        return;
      case Op::set:
        if (useful_[i.args[0]]) use(i.args[1]);
        return;
      case Op::local_store:
      case Op::shared_store:
        if (useful_arrays(i)[i.imm]) use(i.args[1]);
        return;
      case Op::local_load:
      case Op::shared_load:
        if (useful_[id]) mark(useful_arrays(i), i.imm);
        return;
      case Op::atomic:
        if (adds_to_output(i)) use(i.args[1]);
        return;
      case Op::load:
      case Op::bitcast: return;
      default:
        if (!useful_[id]) return;
        for (Id a : i.args)
          if (a != kNone) use(a);
    }
  }

  /// Whether finite operands give values and slopes that are finite, but for overflow.
  static bool is_bounded(Op op) {
    switch (op) {
      case Op::fadd:
      case Op::fsub:
      case Op::fneg:
      case Op::fmul:
      case Op::fma:
      case Op::fabs:
      case Op::fmin:
      case Op::fmax:
      case Op::fcopysign:
      case Op::sin:
      case Op::cos:
      case Op::atan:
      case Op::tanh:
      case Op::sigmoid:
      case Op::softplus:
      case Op::erf:
      case Op::select:
      case Op::convert:
      case Op::rounded:
      case Op::uniform:
      case Op::get: return true;
      default: return false;
    }
  }
  void steepen(Id id) {
    const Instruction& i = f_[id];
    if (i.op == Op::set) {
      if (steep_[i.args[1]]) mark(steep_, i.args[0]);
    } else if (is_float(i.type) && i.args[0] != kNone && is_value(i.op)) {
      bool steep = !is_bounded(i.op);
      for (Id a : i.args) steep |= a != kNone && steep_[a];
      if (steep) mark(steep_, id);
    }
  }
  void choose(Id id) {
    const Instruction& i = f_[id];
    const auto mark_float = [&](Id a) {
      if (a != kNone && is_float(f_[a].type)) mark(chosen_, a);
    };
    if (i.op == Op::set) {
      if (chosen_[i.args[0]]) mark_float(i.args[1]);
    } else if (i.op == Op::select || i.op == Op::fmin || i.op == Op::fmax ||
               (chosen_[id] && is_value(i.op))) {
      for (Id a : i.args) mark_float(a);
    }
  }
  /// Of its operands alone.
  static bool is_value(Op op) {
    return op != Op::load && op != Op::local_load && op != Op::shared_load && op != Op::bitcast &&
           op != Op::atomic && op != Op::group_reduce;
  }

  void need(Id id) {
    if (id != kNone) mark(a_.needed, id);
  }
  void seed(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::for_: need(i.args[0]), need(i.args[1]); return;
      case Op::if_: return;  // close() adds its condition
      case Op::select:
        if (a_.active[id]) need(i.args[0]);
        return;
      case Op::load:
        if (a_.active[id]) need(i.args[0]);
        return;
      case Op::store:
        if (roles_.output_buffers[i.imm] || roles_.input_buffers[i.imm]) need(i.args[0]);
        return;
      case Op::local_load:
      case Op::shared_load:
        if (a_.active[id]) need(i.args[0]);
        return;
      case Op::local_store:
      case Op::shared_store:
        if (arrays(i).active[i.imm]) need(i.args[0]);
        return;
      case Op::atomic:
        if (adds_to_output(i)) need(i.args[0]);
        return;
      case Op::group_reduce:
        if (a_.active[id] && Reduction(i.imm) != Reduction::add) need(id), need(i.args[0]);
        return;
      case Op::fadd:
      case Op::fsub:
      case Op::fneg:
      case Op::convert:
      case Op::rounded:
      case Op::uniform:
      case Op::get:
      case Op::variable:
      case Op::set: return;
      case Op::fmul:
      case Op::fma:
        if (!a_.active[id]) return;
        if (a_.active[i.args[0]]) need(i.args[1]);
        if (a_.active[i.args[1]]) need(i.args[0]);
        return;
      default:
        if (!a_.active[id]) return;
        need(id);
        for (Id a : i.args) need(a);
    }
  }
  void close(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::if_:
        if (!head_.contains(id)) need(i.args[0]);
        return;
      case Op::set:
        if (a_.needed[i.args[0]]) need(i.args[1]);
        return;
      case Op::local_store:
      case Op::shared_store:
        if (arrays(i).needed[i.imm]) need(i.args[0]), need(i.args[1]);
        return;
      case Op::local_load:
      case Op::shared_load:
        if (a_.needed[id]) mark(arrays(i).needed, i.imm);
        break;
      default: break;
    }
    if (a_.needed[id])
      for (Id a : i.args) need(a);
  }

  const Function& f_;
  const Roles& roles_;
  Activity a_;
  std::vector<Id> order_;
  std::vector<bool> useful_, useful_locals_, useful_shared_;
  std::vector<bool> steep_, chosen_;  // values that may be infinite or have such a slope; that reach a select
  std::set<Id> head_;                 // the if_ that ends a `loop`
  bool changed_ = false;
};

}  // namespace

Activity find_varied(const Function& f, const Roles& roles) {
  Analysis analysis(f, roles);
  analysis.varied();
  analysis.muted();
  return analysis.take();
}
Activity find_activity(const Function& f, const Roles& roles) {
  Analysis analysis(f, roles);
  analysis.varied();
  analysis.useful();
  analysis.needed();
  analysis.hidden();
  return analysis.take();
}

}  // namespace lockstep::gradients
