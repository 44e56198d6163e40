#include "io/arrays/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "core/atomic_file.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaximumRank = 32;
constexpr NpyType kTypes[] = {NpyType::b1, NpyType::i1, NpyType::u1, NpyType::i2, NpyType::u2, NpyType::i4,
                              NpyType::u4, NpyType::i8, NpyType::u8, NpyType::f4, NpyType::f8};

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
    fail("fortran_order is no truth value", "True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
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
      if (at_ == start) fail("a size is no number", "a tuple of sizes");
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
    constexpr const char* kExpected = "b1 i1 u1 i2 u2 i4 u4 i8 u8 f4 or f8";
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      throw NpyTypeError("elements are records", where_, kExpected);
    const std::string_view descr = quoted();
    if (descr.size() < 3) fail(fmt::format("type '{}'", descr), kExpected);
    const char order = descr[0];
    const auto known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](NpyType type) { return name(type) == descr.substr(1); });
    if (known == std::end(kTypes) || std::string_view("<>=|").find(order) == std::string_view::npos) {
      throw NpyTypeError(fmt::format("unsupported element type '{}'", descr), where_, kExpected);
    }
    header.type = *known;
    const bool native_little = std::endian::native == std::endian::little;
    header.swapped =
        size_of(*known) > 1 && ((order == '>' && native_little) || (order == '<' && !native_little));
  }

  const std::string_view text_, where_;
  size_t at_ = 0;
};

void swap_bytes(std::vector<std::byte>& data, size_t size) {
  for (size_t at = 0; at + size <= data.size(); at += size) std::reverse(&data[at], &data[at] + size);
}

// Copies between C order and Fortran order. `reversed` walks the axes the other way round.
std::vector<std::byte> reorder(std::span<const std::byte> data, std::span<const int64_t> shape, size_t size,
                               bool to_fortran) {
  std::vector<std::byte> out(data.size());
  const size_t rank = shape.size();
  std::vector<int64_t> index(rank, 0), fortran_stride(rank, 1);
  for (size_t a = 1; a < rank; ++a) fortran_stride[a] = fortran_stride[a - 1] * shape[a - 1];
  int64_t fortran_at = 0;
  const int64_t count = static_cast<int64_t>(data.size() / size);
  for (int64_t c_at = 0; c_at < count; ++c_at) {
    const size_t from = static_cast<size_t>(to_fortran ? c_at : fortran_at) * size;
    const size_t to = static_cast<size_t>(to_fortran ? fortran_at : c_at) * size;
    std::memcpy(&out[to], &data[from], size);
    for (size_t a = rank; a-- > 0;) {
      fortran_at += fortran_stride[a];
      if (++index[a] < shape[a]) break;
      fortran_at -= fortran_stride[a] * shape[a];
      index[a] = 0;
    }
  }
  return out;
}

template <class To>
std::vector<To> convert(const NpyArray& array) {
  std::vector<To> out(static_cast<size_t>(array.elements()));
  const auto copy = [&]<class From>(From) {
    const auto from = array.as<From>();
    std::transform(from.begin(), from.end(), out.begin(), [](From v) { return static_cast<To>(v); });
  };
  switch (array.type) {
    case NpyType::b1:
      std::transform(array.data.begin(), array.data.end(), out.begin(),
                     [](std::byte b) { return To(b != std::byte{}); });
      break;
    case NpyType::i1: copy(int8_t{}); break;
    case NpyType::u1: copy(uint8_t{}); break;
    case NpyType::i2: copy(int16_t{}); break;
    case NpyType::u2: copy(uint16_t{}); break;
    case NpyType::i4: copy(int32_t{}); break;
    case NpyType::u4: copy(uint32_t{}); break;
    case NpyType::i8: copy(int64_t{}); break;
    case NpyType::u8: copy(uint64_t{}); break;
    case NpyType::f4: copy(float{}); break;
    case NpyType::f8: copy(double{}); break;
  }
  return out;
}

}  // namespace

std::string_view name(NpyType type) {
  constexpr std::string_view kNames[] = {"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"};
  return kNames[static_cast<size_t>(type)];
}

int64_t NpyArray::elements() const { return product(shape).value_or(0); }
int64_t NpyHeader::elements() const { return product(shape).value_or(0); }

