// Kernels traced from Python: the traced values, memory, and the traced kernel.
#include "bind.hpp"
#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/nvrtc.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/llvm/emit.hpp"
#include "trace.hpp"

namespace lockstep::python {
namespace {

AnyVal number(const std::string& type, nb::handle value) {
  const Type t = type_of(type);
  if (nb::isinstance<nb::bool_>(value)) return AnyVal::number(t, nb::cast<bool>(value));
  if (nb::isinstance<nb::int_>(value)) {
    int64_t small;
    if (nb::try_cast(value, small)) return AnyVal::number(t, small);
    return AnyVal::number(t, nb::cast<uint64_t>(value));
  }
  return AnyVal::number(t, nb::cast<double>(value));
}

/// One parameter as the package hands it in: what ("read", "write", "read_write" or "scalar"), type, rank.
using PythonParameter = std::tuple<std::string, std::string, int>;

/// The author's file and line.
using Line = std::pair<std::string, uint32_t>;
Kernel trace(const std::string& name, const std::string& domain, int rank, const KernelOptions& options,
             const Line& line, const std::vector<PythonParameter>& parameters, const nb::object& body) {
  return Kernel::trace(name, domain == "groups" ? ir::Domain::groups : ir::Domain::points, rank, options,
                       [&](ir::Builder& b) {
                         bindings::mark(b, line.first, line.second);
                         b.function().place = b.place();
                         nb::list arguments;
                         for (const auto& [kind, type, axes] : parameters)
                           std::visit([&](const auto& declared) { arguments.append(nb::cast(declared)); },
                                      bindings::declare(b, {kind, type, axes}));
                         body(arguments);
                       });
}

std::string source(const Kernel& kernel, const std::string& target, bool fast, const std::string& arch) {
  const ir::Function& f = kernel.function();
  const Numerics numerics = fast ? Numerics::fast : Numerics::exact;
  if (target == "ir") return ir::print(f);
  if (target == "llvm" || target == "asm") return compile::emit_llvm(f, numerics, target == "asm", arch);
  if (target == "wgsl") return clike::emit_wgsl(f, numerics);
  if (target == "cuda") return clike::emit_cuda(f, numerics, arch.empty() ? 90 : std::stoi(arch.substr(3)));
  throw InputError("target " + target, "kernel.source", "ir, llvm, asm, cuda or wgsl");
}

}  // namespace

void bind_kernels(nb::module_& module) {
  nb::class_<AnyVal>(module, "Val").def_prop_ro("type", [](const AnyVal& v) {
    return v.type() == kIndexType ? std::string("index") : std::string(name(v.type()));
  });
  nb::class_<Kernel>(module, "Kernel")
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("fingerprint", [](const Kernel& k) { return ir::fingerprint(k.function()); })
      .def("source", &source, nb::arg("target"), nb::arg("fast") = false, nb::arg("arch") = "");
  nb::class_<bindings::TracedBuffer>(module, "AnyBuffer")
      .def("size", [](const bindings::TracedBuffer& b, int axis) { return AnyVal(b.size(axis)); })
      .def("load_point",
           [](const bindings::TracedBuffer& b, const std::vector<AnyVal>& lead,
              const std::vector<int>& offsets, const std::string& boundary, bool streaming) {
             return b.load_point(lead, offsets, bindings::boundary_named(boundary), streaming);
           })
      .def("store_point", &bindings::TracedBuffer::store_point)
      .def("load", &bindings::TracedBuffer::load)
      .def("store", &bindings::TracedBuffer::store)
      .def("atomic", &bindings::TracedBuffer::atomic);
  module.def("trace", [](const std::string& name, const std::string& domain, int rank, const nb::tuple& group,
                         int min_blocks, bool contract, const Line& line,
                         const std::vector<PythonParameter>& parameters, const nb::object& body) {
    KernelOptions options;
    options.group = {nb::cast<int>(group[0]), nb::cast<int>(group[1]), nb::cast<int>(group[2])};
    options.min_blocks = min_blocks;
    options.contract = contract;
    return trace(name, domain, rank, options, line, parameters, body);
  });
  module.def("at",
             [](const std::string& path, uint32_t line) { bindings::mark(detail::builder(), path, line); });
  module.def("words", &bindings::word_arities);
  module.def("apply", &bindings::apply);
  module.def("number", &number);
  module.def("select", [](const AnyVal& c, const AnyVal& a, const AnyVal& b) { return select(c, a, b); });
  module.def("convert", [](const AnyVal& v, const std::string& to) { return v.convert(type_of(to)); });
  module.def("bitcast", [](const AnyVal& v, const std::string& to) { return v.bitcast(type_of(to)); });
  module.def("powi", [](const AnyVal& v, int n) { return powi(v, n); });
  module.def("round", [](const AnyVal& v) { return round(v); });
  module.def("rounded", [](const AnyVal& v) {
    return detail::any_value(detail::builder().keep(ir::Op::rounded, detail::id_of(v)));
  });
  module.def("rounded_product", [](const AnyVal& a, const AnyVal& b) { return rounded_product(a, b); });
  module.def("uniform", [](const AnyVal& v) { return uniform(v); });
}

}  // namespace lockstep::python
