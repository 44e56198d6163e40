// The IR that expand() writes: valid, final (no elementary function inside), and without wide types for f32.
#include "math/expand.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "math/reference.hpp"

namespace lockstep {
namespace {

ir::Function kernel_of(ir::Op op, Type type) {
  ir::Function f;
  f.name = "math." + std::string(ir::name(op));
  const Storage storage = type == Type::f32 ? Storage::f32 : Storage::f64;
  f.buffers = {{"a", storage, 1, ir::Access::read},
               {"b", storage, 1, ir::Access::read},
               {"r", storage, 1, ir::Access::write}};
  ir::Builder builder(f);
  const ir::Id at = builder.emit(ir::Op::coord, Type::i32);
  const ir::Id args[] = {builder.emit(ir::Op::load, type, {at}, 0),
                         builder.emit(ir::Op::load, type, {at}, 1)};
  const ir::Id result = math::expand(builder, op, std::span(args, size_t(ir::arity(op))));
  builder.emit(ir::Op::store, Type::none, {at, result}, 2);
  return f;
}

TEST(Expand, WritesValidIrWithoutElementaryFunctions) {
  for (const ir::Op op : math::functions())
    for (const Type type : {Type::f32, Type::f64}) {
      const ir::Function f = kernel_of(op, type);
      EXPECT_NO_THROW(ir::verify(f)) << f.name;
      for (const auto& instruction : f.instructions) EXPECT_FALSE(ir::is_math(instruction.op)) << f.name;
    }
}

TEST(Expand, NeedsNoWideTypesForF32) {
  for (const ir::Op op : math::functions()) {
    const ir::Function f = kernel_of(op, Type::f32);
    for (const Type wide : {Type::f64, Type::i64, Type::u64}) EXPECT_FALSE(f.uses(wide)) << f.name;
  }
}

TEST(Expand, RefusesWrongOperands) {
  ir::Function f;
  ir::Builder builder(f);
  const ir::Id whole = builder.i32(3), number = builder.f32(3);
  EXPECT_THROW(math::expand(builder, ir::Op::exp, std::span(&whole, 1)), InternalError);
  EXPECT_THROW(math::expand(builder, ir::Op::pow, std::span(&number, 1)), InternalError);
  EXPECT_THROW(math::expand(builder, ir::Op::fadd, std::span(&number, 1)), InternalError);
}

}  // namespace
}  // namespace lockstep
