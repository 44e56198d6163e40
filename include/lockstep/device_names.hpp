// Names of devices, without opening one.
#pragma once

#include <string_view>

namespace lockstep {

/// Throws InputError for names that Device::open() rejects on every host.
void check_device_names(std::string_view names);

}  // namespace lockstep
