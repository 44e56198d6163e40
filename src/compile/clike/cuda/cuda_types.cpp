#include "compile/clike/cuda/cuda_types.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::clike {

std::string_view cuda_type(Type type) {
  switch (type) {
    case Type::boolean: return "bool";
    case Type::i32: return "int";
    case Type::u32: return "u32";
    case Type::i64: return "i64";
    case Type::u64: return "u64";
    case Type::f32: return "float";
    case Type::f64: return "double";
    case Type::none: break;
  }
  throw InternalError("a value of no type", "CUDA printer", "a value type");
}

std::string_view cuda_element(Storage storage) {
  switch (storage) {
    case Storage::f16:
    case Storage::bf16: return "unsigned short";
    case Storage::u8: return "unsigned char";
    default: return cuda_type(value_type(storage));
  }
}

std::string cuda_vector(Type type, int lanes) {
  if (lanes == 1) return std::string(cuda_type(type));
  const bool four = lanes == 4;
  switch (type) {
    case Type::f32: return four ? "float4" : "float2";
    case Type::i32: return four ? "int4" : "int2";
    case Type::u32: return four ? "uint4" : "uint2";
    case Type::f64: return four ? "ls_double4" : "double2";
    case Type::i64: return four ? "ls_long4" : "longlong2";
    case Type::u64: return four ? "ls_ulong4" : "ulonglong2";
    default:
      throw InternalError(fmt::format("{} lanes of {}", lanes, name(type)), "CUDA printer",
                          "1, 2 or 4 numbers");
  }
}

namespace {
/// A number's bits, with the number itself where that is short.
template <class T>
std::string readable(const std::string& hex, T v) {
  const std::string shortest = fmt::format("{}", v);
  return shortest.size() > 8 || v == std::trunc(v) ? hex : fmt::format("{} /* {} */", hex, shortest);
}
}  // namespace

Expression cuda_literal(Type type, uint64_t bits) {
  const auto whole = [](std::string text) {
    return Expression{text, text[0] == '-' ? Precedence::unary : Precedence::atom, 0};
  };
  switch (type) {
    case Type::boolean: return {bits ? "true" : "false"};
    case Type::i32: {
      const auto v = int32_t(uint32_t(bits));
      return v == INT32_MIN ? Expression{"int(0x80000000u)"} : whole(fmt::format("{}", v));
    }
    case Type::u32:
      return {uint32_t(bits) > 0xffff ? fmt::format("{:#x}u", uint32_t(bits))
                                      : fmt::format("{}u", uint32_t(bits))};
    case Type::i64: {
      const auto v = int64_t(bits);
      return v == INT64_MIN ? Expression{"i64(0x8000000000000000ull)"} : whole(fmt::format("{}ll", v));
    }
    case Type::u64: return {bits > 0xffff ? fmt::format("{:#x}ull", bits) : fmt::format("{}ull", bits)};
    case Type::f32: {
      const float v = std::bit_cast<float>(uint32_t(bits));
      if (!std::isnormal(v) && bits != 0) return {fmt::format("__uint_as_float({:#010x}u)", uint32_t(bits))};
      return whole(readable(fmt::format("{:a}f", v), v));
    }
    case Type::f64: {
      const double v = std::bit_cast<double>(bits);
      if (!std::isnormal(v) && bits != 0)
        return {fmt::format("__longlong_as_double(i64({:#018x}ull))", bits)};
      return whole(readable(fmt::format("{:a}", v), v));
    }
    case Type::none: break;
  }
  throw InternalError("a constant of no type", "CUDA printer", "a value type");
}

// ── memory
// ──────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

/// Type that moves `lanes` elements at once, at most 16 bytes; and how many of them are needed.
struct Carrier {
  std::string type;
  int count, lanes;  // carriers, elements in each
};
Carrier carrier(Storage s, int lanes) {
  if (size_of(s) == 8) return {cuda_vector(value_type(s), 2), lanes / 2, 2};
  if (size_of(s) == 4) return {cuda_vector(value_type(s), lanes), 1, lanes};
  return {fmt::format("{}{}", size_of(s) == 2 ? "ushort" : "uchar", lanes), 1, lanes};
}

}  // namespace

