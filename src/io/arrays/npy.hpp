// NumPy's array files: .npy (formats 1 to 3) and .npz archives, stored or deflated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {

/// A storage as NumPy writes it ("f4"). Throws InputError for bf16, which NumPy does not have.
std::string_view npy_name(Storage storage);

/// The file is valid, but its elements have a type that Lockstep does not use (texts, complex numbers,
/// records).
class NpyTypeError : public InputError {
 public:
  using InputError::InputError;
};

/// The start of an .npy file: what its data is and where it begins.
struct NpyHeader {
  Storage storage = Storage::f32;
  bool fortran_order = false;
  bool swapped = false;  // The file's byte order is not this machine's.
  Sizes shape;
  size_t data_offset = 0;
};

/// `where` names the source in errors. Arrays are in C order and native byte order, regardless of the file's.
/// All of these throw InputError for malformed or unsupported input.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where);
Array parse_npy(std::span<const std::byte> bytes, std::string_view where);
Array read_npy(const std::filesystem::path& path);

struct NpyWriteOptions {
  bool fortran_order = false;
  bool big_endian = false;
};
std::vector<std::byte> encode_npy(const Array& array, NpyWriteOptions options = {});
void write_npy(const std::filesystem::path& path, const Array& array, NpyWriteOptions options = {});
/// The header alone, for arrays that are written piece by piece (C order, native byte order).
std::string encode_npy_header(Storage storage, const Sizes& shape, NpyWriteOptions options = {});

/// Named arrays in file order. Members of unsupported types are left out with their reason.
struct NpzArrays : std::vector<std::pair<std::string, Array>> {
  using vector::vector;
  std::vector<std::pair<std::string, std::string>> left_out;
  std::vector<std::string> unread;  // members that nobody named
};
NpzArrays parse_npz(std::span<const std::byte> bytes, std::string_view where);
/// With names, only those are unpacked; others cost nothing (npz_file.hpp checks headers first).
NpzArrays read_npz(const std::filesystem::path& path, const std::vector<std::string>& names = {});
/// An array whose elements are in the file as they are in memory: C order, native bytes.
struct StoredArray {
  NpyHeader header;
  uint64_t offset = 0, bytes = 0;  // of the elements
};
/// The array of that name, or InputError naming those that exist or why it was left out.
const Array& find_array(const NpzArrays& arrays, std::string_view name, std::string_view where);
/// The error that an array is not among those present.
[[noreturn]] void throw_missing(std::string_view name, std::vector<std::string> present,
                                std::string_view where);

/// Texts of an archive, in its comment, which is JSON: title, units, program, lockstep_run.
struct NpzLabels {
  std::string title = {};
  std::vector<std::pair<std::string, std::string>> units = {};  ///< by array
};
/// No arrays give a valid archive without members.
enum class NpzCompression { stored, deflated };
void write_npz(const std::filesystem::path& path, const NpzArrays& arrays,
               NpzCompression compression = NpzCompression::stored, const NpzLabels& labels = {});

}  // namespace lockstep::io
