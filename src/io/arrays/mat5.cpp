#include "io/arrays/mat5.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "io/text/parse_file.hpp"
#include "io/text/text_scanner.hpp"

namespace lockstep::io {
namespace {

constexpr uint32_t kMatrix = 14, kCompressed = 15;
constexpr size_t kMostBytes = size_t{1} << 34;  // of an unpacked array

/// A stretch of the file with its byte order.
class Elements {
 public:
  Elements(std::span<const std::byte> bytes, bool swapped, std::string_view where)
      : bytes_(bytes), swapped_(swapped), where_(where) {}

  struct Element {
    uint32_t type = 0;
    std::span<const std::byte> data;
  };
  bool at_end() const { return at_ + 8 > bytes_.size(); }
  /// The next element; `padded`: inside of a matrix, where data ends at a multiple of 8.
  Element next(bool padded) {
    if (at_end()) fail("a truncated element");
    const uint32_t word = number<uint32_t>(at_);
    Element e;
    if (word >> 16) {  // short form: type and size share a word, the data the next
      e.type = word & 0xFFFF;
      const size_t size = word >> 16;
      if (size > 4) fail("a short element of more than four bytes");
      e.data = bytes_.subspan(at_ + 4, size);
      at_ += 8;
      return e;
    }
    e.type = word;
    const size_t size = number<uint32_t>(at_ + 4);
    if (size > bytes_.size() - at_ - 8) fail("an element longer than the file");
    e.data = bytes_.subspan(at_ + 8, size);
    at_ = std::min(bytes_.size(), at_ + 8 + (padded ? (size + 7) / 8 * 8 : size));
    return e;
  }

  template <class T>
  T of(std::span<const std::byte> data, size_t index) const {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), data.data() + index * sizeof(T), sizeof(T));
    if (swapped_) std::reverse(raw.begin(), raw.end());
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(what, where_, "an undamaged MAT-file of version 5");
  }
  bool swapped() const { return swapped_; }
  std::string_view where() const { return where_; }

 private:
  template <class T>
  T number(size_t at) const {
    return of<T>(bytes_.subspan(at), 0);
  }
  std::span<const std::byte> bytes_;
  bool swapped_;
  std::string_view where_;
  size_t at_ = 0;
};

std::vector<std::byte> inflated(const Elements& file, std::span<const std::byte> packed, InputClaim& claim) {
  struct Inflater {
    z_stream stream{};
    ~Inflater() { inflateEnd(&stream); }
  } inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit(&stream) != Z_OK) file.fail("not enough memory to decompress an array");
  std::vector<std::byte> out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = uInt(packed.size());
  int state = Z_OK;
  while (state == Z_OK && out.size() < kMostBytes) {
    const size_t begin = out.size();
    claim.reach(std::max<size_t>(2 * begin, 1 << 16), "an unpacked array", file.where());
    out.resize(std::max<size_t>(2 * begin, 1 << 16));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
    stream.avail_out = uInt(std::min<size_t>(out.size() - begin, 1u << 30));
    const size_t room = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(begin + room - stream.avail_out);
  }
  if (state != Z_STREAM_END) file.fail("a damaged compressed array");
  return out;
}

template <class T>
void take(const Elements& file, std::span<const std::byte> data, std::vector<double>& values) {
  if (data.size() != values.size() * sizeof(T))
    file.fail("a number of elements that does not match the shape");
  for (size_t k = 0; k < values.size(); ++k) values[k] = double(file.of<T>(data, k));
}

void take_numbers(const Elements& file, const Elements::Element& e, std::vector<double>& values) {
  switch (e.type) {
    case 1: return take<int8_t>(file, e.data, values);
    case 2: return take<uint8_t>(file, e.data, values);
    case 3: return take<int16_t>(file, e.data, values);
    case 4: return take<uint16_t>(file, e.data, values);
    case 5: return take<int32_t>(file, e.data, values);
    case 6: return take<uint32_t>(file, e.data, values);
    case 7: return take<float>(file, e.data, values);
    case 9: return take<double>(file, e.data, values);
    case 12: return take<int64_t>(file, e.data, values);
    case 13: return take<uint64_t>(file, e.data, values);
    default: file.fail(fmt::format("numbers of type {}", e.type));
  }
}

