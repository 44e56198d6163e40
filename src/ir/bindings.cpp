#include "ir/bindings.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::bindings {

namespace {

/// A word of ir/ops.def as kernels say it.
struct Word {
  ir::Op floats, integers;
  int arity;
};
const std::map<std::string, Word>& words() {
  static const std::map<std::string, Word> all = {
#define LOCKSTEP_WORD(word, arity, floats, integers) {#word, {ir::Op::floats, ir::Op::integers, arity}},
#define LOCKSTEP_MATH(name, arity, ...) {#name, {ir::Op::name, ir::Op::none, arity}},
#define LOCKSTEP_INFIX(symbol, floats, integers) {#symbol, {ir::Op::floats, ir::Op::integers, 2}},
#define LOCKSTEP_PREFIX(symbol, floats, integers) {"unary " #symbol, {ir::Op::floats, ir::Op::integers, 1}},
#define LOCKSTEP_COMPARE(symbol, floats, integers, swapped) \
  {#symbol, {ir::Op::floats, ir::Op::integers, swapped ? -2 : 2}},
#include "lockstep/ir/ops.def"
  };
  return all;
}

std::vector<ir::Id> coordinate_ids(const std::vector<AnyVal>& values) {
  std::vector<ir::Id> ids;
  for (const AnyVal& v : values) ids.push_back(Index(v).value().as<i32>().id());
  return ids;
}

std::string here() { return detail::builder().where(); }
AnyVal inside_or_zero(const AnyVal& value, ir::Id inside) {
  if (inside == ir::kNone) return value;
  return select(detail::any_value(inside), value, AnyVal::number(value.type(), 0));
}

}  // namespace

Storage storage_named(const std::string& text) {
  for (int k = 0; k < kStorages; ++k)
    if (name(Storage(k)) == text) return Storage(k);
  throw InputError("element type " + text, "lockstep", "f32, f64, i32, u32, i64, u64, f16, bf16 or u8");
}
Type type_named(const std::string& text) {
  for (int k = 1; k < 8; ++k)
    if (name(Type(k)) == text) return Type(k);
  throw InputError("type " + text, "lockstep", "bool, i32, u32, i64, u64, f32 or f64");
}
Boundary boundary_named(const std::string& text) {
  if (text == "clamp") return Boundary::clamp;
  if (text == "periodic") return Boundary::periodic;
  if (text == "zero") return Boundary::zero;
  if (text == "unchecked") return Boundary::unchecked;
  throw InputError("boundary " + text, "lockstep.Grid", "clamp, periodic, zero or unchecked");
}

std::map<std::string, int> word_arities() {
  std::map<std::string, int> all;
  for (const auto& [name, word] : words()) all[name] = std::abs(word.arity);
  return all;
}

AnyVal apply(const std::string& name, const std::vector<AnyVal>& v) {
  const auto found = words().find(name);
  if (found == words().end())
    throw InputError("operation " + name, "lockstep.kernel", "a function of the kernel language");
  const auto [floats, integers, arity] = found->second;
  if (int(v.size()) != std::abs(arity))
    throw InputError(name + " of " + std::to_string(v.size()) + " operands", "lockstep.kernel",
                     std::to_string(std::abs(arity)));
  switch (arity) {
    case 1: return detail::any_op(floats, integers, {v[0]});
    case 2: return detail::any_op(floats, integers, {v[0], v[1]});
    case -2: return detail::any_op(floats, integers, {v[1], v[0]});
    default: return detail::any_op(floats, integers, {v[0], v[1], v[2]});
  }
}

AnyVal TracedBuffer::load_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets,
                                Boundary boundary, bool streaming) const {
  ir::Id inside = ir::kNone;
  const ir::Id at = place(lead, offsets, boundary, &inside);
  return inside_or_zero(load_at(at, streaming), inside);
}
void TracedBuffer::store_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets,
                               const AnyVal& value, bool streaming) const {
  ir::Id inside = ir::kNone;
  store_at(place(lead, offsets, Boundary::clamp, &inside), value, streaming);
}
AnyVal TracedBuffer::load(const std::vector<AnyVal>& at, const std::string& boundary, bool streaming) const {
  if (boundary.empty() || boundary == "unchecked") return load_at(place(at), streaming);
  check_rank(at.size());
  TracedBuffer ruled = *this;
  ruled.boundary_ = boundary_named(boundary);
  ruled.ruled_ = true;
  const std::vector<ir::Id> k = coordinate_ids(at);
  ir::Id inside = ir::kNone;
  const ir::Id element = rank_ == 1   ? ruled.offset_by_rule({k[0]}, &inside)
                         : rank_ == 2 ? ruled.offset_by_rule({k[0], k[1]}, &inside)
                         : rank_ == 3 ? ruled.offset_by_rule({k[0], k[1], k[2]}, &inside)
                                      : ruled.offset_by_rule({k[0], k[1], k[2], k[3]}, &inside);
  return inside_or_zero(load_at(element, streaming), inside);
}
void TracedBuffer::store(const std::vector<AnyVal>& at, const AnyVal& value, bool streaming) const {
  store_at(place(at), value, streaming);
}
AnyVal TracedBuffer::atomic(const std::string& op, const std::vector<AnyVal>& at, const AnyVal& value) const {
  static const std::map<std::string, ir::AtomicOp> ops = {
      {"add", ir::AtomicOp::add}, {"min", ir::AtomicOp::min},  {"max", ir::AtomicOp::max},
      {"or", ir::AtomicOp::or_},  {"and", ir::AtomicOp::and_}, {"exchange", ir::AtomicOp::exchange}};
  const Type type = value_type(storage_);
  const bool floats = storage_ == Storage::f32 || storage_ == Storage::f64;
  const auto found = ops.find(floats && op == "unordered_add" ? "add" : op);
  if (found == ops.end() || value.type() != type ||
      (floats ? op != "unordered_add" : type != Type::i32 && type != Type::u32))
    throw InputError(
        "atomic " + op + " on " + std::string(name(storage_)), here(),
        "add, min, max, or, and or exchange on i32 or u32, unordered_add on f32 or f64, with a value "
        "of that type");
  detail::builder().function().buffers[index()].atomic = true;
  const ir::AtomicTarget target{found->second, false, index()};
  return detail::any_value(
      detail::builder().emit(ir::Op::atomic, type, {place(at), detail::id_of(value)}, target.bits()));
}

