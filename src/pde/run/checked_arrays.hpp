// Arrays that a run was given by name, checked one by one.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "pde/run/fields.hpp"

namespace lockstep::pde {

/// The arrays of a run; the first one fixes element type and cells. Types and shapes are checked before elements are read.
class CheckedArrays {
 public:
  CheckedArrays(const Fields& fields, const std::string& where)
      : fields_(fields), where_(where), names_(fields.names()) {}

  /// A field of shape (leading …, nz, ny, nx).
  void field(const std::string& name, const Sizes& leading) {
    const ArrayHead a = find(name);
    if (a.storage != Storage::f32 && a.storage != Storage::f64)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage)), where_,
                       "f32 or f64");
    expect_shape(a.shape, name, leading);
    if (first_.empty()) {
      first_ = name;
      storage_ = a.storage;
      const size_t r = a.shape.size();
      cells_ = {a.shape[r - 1], a.shape[r - 2], a.shape[r - 3]};
    }
    expect_cells(a.shape, name);
    if (a.storage != storage_)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage)), where_,
                       fmt::format("{} as {}", lockstep::name(storage_), first_));
  }
  /// The mask, if there is one.
  void mask() {
    if (!has("mask")) return;
    const Sizes shape = find("mask").shape;
    expect_shape(shape, "mask", {});
    expect_cells(shape, "mask");
  }
  /// The elements of a field: those of all planes, or of the planes that a rank holds.
  Array take(const std::string& name, const DividedLoss* loss = nullptr) const {
    const Array a = read(name, loss);
    if (const auto at = first_not_finite(a.packed()))
      throw InputError(fmt::format("array {} is not finite at {}", name, index_of(name, a, *at, loss)),
                       where_,
                       "finite numbers (a mask leaves cells out, but their values still enter differences)");
    return a;
  }
  /// The mask as numbers of the fields' type, or nothing.
  Array take_mask(const DividedLoss* loss = nullptr) const {
    if (!has("mask")) return {};
    const Array a = read("mask", loss), numbers = a.to(Storage::f64).packed();
    const auto values = numbers.as<double>();
    for (size_t k = 0; k < values.size(); ++k)
      if (!(values[k] >= 0) || std::isinf(values[k]))
        throw InputError(
            fmt::format("array mask is {} at {}", values[k], index_of("mask", a, int64_t(k), loss)), where_,
            "finite weights of 0 or more");
    return a.to(storage_);
  }
  /// An array of other shapes than the fields': of numbers, all finite, as the fields' type. `expected` is for errors.
  Array numbers(const std::string& name, const std::string& expected) const {
    if (!has(name)) throw InputError(fmt::format("no array {}", name), where_, expected);
    const Array a = fields_.whole(name).to(storage_).packed();
    if (const auto at = first_not_finite(a))
      throw InputError(fmt::format("array {} is not finite at {}", name, index_text(a.shape(), *at)), where_,
                       "finite numbers");
    return a;
  }
  bool has(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }
  const std::string& where() const { return where_; }
  const std::array<int64_t, 3>& cells() const { return cells_; }
  Storage storage() const { return storage_; }

 private:
  ArrayHead find(const std::string& name) const {
    if (has(name)) return fields_.head(name);
    throw InputError(fmt::format("no array {} among {}", name, fmt::join(names_, ", ")), where_, name);
  }
  Array read(const std::string& name, const DividedLoss* loss) const {
    return loss ? fields_.planes(name, *loss) : fields_.whole(name);
  }
  /// Of an element in the whole array.
  std::string index_of(const std::string& name, const Array& part, int64_t at,
                       const DividedLoss* loss) const {
    const Sizes &shape = part.shape(), whole = fields_.head(name).shape;
    const size_t axis = shape.size() - 3;
    const int64_t plane = shape[axis + 1] * shape[axis + 2], held = shape[axis], nz = whole[axis];
    const int64_t row = at / (plane * held), z = at / plane % held + (loss ? loss->held().begin : 0);
    return index_text(whole, (row * nz + (z % nz + nz) % nz) * plane + at % plane);
  }
  void expect_shape(const Sizes& shape, const std::string& name, const Sizes& leading) const {
    bool fits = shape.size() == leading.size() + 3;
    for (size_t k = 0; fits && k < shape.size(); ++k)
      fits = shape[k] > 0 && (k >= leading.size() || shape[k] == leading[k]);
    std::string expected = "(";
    for (int64_t n : leading) expected += fmt::format("{}, ", n);
    if (!fits)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(shape)), where_,
                       expected + "nz, ny, nx)");
  }
  void expect_cells(const Sizes& shape, const std::string& name) const {
    const size_t r = shape.size();
    if (std::array{shape[r - 1], shape[r - 2], shape[r - 3]} != cells_)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(shape)), where_,
                       fmt::format("the cells of {}, {} x {} x {}", first_, cells_[2], cells_[1], cells_[0]));
  }

  const Fields& fields_;
  const std::string& where_;
  const std::vector<std::string> names_;
  std::string first_;
  Storage storage_ = Storage::f32;
  std::array<int64_t, 3> cells_{};
};

}  // namespace lockstep::pde
