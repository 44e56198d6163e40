// The one operation that WebAssembly lacks: a b + c with one rounding, exactly (docs/design/web.md).
#pragma once

#include <string_view>

#include "compile/wasm/builder.hpp"

namespace lockstep::compile::wasm {

Value fused_multiply_add(Builder& b, const Value& x, const Value& y, const Value& z);

/// Functions of a module that code may call, by Builder::helper.
/// "fma32": four lanes of f32. "fma64": two lanes of f64; calls "fma", the core's function of three f64.
inline constexpr std::string_view kFma32 = "fma32", kFma64 = "fma64", kFma = "fma";
Signature helper_signature(std::string_view name);
/// The body of a helper that is no import.
Bytes helper_body(std::string_view name, const std::function<uint32_t(std::string_view)>& helper);

}  // namespace lockstep::compile::wasm
