#include "lockstep/nn/model.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::nn {

int64_t parameter_count(std::span<const ParameterTensor> tensors) {
  int64_t end = 0;
  for (const ParameterTensor& t : tensors) {
    int64_t elements = 1;
    for (const int64_t extent : t.shape) elements *= extent;
    if (t.offset != end || t.size != elements)
      throw InputError(fmt::format("tensor {} at {} of {} elements", t.name, t.offset, t.size), "parameters",
                       fmt::format("{} elements at {}", elements, end));
    end += t.size;
  }
  return end;
}

}  // namespace lockstep::nn
