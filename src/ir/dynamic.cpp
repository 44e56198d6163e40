#include "lockstep/kernel/dynamic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

std::string traced_kernel() { return detail::builder().where(); }

}  // namespace

namespace detail {

AnyVal any_value(ir::Id id) {
  AnyVal value;
  value.traced_ = Traced(id);
  return value;
}
ir::Id id_of(const AnyVal& value) { return value.traced_.id(); }

AnyVal any_op(ir::Op floats, ir::Op integers, std::initializer_list<AnyVal> operands) {
  const Type type = operands.begin()->type();
  const ir::Op op = is_float(type) ? floats : integers;
  if (op == ir::Op::none)
    throw InputError(
        fmt::format("operation {} of {}", ir::name(is_float(type) ? integers : floats), name(type)),
        traced_kernel(), is_float(type) ? "an integer type" : "f32 or f64");
  std::array<ir::Id, 3> ids{};
  std::transform(operands.begin(), operands.end(), ids.begin(), [](const AnyVal& v) { return id_of(v); });
  switch (operands.size()) {
    case 1: return any_value(builder().op(op, {ids[0]}));
    case 2: return any_value(builder().op(op, {ids[0], ids[1]}));
    default: return any_value(builder().op(op, {ids[0], ids[1], ids[2]}));
  }
}
AnyVal any_select(const AnyVal& condition, const AnyVal& yes, const AnyVal& no) {
  return any_value(builder().select(id_of(condition), id_of(yes), id_of(no)));
}
AnyVal any_reduce(ir::Reduction how, const AnyVal& a) {
  return any_value(builder().emit(ir::Op::group_reduce, a.type(), {id_of(a)}, uint64_t(how)));
}

}  // namespace detail

using detail::any_value;
using detail::builder;
using detail::id_of;

AnyVal::AnyVal(const AnyVar& variable) : AnyVal(any_value(builder().get(variable.traced_.id()))) {}
Type AnyVal::type() const { return builder().type(traced_.id()); }
AnyVal AnyVal::constant(Type type, uint64_t bits) { return any_value(builder().constant(type, bits)); }
void AnyVal::require(Type type) const {
  if (this->type() != type)
    throw InputError(fmt::format("a value of type {}", name(this->type())), traced_kernel(),
                     fmt::format("{}, or convert({})", name(type), name(type)));
}
AnyVal AnyVal::convert(Type to) const { return any_value(builder().convert(to, traced_.id())); }
AnyVal AnyVal::bitcast(Type to) const { return any_value(builder().bitcast(to, traced_.id())); }

AnyVar::AnyVar(const AnyVal& initial) : traced_(builder().variable(id_of(initial))) {}
AnyVar& AnyVar::operator=(const AnyVal& value) {
  builder().set(traced_.id(), id_of(value));
  return *this;
}
Type AnyVar::type() const { return builder().type(traced_.id()); }

AnyVal powi(const AnyVal& a, detail::Whole<int> power) {
  const int n = power;
  const uint64_t size = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
  if (is_float(a.type()) && size > kProductPower) return pow(a, n);
  if (n == 0) return AnyVal::number(a.type(), 1);
  const AnyVal product =
      detail::power_by_squaring(a, size, [](const AnyVal& x, const AnyVal& y) { return x * y; });
  return n < 0 ? 1 / product : product;
}
AnyVal round(const AnyVal& a) {
  const AnyVal t = trunc(a);
  return copysign(select(abs(a - t) >= 0.5, abs(t) + 1, abs(t)), a);
}
AnyVal uniform(const AnyVal& a) { return any_value(builder().keep(ir::Op::uniform, id_of(a))); }
AnyVal rounded(const AnyVal& x) {
  if (!is_float(x.type()))
    throw InputError(fmt::format("rounded of {}", name(x.type())), traced_kernel(), "f32 or f64");
  return any_value(builder().keep(ir::Op::rounded, id_of(x)));
}

namespace {

/// Both as i32, or both as offsets where one is.
AnyVal index_op(ir::Op op, const Index& a, const Index& b) {
  const bool offsets = a.value().type() == kIndexType || b.value().type() == kIndexType;
  const Index x = offsets ? a.offset() : a, y = offsets ? b.offset() : b;
  return any_value(builder().op(op, {id_of(x.value()), id_of(y.value())}, ir::kNoWrap));
}
/// A place in a shared or local array.
ir::Id array_place(const Index& at) { return id_of(at.value().as<i32>()); }

}  // namespace

Index::Index(int constant) : value_(any_value(builder().i32(constant))) {}
Index::Index(const AnyVal& value) : value_(value) {
  if (value.type() != Type::i32 && value.type() != kIndexType)
    throw InputError(fmt::format("a coordinate of type {}", name(value.type())), traced_kernel(),
                     "i32 or index");
}
Index Index::offset() const { return value_.convert(kIndexType); }
Index operator+(const Index& a, const Index& b) { return index_op(ir::Op::iadd, a, b); }
Index operator-(const Index& a, const Index& b) { return index_op(ir::Op::isub, a, b); }
Index operator*(const Index& a, const Index& b) { return index_op(ir::Op::imul, a, b); }
Index clamp_index(const Index& a, const Index& n) {
  return any_value(builder().emit(ir::Op::clamp_index, Type::i32, {array_place(a), array_place(n)}));
}

void detail::for_index(const Index& begin, const Index& end, int step,
                       const std::function<void(const Index&)>& body) {
  builder().for_(id_of(begin.value()), id_of(end.value()), step,
                 [&](ir::Id index) { body(Index(any_value(index))); });
}

