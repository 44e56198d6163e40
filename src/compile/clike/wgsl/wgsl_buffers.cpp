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
  if (narrow()) {
    part_.per_word = 4 / std::max(size_of(param_.storage), 1);
    part_.bits = 32 / part_.per_word;
    part_.mask = (1u << part_.bits) - 1;
  }
  if (param_.storage == Storage::f16) part_.unpack = "ls_f16_load({})", part_.pack = "ls_f16_store({})";
  if (param_.storage == Storage::bf16) part_.unpack = "ls_bf16_load({})", part_.pack = "ls_bf16_store({})";
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
  const std::string from = base.empty() ? "" : " + " + base;
  const std::string at = narrow() ? fmt::format(
                                        "  let element = u32(index){};\n  let at = element / {}u;\n"
                                        "  let shift = (element % {}u) * {}u;\n",
                                        from, part_.per_word, part_.per_word, part_.bits)
                                  : fmt::format("  let at = u32(index){};\n", from);
  std::string out;
  if (used("load")) out += load_function(at);
  if (used("store")) out += store_function(at);
  for (int o = 0; o <= int(ir::AtomicOp::exchange); ++o)
    if (const auto function = wgsl_atomic_function(ir::AtomicOp(o)); used(function))
      out += atomic_function(function, at);
  if (used(wgsl_atomic_function(ir::AtomicOp::compare_exchange))) out += compare_exchange_function(at);
  return out;
}

std::string WgslBufferText::load_function(const std::string& at) const {
  const std::string_view value = wgsl_type(value_type(param_.storage));
  std::string out = fmt::format("fn {}_load(index: i32) -> {} {{\n{}", name_, value, at);
  const auto into = [&](const char* variable) {
    return over_windows([&](int w) { return fmt::format("{} = {};", variable, plain_load(w, "at")); });
  };
  if (narrow()) {
    const std::string bits = fmt::format("(word >> shift) & {}u", part_.mask);
    out += "  var word: u32;\n" + into("word");
    out += fmt::format("  return {};\n", fmt::format(fmt::runtime(part_.unpack), bits));
  } else if (how_.windows == 1) {
    out += fmt::format("  return {};\n", plain_load(0, "at"));
  } else {
    out += fmt::format("  var value: {};\n", value) + into("value") + "  return value;\n";
  }
  return out + "}\n";
}

std::string WgslBufferText::store_function(const std::string& at) const {
  std::string out = fmt::format("fn {}_store(index: i32, value: {}) {{\n{}", name_,
                                wgsl_type(value_type(param_.storage)), at);
  if (narrow()) {
    out +=
        fmt::format("  let bits = {} & {}u;\n", fmt::format(fmt::runtime(part_.pack), "value"), part_.mask);
    out += over_windows([&](int w) {
      return fmt::format("atomicAnd(&{0}, ~({1}u << shift)); atomicOr(&{0}, bits << shift);", place(w, "at"),
                         part_.mask);
    });
  } else {
    out += over_windows([&](int w) {
      return atomic_ ? fmt::format("atomicStore(&{}, {});", place(w, "at"),
                                   bits_ ? "bitcast<u32>(value)" : "value")
                     : fmt::format("{} = value;", place(w, "at"));
    });
  }
  return out + "}\n";
}

std::string WgslBufferText::atomic_function(std::string_view function, const std::string& at) const {
  const std::string_view value = wgsl_type(value_type(param_.storage));
  std::string out = fmt::format("fn {}_{}(index: i32, value: {}) -> {} {{\n{}  var old: {};\n", name_,
                                function, value, value, at, value);
  out += over_windows([&](int w) {
    return bits_ ? wgsl_float_add("old", place(w, "at"), "value")
                 : fmt::format("old = {}(&{}, value);", function, place(w, "at"));
  });
  return out + "  return old;\n}\n";
}

std::string WgslBufferText::compare_exchange_function(const std::string& at) const {
  const std::string_view value = wgsl_type(value_type(param_.storage));
  const std::string_view exchange = wgsl_atomic_function(ir::AtomicOp::compare_exchange);
  // The weak form may fail without a cause.
  const auto attempt = [&](int w) {
    return fmt::format(
        "loop {{ let r = {}(&{}, compare, value); if (r.exchanged || r.old_value != compare) {{ old = "
        "r.old_value; break; }} }}",
        exchange, place(w, "at"));
  };
  return fmt::format("fn {0}_{1}(index: i32, value: {2}, compare: {2}) -> {2} {{\n{3}", name_, exchange,
                     value, at) +
         fmt::format("  var old: {};\n", value) + over_windows(attempt) + "  return old;\n}\n";
}

}  // namespace lockstep::clike
