// Shared by the parts of the module: names of types, shapes, owners that Python holds, errors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/lockstep.hpp"

namespace nb = nanobind;

namespace lockstep::python {

/// Device, its CPU fallback and its counters; what Python calls a Device.
struct OpenDevice {
  explicit OpenDevice(ContextOptions options);
  const Device& device() const { return context->device(); }
  /// Lines `[GPU] … CPU fallback.` since the last call.
  std::vector<std::string> take_fallbacks();

  std::shared_ptr<std::pair<std::mutex, std::vector<std::string>>> lines;
  std::unique_ptr<Context> context;
};

Storage storage_of(const std::string& name);
Type type_of(const std::string& name);
Shape shape_of(const std::vector<int64_t>& sizes);
std::vector<int64_t> sizes_of(const Shape& shape);
/// A buffer or a number as launches take it.
Argument argument_of(nb::handle value);

/// Keeps a Python object for threads that may not hold the interpreter's lock when they let go of it.
template <class T = const void>
std::shared_ptr<T> keep(nb::object object) {
  PyObject* const held = object.release().ptr();
  return std::shared_ptr<T>(static_cast<T*>(static_cast<void*>(held)), [held](T*) {
    if (!nb::is_alive()) return;  // the interpreter is gone, and its objects with it
    const nb::gil_scoped_acquire lock;
    Py_DECREF(held);
  });
}

/// Runs work that waits or computes without the interpreter's lock.
template <class F>
auto freely(F work) {
  const nb::gil_scoped_release free;
  return work();
}

/// {name: value, …}
template <class... Parts>
nb::dict dict_of(Parts&&... parts) {
  nb::dict d;
  const auto put = [&](auto& self, const char* name, auto&& value, auto&&... more) -> void {
    d[name] = std::forward<decltype(value)>(value);
    if constexpr (sizeof...(more) > 0) self(self, std::forward<decltype(more)>(more)...);
  };
  put(put, std::forward<Parts>(parts)...);
  return d;
}

/// Options of a loss by their names: gradients "all", "t1", "t1t2" or "none"; a path; fields with requested gradients.
pde::LossOptions loss_options(const std::string& gradients, const std::string& path,
                              const std::vector<std::string>& wanted);

void bind_devices(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_gradients(nb::module_& module);
void bind_control(nb::module_& module);
void bind_values(nb::module_& module);
void bind_pde(nb::module_& module);
void bind_solve(nb::module_& module);
void bind_urban(nb::module_& module);
void bind_urban_run(nb::module_& module);
void bind_flow(nb::module_& module);
void bind_options(nb::module_& module);
void bind_forecast(nb::module_& module);
void bind_cases(nb::module_& module);
void bind_xla(nb::module_& module);
void bind_loss_call(nb::module_& module);
void bind_parallel(nb::module_& module);

}  // namespace lockstep::python
