// Sizes that the host's memory cannot hold are refused before anything is allocated.
#pragma once

#include <string>

#include "lockstep/schema.hpp"

namespace lockstep {

/// Throws OptionError where `bytes`, the least that the options named in `where` ("{members} and {hidden}") take, are more
/// than the machine has.
void require_host_memory(const OptionList& list, double bytes, const std::string& where);

}  // namespace lockstep