void TracedBuffer::check_rank(size_t coordinates) const {
  if (int(coordinates) != rank_)
    throw InputError(std::to_string(coordinates) + " coordinates", here(), std::to_string(rank_));
}
ir::Id TracedBuffer::place(const std::vector<AnyVal>& at) const {
  check_rank(at.size());
  const std::vector<ir::Id> ids = coordinate_ids(at);
  return offset(std::span<const ir::Id>(ids));
}
ir::Id TracedBuffer::place(const std::vector<AnyVal>& lead, const std::vector<int>& offsets,
                           Boundary boundary, ir::Id* inside) const {
  const int n = int(offsets.size());
  if (n != detail::builder().function().rank || int(lead.size()) + n != rank_ || lead.size() > 2)
    throw InputError((lead.empty() ? "" : std::to_string(lead.size()) + " coordinates and ") +
                         "a point of rank " + std::to_string(n) + " as the index of an array of rank " +
                         std::to_string(rank_),
                     here(), "together rank " + std::to_string(rank_));
  const std::vector<ir::Id> ids = coordinate_ids(lead);
  switch (ids.size()) {
    case 0: return offset_at({}, offsets.data(), n, boundary, inside);
    case 1: return offset_at({ids[0]}, offsets.data(), n, boundary, inside);
    default: return offset_at({ids[0], ids[1]}, offsets.data(), n, boundary, inside);
  }
}
AnyVal TracedBuffer::load_at(ir::Id at, bool streaming) const {
  ir::Instruction load{ir::Op::load};
  load.type = value_type(storage_);
  load.flags = streaming ? ir::kStreaming : 0;
  load.imm = index();
  load.args[0] = at;
  return detail::any_value(detail::builder().append(load));
}
void TracedBuffer::store_at(ir::Id at, const AnyVal& value, bool streaming) const {
  if (value.type() != value_type(storage_))
    throw InputError(
        "a value of " + std::string(name(value.type())) + " stored in " + std::string(name(storage_)), here(),
        "a value of " + std::string(name(value_type(storage_))) + " (lockstep.cast converts)");
  ir::Instruction store{ir::Op::store};
  store.flags = streaming ? ir::kStreaming : 0;
  store.imm = index();
  store.args[0] = at;
  store.args[1] = detail::id_of(value);
  detail::builder().append(store);
}

std::variant<AnyVal, TracedBuffer> declare(ir::Builder& b, const Parameter& parameter) {
  const auto& [kind, type, rank] = parameter;
  ir::Function& f = b.function();
  if (kind == "scalar") {
    f.scalars.push_back({"p" + std::to_string(f.scalars.size()), type_named(type)});
    return detail::any_value(b.emit(ir::Op::param, type_named(type), {}, f.scalars.size() - 1));
  }
  static const std::map<std::string, ir::Access> accesses = {
      {"read", ir::Access::read}, {"write", ir::Access::write}, {"read_write", ir::Access::read_write}};
  const auto access = accesses.find(kind);
  if (access == accesses.end() || rank < 1 || rank > 4)
    throw InputError("a parameter " + kind + " of rank " + std::to_string(rank), "kernel " + f.name,
                     "read, write or read_write of rank 1 to 4, or scalar");
  const Storage storage = storage_named(type);
  if (!is_device_storage(storage))
    throw InputError("a buffer of " + type, "kernel " + f.name,
                     "f32, f64, i32, u32, i64, u64, f16, bf16 or u8");
  f.buffers.push_back({"b" + std::to_string(f.buffers.size()), storage, rank, access->second});
  f.buffers.back().position = int(f.buffers.size() + f.argument_numbers()) - 1;
  return TracedBuffer(uint32_t(f.buffers.size() - 1), storage, rank);
}

