// Which CUDA device memory is on.
#pragma once

#include <cstdint>

namespace lockstep::python {

/// Number of the CUDA device in whose memory an address lies; 0 where the driver does not report it.
int cuda_number(uint64_t address);

}  // namespace lockstep::python
