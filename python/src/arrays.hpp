// Arrays of NumPy both ways, and the argument `progress`.
#pragma once

#include <nanobind/ndarray.h>

#include <utility>

#include "bind.hpp"

namespace lockstep::python {

/// The argument `progress`: a function of (done, total), called under the lock; Ctrl-C is seen then, given or not.
inline std::function<void(int64_t, int64_t)> progress_of(const nb::dict& given) {
  const nb::object value = given.contains("progress") ? nb::object(given["progress"]) : nb::none();
  return [kept = value.is_none() ? std::shared_ptr<void>() : keep<void>(value)](int64_t done, int64_t total) {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (kept) nb::handle(static_cast<PyObject*>(kept.get()))(done, total);
  };
}

/// A NumPy array that owns `values`.
template <class T>
nb::object to_numpy(std::vector<T> values, std::vector<size_t> shape) {
  auto* const kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}
/// The elements of a host array, of f32, f64, i32, u32, i64, u64 or u8.
nb::object to_numpy(const Array& array);
/// A NumPy array's memory in C order, kept as long as the array.
Array array_of(const nb::object& values, const std::string& where);

}  // namespace lockstep::python
