// Arrays that a run was given by name, checked one by one.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

/// The arrays of a run; the first one fixes element type and cells.
class CheckedArrays {
 public:
  CheckedArrays(const NamedArrays& arrays, const std::string& where) : arrays_(arrays), where_(where) {}

  /// A field of shape (leading …, nz, ny, nx).
  const Array& field(const std::string& name, const Sizes& leading) {
    const Array& a = find(name);
    if (a.storage() != Storage::f32 && a.storage() != Storage::f64)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage())), where_,
                       "f32 or f64");
    expect_shape(a, name, leading);
    if (first_.empty()) {
      first_ = name;
      storage_ = a.storage();
      const size_t r = a.shape().size();
      cells_ = {a.shape()[r - 1], a.shape()[r - 2], a.shape()[r - 3]};
    }
    expect_cells(a, name);
    if (a.storage() != storage_)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage())), where_,
                       fmt::format("{} as {}", lockstep::name(storage_), first_));
    if (const auto at = first_not_finite(a.packed()))
      throw InputError(fmt::format("array {} is not finite at {}", name, index_text(a.shape(), *at)), where_,
                       "finite numbers (a mask leaves cells out, but their values still enter differences)");
    return a;
  }
  /// The mask as numbers of the fields' type, or nothing.
  Array mask() {
    if (!arrays_.count("mask")) return {};
    const Array& a = find("mask");
    expect_shape(a, "mask", {});
    expect_cells(a, "mask");
    const Array numbers = a.to(Storage::f64).packed();
    const auto values = numbers.as<double>();
    for (size_t k = 0; k < values.size(); ++k)
      if (!(values[k] >= 0) || std::isinf(values[k]))
        throw InputError(fmt::format("array mask is {} at {}", values[k], index_text(a.shape(), int64_t(k))),
                         where_, "finite weights of 0 or more");
    return a.to(storage_);
  }
  /// An array of other shapes than the fields': of numbers, all finite, as the fields' type. `expected` is for errors.
  Array numbers(const std::string& name, const std::string& expected) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) throw InputError(fmt::format("no array {}", name), where_, expected);
    const Array a = found->second.to(storage_).packed();
    if (const auto at = first_not_finite(a))
      throw InputError(fmt::format("array {} is not finite at {}", name, index_text(a.shape(), *at)), where_,
                       "finite numbers");
    return a;
  }
  bool has(const std::string& name) const { return arrays_.count(name) > 0; }
  const std::string& where() const { return where_; }
  const std::array<int64_t, 3>& cells() const { return cells_; }
  Storage storage() const { return storage_; }

 private:
  const Array& find(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found != arrays_.end()) return found->second;
    std::vector<std::string> present;
    for (const auto& [other, array] : arrays_) present.push_back(other);
    throw InputError(fmt::format("no array {} among {}", name, fmt::join(present, ", ")), where_, name);
  }
  void expect_shape(const Array& a, const std::string& name, const Sizes& leading) const {
    bool fits = a.shape().size() == leading.size() + 3;
    for (size_t k = 0; fits && k < a.shape().size(); ++k)
      fits = a.shape()[k] > 0 && (k >= leading.size() || a.shape()[k] == leading[k]);
    std::string expected = "(";
    for (int64_t n : leading) expected += fmt::format("{}, ", n);
    if (!fits)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(a.shape())), where_,
                       expected + "nz, ny, nx)");
  }
  void expect_cells(const Array& a, const std::string& name) const {
    const size_t r = a.shape().size();
    if (std::array{a.shape()[r - 1], a.shape()[r - 2], a.shape()[r - 3]} != cells_)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(a.shape())), where_,
                       fmt::format("the cells of {}, {} x {} x {}", first_, cells_[2], cells_[1], cells_[0]));
  }

  const NamedArrays& arrays_;
  const std::string& where_;
  std::string first_;
  Storage storage_ = Storage::f32;
  std::array<int64_t, 3> cells_{};
};

}  // namespace lockstep::pde
