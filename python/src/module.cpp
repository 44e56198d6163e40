// The extension module lockstep._core: thin bindings of the public C++ interface. The package around it is Python.
#include "bind.hpp"

namespace lockstep::python {
namespace {

/// Raises the class of lockstep._errors that stands for a C++ error.
void translate(const std::exception_ptr& error, void*) {
  const auto raise = [](const char* name, const Error& e) {
    const nb::object type = nb::module_::import_("lockstep._errors").attr(name);
    const nb::object raised = type(e.what());
    raised.attr("hint") = e.hint();
    PyErr_SetObject(type.ptr(), raised.ptr());
  };
  try {
    std::rethrow_exception(error);
  } catch (const InputError& e) { raise("InputError", e); } catch (const UnsupportedError& e) {
    raise("UnsupportedError", e);
  } catch (const DeviceError& e) { raise("DeviceError", e); } catch (const Error& e) {
    raise("Error", e);
  }
}

}  // namespace
}  // namespace lockstep::python

NB_MODULE(_core, module) {
  using namespace lockstep::python;
  nb::set_leak_warnings(false);  // open devices stay until the process ends
  nb::register_exception_translator(translate);
  bind_devices(module);
  bind_dlpack(module);
  bind_kernels(module);
  bind_control(module);
  bind_values(module);
  bind_pde(module);
  bind_solve(module);
  bind_urban(module);
  bind_urban_run(module);
  bind_flow(module);
  bind_forecast(module);
  bind_cases(module);
  bind_xla(module);
  bind_loss_call(module);
}
