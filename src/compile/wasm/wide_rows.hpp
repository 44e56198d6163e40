// Lanes that each access 2 or 4 elements, all next to each other: vectors as they are in memory, and by component.
#pragma once

#include <vector>

#include "compile/wasm/builder.hpp"

namespace lockstep::compile::wasm {

/// `memory`: the elements of all lanes in order, 16 bytes each. The lanes' components, of 32 or 64 bits.
std::vector<Value> components_of(Builder& b, Type type, int components, const std::vector<Local>& memory);
/// The same backwards.
std::vector<Local> memory_of(Builder& b, const std::vector<Value>& components);

}  // namespace lockstep::compile::wasm
