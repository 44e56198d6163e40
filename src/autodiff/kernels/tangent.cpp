// Forward mode: each value, variable, array and buffer that depends on an input gets a tangent along the same control flow.
#include <fmt/format.h>

#include "autodiff/kernels/partials.hpp"
#include "autodiff/kernels/roles.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep {

using namespace ir;
using gradients::Activity;
using gradients::Roles;

namespace {

class Tangent {
 public:
  Tangent(const Function& f, const Roles& roles, Builder& b)
      : f_(f),
        roles_(roles),
        activity_(find_varied(f, roles)),
        b_(b),
        value_(f.instructions.size(), kNone),
        dot_(value_),
        ending_(gradients::tangent_ending(f)) {}

  void run() {
    parameters();
    arrays(f_.locals, b_.function().locals, activity_.locals.varied, locals_);
    arrays(f_.shared, b_.function().shared, activity_.shared.varied, shared_);
    block(0);
  }

 private:
  void parameters() {
    Function& to = b_.function();
    gradients::copy_frame(f_, to);
    to.buffers = f_.buffers;
    to.shapes = f_.shapes;
    for (BufferParam& b : to.buffers) b.position = -1;
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      buffers_.push_back(kNoBlock);
      if (!roles_.input_buffers[k] && !roles_.output_buffers[k]) continue;
      BufferParam dot = to.buffers[k];
      dot.name += ending_;
      if (dot.storage != Storage::f64) dot.storage = Storage::f32;
      buffers_[k] = uint32_t(to.buffers.size());
      to.buffers.push_back(dot);
      for (int axis = 0; axis < dot.rank; ++axis)
        to.shapes.push_back({buffers_[k], axis, -1, uint32_t(k), axis, dot.place});
    }
    for (size_t k = 0; k < f_.scalars.size(); ++k) {
      scalars_.push_back(to.scalars.size());
      if (roles_.input_scalars[k])
        to.scalars.push_back({f_.scalars[k].name + ending_, f_.scalars[k].type, f_.scalars[k].place});
    }
  }
  static void arrays(const std::vector<ArrayDecl>& from, std::vector<ArrayDecl>& to,
                     const std::vector<bool>& varied, std::vector<uint32_t>& numbers) {
    for (size_t k = 0; k < from.size(); ++k) {
      numbers.push_back(uint32_t(to.size()));
      if (!varied[k]) continue;
      to.push_back(from[k]);
      to.back().name += "_tangent";
      if (to.back().storage != Storage::f64) to.back().storage = Storage::f32;
    }
  }

  [[noreturn]] void refuse(const Instruction& i, std::string_view what, std::string_view expected) const {
    throw InputError(what, where_of(f_, i.place), expected);
  }
  bool varied(Id id) const { return activity_.varied[id]; }
  /// The tangent of a value; 0 where it has none.
  Id dot(Id id) { return varied(id) ? dot_[id] : b_.number(f_[id].type, 0); }

  void block(uint32_t number) {
    for (Id id : f_.blocks[number]) {
      b_.at(f_[id].place);
      statement(id);
    }
  }
  void statement(Id id) {
    const Instruction& i = f_[id];
    if (i.op == Op::if_)
      return b_.if_(value_[i.args[0]], [&] { block(i.blocks[0]); }, [&] { block(i.blocks[1]); });
    Instruction copy = i;
    for (Id& a : copy.args)
      if (a != kNone) a = value_[a];
    if (i.op == Op::for_ || i.op == Op::loop) {
      copy.blocks[0] = b_.block([&] { block(i.blocks[0]); });
      b_.append(copy);
      return;
    }
    value_[id] = b_.append(copy);
    derivative(id, copy);
  }