std::string read_through(CachePath path, std::string_view pointer) {
  switch (path) {
    case CachePath::read_only: return fmt::format("__ldg({})", pointer);
    case CachePath::streaming: return fmt::format("__ldcs({})", pointer);
    case CachePath::plain: break;
  }
  return fmt::format("*({})", pointer);
}

Expression from_storage(Storage storage, const Expression& element) {
  const int depth = element.depth + 1;
  switch (storage) {
    case Storage::f16: return {fmt::format("ls_from_f16({})", element.text), Precedence::atom, depth};
    case Storage::bf16: return {fmt::format("ls_from_bf16({})", element.text), Precedence::atom, depth};
    case Storage::u8: return {fmt::format("u32({})", element.text), Precedence::atom, depth};
    default: return {element.text, element.precedence, depth};
  }
}

Expression to_storage(Storage storage, const Expression& value) {
  const int depth = value.depth + 1;
  switch (storage) {
    case Storage::f16: return {fmt::format("ls_to_f16({})", value.text), Precedence::atom, depth};
    case Storage::bf16: return {fmt::format("ls_to_bf16({})", value.text), Precedence::atom, depth};
    case Storage::u8: return {fmt::format("(unsigned char)({})", value.text), Precedence::unary, depth};
    default: return {value.text, value.precedence, depth};
  }
}

std::string load_function_name(Storage storage, int lanes, CachePath path) {
  return fmt::format("ls_load_{}x{}{}", name(storage), lanes,
                     path == CachePath::read_only   ? "_nc"
                     : path == CachePath::streaming ? "_stream"
                                                    : "");
}

std::string load_function(Storage storage, int lanes, CachePath path) {
  const Carrier c = carrier(storage, lanes);
  const std::string result = cuda_vector(value_type(storage), lanes);
  std::string out = fmt::format(
      "__device__ __forceinline__ {} {}(const {}* p) {{\n  const {}* q = reinterpret_cast<const {}*>(p);\n",
      result, load_function_name(storage, lanes, path), cuda_element(storage), c.type, c.type);
  std::string parts;
  for (int n = 0; n < c.count; ++n) {
    out += fmt::format("  const {} c{} = {};\n", c.type, n,
                       read_through(path, n == 0 ? "q" : fmt::format("q + {}", n)));
    for (int k = 0; k < c.lanes; ++k) {
      if (!parts.empty()) parts += ", ";
      parts += from_storage(storage, {fmt::format("c{}.{}", n, "xyzw"[k])}).text;
    }
  }
  return out + fmt::format("  {} r = {{{}}};\n  return r;\n}}\n", result, parts);
}

std::string store_function_name(Storage storage, int lanes, bool streaming) {
  return fmt::format("ls_store_{}x{}{}", name(storage), lanes, streaming ? "_stream" : "");
}

std::string store_function(Storage storage, int lanes, bool streaming) {
  const Carrier c = carrier(storage, lanes);
  const std::string_view value = cuda_type(value_type(storage));
  std::string parameters;
  for (int k = 0; k < lanes; ++k) parameters += fmt::format(", {} {}", value, "xyzw"[k]);
  std::string out = fmt::format(
      "__device__ __forceinline__ void {}({}* p{}) {{\n  {}* q = reinterpret_cast<{}*>(p);\n",
      store_function_name(storage, lanes, streaming), cuda_element(storage), parameters, c.type, c.type);
  for (int n = 0; n < c.count; ++n) {
    std::string parts;
    for (int k = 0; k < c.lanes; ++k) {
      if (k) parts += ", ";
      parts += to_storage(storage, {std::string(1, "xyzw"[n * c.lanes + k])}).text;
    }
    out += fmt::format("  const {} c{} = {{{}}};\n", c.type, n, parts);
    out += streaming ? fmt::format("  __stcs(q + {}, c{});\n", n, n) : fmt::format("  q[{}] = c{};\n", n, n);
  }
  return out + "}\n";
}

}  // namespace lockstep::clike
