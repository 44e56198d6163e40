#include "urban/run/program.hpp"

namespace lockstep::urban {

std::string program() { return "Lockstep " LOCKSTEP_VERSION; }

}  // namespace lockstep::urban
