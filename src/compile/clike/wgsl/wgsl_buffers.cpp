#include "compile/clike/wgsl/wgsl_buffers.hpp"

#include <fmt/format.h>

#include "compile/clike/printer.hpp"

namespace lockstep::clike {

std::string_view wgsl_type(Type type) {
  switch (type) {
    case Type::boolean: return "bool";
    case Type::i32: return "i32";
    case Type::u32: return "u32";
    default: return "f32";
  }
}

std::string_view wgsl_atomic_function(ir::AtomicOp op) {
  switch (op) {
    case ir::AtomicOp::add: return "atomicAdd";
    case ir::AtomicOp::min: return "atomicMin";
    case ir::AtomicOp::max: return "atomicMax";
    case ir::AtomicOp::and_: return "atomicAnd";
    case ir::AtomicOp::or_: return "atomicOr";
    case ir::AtomicOp::xor_: return "atomicXor";
    case ir::AtomicOp::exchange: return "atomicExchange";
    case ir::AtomicOp::compare_exchange: break;
  }
  return "atomicCompareExchangeWeak";
}

std::string wgsl_float_add(std::string_view old, std::string_view place, std::string_view value) {
  return fmt::format(
      "var bits = atomicLoad(&{1}); loop {{ let r = atomicCompareExchangeWeak(&{1}, bits, "
      "bitcast<u32>(bitcast<f32>(bits) + {2})); if (r.exchanged) {{ break; }} bits = r.old_value; }} {0} = "
      "bitcast<f32>(bits);",
      old, place, value);
}

WgslBufferText::WgslBufferText(const ir::Function& function, uint32_t buffer, const WgslBuffer& how,
                               int64_t window_bytes)
    : param_(function.buffers[buffer]), buffer_(buffer), how_(how), window_words_(window_bytes / 4) {
  written_ = param_.access != ir::Access::read;
  // A 16- or 8-bit store changes a part of a word that other lanes may store to as well.
  atomic_ = param_.atomic || (narrow() && written_);
  simple_ = how.windows == 1 && !how.has_base && !atomic_ && !narrow();
  name_ = fmt::format("b{}", buffer);
  // Floats that are added to atomically lie as bits: WGSL has atomic integers only.
  bits_ = atomic_ && param_.storage == Storage::f32;
  element_ = narrow() || bits_ ? "u32" : wgsl_type(value_type(param_.storage));
}

std::string WgslBufferText::declarations(std::vector<WgslBinding>& bindings) const {
  std::string out;
  for (int w = 0; w < how_.windows; ++w) {
    const bool writable = written_ || how_.writable || atomic_;
    out += fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", bindings.size(),
                       writable ? "read_write" : "read",
                       how_.windows > 1 ? fmt::format("{}_{}", name_, w) : name_,
                       atomic_ ? fmt::format("atomic<{}>", element_) : element_);
    bindings.push_back({buffer_, w, writable});
  }
  return out;
}

std::string WgslBufferText::place(int window, const std::string& index) const {
  if (how_.windows == 1) return fmt::format("{}[{}]", name_, index);
  return window == 0 ? fmt::format("{}_0[{}]", name_, index)
                     : fmt::format("{}_{}[{} - {}u]", name_, window, index, window * window_words_);
}

std::string WgslBufferText::plain_load(int window, const std::string& index) const {
  if (!atomic_) return place(window, index);
  return fmt::format(fmt::runtime(bits_ ? "bitcast<f32>(atomicLoad(&{}))" : "atomicLoad(&{})"),
                     place(window, index));
}

template <class Statement>
std::string WgslBufferText::over_windows(Statement statement) const {
  if (how_.windows == 1) return "  " + statement(0) + "\n";
  std::string out = fmt::format("  switch (at / {}u) {{\n", window_words_);
  for (int w = 0; w < how_.windows; ++w)
    out += fmt::format("    {}: {{ {} }}\n", w + 1 < how_.windows ? fmt::format("case {}u", w) : "default",
                       statement(w));
  return out + "  }\n";
}

std::string WgslBufferText::load(const std::string& index) const {
  return simple_ ? fmt::format("{}[{}]", name_, index) : fmt::format("{}_load({})", name_, index);
}
std::string WgslBufferText::store(const std::string& index, const std::string& value) const {
  return simple_ ? fmt::format("{}[{}] = {}", name_, index, value)
                 : fmt::format("{}_store({}, {})", name_, index, value);
}
std::string WgslBufferText::atomic(ir::AtomicOp op, const std::string& index, const std::string& value,
                                   const std::string* compare) const {
  const std::string function = fmt::format("{}_{}", name_, wgsl_atomic_function(op));
  return compare ? fmt::format("{}({}, {}, {})", function, index, value, *compare)
                 : fmt::format("{}({}, {})", function, index, value);
}

