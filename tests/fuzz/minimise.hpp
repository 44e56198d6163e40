// Makes a failing program smaller while it continues failing.
#pragma once

#include <functional>

#include "generator.hpp"

namespace lockstep::fuzz {

/// `fails` must hold for the program given, and holds for the one returned. At most `tries` calls of it.
Program minimise(Program program, const std::function<bool(const Program&)>& fails, int tries);

}  // namespace lockstep::fuzz
