// Control flow, variables, arrays and barriers of kernels traced from Python. Blocks open and close here as Python's
// `with` and `for` enter and leave them.
#include "bind.hpp"
#include "trace.hpp"

namespace lockstep::python {

void bind_control(nb::module_& module) {
  nb::class_<bindings::OpenBlock>(module, "OpenBlock");
  nb::class_<bindings::ClosedIf>(module, "ClosedIf");
  module.def("open_block", &bindings::open_block);
  module.def("close_if", &bindings::close_if);
  module.def("open_else", &bindings::open_else);
  module.def("close_block", &bindings::close_block);
  module.def("open_for", &bindings::open_for);
  module.def("loop_index", &bindings::loop_index);
  module.def("close_for", &bindings::close_for);
  module.def("close_loop", &bindings::close_loop);
  module.def("effect", &bindings::effect);
  module.def("place", &bindings::place);
  module.def("group_sizes", [] {
    const auto& g = detail::builder().function().group;
    return nb::make_tuple(g[0], g[1], g[2]);
  });
  module.def("tracing", [] {
    try {
      return detail::builder().function().name;
    } catch (const InputError&) { return std::string(); }
  });
  module.def("reduce", &bindings::reduce);
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
