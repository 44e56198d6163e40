#include "lockstep/array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/numbers/half.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace {

Sizes c_strides(const Sizes& shape) {
  Sizes strides(shape.size());
  int64_t step = 1;
  for (size_t a = shape.size(); a-- > 0;) {
    strides[a] = step;
    step *= std::max<int64_t>(shape[a], 1);
  }
  return strides;
}

int64_t checked_elements(const Sizes& shape, Storage storage) {
  int64_t bytes = size_of(storage);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      throw InputError(fmt::format("shape {} of {}", to_string(shape), name(storage)), "Array",
                       "sizes of 0 or more and fewer than 2^63 bytes");
  }
  return bytes / size_of(storage);
}

size_t checked_axis(int axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw InputError(fmt::format("axis {}", axis), "Array", fmt::format("an axis of {}", rank));
  return size_t(axis < 0 ? axis + rank : axis);
}

// Memory of the array alone.
std::shared_ptr<std::byte[]> allocate(int64_t bytes) {
  return std::make_shared_for_overwrite<std::byte[]>(size_t(std::max<int64_t>(bytes, 1)));
}

// Copies the elements in C order to `out`, the innermost axis at once where it has no gaps.
void gather(const std::byte* from, const Sizes& shape, const Sizes& strides, size_t axis, int64_t size,
            std::byte*& out) {
  if (axis == shape.size()) {
    std::memcpy(out, from, size_t(size));
    out += size;
  } else if (axis + 1 == shape.size()) {
    if (strides[axis] == 1) {
      std::memcpy(out, from, size_t(shape[axis] * size));
      out += shape[axis] * size;
      return;
    }
    for (int64_t n = 0; n < shape[axis]; ++n, out += size)
      std::memcpy(out, from + n * strides[axis] * size, size_t(size));
  } else {
    for (int64_t n = 0; n < shape[axis]; ++n)
      gather(from + n * strides[axis] * size, shape, strides, axis + 1, size, out);
  }
}

// 16-bit floats are worked on as f32.
float widen(f16 v) { return f16_to_f32(v.bits); }
float widen(bf16 v) { return bf16_to_f32(v.bits); }
template <class E>
E widen(E v) {
  return v;
}

/// Whether an integer type To holds the value; fractions are cut.
template <class To, class From>
bool holds(From v) {
  if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // Both limits are powers of two, hence exact; a NaN fails.
    const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
    const From whole = std::trunc(v);
    return whole >= From(std::numeric_limits<To>::min()) && whole < above;
  } else {
    return std::in_range<To>(v);
  }
}

template <class To, class From>
To converted(From v, bool& ok) {
  if constexpr (std::is_same_v<To, f16>) {
    return {f32_to_f16(float(v))};
  } else if constexpr (std::is_same_v<To, bf16>) {
    return {f32_to_bf16(float(v))};
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_integral_v<To>) {
    ok = holds<To>(v);
    return ok ? To(v) : To(0);
  } else {
    return To(v);
  }
}

}  // namespace

std::string to_string(const Sizes& sizes) {
  return fmt::format("({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
}

Array::Array(Storage storage, Sizes shape)
    : storage_(storage), shape_(std::move(shape)), strides_(c_strides(shape_)) {
  const auto memory = allocate(checked_elements(shape_, storage_) * size_of(storage_));
  data_ = memory.get();
  std::memset(memory.get(), 0, size_t(bytes()));
  owner_ = memory;
  writable_ = true;
}

Array::Array(Storage storage, Sizes shape, size_t count, std::shared_ptr<const void> owner, const void* data)
    : Array(adopt(storage, std::move(shape), data, std::move(owner))) {
  if (uint64_t(elements()) != count)
    throw InputError(fmt::format("{} values", count), "Array",
                     fmt::format("{} for shape {}", elements(), to_string(shape_)));
}

Array Array::adopt(Storage storage, Sizes shape, const void* data, std::shared_ptr<const void> owner,
                   Sizes strides) {
  checked_elements(shape, storage);
  if (!strides.empty() && strides.size() != shape.size())
    throw InputError(fmt::format("{} strides", strides.size()), "Array",
                     fmt::format("{} for shape {}", shape.size(), to_string(shape)));
  Array array;
  array.storage_ = storage;
  array.strides_ = strides.empty() ? c_strides(shape) : std::move(strides);
  array.shape_ = std::move(shape);
  array.owner_ = std::move(owner);
  array.data_ = static_cast<const std::byte*>(data);
  return array;
}

int64_t Array::size(int axis) const { return shape_[checked_axis(axis, rank())]; }

int64_t Array::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape_) count *= size;
  return count;
}

bool Array::contiguous() const {
  int64_t step = 1;
  for (size_t a = shape_.size(); a-- > 0;) {
    if (shape_[a] == 0) return true;
    if (shape_[a] != 1 && strides_[a] != step) return false;
    step *= shape_[a];
  }
  return true;
}

