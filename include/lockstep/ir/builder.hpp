// Appends instructions to a function. The kernel language and the passes use it to build functions.
#pragma once

#include <bit>
#include <functional>
#include <initializer_list>
#include <map>
#include <source_location>
#include <span>
#include <typeindex>

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

class Builder {
 public:
  explicit Builder(Function& function) : function_(function) {}

  Function& function() { return function_; }
  const Instruction& operator[](Id id) const { return function_[id]; }
  Type type(Id id) const { return function_[id].type; }

  /// Sets the source line of the instructions that follow. Lines of the language's own headers are ignored.
  void at(const std::source_location& where);
  void at(Place place) { place_ = place; }
  Place place() const { return place_; }
  /// Kernel and place, for messages.
  std::string where() const { return where_of(function_, place_); }

  /// Appends to the current block.
  Id append(Instruction instruction);
  Id emit(Op op, Type type, std::initializer_list<Id> args = {}, uint64_t imm = 0, uint8_t flags = 0);

  /// Appends an elementary or math operation after checking its arity and operand types, and infers the type of the
  /// result.
  Id op(Op op, std::initializer_list<Id> args, uint8_t flags = 0);

  Id constant(Type type, uint64_t bits);
  Id f32(float v) { return constant(Type::f32, std::bit_cast<uint32_t>(v)); }
  Id f64(double v) { return constant(Type::f64, std::bit_cast<uint64_t>(v)); }
  Id i32(int32_t v) { return constant(Type::i32, uint32_t(v)); }
  Id u32(uint32_t v) { return constant(Type::u32, v); }
  Id boolean(bool v) { return constant(Type::boolean, v); }
  /// Number `v` as a constant of `type`.
  Id number(Type type, double v);

  Id select(Id condition, Id yes, Id no);
  Id convert(Type to, Id value);
  Id bitcast(Type to, Id value);

  /// A value with a property stated by the author: Op::uniform or Op::rounded.
  Id keep(Op op, Id value) { return emit(op, type(value), {value}); }

  /// A moment of the trace: the position after the last instruction of a block.
  struct Moment {
    uint32_t block;
    Id last;
    Place place;
  };
  Moment here() const;
  /// The element that `load` would have read at this moment, even if it was stored to since.
  Id load_as_of(const Moment& moment, Op load, Type type, Id index, uint64_t array);

  Id variable(Id initial);
  Id get(Id variable);
  void set(Id variable, Id value);

  void if_(Id condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  void for_(Id begin, Id end, int64_t step, const std::function<void(Id)>& body);
  void loop(const std::function<void()>& body);

  /// Runs `fill` with a new block as the current one and returns the number of the block. Throws InputError if control
  /// flow is nested deeper than kDeepestFlow.
  uint32_t block(const std::function<void()>& fill);
  /// A call of Function::functions[number]. Throws InputError for arguments of other types. `extract` selects one of
  /// several results.
  Id call(uint32_t number, std::span<const Id> values);
  /// Numbers of the functions that were traced for this one, by their identity and the C++ types of their arguments.
  std::map<std::pair<uint64_t, std::type_index>, uint32_t> traced;

  uint32_t current() const { return current_; }
  void set_current(uint32_t block) { current_ = block; }

 private:
  /// Throws InputError if this many further levels of control flow exceed kDeepestFlow.
  void nest(int levels) const;
  Function& function_;
  uint32_t current_ = 0;
  Place place_ = 0;
  std::vector<int> depth_;  // of each block; 0 for those that this builder did not open
};

}  // namespace lockstep::ir
