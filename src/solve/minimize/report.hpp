// The summary as text, with as many iterations as asked for.
#pragma once

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// report(summary), which shows ten iterations, with `rows` of them at most: the first and the last ones.
std::string report(const Summary& summary, int rows);

}  // namespace lockstep::solve
