// NumPy's array files: .npy (formats 1 to 3) and .npz archives, stored or deflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::io {

/// Element types; names as NumPy writes them ("f4").
enum class NpyType : uint8_t { b1, i1, u1, i2, u2, i4, u4, i8, u8, f4, f8 };
std::string_view name(NpyType type);
constexpr size_t size_of(NpyType type) {
  switch (type) {
    case NpyType::b1:
    case NpyType::i1:
    case NpyType::u1: return 1;
    case NpyType::i2:
    case NpyType::u2: return 2;
    case NpyType::i4:
    case NpyType::u4:
    case NpyType::f4: return 4;
    default: return 8;
  }
}
template <class T>
constexpr NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return NpyType::b1;
  else if constexpr (std::is_same_v<T, float>)
    return NpyType::f4;
  else if constexpr (std::is_same_v<T, double>)
    return NpyType::f8;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? NpyType::i1 : NpyType::u1;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? NpyType::i2 : NpyType::u2;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? NpyType::i4 : NpyType::u4;
  else
    return std::is_signed_v<T> ? NpyType::i8 : NpyType::u8;
}

/// The file is sound, but its elements are of a type that Lockstep has no use for (texts, complex numbers,
/// records).
class NpyTypeError : public InputError {
 public:
  using InputError::InputError;
};

/// An array in memory: C order (last axis fastest), native byte order, whatever the file had.
struct NpyArray {
  NpyType type = NpyType::f4;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  NpyArray() = default;
  /// A copy of `values`, whose count must be the product of the shape.
  template <class T>
  NpyArray(std::vector<int64_t> s, std::span<const T> values) : type(npy_type_of<T>()), shape(std::move(s)) {
    const auto bytes = std::as_bytes(values);
    data.assign(bytes.begin(), bytes.end());
    check_size();
  }

  int64_t elements() const;
  /// Views the data; throws InternalError if T is not the array's type.
  template <class T>
  std::span<const T> as() const {
    check_type(npy_type_of<T>());
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  /// Converts any type by value, as a C++ cast does.
  std::vector<float> to_f32() const;
  std::vector<double> to_f64() const;

 private:
  void check_type(NpyType wanted) const;
  void check_size() const;
};

/// The start of an .npy file: what its data is and where it begins.
struct NpyHeader {
  NpyType type = NpyType::f4;
  bool fortran_order = false;
  bool swapped = false;  // The file's byte order is not this machine's.
  std::vector<int64_t> shape;
  size_t data_offset = 0;
  int64_t elements() const;
};

/// `where` names the source in errors. All of these throw InputError on anything malformed or unsupported.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where);
NpyArray parse_npy(std::span<const std::byte> bytes, std::string_view where);
NpyArray read_npy(const std::filesystem::path& path);

struct NpyWriteOptions {
  bool fortran_order = false;
  bool big_endian = false;
};
std::vector<std::byte> encode_npy(const NpyArray& array, NpyWriteOptions options = {});
void write_npy(const std::filesystem::path& path, const NpyArray& array, NpyWriteOptions options = {});
/// The header alone, for arrays that are written piece by piece (C order, native byte order).
std::string encode_npy_header(NpyType type, std::span<const int64_t> shape, NpyWriteOptions options = {});

/// Named arrays in file order. Members of unsupported types are left out with their reason.
struct NpzArrays : std::vector<std::pair<std::string, NpyArray>> {
  using vector::vector;
  std::vector<std::pair<std::string, std::string>> left_out;
};
NpzArrays parse_npz(std::span<const std::byte> bytes, std::string_view where);
NpzArrays read_npz(const std::filesystem::path& path);
/// The array of that name, or InputError naming those that exist or why it was left out.
const NpyArray& find_array(const NpzArrays& arrays, std::string_view name, std::string_view where);

enum class NpzCompression { stored, deflated };
void write_npz(const std::filesystem::path& path, const NpzArrays& arrays,
               NpzCompression compression = NpzCompression::stored);

}  // namespace lockstep::io
