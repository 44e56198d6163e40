#include "lockstep/ir/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lockstep/error.hpp"

namespace lockstep::ir {

void Builder::at(const std::source_location& where) {
  std::string_view path = where.file_name();
  if (path.find("lockstep/kernel/") != path.npos)
    return;                                        // the language's own headers: keep the caller's line
  path = path.substr(path.find_last_of('/') + 1);  // from the start where there is no '/'
  auto& files = function_.files;
  const auto found = std::find(files.begin(), files.end(), path);
  const auto number = Place(found - files.begin());
  if (found == files.end()) files.emplace_back(path);
  constexpr Place kMost = (Place(1) << kLineBits) - 1;
  place_ = number < (Place(1) << (32 - kLineBits)) && where.line() <= kMost
               ? number << kLineBits | Place(where.line())
               : 0;
}

Id Builder::append(Instruction instruction) {
  if (!instruction.place) instruction.place = place_;
  const Id id = Id(function_.instructions.size());
  function_.instructions.push_back(instruction);
  function_.blocks[current_].push_back(id);
  return id;
}

Id Builder::emit(Op op, Type type, std::initializer_list<Id> args, uint64_t imm, uint8_t flags) {
  Instruction instruction{op};
  instruction.type = type;
  instruction.imm = imm;
  instruction.flags = flags;
  size_t n = 0;
  for (Id id : args) instruction.args[n++] = id;
  return append(instruction);
}

Id Builder::op(Op op, std::initializer_list<Id> args, uint8_t flags) {
  const Type operand = type(*args.begin());
  const auto fail = [&](std::string what, std::string expected) {
    throw InputError(what, fmt::format("{}, operation {}", where(), name(op)), expected);
  };
  if (int(args.size()) != arity(op))
    fail(fmt::format("{} operands", args.size()), fmt::format("{}", arity(op)));
  if (!takes(op, operand))
    fail(fmt::format("operand of type {}", lockstep::name(operand)), std::string(operand_types(op)));
  for (Id id : args)
    if (type(id) != operand)
      fail(fmt::format("operands of types {} and {}", lockstep::name(operand), lockstep::name(type(id))),
           "one type (use cast<T>)");
  return emit(op, result_type(op, operand), args, 0, flags);
}

Builder::Moment Builder::here() const {
  const Block& block = function_.blocks[current_];
  return {current_, block.empty() ? kNone : block.back(), place_};
}

Id Builder::load_as_of(const Moment& moment, Op load, Type type, Id index, uint64_t array) {
  const Block& block = function_.blocks[moment.block];
  size_t behind = block.size();
  bool still = moment.block == current_;  // nothing since may have stored to the element
  for (; behind > 0 && block[behind - 1] != moment.last; --behind) {
    const Op op = function_[block[behind - 1]].op;
    still &= is_pure(op) || op == Op::load || op == Op::shared_load || op == Op::local_load ||
             op == Op::get || op == Op::variable || op == Op::set || op == Op::call;
  }
  if (still) return emit(load, type, {index}, array);
  Instruction instruction{load};
  instruction.type = type;
  instruction.imm = array;
  instruction.args[0] = index;
  instruction.place = moment.place;
  const Id id = Id(function_.instructions.size());
  function_.instructions.push_back(instruction);
  function_.blocks[moment.block].insert(block.begin() + int64_t(behind), id);
  return id;
}

Id Builder::constant(Type type, uint64_t bits) { return emit(Op::constant, type, {}, bits); }

Id Builder::number(Type type, double v) {
  if (type == kIndexType) return constant(type, uint64_t(int64_t(v)));
  switch (type) {
    case Type::f32: return f32(float(v));
    case Type::f64: return f64(v);
    case Type::i32: return i32(int32_t(v));
    case Type::u32: return u32(uint32_t(v));
    case Type::i64: return constant(type, uint64_t(int64_t(v)));
    case Type::u64: return constant(type, uint64_t(v));
    case Type::boolean: return boolean(v != 0);
    case Type::none: break;
  }
  throw InternalError("constant of no type", function_.name, "a value type");
}

Id Builder::select(Id condition, Id yes, Id no) {
  if (type(condition) != Type::boolean || type(yes) != type(no))
    throw InputError(fmt::format("select({}, {}, {})", lockstep::name(type(condition)),
                                 lockstep::name(type(yes)), lockstep::name(type(no))),
                     where(), "a bool and two values of one type");
  return emit(Op::select, type(yes), {condition, yes, no});
}

Id Builder::convert(Type to, Id value) {
  const Type from = type(value);
  if (from == to) return value;
  if (to == Type::boolean) return op(is_float(from) ? Op::fne : Op::ine, {value, constant(from, 0)});
  return emit(Op::convert, to, {value});
}

Id Builder::bitcast(Type to, Id value) {
  if (size_of(to) != size_of(type(value)) || to == kIndexType || type(value) == kIndexType)
    throw InputError(fmt::format("bitcast of {} to {}", lockstep::name(type(value)), lockstep::name(to)),
                     where(), "types of one size");
  return type(value) == to ? value : emit(Op::bitcast, to, {value});
}

Id Builder::variable(Id initial) { return emit(Op::variable, type(initial), {initial}); }
Id Builder::get(Id variable) { return emit(Op::get, type(variable), {variable}); }
void Builder::set(Id variable, Id value) {
  if (type(variable) != type(value))
    throw InputError(fmt::format("{} assigned to a variable of type {}", lockstep::name(type(value)),
                                 lockstep::name(type(variable))),
                     where(), "the same type (use cast<T>)");
  emit(Op::set, Type::none, {variable, value});
}

Id Builder::call(uint32_t number, std::span<const Id> values) {
  const Function& called = function_.functions[number];
  bool fits = values.size() == called.scalars.size();
  for (size_t k = 0; fits && k < values.size(); ++k) fits = type(values[k]) == called.scalars[k].type;
  if (!fits)
    throw InputError(fmt::format("call of {} with {} values", called.name, values.size()), where(),
                     fmt::format("{} values of its types", called.scalars.size()));
  nest(depth_of(called));
  const Instruction& given = result_of(called);
  Instruction instruction{Op::call};
  instruction.type = called[given.args[0]].type;
  instruction.lanes = uint8_t(given.arg_count());
  instruction.imm = number;
  std::copy(values.begin(), values.end(), instruction.args.begin());
  return append(instruction);
}

void Builder::nest(int levels) const {
  const int depth = (current_ < depth_.size() ? depth_[current_] : 0) + levels;
  if (depth > kDeepestFlow)
    throw InputError(
        fmt::format("control flow of {} levels", depth), where(),
        fmt::format("at most {}, with those of the functions that are called there", kDeepestFlow));
}

uint32_t Builder::block(const std::function<void()>& fill) {
  nest(1);
  const uint32_t outer = current_, inner = uint32_t(function_.blocks.size());
  function_.blocks.emplace_back();
  depth_.resize(function_.blocks.size());
  depth_[inner] = depth_[outer] + 1;
  current_ = inner;
  if (fill) fill();
  current_ = outer;
  return inner;
}

void Builder::if_(Id condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  if (type(condition) != Type::boolean)
    throw InputError(fmt::format("condition of type {}", lockstep::name(type(condition))), where(), "bool");
  Instruction instruction{Op::if_};
  instruction.place = place_;
  instruction.args[0] = condition;
  instruction.blocks[0] = block(then);
  instruction.blocks[1] = block(otherwise);
  append(instruction);
}

void Builder::for_(Id begin, Id end, int64_t step, const std::function<void(Id)>& body) {
  const Type counter = type(begin);
  if (!is_integer(counter) || type(end) != counter || step == 0)
    throw InputError(
        fmt::format("for_ from {} to {} by {}", lockstep::name(counter), lockstep::name(type(end)), step),
        where(), "bounds of one integer type and a step other than 0");
  const Id stride = constant(
      counter, is_wide(counter) || counter == kIndexType ? uint64_t(step) : uint64_t(uint32_t(step)));
  Instruction instruction{Op::for_};
  instruction.place = place_;
  instruction.args = Instruction::operands({begin, end, stride});
  instruction.blocks[0] = block([&] { body(emit(Op::loop_index, counter)); });
  append(instruction);
}

void Builder::loop(const std::function<void()>& body) {
  Instruction instruction{Op::loop};
  instruction.place = place_;
  instruction.blocks[0] = block(body);
  append(instruction);
}

}  // namespace lockstep::ir
