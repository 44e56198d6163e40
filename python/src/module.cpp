// The extension module lockstep._core: thin bindings of the public C++ interface. The package around it is Python.
#include "bind.hpp"
#include "cli/program.hpp"
#include "lockstep/check.hpp"

namespace lockstep::python {
namespace {

/// Raises the class of lockstep._errors that stands for a C++ error.
void translate(const std::exception_ptr& error, void*) {
  const auto raise = [](const char* name, const Error& e) {
    const nb::object type = nb::module_::import_("lockstep._errors").attr(name);
    const nb::object raised = type(e.what());
    raised.attr("hint") = e.hint();
    if (!e.hint().empty()) raised.attr("add_note")(e.hint());  // tracebacks show it
    if (const auto* of_group = dynamic_cast<const parallel::GroupError*>(&e))
      raised.attr("on_every_rank") = of_group->everywhere();
    PyErr_SetObject(type.ptr(), raised.ptr());
  };
  try {
    std::rethrow_exception(error);
  } catch (const InputError& e) { raise("InputError", e); } catch (const UnsupportedError& e) {
    raise("UnsupportedError", e);
  } catch (const DeviceError& e) { raise("DeviceError", e); } catch (const CheckError& e) {
    raise("CheckError", e);
  } catch (const Error& e) { raise("Error", e); } catch (const std::bad_cast&) {
    raise("InputError", InputError("an argument of a type that does not fit", "lockstep", "as documented"));
  }
}

/// The program `lockstep` in this process: its arguments with its name first, and the words that start it again.
int run_program(std::vector<std::string> arguments, const std::vector<std::string>& own) {
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  return freely([&] { return cli::program(static_cast<int>(arguments.size()), words.data(), own); });
}

}  // namespace
}  // namespace lockstep::python

NB_MODULE(_core, module) {
  using namespace lockstep::python;
  nb::set_leak_warnings(false);  // open devices stay until the process ends
  nb::register_exception_translator(translate);
  module.def("program", [](const std::vector<nb::bytes>& arguments, const std::vector<std::string>& own) {
    std::vector<std::string> words;
    for (const nb::bytes& word : arguments) words.emplace_back(word.c_str(), word.size());
    return run_program(std::move(words), own);
  });
  bind_devices(module);
  bind_dlpack(module);
  bind_kernels(module);
  bind_gradients(module);
  bind_control(module);
  bind_values(module);
  bind_pde(module);
  bind_solve(module);
  bind_urban(module);
  bind_urban_run(module);
  bind_flow(module);
  bind_options(module);
  bind_forecast(module);
  bind_cases(module);
  bind_xla(module);
  bind_loss_call(module);
  bind_parallel(module);
}