void NpyArray::check_type(NpyType wanted) const {
  if (type != wanted) {
    throw InternalError(fmt::format("array has elements of type {}", name(type)), "NpyArray::as",
                        name(wanted));
  }
}
void NpyArray::check_size() const {
  if (static_cast<size_t>(elements()) * size_of(type) != data.size()) {
    throw InternalError(fmt::format("{} bytes of data", data.size()), "NpyArray",
                        fmt::format("{} elements of {}", elements(), name(type)));
  }
}
std::vector<float> NpyArray::to_f32() const { return convert<float>(*this); }
std::vector<double> NpyArray::to_f64() const { return convert<double>(*this); }

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
  if (text.size() < 8 + length_bytes) throw InputError("the .npy header is cut off", where, "a whole file");
  for (size_t k = 0; k < length_bytes; ++k) length |= static_cast<size_t>(bytes[8 + k]) << (8 * k);
  if (length > text.size() - 8 - length_bytes)
    throw InputError("the .npy header is cut off", where, "a whole file");
  NpyHeader header;
  HeaderText(text.substr(8 + length_bytes, length), where).read(header);
  header.data_offset = 8 + length_bytes + length;
  const auto count = product(header.shape);
  if (!count || *count > std::numeric_limits<int64_t>::max() / static_cast<int64_t>(size_of(header.type))) {
    throw InputError("the shape of the array is too large", where, "fewer than 2^63 bytes");
  }
  return header;
}

NpyArray parse_npy(std::span<const std::byte> bytes, std::string_view where) {
  const NpyHeader header = parse_npy_header(bytes, where);
  NpyArray array;
  array.type = header.type;
  array.shape = header.shape;
  const uint64_t wanted = static_cast<uint64_t>(header.elements()) * size_of(header.type);
  const auto data = bytes.subspan(header.data_offset);
  if (data.size() != wanted) {
    throw InputError(fmt::format("{} bytes of array data", data.size()), where,
                     fmt::format("{} bytes, as the header says", wanted));
  }
  if (header.fortran_order && header.shape.size() > 1) {
    array.data = reorder(data, header.shape, size_of(header.type), false);
  } else {
    array.data.assign(data.begin(), data.end());
  }
  if (header.swapped) swap_bytes(array.data, size_of(header.type));
  if (header.type == NpyType::b1) {
    // A C++ bool may hold nothing but 0 and 1.
    for (std::byte& b : array.data) b = b == std::byte{} ? b : std::byte{1};
  }
  return array;
}

NpyArray read_npy(const std::filesystem::path& path) {
  return parse_npy(read_file(path, "an .npy file"), path.string());
}

std::string encode_npy_header(NpyType type, std::span<const int64_t> shape, NpyWriteOptions options) {
  const char order = size_of(type) == 1                                                ? '|'
                     : options.big_endian != (std::endian::native == std::endian::big) ? '>'
                                                                                       : '<';
  std::string sizes;
  for (size_t a = 0; a < shape.size(); ++a) sizes += fmt::format("{}{}", a ? ", " : "", shape[a]);
  if (shape.size() == 1) sizes += ',';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}), }}", order,
                                 name(type), options.fortran_order ? "True" : "False", sizes);
  const size_t before = kMagic.size() + 4;
  text.append((kAlignment - (before + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return out + text;
}

std::vector<std::byte> encode_npy(const NpyArray& array, NpyWriteOptions options) {
  const std::string header = encode_npy_header(array.type, array.shape, options);
  const auto head = std::as_bytes(std::span(header));
  std::vector<std::byte> out(head.begin(), head.end());
  std::vector<std::byte> changed;
  if (options.fortran_order && array.shape.size() > 1) {
    changed = reorder(array.data, array.shape, size_of(array.type), true);
  }
  if (options.big_endian != (std::endian::native == std::endian::big)) {
    if (changed.empty()) changed = array.data;
    swap_bytes(changed, size_of(array.type));
  }
  const auto& data = changed.empty() ? array.data : changed;
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

void write_npy(const std::filesystem::path& path, const NpyArray& array, NpyWriteOptions options) {
  write_file(path, encode_npy(array, options));
}

}  // namespace lockstep::io
