// The kernel language.
#pragma once

#include "lockstep/kernel/dynamic.hpp"   // IWYU pragma: export
#include "lockstep/kernel/elements.hpp"  // IWYU pragma: export
#include "lockstep/kernel/function.hpp"  // IWYU pragma: export
#include "lockstep/kernel/kernel.hpp"    // IWYU pragma: export
#include "lockstep/kernel/math.hpp"      // IWYU pragma: export
#include "lockstep/kernel/vec.hpp"       // IWYU pragma: export
