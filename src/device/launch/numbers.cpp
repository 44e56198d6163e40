#include "device/launch/numbers.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace lockstep::device {

namespace {

/// Bits of `v` as a T. Nothing where T does not hold it: whole numbers have to fit exactly, others are rounded
/// to the nearest.
template <class T, class V>
std::optional<uint64_t> bits_as(V v) {
  if constexpr (std::is_same_v<V, bool>) {
    return bits_as<T>(int64_t(v));
  } else if constexpr (std::is_same_v<T, bool>) {
    if (v != V(0) && v != V(1)) return {};
    return uint64_t(v != V(0));
  } else if constexpr (std::is_integral_v<T> && std::is_integral_v<V>) {
    if (!std::in_range<T>(v)) return {};
  } else if constexpr (std::is_integral_v<T>) {
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(v >= double(std::numeric_limits<T>::min()) && v < end) || std::trunc(v) != v) return {};
  } else if constexpr (std::is_integral_v<V>) {
    const uint64_t size = v < V(0) ? -uint64_t(v) : uint64_t(v);
    if (size && std::bit_width(size >> std::countr_zero(size)) > std::numeric_limits<T>::digits) return {};
  } else {
    if (std::isinf(T(v)) && !std::isinf(v)) return {};
  }
  return detail::bits_of<T>(T(v));
}

template <class V>
std::optional<uint64_t> bits_of_type(Type type, V v) {
  switch (type) {
    case Type::f32: return bits_as<float>(v);
    case Type::f64: return bits_as<double>(v);
    case Type::boolean: return bits_as<bool>(v);
    case Type::i32: return bits_as<int32_t>(v);
    case Type::u32: return bits_as<uint32_t>(v);
    case Type::i64: return bits_as<int64_t>(v);
    case Type::u64: return bits_as<uint64_t>(v);
    case Type::none: break;
  }
  return {};
}

/// Bits of a field of a host struct.
uint64_t field_bits(Type type, const std::byte* at) {
  if (type == Type::boolean) return *reinterpret_cast<const bool*>(at);
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_t(size_of(type)));  // little-endian
  return bits;
}

}  // namespace

std::string text_of(const Argument& argument) {
  return std::visit(
      []<class V>(const V& v) -> std::string {
        if constexpr (std::is_same_v<V, PerReplay>)
          return text_of(value_of(v));
        else if constexpr (std::is_same_v<V, StructArgument>)
          return fmt::format("a {}", v.type ? v.type->name : "struct of nothing");
        else if constexpr (!std::is_same_v<V, Buffer>)
          return fmt::format("{}", v);
        else if (!v)
          return "an empty buffer";
        else
          return fmt::format("a buffer of {} {}", name(v.storage()), to_string(v.shape()));
      },
      argument);
}

size_t scalars_of(const ir::Function& f, size_t first) {
  const ir::StructParam* wanted = f.struct_at(first);
  return wanted ? wanted->type->fields.size() : 1;
}
const std::string& number_name(const ir::Function& f, size_t first) {
  const ir::StructParam* wanted = f.struct_at(first);
  return wanted ? wanted->name : f.scalars[first].name;
}

std::string wanted_number(const ir::Function& f, size_t first) {
  if (const ir::StructParam* wanted = f.struct_at(first)) return fmt::format("a {}", wanted->type->name);
  return fmt::format("a number of type {}", name(f.scalars[first].type));
}

Argument value_of(const PerReplay& number) {
  return std::visit([](const auto& v) { return Argument(v); }, number.value);
}

std::optional<Mismatch> number_bits(const ir::Function& f, size_t first, const Argument& argument,
                                    uint64_t* bits) {
  if (const auto* named = std::get_if<PerReplay>(&argument))
    return number_bits(f, first, value_of(*named), bits);
  const auto* given = std::get_if<StructArgument>(&argument);
  const ir::StructParam* wanted = f.structs.empty() ? nullptr : f.struct_at(first);
  if (std::holds_alternative<Buffer>(argument) || !given != !wanted)
    return Mismatch{text_of(argument), wanted_number(f, first)};
  if (wanted) {
    if (!given->type || !given->data || *given->type->identity != *wanted->type->identity)
      return Mismatch{text_of(argument), wanted_number(f, first)};
    const auto* data = static_cast<const std::byte*>(given->data.get());
    for (const ir::StructType::Field& field : wanted->type->fields)
      *bits++ = field_bits(field.type, data + field.offset);
    return {};
  }
  const Type type = f.scalars[first].type;
  const auto found = std::visit(
      [&]<class V>(const V& v) -> std::optional<uint64_t> {
        if constexpr (std::is_arithmetic_v<V>)
          return bits_of_type(type, v);
        else
          return {};
      },
      argument);
  if (!found) return Mismatch{text_of(argument), fmt::format("a value that {} holds", name(type))};
  *bits = *found;
  return {};
}

std::string near_text(const std::source_location& where, const char* before) {
  if (where.line() == 0) return {};
  const std::string_view path = where.file_name();
  return fmt::format("{}{}:{}", before, path.substr(path.find_last_of('/') + 1), where.line());
}

}  // namespace lockstep::device
