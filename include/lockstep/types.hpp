// Element types, shapes and extents.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace lockstep {

/// Type of a value inside a kernel. i64, u64 and f64 exist on the CPU, CUDA and the interpreter only.
enum class Type : uint8_t { none, boolean, i32, u32, i64, u64, f32, f64 };
/// Type of element offsets while a kernel is traced. The traced function uses i32 instead, or i64 if a buffer has 2^31
/// elements or more.
inline constexpr Type kIndexType = Type(8);

/// Type of an element in memory. f16 and bf16 exist in memory only: a load returns f32, and a store rounds to nearest
/// even. Types from i8 on exist in files and host arrays only; kernels and devices do not support them.
enum class Storage : uint8_t { f32, f64, i32, u32, i64, u64, f16, bf16, u8, i8, i16, u16, boolean };
inline constexpr int kStorages = 13;
/// True if buffers can have elements of this type, so that kernels can load them.
constexpr bool is_device_storage(Storage s) { return s < Storage::i8; }

std::string_view name(Type type);     // "f32"
std::string_view name(Storage type);  // "bf16"
constexpr int size_of(Type t) {
  return t == Type::none                                        ? 0
         : (t == Type::i64 || t == Type::u64 || t == Type::f64) ? 8
         : t == Type::boolean                                   ? 1
                                                                : 4;
}
constexpr int size_of(Storage s) {
  switch (s) {
    case Storage::f64:
    case Storage::i64:
    case Storage::u64: return 8;
    case Storage::f16:
    case Storage::bf16:
    case Storage::i16:
    case Storage::u16: return 2;
    case Storage::u8:
    case Storage::i8:
    case Storage::boolean: return 1;
    default: return 4;
  }
}
/// Type of a value loaded from an element of this storage.
constexpr Type value_type(Storage s) {
  switch (s) {
    case Storage::f64: return Type::f64;
    case Storage::i32:
    case Storage::i16:
    case Storage::i8: return Type::i32;
    case Storage::u32:
    case Storage::u16:
    case Storage::u8: return Type::u32;
    case Storage::boolean: return Type::boolean;
    case Storage::i64: return Type::i64;
    case Storage::u64: return Type::u64;
    default: return Type::f32;
  }
}
using f32 = float;
using f64 = double;
using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
/// Elements of f16 and bf16 on the host: their bits.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

namespace detail {
/// The types in the order of Storage.
using Elements =
    std::tuple<f32, f64, i32, u32, i64, u64, f16, bf16, uint8_t, int8_t, int16_t, uint16_t, bool>;
static_assert(std::tuple_size_v<Elements> == kStorages);
template <class E>
constexpr int element_index() {
  return []<class... T>(std::type_identity<std::tuple<T...>>) {
    int index = -1, at = 0;
    ((std::is_same_v<E, T> ? index = at++ : at++), ...);
    return index;
  }(std::type_identity<Elements>());
}
}  // namespace detail
/// A C++ type that is an element of some Storage.
template <class E>
concept Element = detail::element_index<E>() >= 0;
template <Element E>
inline constexpr Storage kStorageOf = Storage(detail::element_index<E>());
/// Calls f(E()) with the element type of a storage.
template <class F>
decltype(auto) with_element(Storage storage, F&& f) {
  switch (storage) {
    case Storage::f32: return f(f32());
    case Storage::f64: return f(f64());
    case Storage::i32: return f(i32());
    case Storage::u32: return f(u32());
    case Storage::i64: return f(i64());
    case Storage::u64: return f(u64());
    case Storage::f16: return f(f16());
    case Storage::bf16: return f(bf16());
    case Storage::u8: return f(uint8_t());
    case Storage::i8: return f(int8_t());
    case Storage::i16: return f(int16_t());
    case Storage::u16: return f(uint16_t());
    case Storage::boolean: break;
  }
  return f(bool());
}

constexpr bool is_float(Type t) { return t == Type::f32 || t == Type::f64; }
constexpr bool is_signed(Type t) { return t == Type::i32 || t == Type::i64 || t == kIndexType; }
constexpr bool is_integer(Type t) { return is_signed(t) || t == Type::u32 || t == Type::u64; }
constexpr bool is_wide(Type t) { return size_of(t) == 8; }

namespace detail {
[[noreturn]] void throw_too_many_axes();
}

/// Shape of a buffer or a domain: up to 4 axes, slowest axis first, as in NumPy. A fifth axis throws InputError.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> sizes) {
    for (int64_t s : sizes) push_back(s);
  }
  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const { return sizes_[axis]; }
  constexpr int64_t& operator[](int axis) { return sizes_[axis]; }
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int a = 0; a < rank_; ++a) n *= sizes_[a];
    return n;
  }
  constexpr void push_back(int64_t size) {
    if (rank_ == int(sizes_.size())) detail::throw_too_many_axes();
    sizes_[rank_++] = size;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, 4> sizes_{};
  int rank_ = 0;
};
std::string to_string(const Shape& shape);  // "(3, 64, 64)"

}  // namespace lockstep
