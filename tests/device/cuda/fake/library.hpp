// The stand-in driver as the back end has loaded it.
#pragma once

#include <dlfcn.h>

namespace lockstep {

/// A function of the driver by its name; null where it was not loaded.
template <class F>
F* driver_function(const char* name) {
  void* library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

}  // namespace lockstep