AnyArray::AnyArray(bool shared, Storage storage, int64_t count)
    : shared_(shared),
      array_(detail::declare_array(shared, storage, count)),
      storage_(storage),
      count_(count) {}
AnyVal AnyArray::load(const Index& at) const {
  return any_value(
      builder().emit(shared_ ? ir::Op::shared_load : ir::Op::local_load, type(), {array_place(at)}, array()));
}
void AnyArray::store(const Index& at, const AnyVal& value) const {
  if (value.type() != type())
    throw InputError(fmt::format("{} stored in an array of {}", name(value.type()), name(type())),
                     traced_kernel(), fmt::format("{}, or convert({})", name(type()), name(type())));
  builder().emit(shared_ ? ir::Op::shared_store : ir::Op::local_store, Type::none,
                 {array_place(at), id_of(value)}, array());
}

namespace {
void require_atomic(Type type, Type value) {
  if ((type != Type::i32 && type != Type::u32) || value != type)
    throw InputError(fmt::format("an atomic operation with {} on {}", name(value), name(type)),
                     traced_kernel(), "i32 or u32, of one type");
}
}  // namespace

AnyVal AnyShared::atomic_add(const Index& at, const AnyVal& value) const {
  require_atomic(type(), value.type());
  const ir::AtomicTarget target{ir::AtomicOp::add, true, array()};
  return any_value(builder().emit(ir::Op::atomic, type(), {array_place(at), id_of(value)}, target.bits()));
}

Index AnyGrid::place(std::initializer_list<Index> at) const {
  if (int(at.size()) != rank_)
    throw InputError(
        fmt::format("{} coordinates", at.size()),
        fmt::format("{}, buffer {}", traced_kernel(), builder().function().buffers[index()].name),
        fmt::format("{}", rank_));
  std::array<ir::Id, 4> ids{};
  std::transform(at.begin(), at.end(), ids.begin(), [](const Index& c) { return id_of(c.value()); });
  return any_value(offset(std::span<const ir::Id>(ids.data(), at.size())));
}
AnyVal AnyGrid::load_at(const Index& offset) const {
  ir::Instruction load{ir::Op::load};
  load.type = type();
  load.flags = flags_;
  load.imm = index();
  load.args[0] = id_of(offset.offset().value());
  return any_value(builder().append(load));
}
void AnyGrid::store_at(const Index& offset, const AnyVal& value) const {
  ir::Instruction store{ir::Op::store};
  store.flags = flags_;
  store.imm = index();
  store.args[0] = id_of(offset.offset().value());
  store.args[1] = id_of(value.convert(type()));
  builder().append(store);
}
void AnyGrid::copy_async(const AnyShared& shared, const Index& to, const Index& offset, int lanes) const {
  ir::Instruction copy{ir::Op::async_copy};
  copy.lanes = uint8_t(lanes);
  copy.imm = uint64_t(shared.id()) << 32 | index();
  copy.args[0] = array_place(to);
  copy.args[1] = id_of(offset.offset().value());
  builder().append(copy);
}
AnyVal AnyGrid::atomic(ir::AtomicOp op, const Index& offset, const AnyVal& value) const {
  require_atomic(type(), value.type());
  builder().function().buffers[index()].atomic = true;
  const ir::AtomicTarget target{op, false, index()};
  return any_value(
      builder().emit(ir::Op::atomic, type(), {id_of(offset.offset().value()), id_of(value)}, target.bits()));
}
AnyGrid AnyGrid::streaming(bool on) const {
  AnyGrid grid = *this;
  grid.flags_ = on ? ir::kStreaming : 0;
  return grid;
}

void Parameters::check_name(const std::string& name) const {
  const auto letter = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  const std::string place = fmt::format("kernel {}", builder_.function().name);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), letter))
    throw InputError(fmt::format("a parameter named '{}'", name), place, "letters, digits and underscores");
  const auto same = [&](const auto& parameter) { return parameter.name == name; };
  const ir::Function& f = builder_.function();
  if (std::any_of(f.buffers.begin(), f.buffers.end(), same) ||
      std::any_of(f.scalars.begin(), f.scalars.end(), same) ||
      std::any_of(f.structs.begin(), f.structs.end(), same))
    throw InputError(fmt::format("two parameters named {}", name), place, "one");
}
uint32_t Parameters::declare(const std::string& name, Storage storage, int rank, ir::Access access,
                             const Where& where) {
  check_name(name);
  builder_.at(where);
  if (builder_.function().reporting)
    throw InputError(fmt::format("parameter {} after a check or a print_if", name), builder_.where(),
                     "all buffers before them");
  if (rank < 1 || rank > 4)
    throw InputError(fmt::format("rank {}", rank),
                     fmt::format("kernel {}, parameter {}", builder_.function().name, name), "1 to 4");
  if (!is_device_storage(storage))
    throw InputError(fmt::format("elements of {}", lockstep::name(storage)),
                     fmt::format("kernel {}, parameter {}", builder_.function().name, name),
                     "an element type that kernels load: f32, f64, i32, u32, i64, u64, f16, bf16 or u8");
  builder_.function().buffers.push_back({name, storage, rank, access});
  builder_.function().buffers.back().place = builder_.place();
  return uint32_t(builder_.function().buffers.size() - 1);
}
AnyVal Parameters::scalar(const std::string& name, Type type, const Where& where) {
  check_name(name);
  builder_.at(where);
  ir::Function& f = builder_.function();
  f.scalars.push_back({name, type, builder_.place()});
  return any_value(builder_.emit(ir::Op::param, type, {}, f.scalars.size() - 1));
}

}  // namespace lockstep
