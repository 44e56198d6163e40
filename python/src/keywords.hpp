// Keyword arguments of Python as members of options, and results as dictionaries and NumPy arrays.
#pragma once

#include <nanobind/ndarray.h>

#include <filesystem>
#include <set>
#include <type_traits>
#include <utility>

#include "bind.hpp"

namespace lockstep::python {

/// Reads members by name; `done` refuses what nothing took. None counts as not given.
class Keywords {
 public:
  Keywords(nb::dict given, std::string where) : given_(std::move(given)), where_(std::move(where)) {}

  template <class T>
  Keywords& take(const char* key, T& to) {
    const nb::object value = find(key);
    if (!value.is_valid()) return *this;
    if constexpr (std::is_same_v<T, std::filesystem::path>) {
      to = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(value));
    } else if (!nb::try_cast(value, to)) {
      throw InputError(text_of(value), argument(key), expected<T>());
    }
    return *this;
  }
  template <class T>
  Keywords& take(const char* key, std::optional<T>& to) {
    if (!find(key).is_valid()) return *this;
    return take(key, to.emplace());
  }
  template <class E>
  Keywords& choose(const char* key, E& to, const std::vector<std::pair<std::string, E>>& names) {
    const nb::object value = find(key);
    if (!value.is_valid()) return *this;
    std::string all, asked = text_of(value);
    for (const auto& [name, one] : names) {
      if (name == asked) {
        to = one;
        return *this;
      }
      all += (all.empty() ? "" : ", ") + name;
    }
    throw InputError(asked, argument(key), all);
  }
  /// Enumerations whose names the library knows.
  template <class E>
  Keywords& choose(const char* key, E& to, std::initializer_list<E> values) {
    std::vector<std::pair<std::string, E>> names;
    for (E one : values) names.emplace_back(std::string(name(one)), one);
    return choose(key, to, names);
  }
  /// A function of (done, total), called under the lock; Ctrl-C is seen then, given or not.
  Keywords& progress(const char* key, std::function<void(int64_t, int64_t)>& to) {
    const nb::object value = find(key);
    to = [kept = value.is_valid() ? keep<void>(value) : std::shared_ptr<void>()](int64_t done,
                                                                                 int64_t total) {
      const nb::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (kept) nb::handle(static_cast<PyObject*>(kept.get()))(done, total);
    };
    return *this;
  }
  bool has(const char* key) { return find(key).is_valid(); }
  void done() const {
    for (const auto& [key, value] : given_)
      if (!taken_.contains(text_of(key)))
        throw InputError("argument " + text_of(key), where_, "of " + joined());
  }

 private:
  nb::object find(const char* key) {
    taken_.insert(key);
    if (!given_.contains(key)) return {};
    nb::object value = given_[key];
    return value.is_none() ? nb::object() : value;
  }
  static std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }
  std::string argument(const char* key) const { return where_ + ", argument " + key; }
  std::string joined() const {
    std::string all;
    for (const std::string& key : taken_) all += (all.empty() ? "" : ", ") + key;
    return all;
  }
  template <class T>
  static const char* expected() {
    if constexpr (std::is_same_v<T, bool>) return "True or False";
    if constexpr (std::is_integral_v<T>) return "a whole number that fits";
    if constexpr (std::is_floating_point_v<T>) return "a number";
    if constexpr (std::is_same_v<T, std::string>) return "a text";
    return "values of the documented type";
  }

  nb::dict given_;
  std::string where_;
  std::set<std::string> taken_;
};

/// A result's JSON as dictionaries and lists.
inline nb::object from_json(const std::string& text) {
  return nb::module_::import_("json").attr("loads")(text);
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
