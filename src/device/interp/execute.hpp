// Runs a program over the groups or points of a dispatch.
#pragma once

#include "device/backend.hpp"
#include "device/interp/findings.hpp"
#include "device/interp/program.hpp"

namespace lockstep::interp {

/// Runs a dispatch; gives the findings, one entry a kind. `serial` numbers dispatches and groups and is advanced.
std::vector<Finding> execute(const Program& program, const device::Dispatch& dispatch,
                             std::array<int32_t, 3> group, uint32_t& serial);

}  // namespace lockstep::interp
