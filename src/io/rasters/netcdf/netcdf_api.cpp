#include "io/rasters/netcdf/netcdf_api.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "io/rasters/netcdf/classic_header.hpp"
#include "io/rasters/netcdf/hdf5_content.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

struct LoadedNetcdf {
  std::optional<NetcdfApi> api;
  std::string reason;  // why there is none
};

LibrarySearch netcdf_search() {
  LibrarySearch search;
  for (int version = 22; version >= 13; --version)  // .13 is netCDF 4.6, .19 is 4.9
    search.names.push_back(fmt::format("libnetcdf.so.{}", version));
  search.names.push_back("libnetcdf.so");
  return search;
}

const LoadedNetcdf& netcdf() {
  static const LoadedNetcdf& loaded = *new LoadedNetcdf([] {
    LoadedNetcdf made;
    made.api = load_netcdf(netcdf_search(), made.reason);
    return made;
  }());
  return loaded;
}

}  // namespace

namespace {
/// Searched in the libraries that netCDF itself has loaded.
std::optional<Hdf5Api> find_hdf5(const DynamicLibrary& netcdf) {
  Hdf5Api api;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(netcdf.symbol(name));
    return function != nullptr;
  };
  const bool all = find(api.H5Fopen, "H5Fopen") && find(api.H5Fclose, "H5Fclose") &&
                   find(api.H5Dopen2, "H5Dopen2") && find(api.H5Dclose, "H5Dclose") &&
                   find(api.H5Dwrite_chunk, "H5Dwrite_chunk");
  if (!find(api.H5Dget_chunk_storage_size, "H5Dget_chunk_storage_size"))
    api.H5Dread_chunk = nullptr;
  else
    find(api.H5Dread_chunk, "H5Dread_chunk");
  return all ? std::optional(api) : std::nullopt;
}
}  // namespace

std::optional<NetcdfApi> load_netcdf(const LibrarySearch& search, std::string& reason) {
  std::string why;
  NetcdfApi api;
  api.library = search.load(&why);
  const DynamicLibrary& library = api.library;
  if (!library) {
    const bool broken = why.find("No such file") == std::string::npos;
    reason = broken ? why : fmt::format("none of {} to {}", search.names.front(), search.names.back());
    return std::nullopt;
  }
  const auto missing = [&](const char* name) {
    reason = fmt::format("{} has no function {}", library.path(), name);
    return std::nullopt;
  };
#define LOCKSTEP_NETCDF_LOAD(name, parameters)        \
  api.name = library.function<int parameters>(#name); \
  if (!api.name) return missing(#name);
  LOCKSTEP_NETCDF_FUNCTIONS(LOCKSTEP_NETCDF_LOAD)
#undef LOCKSTEP_NETCDF_LOAD
  api.nc_strerror = library.function<const char*(int)>("nc_strerror");
  if (!api.nc_strerror) return missing("nc_strerror");
  api.hdf5 = find_hdf5(library);
  return api;
}

std::string netcdf_unavailable_reason() { return netcdf().reason; }

const NetcdfApi& require_netcdf(const std::string& where) {
  if (!netcdf().api)
    throw UnsupportedError(
        fmt::format("netCDF cannot be loaded ({})", netcdf().reason), where,
        "netCDF 4 (Debian 12: apt install libnetcdf19; Debian 13: libnetcdf22), or --format tif or npy")
        .with_hint("a libnetcdf elsewhere is found through LOCKSTEP_LIBRARY_PATH=FOLDER");
  return *netcdf().api;
}

void check_netcdf(const std::filesystem::path& path) {
  check_classic_netcdf(path);
  check_hdf5_content(path);
}

}  // namespace lockstep::io
