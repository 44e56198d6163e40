#include "lockstep/error.hpp"

#include <fmt/format.h>

#include "lockstep/types.hpp"

namespace lockstep {
namespace {

// Messages quote what files say; an error stays one line all the same.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  }
  return text;
}

}  // namespace

Error::Error(std::string_view problem, std::string_view where, std::string_view expected)
    : std::runtime_error(one_line(expected.empty()
                                      ? fmt::format("{} [{}]", problem, where)
                                      : fmt::format("{} [{}]: expected {}", problem, where, expected))),
      problem_(problem),
      where_(where),
      expected_(expected) {}

Error::Error(const std::string& reason) : std::runtime_error(reason), problem_(reason) {}

std::string_view name(DeviceFault fault) {
  switch (fault) {
    case DeviceFault::allocation: return "allocation";
    case DeviceFault::compile: return "compile";
    case DeviceFault::launch: return "launch";
    case DeviceFault::device_lost: return "device_lost";
  }
  return "?";
}

std::string_view name(Type type) {
  if (type == kIndexType) return "index";
  switch (type) {
    case Type::none: return "none";
    case Type::boolean: return "bool";
    case Type::i32: return "i32";
    case Type::u32: return "u32";
    case Type::i64: return "i64";
    case Type::u64: return "u64";
    case Type::f32: return "f32";
    case Type::f64: return "f64";
  }
  return "?";
}

std::string_view name(Storage type) {
  switch (type) {
    case Storage::f16: return "f16";
    case Storage::bf16: return "bf16";
    case Storage::u8: return "u8";
    case Storage::i8: return "i8";
    case Storage::i16: return "i16";
    case Storage::u16: return "u16";
    default: return name(value_type(type));
  }
}

void detail::throw_too_many_axes() { throw InputError("a fifth axis", "Shape", "at most 4 axes"); }

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int a = 0; a < shape.rank(); ++a) text += fmt::format("{}{}", a ? ", " : "", shape[a]);
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace lockstep
