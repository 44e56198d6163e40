// The loops over points and over groups.
#pragma once

#include "compile/wasm/unit.hpp"

namespace lockstep::compile::wasm {

void emit_points(Unit& unit);
void emit_groups(Unit& unit);

}  // namespace lockstep::compile::wasm
