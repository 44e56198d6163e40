// Derivatives of traced kernels.
#include "bind.hpp"
#include "lockstep/differentiate.hpp"

namespace lockstep::python {

namespace {

/// A kernel in forward mode.
struct Tangent {
  Kernel kernel;
  std::vector<KernelParameter> parameters() const { return kernel.parameters(); }
  std::vector<Kernel> kernels() const { return {kernel}; }
};
void launch(const Gradient& g, const Device& device, const Shape& extent, const Arguments& arguments,
            int64_t memory_bytes) {
  g.launch(device, extent, arguments, {memory_bytes}, std::source_location());
}
void launch(const Tangent& t, const Device& device, const Shape& extent, const Arguments& arguments,
            int64_t) {
  device.launch({t.kernel, std::source_location()}, extent, arguments);
}

/// Launches by the names of parameters: (name, type, written) of each.
template <class T>
nb::class_<T> bind_derivative(nb::module_& module, const char* name_of_class) {
  return nb::class_<T>(module, name_of_class)
      .def_prop_ro("parameters",
                   [](const T& t) {
                     nb::list all;
                     for (const KernelParameter& p : t.parameters())
                       all.append(nb::make_tuple(
                           p.name, std::string(p.buffer ? name(p.storage) : name(p.type)), p.written));
                     return all;
                   })
      .def_prop_ro("kernels", &T::kernels)
      .def(
          "launch",
          [](const T& t, const OpenDevice& open, const std::vector<int64_t>& extent, const nb::dict& named,
             int64_t memory_bytes) {
            Arguments arguments;
            for (const auto& [key, value] : named)
              arguments.set(nb::cast<std::string>(key), argument_of(value));
            const Shape shape = shape_of(extent);
            const nb::gil_scoped_release free;
            launch(t, open.device(), shape, arguments, memory_bytes);
          },
          nb::arg("device"), nb::arg("extent"), nb::arg("arguments"), nb::arg("memory_bytes") = 0);
}

}  // namespace

void bind_gradients(nb::module_& module) {
  using Names = std::vector<std::string>;
  bind_derivative<Gradient>(module, "Gradient");
  bind_derivative<Tangent>(module, "Tangent");
  module.def("tangent", [](const Kernel& kernel, const Names& inputs, const Names& outputs) {
    return Tangent{tangent(kernel, {inputs, outputs})};
  });
  module.def("differentiate", [](const Kernel& kernel, const Names& inputs, const Names& outputs) {
    return differentiate(kernel, {inputs, outputs});
  });
  module.def("overwrites", &overwrites);
  module.def("stop_gradient", [](const AnyVal& v) {
    return v.bitcast(v.type() == Type::f64 ? Type::u64 : Type::u32).bitcast(v.type());
  });
}

}  // namespace lockstep::python
