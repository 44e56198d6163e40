#include "ir/meaning.hpp"

#include "lockstep/kernel/value.hpp"

namespace lockstep::ir::meaning {

uint64_t evaluate(Op op, Type operand, Type result, const uint64_t* args) {
  switch (op) {
    case Op::select: return args[0] ? args[1] : args[2];
    case Op::bitcast: return args[0];
    case Op::convert:
      return with_type(operand, [&](auto from) {
        return with_type(result, [&](auto to) {
          return to_bits(convert<decltype(to)>(from_bits<decltype(from)>(args[0])));
        });
      });
#define LOCKSTEP_OP(name, arity, ...)                                                            \
  case Op::name:                                                                                 \
    return with_type(operand, [&](auto tag) -> uint64_t {                                        \
      using T = decltype(tag);                                                                   \
      if constexpr (takes(Op::name, detail::kType<T>))                                           \
        return to_bits(op_##name(from_bits<T>(args[0]), from_bits<T>(args[(arity) > 1 ? 1 : 0]), \
                                 from_bits<T>(args[(arity) > 2 ? 2 : 0])));                      \
      else                                                                                       \
        return 0;                                                                                \
    });
#include "lockstep/ir/ops.def"
    default: return 0;
  }
}

}  // namespace lockstep::ir::meaning
