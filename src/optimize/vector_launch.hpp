// Kernels over vectors whose type of element is known at run time.
#pragma once

#include "lockstep/device.hpp"

namespace lockstep::optimize {

/// Calls work with a number of the type that x holds: double or float.
template <class F>
void by_storage(const Buffer& x, F work) {
  if (x.storage() == Storage::f64)
    work(double{});
  else
    work(float{});
}

/// Launches a kernel over the elements of `extent`, if there are any.
template <class... A>
void launch_over(const Device& device, const Kernel& kernel, const Buffer& extent, const A&... arguments) {
  if (extent.elements() > 0) device.launch(kernel, {extent.elements()}, arguments...);
}

}  // namespace lockstep::optimize
