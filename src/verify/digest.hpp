// A short text that stands for the bits of results, to compare those of machines that do not see each other.
#pragma once

#include <span>
#include <string>

#include "lockstep/array.hpp"

namespace lockstep {

/// Equal for arrays of equal storage, shape and bits; as in compare(), every NaN counts as the same one. 32 hexadecimal digits.
std::string digest(std::span<const Array> results);

}  // namespace lockstep
