// The duties of every transport: the same cases for threads, a transport that disturbs messages, MPI and NCCL. Each throws
// std::runtime_error that says what differed.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/parallel.hpp"

namespace lockstep::parallel::cases {

struct GroupCase {
  const char* name;
  std::function<void(const Group& group, const Device& device)> run;
};
std::span<const GroupCase> group_cases();

/// SHA-256 of sums of random parts over this group, as text: the same for any number of ranks and any device.
std::string sums_of_group(const Group& group, const Device& device);

}  // namespace lockstep::parallel::cases