  /// `now` is the instruction with its operands in the new kernel.
  void derivative(Id id, const Instruction& now) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::store:
        if (buffers_[i.imm] == kNoBlock) {
          if (varied(i.args[1])) read_back(i, i.imm);
          return;
        }
        return again(id, now, buffers_[i.imm], [&](Instruction& store) {
          for (size_t k = 1; k <= i.lanes; ++k) store.args[k] = dot(i.args[k]);
        });
      case Op::set:
        if (varied(i.args[0])) b_.set(dot_[i.args[0]], dot(i.args[1]));
        return;
      case Op::local_store:
        if (activity_.locals.varied[i.imm]) array_store(id, now, locals_[i.imm]);
        return;
      case Op::shared_store:
        if (activity_.shared.varied[i.imm]) array_store(id, now, shared_[i.imm]);
        return;
      case Op::async_copy: return async_copy(id, now);
      case Op::atomic:
        if (is_float(i.type) && varied(i.args[1])) addition(id, now, AtomicTarget::from_bits(i.imm));
        return;
      case Op::bitcast:
        if (varied(i.args[0])) expect_way_back(id);
        return;
      default: break;
    }
    if (!varied(id)) return;
    switch (i.op) {
      case Op::param: dot_[id] = b_.emit(Op::param, i.type, {}, scalars_[i.imm]); return;
      case Op::load: return again(id, now, buffers_[i.imm], [](Instruction&) {});
      case Op::local_load: return again(id, now, locals_[i.imm], [](Instruction&) {});
      case Op::shared_load: return again(id, now, shared_[i.imm], [](Instruction&) {});
      case Op::extract:
      case Op::variable:
      case Op::get: return again(id, now, i.imm, [&](Instruction& same) { same.args[0] = dot(i.args[0]); });
      case Op::group_reduce:
        if (Reduction(i.imm) != Reduction::add) {
          const Id mine = gradients::share_in_extreme(b_, now.args[0], value_[id]);
          const Id own = b_.select(mine, dot(i.args[0]), b_.number(i.type, 0));
          dot_[id] = b_.emit(i.op, i.type, {own}, uint64_t(Reduction::add));
          return;
        }
        return again(id, now, i.imm, [&](Instruction& same) { same.args[0] = dot(i.args[0]); });
      default: break;
    }
    std::array<Id, 3> args{kNone, kNone, kNone};
    const size_t count = size_t(i.arg_count());
    for (size_t k = 0; k < count; ++k) args[k] = now.args[k];
    Id sum = kNone;
    for (size_t k = 0; k < count; ++k) {
      if (!varied(i.args[k])) continue;
      const Id part = gradients::partial(i, k, args, value_[id], dot_[i.args[k]], i.type),
               term = activity_.muted[id] ? gradients::unless_zero(b_, dot_[i.args[k]], part) : part;
      if (term != kNone) sum = sum == kNone ? term : b_.op(Op::fadd, {sum, term});
    }
    dot_[id] = sum == kNone ? b_.number(i.type, 0) : sum;
  }
  /// The same instruction on another buffer or array.
  template <class Change>
  void again(Id id, Instruction now, uint64_t imm, Change change) {
    now.imm = imm;
    change(now);
    dot_[id] = b_.append(now);
  }
  /// Unordered like that of the kernel.
  void addition(Id id, const Instruction& now, AtomicTarget target) {
    const uint32_t to = target.shared ? shared_[target.array] : buffers_[target.array];
    if (to == kNoBlock) return read_back(f_[id], target.array);
    target.array = to;
    again(id, now, target.bits(), [&](Instruction& atomic) { atomic.args[1] = dot(f_[id].args[1]); });
  }
  void array_store(Id id, const Instruction& now, uint32_t array) {
    again(id, now, array, [&](Instruction& store) { store.args[1] = dot(f_[id].args[1]); });
  }
  void async_copy(Id id, const Instruction& now) {
    const uint64_t array = now.imm >> 32, buffer = now.imm & 0xffffffffu;
    if (!activity_.shared.varied[array]) return;
    if (buffers_[buffer] == kNoBlock)
      refuse(
          now,
          fmt::format("buffer {}, which is not an input, is copied into an array that depends on the inputs",
                      f_.buffers[buffer].name),
          "the buffer among the inputs");
    again(id, now, uint64_t(shared_[array]) << 32 | buffers_[buffer], [](Instruction&) {});
  }
  /// A written buffer that takes no part must not be read again.
  void read_back(const Instruction& store, uint64_t buffer) const {
    if (f_.buffers[buffer].access == Access::read_write && is_float(value_type(f_.buffers[buffer].storage)))
      refuse(store,
             fmt::format("buffer {} depends on an input and may be read again", f_.buffers[buffer].name),
             "it among the outputs");
  }
  void expect_way_back(Id id) const {
    for (const Instruction& user : f_.instructions)
      for (Id a : user.args)
        if (a == id && !(user.op == Op::bitcast && is_float(user.type)))
          refuse(f_[id], "bits of a float that depends on an input",
                 "stop_gradient() of the float, whose bits have no derivative");
  }

  const Function& f_;
  const Roles& roles_;
  Activity activity_;
  Builder& b_;
  std::vector<Id> value_, dot_;
  std::vector<uint32_t> buffers_, locals_, shared_;  // numbers of tangents
  std::vector<uint64_t> scalars_;
  std::string ending_;
};

}  // namespace

Kernel tangent(const Kernel& kernel, const Differentiation& which) {
  Function f = traced_form(kernel);
  if (f.reporting)
    throw InputError("check or print_if in a kernel that is differentiated", where_of(f, f.reports[0].place),
                     "a kernel without them");
  compile::inline_all_calls(f);
  const Roles roles = gradients::roles_of(f, which);
  return Kernel::trace(kernel.name() + ".tangent", f.domain, f.rank,
                       KernelOptions{f.group, f.min_blocks, f.contract},
                       [&](Builder& b) { Tangent(f, roles, b).run(); });
}

}  // namespace lockstep
