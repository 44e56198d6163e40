// Arrays on the host, for files, devices, other programs and applications.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/types.hpp"

namespace lockstep {

/// Sizes or strides along the axes of an array, slowest axis first; any number of axes.
class Sizes : public std::vector<int64_t> {
 public:
  using vector::vector;
  Sizes(std::vector<int64_t> sizes) : vector(std::move(sizes)) {}
  Sizes(const Shape& shape) {
    for (int a = 0; a < shape.rank(); ++a) push_back(shape[a]);
  }
};
std::string to_string(const Sizes& sizes);  // "(3, 64, 64)"

/// Owner of the memory of an array. owned: this array alone. shared: several arrays, or memory that another library
/// keeps alive. view: memory of the caller, which must outlive the array.
enum class Ownership : uint8_t { owned, shared, view };

/// Elements of one type on a grid of any number of axes, with NumPy's shape and strides. An array has value semantics
/// but is cheap to copy: copies, slices and reshapes share the elements until one of them is written through
/// mutate(), which first copies shared or foreign memory. All bits of the elements are preserved, including NaN and
/// nodata values.
class Array {
 public:
  /// No elements: f32 of shape (0,).
  Array() = default;
  /// Zeros. Throws InputError for negative sizes and for more than 2^63 - 1 bytes.
  Array(Storage storage, Sizes shape);

  /// Takes ownership of `values` (one axis unless a shape is given). Throws InputError if their number does not match
  /// the shape.
  template <Element E>
    requires(!std::is_same_v<E, bool>)
  static Array of(std::vector<E> values, Sizes shape) {
    const auto kept = std::make_shared<std::vector<E>>(std::move(values));
    Array array(kStorageOf<E>, std::move(shape), kept->size(), kept, kept->data());
    array.writable_ = true;
    return array;
  }
  template <Element E>
    requires(!std::is_same_v<E, bool>)
  static Array of(std::vector<E> values) {
    const auto count = int64_t(values.size());
    return of(std::move(values), Sizes{count});
  }
  /// A copy of `values`.
  template <Element E>
  static Array of(std::span<const E> values, Sizes shape) {
    return view(values, std::move(shape)).copy();
  }
  /// The caller's elements, which must outlive the array and its copies.
  template <Element E>
  static Array view(std::span<const E> values, Sizes shape) {
    return Array(kStorageOf<E>, std::move(shape), values.size(), nullptr, values.data());
  }
  /// Elements anywhere in memory with `strides` in elements (empty: C order). `owner` keeps the memory alive, or is
  /// null if it outlives the array. The elements are never written.
  static Array adopt(Storage storage, Sizes shape, const void* data, std::shared_ptr<const void> owner,
                     Sizes strides = {});

  Storage storage() const { return storage_; }
  const Sizes& shape() const { return shape_; }
  const Sizes& strides() const { return strides_; }  ///< in elements
  int rank() const { return int(shape_.size()); }
  /// Size of an axis; negative ones count from the last. Throws InputError beyond the rank.
  int64_t size(int axis) const;
  int64_t elements() const;
  int64_t bytes() const { return elements() * size_of(storage_); }
  bool empty() const { return elements() == 0; }
  /// True if the elements are in C order without gaps.
  bool contiguous() const;
  Ownership ownership() const;
  /// The shape for devices. Throws InputError for more than 4 axes; an array without axes gives (1,).
  Shape device_shape() const;

  /// Address of the first element.
  const std::byte* data() const { return data_; }
  /// The elements of a contiguous array. Throws InputError, naming both types, if E is not the element type, and if
  /// the array is not contiguous.
  template <Element E>
  std::span<const E> as() const {
    check_access(kStorageOf<E>);
    return {reinterpret_cast<const E*>(data_), size_t(elements())};
  }
  /// The same for writing; the array then has its own copy of the elements.
  template <Element E>
  std::span<E> mutate() {
    check_access(kStorageOf<E>);
    return {reinterpret_cast<E*>(own()), size_t(elements())};
  }
  /// All bytes of a contiguous array.
  std::span<const std::byte> raw() const;
  std::span<std::byte> mutate_raw();
  /// One element, for any strides. The indices are not checked.
  template <Element E, class... I>
  E at(I... index) const {
    int64_t offset = 0;
    size_t axis = 0;
    ((offset += int64_t(index) * strides_[axis++]), ...);
    return reinterpret_cast<const E*>(data_)[offset];
  }

  /// The same elements in another shape. Throws InputError unless the array is contiguous and has as many elements.
  Array reshape(Sizes shape) const;
  /// Indices [first, first + count) of one axis. Throws InputError for indices outside the axis.
  Array slice(int axis, int64_t first, int64_t count) const;
  /// The part at one index of the slowest axis, without that axis. Throws InputError for an index outside the axis.
  Array operator[](int64_t index) const;
  /// Axes in the opposite order.
  Array transposed() const;
  /// A copy in C order.
  Array copy() const;
  /// This array if it is contiguous, otherwise a copy.
  Array packed() const { return contiguous() ? *this : copy(); }
  /// The elements converted by value to another type: floats round to nearest, floats to integers towards zero, and
  /// to boolean is "not zero". Throws InputError, naming value and index, if an integer type cannot represent a
  /// value.
  Array to(Storage storage) const;

 private:
  Array(Storage storage, Sizes shape, size_t count, std::shared_ptr<const void> owner, const void* data);
  void check_access(Storage wanted) const;
  std::byte* own();

  Storage storage_ = Storage::f32;
  Sizes shape_{0}, strides_{1};
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  bool writable_ = false;  // the memory was made by an array
};

/// Index of the element at `position` in C order, as NumPy writes it: "(2, 0, 7)".
std::string index_text(const Sizes& shape, int64_t position);
/// Position in C order of the first NaN or infinity of a contiguous float array, or nothing.
std::optional<int64_t> first_not_finite(const Array& array);

}  // namespace lockstep