Ownership Array::ownership() const {
  if (!owner_) return data_ ? Ownership::view : Ownership::owned;
  return writable_ && owner_.use_count() == 1 ? Ownership::owned : Ownership::shared;
}

Shape Array::device_shape() const {
  if (rank() > 4)
    throw InputError(fmt::format("an array of shape {}", to_string(shape_)), "Array::device_shape",
                     "at most 4 axes");
  if (shape_.empty()) return {1};
  Shape shape;
  for (const int64_t size : shape_) shape.push_back(size);
  return shape;
}

void Array::check_access(Storage wanted) const {
  if (storage_ != wanted)
    throw InputError(fmt::format("an array of {}", name(storage_)), "Array", name(wanted));
  if (!contiguous())
    throw InputError(
        fmt::format("an array of shape {} and strides {}", to_string(shape_), to_string(strides_)), "Array",
        "a contiguous one (packed() makes it)");
}

std::byte* Array::own() {
  if (!writable_ || owner_.use_count() != 1) *this = copy();
  // Orders the writes that follow after what the last other owner read.
  std::atomic_thread_fence(std::memory_order_acquire);
  return const_cast<std::byte*>(data_);
}

std::span<const std::byte> Array::raw() const {
  check_access(storage_);
  return {data_, size_t(bytes())};
}
std::span<std::byte> Array::mutate_raw() {
  check_access(storage_);
  return {own(), size_t(bytes())};
}

Array Array::reshape(Sizes shape) const {
  if (!contiguous() || checked_elements(shape, storage_) != elements())
    throw InputError(fmt::format("reshape of {} to {}", to_string(shape_), to_string(shape)), "Array",
                     "a contiguous array and as many elements");
  Array other = *this;
  other.strides_ = c_strides(shape);
  other.shape_ = std::move(shape);
  return other;
}

Array Array::slice(int axis, int64_t first, int64_t count) const {
  const size_t a = checked_axis(axis, rank());
  if (first < 0 || count < 0 || first > shape_[a] || count > shape_[a] - first)
    throw InputError(fmt::format("indices {} to {} of axis {}", first, first + count, axis), "Array::slice",
                     fmt::format("a part of shape {}", to_string(shape_)));
  Array part = *this;
  part.shape_[a] = count;
  part.data_ += first * strides_[a] * size_of(storage_);
  return part;
}

Array Array::operator[](int64_t index) const {
  Array part = slice(0, index, 1);
  part.shape_.erase(part.shape_.begin());
  part.strides_.erase(part.strides_.begin());
  return part;
}

Array Array::transposed() const {
  Array other = *this;
  std::reverse(other.shape_.begin(), other.shape_.end());
  std::reverse(other.strides_.begin(), other.strides_.end());
  return other;
}

Array Array::copy() const {
  const auto memory = allocate(bytes());
  std::byte* out = memory.get();
  if (!empty()) gather(data_, shape_, strides_, 0, size_of(storage_), out);
  Array other = adopt(storage_, shape_, memory.get(), memory);
  other.writable_ = true;
  return other;
}

Array Array::to(Storage storage) const {
  if (storage == storage_) return *this;
  const Array from = packed();
  const auto memory = allocate(elements() * size_of(storage));
  with_element(storage, [&]<class To>(To) {
    To* const out = reinterpret_cast<To*>(memory.get());
    with_element(storage_, [&]<class From>(From) {
      const auto values = from.as<From>();
      bool ok = true;
      for (size_t n = 0; n < values.size(); ++n) {
        out[n] = converted<To>(widen(values[n]), ok);
        if (!ok)
          throw InputError(fmt::format("{} at {}", widen(values[n]), index_text(shape_, int64_t(n))),
                           "Array::to", fmt::format("a value that {} holds", name(storage)));
      }
    });
  });
  Array other = adopt(storage, shape_, memory.get(), memory);
  other.writable_ = true;
  return other;
}

std::string index_text(const Sizes& shape, int64_t position) {
  Sizes index(shape.size());
  for (size_t a = shape.size(); a-- > 0;) {
    const int64_t size = std::max<int64_t>(shape[a], 1);
    index[a] = position % size;
    position /= size;
  }
  return to_string(index);
}

std::optional<int64_t> first_not_finite(const Array& array) {
  return with_element(array.storage(), [&]<class E>(E) -> std::optional<int64_t> {
    using Number = decltype(widen(E()));
    if constexpr (std::is_floating_point_v<Number>) {
      const auto values = array.as<E>();
      for (size_t n = 0; n < values.size(); ++n)
        if (!std::isfinite(widen(values[n]))) return int64_t(n);
    }
    return std::nullopt;
  });
}

}  // namespace lockstep
