#include "io/arrays/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaximumRank = 32;
// NumPy's names in the order of Storage; bf16 has none.
constexpr std::string_view kNames[kStorages] = {"f4", "f8", "i4", "u4", "i8", "u8", "f2",
                                                "",   "u1", "i1", "i2", "u2", "b1"};

// Product of the sizes, or nothing where it exceeds 2^63-1 or a size is negative.
std::optional<int64_t> product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) return std::nullopt;
  }
  return n;
}

// Reads the header's text: a Python dictionary literal of three known keys.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  void read(NpyHeader& header) {
    bool has_descr = false, has_order = false, has_shape = false;
    take('{');
    while (!try_take('}')) {
      const std::string key(quoted());
      take(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        set_type(header);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = tuple();
      } else {
        fail(fmt::format("key '{}'", key), "each of descr, fortran_order and shape once");
      }
      if (!try_take(',')) {
        take('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("text after the dictionary", "nothing but blanks");
    if (!has_descr || !has_order || !has_shape) fail("incomplete header", "descr, fortran_order and shape");
  }

 private:
  [[noreturn]] void fail(const std::string& what, const char* expected) const {
    throw InputError(fmt::format("malformed .npy header: {}", what), where_, expected);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool try_take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void take(char c) {
    if (!try_take(c)) fail(fmt::format("'{}' is missing at character {}", c, at_), "a Python dictionary");
  }
  std::string_view quoted() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      fail(fmt::format("no quoted text at character {}", at_), "a quoted key or type");
    }
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed", "a Python dictionary");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  bool boolean() {
    skip_blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("fortran_order is not a boolean", "True or False");
  }
  Sizes tuple() {
    Sizes sizes;
    take('(');
    while (!try_take(')')) {
      skip_blanks();
      const size_t start = at_;
      int64_t size = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (__builtin_mul_overflow(size, int64_t{10}, &size) ||
            __builtin_add_overflow(size, text_[at_] - '0', &size)) {
          fail("a size exceeds 2^63", "sizes of a real array");
        }
        ++at_;
      }
      if (at_ == start) fail("a size is not a number", "a tuple of sizes");
      sizes.push_back(size);
      if (sizes.size() > kMaximumRank) fail("too many axes", "at most 32 axes");
      if (!try_take(',')) {
        take(')');
        break;
      }
    }
    return sizes;
  }
  void set_type(NpyHeader& header) {
    constexpr const char* kExpected = "b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 or f8";
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      throw NpyTypeError("elements are records", where_, kExpected);
    const std::string_view descr = quoted();
    if (descr.size() < 3) fail(fmt::format("type '{}'", descr), kExpected);
    const char order = descr[0];
    const auto* const known = std::find(std::begin(kNames), std::end(kNames), descr.substr(1));
    if (known == std::end(kNames) || std::string_view("<>=|").find(order) == std::string_view::npos) {
      throw NpyTypeError(fmt::format("unsupported element type '{}'", descr), where_, kExpected);
    }
    header.storage = Storage(known - std::begin(kNames));
    const bool native_little = std::endian::native == std::endian::little;
    header.swapped =
        size_of(header.storage) > 1 && ((order == '>' && native_little) || (order == '<' && !native_little));
  }

  const std::string_view text_, where_;
  size_t at_ = 0;
};

void swap_bytes(std::span<std::byte> data, size_t size) {
  for (size_t at = 0; at + size <= data.size(); at += size)
    std::reverse(data.begin() + ptrdiff_t(at), data.begin() + ptrdiff_t(at + size));
}

}  // namespace

std::string_view npy_name(Storage storage) {
  const std::string_view name = kNames[size_t(storage)];
  if (name.empty())
    throw InputError(fmt::format("elements of {}", lockstep::name(storage)), "NumPy file",
                     "a type that NumPy has (Array::to converts)");
  return name;
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10) {
    throw InputError("not an .npy file", where, "the NumPy array format");
  }
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) {
    throw InputError(fmt::format("unknown .npy format version {}", major), where, "version 1, 2 or 3");
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  size_t length = 0;
  if (text.size() < 8 + length_bytes)
    throw InputError("the .npy header is cut off", where, "a complete file");
  for (size_t k = 0; k < length_bytes; ++k) length |= static_cast<size_t>(bytes[8 + k]) << (8 * k);
  if (length > text.size() - 8 - length_bytes)
    throw InputError("the .npy header is cut off", where, "a complete file");
  NpyHeader header;
  HeaderText(text.substr(8 + length_bytes, length), where).read(header);
  header.data_offset = 8 + length_bytes + length;
  const auto count = product(header.shape);
  if (!count || *count > std::numeric_limits<int64_t>::max() / size_of(header.storage)) {
    throw InputError("the shape of the array is too large", where, "fewer than 2^63 bytes");
  }
  return header;
}

Array parse_npy(std::span<const std::byte> bytes, std::string_view where) {
  const NpyHeader header = parse_npy_header(bytes, where);
  const auto data = bytes.subspan(header.data_offset);
  const auto size = static_cast<size_t>(size_of(header.storage));
  const uint64_t wanted = uint64_t(*product(header.shape)) * size;
  if (data.size() != wanted) {
    throw InputError(fmt::format("{} bytes of array data", data.size()), where,
                     fmt::format("{} bytes, as the header says", wanted));
  }
  // Fortran order is C order with the axes reversed.
  Sizes shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  const Array stored = Array::adopt(header.storage, std::move(shape), data.data(), nullptr);
  Array array = (header.fortran_order ? stored.transposed() : stored).copy();
  if (header.swapped) swap_bytes(array.mutate_raw(), size);
  if (header.storage == Storage::boolean) {
    // A C++ bool may hold nothing but 0 and 1.
    for (std::byte& b : array.mutate_raw()) b = b == std::byte{} ? b : std::byte{1};
  }
  return array;
}

Array read_npy(const std::filesystem::path& path) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    const std::vector<std::byte> bytes = read_file(path, "an .npy file");
    InputClaim claim(static_cast<double>(bytes.size()), "the array", where);
    return claimed(parse_npy(bytes, where), std::move(claim));
  });
}

std::string encode_npy_header(Storage storage, const Sizes& shape, NpyWriteOptions options) {
  const char order = size_of(storage) == 1                                             ? '|'
                     : options.big_endian != (std::endian::native == std::endian::big) ? '>'
                                                                                       : '<';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': {}, }}", order, npy_name(storage),
                  options.fortran_order ? "True" : "False", to_string(shape));
  const size_t before = kMagic.size() + 4;
  text.append((kAlignment - (before + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return out + text;
}

std::vector<std::byte> encode_npy(const Array& array, NpyWriteOptions options) {
  const std::string header = encode_npy_header(array.storage(), array.shape(), options);
  const auto head = std::as_bytes(std::span(header));
  const Array ordered = (options.fortran_order ? array.transposed() : array).packed();
  std::vector<std::byte> out(head.begin(), head.end());
  out.insert(out.end(), ordered.raw().begin(), ordered.raw().end());
  if (options.big_endian != (std::endian::native == std::endian::big))
    swap_bytes(std::span(out).subspan(head.size()), size_t(size_of(array.storage())));
  return out;
}

void write_npy(const std::filesystem::path& path, const Array& array, NpyWriteOptions options) {
  write_file(path, encode_npy(array, options));
}

}  // namespace lockstep::io
