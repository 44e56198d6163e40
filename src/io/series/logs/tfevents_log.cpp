// TensorBoard's event files: records (length, masked checksum of the length, data, masked checksum of the data) of
// Event messages in Protocol Buffers' wire format. Field numbers are those of event.proto, summary.proto and
// tensor.proto.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/numbers/half.hpp"
#include "io/series/logs/log_builder.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

using EventBytes = std::span<const std::byte>;

template <class T>
T little_endian(EventBytes bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// One field of a message: a number, or bytes.
struct WireField {
  uint64_t number = 0;
  int type = 0;  // 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes
  uint64_t integer = 0;
  EventBytes bytes;
};

/// Traverses the fields of a message; `fail` throws.
class WireReader {
 public:
  WireReader(EventBytes bytes, const std::string& where) : rest_(bytes), where_(where) {}

  bool next(WireField& field) {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    field = {key >> 3, int(key & 7), 0, {}};
    switch (field.type) {
      case 0: field.integer = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.bytes = take(4); break;
      default: fail(fmt::format("a field of wire type {}", field.type));
    }
    if (field.number == 0) fail("a field of number 0");
    return true;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = uint64_t(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("an integer of more than ten bytes");
  }
  EventBytes rest() const { return rest_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(what, where_, "an Event message");
  }

 private:
  EventBytes take(uint64_t count) {
    if (count > rest_.size()) fail("a field that goes beyond its message");
    const EventBytes taken = rest_.first(size_t(count));
    rest_ = rest_.subspan(size_t(count));
    return taken;
  }

  EventBytes rest_;
  const std::string& where_;
};

enum TensorType : uint64_t { kFloat = 1, kDouble = 2, kInt32 = 3, kInt64 = 9, kBfloat16 = 14, kHalf = 19 };

/// The elements' bytes, little-endian and without gaps; empty where they are not of `type`.
std::optional<double> scalar_of_content(uint64_t type, EventBytes content) {
  const auto is = [&](TensorType t, size_t size) { return type == t && content.size() == size; };
  if (is(kFloat, 4)) return little_endian<float>(content);
  if (is(kDouble, 8)) return little_endian<double>(content);
  if (is(kInt32, 4)) return little_endian<int32_t>(content);
  if (is(kInt64, 8)) return double(little_endian<int64_t>(content));
  if (is(kHalf, 2)) return f16_to_f32(little_endian<uint16_t>(content));
  if (is(kBfloat16, 2)) return bf16_to_f32(little_endian<uint16_t>(content));
  return {};
}

/// The value of a TensorProto of one element; nothing for other tensors and for texts.
std::optional<double> scalar_of_tensor(EventBytes message, const std::string& where) {
  uint64_t type = 0;
  std::optional<double> value;
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    std::optional<double> one;
    switch (field.number) {
      case 1: type = field.integer; continue;
      case 4: one = scalar_of_content(type, field.bytes); break;  // tensor_content
      case 5:
        if (field.bytes.size() == 4) one = little_endian<float>(field.bytes);
        break;  // float_val
      case 6:
        if (field.bytes.size() == 8) one = little_endian<double>(field.bytes);
        break;    // double_val
      case 7:     // int_val
      case 10:    // int64_val
      case 13: {  // half_val: bits of both half types
        uint64_t bits = field.integer;
        if (field.type == 2) {
          if (field.bytes.empty()) continue;
          WireReader packed(field.bytes, where);
          bits = packed.varint();
          if (!packed.rest().empty()) return {};
        }
        one = field.number != 13  ? double(int64_t(bits))
              : type == kBfloat16 ? bf16_to_f32(uint16_t(bits))
                                  : f16_to_f32(uint16_t(bits));
        break;
      }
      default: continue;
    }
    if (!one) {
      if (field.type == 2 && field.bytes.empty()) continue;
      return {};
    }
    if (value) return {};  // two elements
    value = one;
  }
  return value;
}

void add_value(EventBytes message, double step, int64_t record, const std::string& where,
               LogBuilder& builder) {
  std::string tag;
  std::optional<double> value;
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 1 && field.type == 2)
      tag.assign(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    else if (field.number == 2 && field.type == 5)
      value = little_endian<float>(field.bytes);
    else if (field.number == 8 && field.type == 2)
      value = scalar_of_tensor(field.bytes, where);
  }
  if (!value || tag.empty()) return;  // pictures, histograms, texts
  builder.add(tag, step, *value, record);
}

void add_event(EventBytes message, int64_t record, const std::string& where, LogBuilder& builder) {
  double step = 0;
  std::vector<EventBytes> summaries;
  WireReader reader(message, where);
  for (WireField field; reader.next(field);) {
    if (field.number == 2 && field.type == 0) step = double(int64_t(field.integer));
    if (field.number == 5 && field.type == 2) summaries.push_back(field.bytes);
  }
  if (!summaries.empty() && step < 0) throw InputError(fmt::format("step {}", step), where, "a step from 0");
  for (const EventBytes summary : summaries) {
    WireReader values(summary, where);
    for (WireField field; values.next(field);)
      if (field.number == 1 && field.type == 2) add_value(field.bytes, step, record, where, builder);
  }
}

constexpr std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t k = 0; k < 256; ++k) {
    uint32_t c = k;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? 0x82F63B78u : 0);
    table[k] = c;
  }
  return table;
}

}  // namespace

uint32_t masked_crc32c(EventBytes bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc32c_table();
  uint32_t c = 0xffffffffu;
  for (const std::byte b : bytes) c = (c >> 8) ^ kTable[(c ^ uint32_t(b)) & 0xff];
  c = ~c;
  return std::rotr(c, 15) + 0xa282ead8u;
}

TrainingLog parse_tfevents_log(EventBytes bytes, std::string_view where) {
  LogBuilder builder(where);
  if (bytes.empty()) throw InputError("an empty file", where, "TensorBoard's records");
  for (int64_t record = 1; !bytes.empty(); ++record) {
    const std::string place = fmt::format("{}, record {}", where, record);
    if (bytes.size() < 12) throw InputError("the file ends inside of a record's header", place, "12 bytes");
    const auto length = little_endian<uint64_t>(bytes);
    if (masked_crc32c(bytes.first(8)) != little_endian<uint32_t>(bytes.subspan(8)))
      throw InputError("the checksum of a record's length is wrong", place, "TensorBoard's records");
    if (length > bytes.size() - 12 || bytes.size() - 12 - length < 4)
      throw InputError("the file ends inside of a record", place,
                       fmt::format("{} bytes and a checksum", length));
    const EventBytes data = bytes.subspan(12, size_t(length));
    if (masked_crc32c(data) != little_endian<uint32_t>(bytes.subspan(12 + size_t(length))))
      throw InputError("the checksum of a record's data is wrong", place, "undamaged data");
    add_event(data, record, place, builder);
    bytes = bytes.subspan(16 + size_t(length));
  }
  return builder.finish("step");
}

}  // namespace lockstep::io
