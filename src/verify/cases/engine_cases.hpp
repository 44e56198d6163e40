#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::cases {

/// Cases of the kernel language: control flow, arrays, barriers, reductions, atomics, wide and asynchronous
/// access.
void add_language_cases(CaseRegistry& registry);
/// Its words: boundary rules, elements, atomic operations, groups, checks.
void add_word_cases(CaseRegistry& registry);
/// Structs and numbers that change between replays.
void add_parameter_cases(CaseRegistry& registry);

}  // namespace lockstep::cases
