#include "math/expand.hpp"

#include "math/bodies/bodies.hpp"

namespace lockstep::math {

namespace {
template <class T>
ir::Id traced(ir::Op op, std::span<const ir::Id> args) {
  const auto a = Val<T>::from(args[0]), b = Val<T>::from(args[args.size() > 1 ? 1 : 0]);
  return body<Val, T>(op, a, b).id();
}
template <class T>
SinCosIds traced_sincos(ir::Id angle) {
  const auto both = sincos_body<Val, T>(Val<T>::from(angle));
  return {both.sin.id(), both.cos.id()};
}
}  // namespace

ir::Id expand(ir::Builder& builder, ir::Op op, std::span<const ir::Id> args) {
  if (int(args.size()) != ir::arity(op) || args.empty())
    throw InternalError("operands of an elementary function", ir::name(op), "as many as ops.def says");
  const detail::TraceScope scope(builder);
  switch (builder.type(args[0])) {
    case Type::f32: return traced<f32>(op, args);
    case Type::f64: return traced<f64>(op, args);
    default: throw InternalError("operand of an elementary function", ir::name(op), "f32 or f64");
  }
}

SinCosIds expand_sincos(ir::Builder& builder, ir::Id angle) {
  const detail::TraceScope scope(builder);
  return builder.type(angle) == Type::f64 ? traced_sincos<f64>(angle) : traced_sincos<f32>(angle);
}

}  // namespace lockstep::math