/// Elements in column-major order become C order.
std::vector<double> in_c_order(const std::vector<double>& values, const Sizes& shape) {
  std::vector<double> turned(values.size());
  Sizes at(shape.size(), 0);
  for (double& to : turned) {
    int64_t place = 0;
    for (size_t a = shape.size(); a-- > 0;) place = place * shape[a] + at[a];
    to = values[size_t(place)];
    for (size_t a = shape.size(); a-- > 0 && ++at[a] == shape[a];) at[a] = 0;
  }
  return turned;
}

void take_matrix(Elements matrix, NpzArrays& arrays) {
  const auto flags = matrix.next(true), dims = matrix.next(true), title = matrix.next(true);
  if (flags.data.size() < 8 || dims.data.size() % 4 != 0) matrix.fail("an array without flags or shape");
  const uint32_t word = matrix.of<uint32_t>(flags.data, 0), kind = word & 0xFF;
  const std::string name(reinterpret_cast<const char*>(title.data.data()), title.data.size());
  if (kind < 6 || kind > 15) {
    arrays.left_out.emplace_back(name, "not a numeric array");
    return;
  }
  if (word & 0x800) {
    arrays.left_out.emplace_back(name, "complex numbers");
    return;
  }
  Sizes shape;
  size_t count = 1;
  for (size_t a = 0; a < dims.data.size() / 4; ++a) {
    const int32_t n = matrix.of<int32_t>(dims.data, a);
    if (n < 0 || (n > 0 && count > kMostBytes / 8 / size_t(n))) matrix.fail("an impossible shape");
    shape.push_back(n);
    count *= size_t(n);
  }
  const auto numbers = matrix.next(true);
  if (count > numbers.data.size()) matrix.fail("a number of elements that does not match the shape");
  InputClaim claim(double(count) * sizeof(double), fmt::format("array '{}'", shown(name)), matrix.where());
  const InputClaim meanwhile(double(count) * sizeof(double), "its other order", matrix.where());
  std::vector<double> values(count);
  take_numbers(matrix, numbers, values);
  arrays.emplace_back(name, claimed(Array::of(in_c_order(values, shape), shape), std::move(claim)));
}

}  // namespace

NpzArrays parse_mat5(std::span<const std::byte> bytes, std::string_view where) {
  const auto fail = [&](const std::string& what) {
    throw InputError(what, where, "a MAT-file of version 5 (save -v7 or -v6)");
  };
  if (bytes.size() < 128) fail("too short for a MAT-file");
  const auto byte = [&](size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  const bool little = byte(126) == 'I' && byte(127) == 'M', big = byte(126) == 'M' && byte(127) == 'I';
  if (!little && !big) fail("no byte order mark: not a MAT-file, or a MAT-file of version 4");
  const unsigned version = little ? byte(125) << 8 | byte(124) : byte(124) << 8 | byte(125);
  if (version == 0x0200) fail("a MAT-file of version 7.3 (HDF5)");
  if (version != 0x0100) fail(fmt::format("a MAT-file of unknown version {:#06x}", version));
  const bool swapped = big == (std::endian::native == std::endian::little);
  NpzArrays arrays;
  Elements file(bytes.subspan(128), swapped, where);
  while (!file.at_end()) {
    const auto e = file.next(false);
    if (e.type == kMatrix) take_matrix(Elements(e.data, swapped, where), arrays);
    if (e.type != kCompressed) continue;
    InputClaim claim;
    const std::vector<std::byte> plain = inflated(file, e.data, claim);
    Elements inner(plain, swapped, where);
    const auto matrix = inner.next(false);
    if (matrix.type == kMatrix) take_matrix(Elements(matrix.data, swapped, where), arrays);
  }
  return arrays;
}

NpzArrays read_mat5(const std::filesystem::path& path) {
  return parse_file(path, "a readable MAT-file", &parse_mat5);
}

}  // namespace lockstep::io
