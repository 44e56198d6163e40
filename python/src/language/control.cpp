// Control flow, variables, arrays and barriers of kernels traced from Python. Blocks open and close here as Python's
// `with` and `for` enter and leave them.
#include "bind.hpp"
#include "trace.hpp"

namespace lockstep::python {
namespace {

ir::Builder& builder() { return detail::builder(); }

/// A block that Python fills in.
struct OpenBlock {
  uint32_t outer, inner;
};
OpenBlock open_block() {
  ir::Builder& b = builder();
  const OpenBlock block{b.current(), b.block({})};
  b.set_current(block.inner);
  return block;
}
void close_block(const OpenBlock& block) {
  if (builder().current() != block.inner)
    throw InputError("blocks that are not closed in turn", "kernel " + builder().function().name,
                     "with and for statements that end where they began");
  builder().set_current(block.outer);
}

/// Where the last `if_` of a block stands, for an `else_` right behind it.
struct ClosedIf {
  uint32_t block = 0, otherwise = 0;
  size_t length = 0;
};
ClosedIf close_if(const AnyVal& condition, const OpenBlock& block) {
  close_block(block);
  ir::Builder& b = builder();
  ir::Instruction instruction{ir::Op::if_};
  instruction.args[0] = detail::id_of(condition);
  instruction.blocks = {block.inner, b.block({})};
  b.append(instruction);
  return {b.current(), instruction.blocks[1], b.function().blocks[b.current()].size()};
}
OpenBlock open_else(const ClosedIf& closed) {
  ir::Builder& b = builder();
  if (b.current() != closed.block || b.function().blocks[closed.block].size() != closed.length)
    throw InputError("else_ away from its if_", "kernel " + b.function().name, "else_ right behind if_");
  b.set_current(closed.otherwise);
  return {closed.block, closed.otherwise};
}

void close_for(const AnyVal& begin, const AnyVal& end, int64_t step, const OpenBlock& block) {
  close_block(block);
  ir::Builder& b = builder();
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
                     "kernel " + builder().function().name,
                     "bounds of one integer type and a step other than 0");
  return open_block();
}

void close_loop(const OpenBlock& block) {
  close_block(block);
  ir::Instruction instruction{ir::Op::loop};
  instruction.blocks[0] = block.inner;
  builder().append(instruction);
}

void effect(const std::string& name) {
  const ir::Op op = name == "break"      ? ir::Op::break_
                    : name == "continue" ? ir::Op::continue_
                    : name == "return"   ? ir::Op::return_
                                         : ir::Op::barrier;
  builder().emit(op, Type::none);
}

/// A coordinate or a size of the domain, as i32.
AnyVal place(const std::string& what, int axis) {
  const ir::Op op = what == "coord"    ? ir::Op::coord
                    : what == "extent" ? ir::Op::extent
                    : what == "local"  ? ir::Op::local_id
                                       : ir::Op::lane;
  return detail::any_value(builder().emit(op, Type::i32, {}, uint64_t(axis)));
}

}  // namespace

void bind_control(nb::module_& module) {
  nb::class_<OpenBlock>(module, "OpenBlock");
  nb::class_<ClosedIf>(module, "ClosedIf");
  module.def("open_block", &open_block);
  module.def("close_if", &close_if);
  module.def("open_else", &open_else);
  module.def("close_block", &close_block);
  module.def("open_for", &open_for);
  module.def("loop_index", [](const AnyVal& begin) {
    return detail::any_value(builder().emit(ir::Op::loop_index, begin.type()));
  });
  module.def("close_for", &close_for);
  module.def("close_loop", &close_loop);
  module.def("effect", &effect);
  module.def("place", &place);
  module.def("group_sizes", [] {
    const auto& g = builder().function().group;
    return nb::make_tuple(g[0], g[1], g[2]);
  });
  module.def("tracing", [] {
    try {
      return builder().function().name;
    } catch (const InputError&) { return std::string(); }
  });
  module.def("reduce", [](const std::string& how, const AnyVal& v) {
    return detail::any_reduce(how == "sum"   ? ir::Reduction::add
                              : how == "min" ? ir::Reduction::min
                                             : ir::Reduction::max,
                              v);
  });
  nb::class_<AnyVar>(module, "Var")
      .def(nb::init<const AnyVal&>())
      .def("get", [](const AnyVar& v) { return AnyVal(v); })
      .def("set", [](AnyVar& v, const AnyVal& value) { v = value; })
      .def_prop_ro("type", [](const AnyVar& v) { return std::string(name(v.type())); });
  nb::class_<AnyArray>(module, "TracedArray")
      .def_prop_ro("type", [](const AnyArray& a) { return std::string(name(a.type())); })
      .def_prop_ro("count", &AnyArray::count)
      .def("load", [](const AnyArray& a, const AnyVal& at) { return a.load(Index(at)); })
      .def("store", [](const AnyArray& a, const AnyVal& at, const AnyVal& v) { a.store(Index(at), v); });
  nb::class_<AnyLocal, AnyArray>(module, "LocalArray")
      .def("__init__", [](AnyLocal* self, const std::string& type, int64_t count) {
        new (self) AnyLocal(storage_of(type), count);
      });
  nb::class_<AnyShared, AnyArray>(module, "SharedArray")
      .def("__init__", [](AnyShared* self, const std::string& type,
                          int64_t count) { new (self) AnyShared(storage_of(type), count); })
      .def("atomic_add",
           [](const AnyShared& a, const AnyVal& at, const AnyVal& v) { return a.atomic_add(Index(at), v); });
}

}  // namespace lockstep::python
