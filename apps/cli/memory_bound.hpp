// Sizes that no memory holds are bad input, refused before anything is made of them.
#pragma once

#include <string_view>

namespace lockstep::cli {

/// Throws InputError, naming the option as it was given, where `bytes`, the least that its size takes on the host, are
/// more than the machine has.
void require_host_memory(double bytes, std::string_view given);
/// The same of memory on a device of `total` bytes, which may be the host's.
void require_memory(double bytes, double total, std::string_view given, std::string_view whose);

}  // namespace lockstep::cli