std::string WgslBufferText::accessors(std::string_view body, const std::string& base) const {
  const auto used = [&](std::string_view function) {
    return body.find(fmt::format("{}_{}(", name_, function)) != std::string_view::npos;
  };
  const int per_word = 4 / std::max(size_of(param_.storage), 1), bits = 32 / std::max(per_word, 1);
  const std::string_view value = wgsl_type(value_type(param_.storage));
  const std::string element =
      fmt::format("  let element = u32(index){};\n", base.empty() ? "" : " + " + base);
  const std::string at =
      narrow() ? element + fmt::format("  let at = element / {}u;\n  let shift = (element % {}u) * {}u;\n",
                                       per_word, per_word, bits)
               : fmt::format("  let at = u32(index){};\n", base.empty() ? "" : " + " + base);
  std::string_view unpack = "{}", pack = "{}";
  if (param_.storage == Storage::f16) unpack = "ls_f16_load({})", pack = "ls_f16_store({})";
  if (param_.storage == Storage::bf16) unpack = "ls_bf16_load({})", pack = "ls_bf16_store({})";
  const uint32_t mask = bits == 32 ? 0xffffffffu : (1u << bits) - 1;

  std::string out;
  if (used("load")) {
    out += fmt::format("fn {}_load(index: i32) -> {} {{\n{}", name_, value, at);
    if (narrow()) {
      out += "  var word: u32;\n" +
             over_windows([&](int w) { return fmt::format("word = {};", plain_load(w, "at")); });
      out += fmt::format("  return {};\n",
                         fmt::format(fmt::runtime(unpack), fmt::format("(word >> shift) & {}u", mask)));
    } else if (how_.windows == 1) {
      out += fmt::format("  return {};\n", plain_load(0, "at"));
    } else {
      out += fmt::format("  var value: {};\n", value) +
             over_windows([&](int w) { return fmt::format("value = {};", plain_load(w, "at")); }) +
             "  return value;\n";
    }
    out += "}\n";
  }
  if (used("store")) {
    out += fmt::format("fn {}_store(index: i32, value: {}) {{\n{}", name_, value, at);
    if (narrow()) {
      out += fmt::format("  let bits = {} & {}u;\n", fmt::format(fmt::runtime(pack), "value"), mask);
      out += over_windows([&](int w) {
        return fmt::format("atomicAnd(&{0}, ~({1}u << shift)); atomicOr(&{0}, bits << shift);",
                           place(w, "at"), mask);
      });
    } else {
      out += over_windows([&](int w) {
        return atomic_ ? fmt::format("atomicStore(&{}, {});", place(w, "at"),
                                     bits_ ? "bitcast<u32>(value)" : "value")
                       : fmt::format("{} = value;", place(w, "at"));
      });
    }
    out += "}\n";
  }
  for (int o = 0; o <= int(ir::AtomicOp::exchange); ++o) {
    const std::string_view function = wgsl_atomic_function(ir::AtomicOp(o));
    if (!used(function)) continue;
    out += fmt::format("fn {}_{}(index: i32, value: {}) -> {} {{\n{}  var old: {};\n", name_, function, value,
                       value, at, value);
    out += over_windows([&](int w) {
      return bits_ ? wgsl_float_add("old", place(w, "at"), "value")
                   : fmt::format("old = {}(&{}, value);", function, place(w, "at"));
    });
    out += "  return old;\n}\n";
  }
  const std::string_view exchange = wgsl_atomic_function(ir::AtomicOp::compare_exchange);
  if (used(exchange)) {
    // The weak form may fail without a cause.
    out += fmt::format("fn {0}_{1}(index: i32, value: {2}, compare: {2}) -> {2} {{\n{3}", name_, exchange,
                       value, at);
    const auto attempt = [&](int w) {
      return fmt::format(
          "loop {{ let r = {}(&{}, compare, value); if (r.exchanged || r.old_value != compare) {{ old = "
          "r.old_value; break; }} }}",
          exchange, place(w, "at"));
    };
    out += fmt::format("  var old: {};\n", value) + over_windows(attempt) + "  return old;\n}\n";
  }
  return out;
}

}  // namespace lockstep::clike