void mark(ir::Builder& b, const std::string& file, uint32_t line) {
  std::vector<std::string>& files = b.function().files;
  const std::string name = file.substr(file.find_last_of('/') + 1);
  const auto found = std::find(files.begin(), files.end(), name);
  const auto number = ir::Place(found - files.begin());
  if (found == files.end()) files.push_back(name);
  constexpr ir::Place kMost = (ir::Place(1) << ir::kLineBits) - 1;
  const bool fits = number < (ir::Place(1) << (32 - ir::kLineBits)) && line <= kMost;
  b.at(fits ? number << ir::kLineBits | ir::Place(line) : ir::Place(0));
}

OpenBlock open_block() {
  ir::Builder& b = detail::builder();
  const OpenBlock block{b.current(), b.block({})};
  b.set_current(block.inner);
  return block;
}
void close_block(const OpenBlock& block) {
  if (detail::builder().current() != block.inner)
    throw InputError("blocks that are not closed in turn", "kernel " + detail::builder().function().name,
                     "with and for statements that are closed in order");
  detail::builder().set_current(block.outer);
}

ClosedIf close_if(const AnyVal& condition, const OpenBlock& block) {
  close_block(block);
  ir::Builder& b = detail::builder();
  ir::Instruction instruction{ir::Op::if_};
  instruction.args[0] = detail::id_of(condition);
  instruction.blocks = {block.inner, b.block({})};
  b.append(instruction);
  return {b.current(), instruction.blocks[1], b.function().blocks[b.current()].size()};
}
OpenBlock open_else(const ClosedIf& closed) {
  ir::Builder& b = detail::builder();
  if (b.current() != closed.block || b.function().blocks[closed.block].size() != closed.length)
    throw InputError("else_ away from its if_", "kernel " + b.function().name, "else_ directly after if_");
  b.set_current(closed.otherwise);
  return {closed.block, closed.otherwise};
}

void close_for(const AnyVal& begin, const AnyVal& end, int64_t step, const OpenBlock& block) {
  close_block(block);
  ir::Builder& b = detail::builder();
  const Type counter = begin.type();
  const ir::Id stride = b.constant(
      counter, is_wide(counter) || counter == kIndexType ? uint64_t(step) : uint64_t(uint32_t(step)));
  ir::Instruction instruction{ir::Op::for_};
  instruction.args = ir::Instruction::operands({detail::id_of(begin), detail::id_of(end), stride});
  instruction.blocks[0] = block.inner;
  b.append(instruction);
}
OpenBlock open_for(const AnyVal& begin, const AnyVal& end, int64_t step) {
  if (!is_integer(begin.type()) || end.type() != begin.type() || step == 0)
    throw InputError("for_ from " + std::string(name(begin.type())) + " to " + std::string(name(end.type())),
                     "kernel " + detail::builder().function().name,
                     "bounds of one integer type and a step other than 0");
  return open_block();
}

void close_loop(const OpenBlock& block) {
  close_block(block);
  ir::Instruction instruction{ir::Op::loop};
  instruction.blocks[0] = block.inner;
  detail::builder().append(instruction);
}

namespace {
template <class Kind>
Kind named(const std::map<std::string, Kind>& all, const std::string& text) {
  const auto found = all.find(text);
  if (found != all.end()) return found->second;
  std::string names;
  for (const auto& [name, kind] : all) names += (names.empty() ? "" : ", ") + name;
  throw InputError(text, here(), "one of " + names);
}
}  // namespace

void effect(const std::string& name) {
  static const std::map<std::string, ir::Op> effects = {{"break", ir::Op::break_},
                                                        {"continue", ir::Op::continue_},
                                                        {"return", ir::Op::return_},
                                                        {"barrier", ir::Op::barrier}};
  detail::builder().emit(named(effects, name), Type::none);
}

AnyVal place(const std::string& what, int axis) {
  static const std::map<std::string, ir::Op> places = {{"coord", ir::Op::coord},
                                                       {"extent", ir::Op::extent},
                                                       {"local", ir::Op::local_id},
                                                       {"lane", ir::Op::lane}};
  const ir::Op op = named(places, what);
  const int rank = op == ir::Op::local_id || op == ir::Op::lane ? 3 : detail::builder().function().rank;
  return detail::any_value(detail::builder().emit(op, Type::i32, {}, detail::axis_of(rank, axis)));
}

AnyVal loop_index(const AnyVal& begin) {
  return detail::any_value(detail::builder().emit(ir::Op::loop_index, begin.type()));
}
AnyVal reduce(const std::string& how, const AnyVal& value) {
  static const std::map<std::string, ir::Reduction> reductions = {
      {"sum", ir::Reduction::add}, {"min", ir::Reduction::min}, {"max", ir::Reduction::max}};
  return detail::any_reduce(named(reductions, how), value);
}

}  // namespace lockstep::bindings
