// Numbers and structs of a launch as bits.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::device {

/// Why an argument is not what a parameter takes.
struct Mismatch {
  std::string what, expected;
};

/// The argument in words: "1.5", "a buffer of f32 (3,)".
std::string text_of(const Argument& argument);
/// The number or struct that the scalars from `first` on belong to: how many scalars, and what launches give it by.
size_t scalars_of(const ir::Function& f, size_t first);
const std::string& number_name(const ir::Function& f, size_t first);
/// "a number of type f32", "a Flow"
std::string wanted_number(const ir::Function& f, size_t first);
/// Writes the bits of an argument for the scalars from `first` on to `bits`, or says what is wrong.
std::optional<Mismatch> number_bits(const ir::Function& f, size_t first, const Argument& argument,
                                    uint64_t* bits);
/// The value alone, where it may change between replays.
Argument value_of(const PerReplay& number);

/// `before` and "life.cpp:23", or nothing where the line is not known.
std::string near_text(const std::source_location& where, const char* before);

}  // namespace lockstep::device
