// The name of this machine.
#pragma once

#include <string>

namespace lockstep::platform {

std::string host_name();

}  // namespace lockstep::platform
