// Who made a file.
#pragma once

#include <string>

namespace lockstep::urban {

std::string program();  ///< "Lockstep 0.1.0"

}  // namespace lockstep::urban
