// Element types, shapes and extents.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep {

/// Type of a value inside a kernel. i64, u64 and f64 exist on the CPU, CUDA and the interpreter only.
enum class Type : uint8_t { none, boolean, i32, u32, i64, u64, f32, f64 };

/// Type of an element in memory. f16 and bf16 are storage only: a load gives f32, a store rounds to nearest
/// even.
enum class Storage : uint8_t { f32, f64, i32, u32, i64, u64, f16, bf16, u8 };

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
    case Storage::bf16: return 2;
    case Storage::u8: return 1;
    default: return 4;
  }
}
/// The type a load from memory of this storage has.
constexpr Type value_type(Storage s) {
  switch (s) {
    case Storage::f64: return Type::f64;
    case Storage::i32: return Type::i32;
    case Storage::u32:
    case Storage::u8: return Type::u32;
    case Storage::i64: return Type::i64;
    case Storage::u64: return Type::u64;
    default: return Type::f32;
  }
}
constexpr bool is_float(Type t) { return t == Type::f32 || t == Type::f64; }
constexpr bool is_signed(Type t) { return t == Type::i32 || t == Type::i64; }
constexpr bool is_integer(Type t) {
  return t == Type::i32 || t == Type::u32 || t == Type::i64 || t == Type::u64;
}
constexpr bool is_wide(Type t) { return size_of(t) == 8; }

/// Shape of an array of rank 1 to 4, slowest axis first, as NumPy has it.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> sizes) {
    for (int64_t s : sizes) sizes_[rank_++] = s;
  }
  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const { return sizes_[axis]; }
  constexpr int64_t& operator[](int axis) { return sizes_[axis]; }
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int a = 0; a < rank_; ++a) n *= sizes_[a];
    return n;
  }
  constexpr void push_back(int64_t size) { sizes_[rank_++] = size; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, 4> sizes_{};
  int rank_ = 0;
};
std::string to_string(const Shape& shape);  // "(3, 64, 64)"

}  // namespace lockstep
