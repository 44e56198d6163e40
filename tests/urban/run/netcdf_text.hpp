// Attributes of NetCDF files, which the program writes and never reads.
#pragma once

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "io/rasters/netcdf/netcdf_api.hpp"

namespace lockstep::test {

/// A text of a variable, or of the file where that is null.
inline std::string netcdf_text(const std::filesystem::path& path, const char* variable, const char* name) {
  const io::NetcdfApi& api = io::require_netcdf(path.string());
  const auto check = [&](int error) {
    if (error != 0) throw std::runtime_error(api.nc_strerror(error));
  };
  int file = 0, id = -1;
  check(api.nc_open(path.c_str(), 0, &file));
  const std::shared_ptr<void> closer(nullptr, [&](void*) { api.nc_close(file); });
  if (variable) check(api.nc_inq_varid(file, variable, &id));
  size_t length = 0;
  check(api.library.function<int(int, int, const char*, size_t*)>("nc_inq_attlen")(file, id, name, &length));
  std::string text(length, ' ');
  check(api.library.function<int(int, int, const char*, char*)>("nc_get_att_text")(file, id, name,
                                                                                   text.data()));
  return text;
}

}  // namespace lockstep::test
