// The cases and kernels of the engine and of every application; the program and the tests share them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/verify.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

const CaseRegistry& all_cases();
/// Cases that match any of the names or prefixes, in the registry's order; all if there are none.
std::vector<const Case*> select_cases(const std::vector<std::string>& names);
/// Each kernel of all cases once, by name.
std::vector<Kernel> all_kernels();

/// Subjects of `lockstep tune`, by computations or prefixes of them, all if there are none. Throws InputError for a name that
/// begins none.
std::vector<variants::Subject> select_variants(const std::vector<std::string>& names);

}  // namespace lockstep
