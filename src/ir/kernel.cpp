#include "lockstep/kernel/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "core/platform/threads.hpp"
#include "ir/long_axes.hpp"
#include "ir/traced_form.hpp"
#include "ir/with_index.hpp"
#include "lockstep/error.hpp"
#include "lockstep/native.hpp"

namespace lockstep {

namespace detail {

namespace {
template <class N>
[[noreturn]] void refuse(Type type, N number) {
  throw InputError(fmt::format("number {} with operands of type {}", number, name(type)), builder().where(),
                   is_float(type)
                       ? "a number that this type holds"
                       : "a number that this type holds exactly; cast<T>(…) gives operands of another type");
}
}  // namespace
void refuse_number(Type type, double number) { refuse(type, number); }
void refuse_number(Type type, int64_t number) { refuse(type, number); }
void refuse_number(Type type, uint64_t number) { refuse(type, number); }
void refuse_floating(Type type, double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  throw InputError(fmt::format("number {} with operands of type {}", text, name(type)), builder().where(),
                   "a whole number, or cast<f32>(…) of the operands: C++ computes this in floating point");
}
void refuse_shift(Type type, int64_t count) {
  throw InputError(fmt::format("shift of {} by {} bits", name(type), count), builder().where(),
                   fmt::format("0 to {}", 8 * size_of(type) - 1));
}
uint64_t axis_of(int rank, int axis) {
  if (axis < 0 || axis >= rank)
    throw InputError(fmt::format("axis {} of rank {}", axis, rank), builder().where(),
                     fmt::format("0 to {}, counted from x", rank - 1));
  return uint64_t(axis);
}

uint32_t declare_array(bool shared, Storage storage, int64_t count) {
  ir::Function& f = builder().function();
  auto& arrays = shared ? f.shared : f.locals;
  if (shared && f.domain == ir::Domain::values)
    throw InputError("a shared array in a function", builder().where(),
                     "one of the kernel, and a plain C++ function that takes it: it is inlined");
  if (count <= 0 || count > (int64_t(1) << 24))
    throw InputError(fmt::format("array of {} elements", count), builder().where(), "1 to 2^24");
  if (shared && f.domain != ir::Domain::groups)
    throw InputError("shared array in a points kernel", builder().where(), "Group<N> as the first parameter");
  arrays.push_back({fmt::format("{}{}", shared ? "s" : "l", arrays.size()), storage, count});
  return uint32_t(arrays.size() - 1);
}

namespace {

ir::Id buffer_word(ir::Op op, uint32_t buffer, int axis) {
  ir::Builder& b = builder();
  return b.emit(op, b.function().index_type, {}, uint64_t(buffer) * 8 + uint64_t(axis));
}
ir::Id index_op(ir::Op op, ir::Id a, ir::Id c) { return builder().op(op, {a, c}, ir::kNoWrap); }
void add_rule(const ir::ShapeRule& rule) {
  auto& rules = builder().function().shapes;
  const bool known = std::any_of(rules.begin(), rules.end(), [&](const ir::ShapeRule& r) {
    return r.buffer == rule.buffer && r.axis == rule.axis && r.size == rule.size && r.other == rule.other &&
           r.other_axis == rule.other_axis;
  });
  if (!known) rules.push_back(rule);
}

}  // namespace

Val<i32> BufferRef::size(int axis) const {
  return Val<i32>::from(builder().convert(Type::i32, buffer_word(ir::Op::shape, index(), axis)));
}

void BufferRef::require(int axis, int64_t size, const std::source_location& where) const {
  builder().at(where);
  if (axis < 0 || axis >= rank_ || size < 0)
    throw InputError(fmt::format("size {} required of axis {}", size, axis), builder().where(),
                     fmt::format("a size of 0 or more and an axis from 0 to {}", rank_ - 1));
  add_rule({index(), axis, size, 0, 0, builder().place()});
}
void BufferRef::require(int axis, const BufferRef& other, int other_axis,
                        const std::source_location& where) const {
  builder().at(where);
  if (axis < 0 || axis >= rank_ || other_axis < 0 || other_axis >= other.rank_)
    throw InputError(fmt::format("axis {} required to be as long as axis {}", axis, other_axis),
                     builder().where(),
                     fmt::format("axes from 0 to {} and from 0 to {}", rank_ - 1, other.rank_ - 1));
  add_rule({index(), axis, -1, other.index(), other_axis, builder().place()});
}

ir::Id BufferRef::offset(std::span<const ir::Id> coordinates) const {
  ir::Builder& b = builder();
  const Type type = b.function().index_type;
  ir::Id sum = ir::kNone;
  int axis = 0;
  for (ir::Id c : coordinates) {
    ir::Id term = b.convert(type, c);
    if (axis < rank_ - 1) term = index_op(ir::Op::imul, term, buffer_word(ir::Op::stride, index(), axis));
    sum = sum == ir::kNone ? term : index_op(ir::Op::iadd, sum, term);
    ++axis;
  }
  return sum;
}

ir::Id BufferRef::offset_by_rule(std::initializer_list<ir::Id> coordinates, ir::Id* inside) const {
  if (!ruled_) return offset(coordinates);
  ir::Builder& b = builder();
  if (index() < b.function().buffers.size()) b.function().buffers[index()].ruled = true;
  std::array<ir::Id, 4> ruled{};
  int axis = 0;
  for (ir::Id c : coordinates) {
    const ir::Id size = b.convert(Type::i32, buffer_word(ir::Op::shape, index(), axis));
    if (boundary_ == Boundary::periodic) {
      const ir::Id rest = b.op(ir::Op::irem, {c, size});
      c = b.select(b.op(ir::Op::ilt, {rest, b.i32(0)}), index_op(ir::Op::iadd, rest, size), rest);
    } else {
      if (boundary_ == Boundary::zero) {
        const ir::Id ok = b.op(ir::Op::ilt, {b.bitcast(Type::u32, c), b.bitcast(Type::u32, size)});
        *inside = *inside == ir::kNone ? ok : b.op(ir::Op::band, {*inside, ok});
      }
      c = b.emit(ir::Op::clamp_index, Type::i32, {c, size});
    }
    ruled[size_t(axis++)] = c;
  }
  return offset(std::span<const ir::Id>(ruled.data(), size_t(rank_)));
}

ir::Id BufferRef::offset_at(std::initializer_list<ir::Id> leading, const int* offsets, int n,
                            Boundary boundary, ir::Id* inside) const {
  ir::Builder& b = builder();
  if (index() < b.function().buffers.size()) {
    ir::BufferParam& param = b.function().buffers[index()];
    param.by_point = true;
    if (boundary != Boundary::unchecked)
      param.reach = std::max(param.reach, *std::max_element(offsets, offsets + n));
  }
  if (b.function().domain != ir::Domain::points || b.function().rank != n)
    throw InputError(fmt::format("a point of rank {}", n), b.where(), "the kernel's own At<N>");
  std::array<ir::Id, 4> coordinates{};
  int axis = 0;
  for (ir::Id c : leading) coordinates[axis++] = c;
  for (int a = n - 1; a >= 0; --a, ++axis) {  // slowest axis first in memory; x = axis 0 of the point
    ir::Id c = b.emit(ir::Op::coord, Type::i32, {}, uint64_t(a));
    if (offsets[a] != 0) {
      c = index_op(ir::Op::iadd, c, b.i32(offsets[a]));
      const ir::Id size = boundary == Boundary::unchecked
                              ? ir::kNone
                              : b.convert(Type::i32, buffer_word(ir::Op::shape, index(), axis));
      if (boundary == Boundary::clamp || boundary == Boundary::zero) {
        if (boundary == Boundary::zero) {
          const ir::Id ok = b.op(ir::Op::ilt, {b.bitcast(Type::u32, c), b.bitcast(Type::u32, size)});
          *inside = *inside == ir::kNone ? ok : b.op(ir::Op::band, {*inside, ok});
        }
        c = b.emit(ir::Op::clamp_index, Type::i32, {c, size});
      } else if (boundary == Boundary::periodic) {
        // A shift may exceed a short axis: bring it below one period first, then wrap by one select.
        const ir::Id shift = b.op(ir::Op::irem, {b.i32(offsets[a]), size});
        c = index_op(ir::Op::iadd, b.emit(ir::Op::coord, Type::i32, {}, uint64_t(a)), shift);
        const ir::Id low = b.op(ir::Op::ilt, {c, b.i32(0)}), high = b.op(ir::Op::ile, {size, c});
        c = offsets[a] < 0 ? b.select(low, index_op(ir::Op::iadd, c, size), c)
                           : b.select(high, index_op(ir::Op::isub, c, size), c);
      }
    }
    coordinates[axis] = c;
  }
  return offset(std::span<const ir::Id>(coordinates.data(), size_t(rank_)));
}

}  // namespace detail

struct Kernel::State {
  std::string name;
  uint64_t id;
  ir::Function traced;  // with kIndexType
  ir::Function narrow;
  Mutex mutex;
  std::array<std::optional<ir::Function>, 3>
      forms;  // wide, with long axes, both: made when they are requested
  std::optional<NativeForm> native;
};

namespace {

std::shared_ptr<Kernel::State> make_state(ir::Function traced) {
  static std::atomic<uint64_t> next_id{1};
  auto state = std::make_shared<Kernel::State>();
  state->name = traced.name;
  state->id = next_id++;
  state->narrow = ir::with_index(traced, Type::i32);
  state->traced = std::move(traced);
  ir::verify(state->narrow);
  return state;
}

}  // namespace

Kernel::State& Kernel::state() const {
  if (!state_) throw InputError("a Kernel that was never traced", "lockstep::Kernel", "one from kernel(…)");
  return *state_;
}
const std::string& Kernel::name() const { return state().name; }
uint64_t Kernel::id() const { return state().id; }

const ir::Function& ir::traced_form(const Kernel& kernel) { return kernel.state().traced; }

const ir::Function& Kernel::function(Type index, bool long_axes) const {
  State& s = state();
  const bool wide = index == Type::i64;
  if (!wide && !long_axes) return s.narrow;
  std::lock_guard lock(s.mutex);
  std::optional<ir::Function>& form = s.forms[(wide ? 1u : 0u) + (long_axes ? 2u : 0u) - 1];
  if (!form) {
    form = ir::with_index(s.traced, wide ? Type::i64 : Type::i32);
    if (long_axes) form = ir::with_long_axes(std::move(*form));
    ir::verify(*form);
  }
  return *form;
}

std::vector<KernelParameter> Kernel::parameters() const {
  std::vector<KernelParameter> list;
  const ir::Function& f = function();
  for (size_t k = 0; k < f.argument_buffers(); ++k) {
    const ir::BufferParam& b = f.buffers[k];
    list.push_back({b.name, true, b.storage, b.rank, b.access != ir::Access::write,
                    b.access != ir::Access::read, Type::none, nullptr});
  }
  for (size_t k = 0; k < f.scalars.size();) {
    const ir::StructParam* structure = f.struct_at(k);
    const std::string& name = structure ? structure->name : f.scalars[k].name;
    const Type type = structure ? Type::none : f.scalars[k].type;
    list.push_back({name, false, Storage::f32, 0, true, false, type, structure ? structure->type : nullptr});
    k += structure ? structure->type->fields.size() : 1;
  }
  return list;
}

Kernel Kernel::trace(std::string name, ir::Domain domain, int rank, KernelOptions options, const Trace& trace,
                     const std::source_location& where) {
  if (domain == ir::Domain::groups) {
    const int64_t lanes =
        int64_t(options.group[0]) * std::max(options.group[1], 1) * std::max(options.group[2], 1);
    if (options.group[0] < 1 || lanes > 1024)
      throw InputError(
          fmt::format("group of {} x {} x {} lanes", options.group[0], options.group[1], options.group[2]),
          fmt::format("kernel {}", name), "1 to 1024 lanes in KernelOptions::group");
    for (auto& size : options.group) size = std::max(size, 1);
  }
  ir::Function f;
  f.name = std::move(name);
  f.domain = domain;
  f.rank = rank;
  f.group = options.group;
  f.min_blocks = options.min_blocks;
  f.contract = options.contract;
  f.index_type = kIndexType;
  {
    ir::Builder builder(f);
    builder.at(where);
    f.place = builder.place();
    const detail::TraceScope scope(builder);
    trace(builder);
  }
  return Kernel(make_state(std::move(f)));
}

Kernel Kernel::renamed(std::string name) const {
  ir::Function f = state().traced;
  f.name = std::move(name);
  return Kernel(make_state(std::move(f)));
}

Kernel native_kernel(const Kernel& portable, NativeForm form) {
  if (!form.product && (form.cuda.source.empty() || form.cuda.entry.empty()))
    throw InputError("a native kernel without source or entry", fmt::format("kernel {}", portable.name()),
                     "CUDA C++ and the name of its kernel");
  const auto ending = !form.product ? ".native" : form.product->tf32 ? ".cublas_tf32" : ".cublas";
  Kernel kernel = portable.renamed(portable.name() + ending);
  kernel.state().native = std::move(form);
  return kernel;
}
const NativeForm* native_form(const Kernel& kernel) {
  const auto& native = kernel.state().native;
  return native ? &*native : nullptr;
}

}  // namespace lockstep
