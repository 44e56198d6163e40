// netCDF's C interface, loaded at run time: the program builds and runs where netCDF is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/dynamic_library.hpp"

namespace lockstep::io {

// F(name, (parameters)) for every function that Lockstep calls; each returns 0 or an error's number.
#define LOCKSTEP_NETCDF_FUNCTIONS(F)                                                                    \
  F(nc_create, (const char* path, int mode, int* file))                                                 \
  F(nc_open, (const char* path, int mode, int* file))                                                   \
  F(nc_close, (int file))                                                                               \
  F(nc_enddef, (int file))                                                                              \
  F(nc_def_dim, (int file, const char* name, size_t length, int* dimension))                            \
  F(nc_def_var, (int file, const char* name, int type, int rank, const int* dimensions, int* variable)) \
  F(nc_def_var_deflate, (int file, int variable, int shuffle, int deflate, int level))                  \
  F(nc_def_var_chunking, (int file, int variable, int storage, const size_t* sizes))                    \
  F(nc_def_var_fill, (int file, int variable, int no_fill, const void* value))                          \
  F(nc_put_att_text, (int file, int variable, const char* name, size_t length, const char* text))       \
  F(nc_put_att_double,                                                                                  \
    (int file, int variable, const char* name, int type, size_t count, const double* values))           \
  F(nc_put_var_double, (int file, int variable, const double* values))                                  \
  F(nc_put_var_int, (int file, int variable, const int* values))                                        \
  F(nc_put_vara_float,                                                                                  \
    (int file, int variable, const size_t* first, const size_t* count, const float* values))            \
  F(nc_inq_varid, (int file, const char* name, int* variable))                                          \
  F(nc_inq_nvars, (int file, int* count))                                                               \
  F(nc_inq_varname, (int file, int variable, char* name))                                               \
  F(nc_inq_varndims, (int file, int variable, int* rank))                                               \
  F(nc_inq_vartype, (int file, int variable, int* type))                                                \
  F(nc_inq_var_chunking, (int file, int variable, int* storage, size_t* sizes))                         \
  F(nc_inq_var_deflate, (int file, int variable, int* shuffle, int* deflate, int* level))               \
  F(nc_inq_var_endian, (int file, int variable, int* order))                                            \
  F(nc_inq_vardimid, (int file, int variable, int* dimensions))                                         \
  F(nc_inq_dimlen, (int file, int dimension, size_t* length))                                           \
  F(nc_inq_dimname, (int file, int dimension, char* name))                                              \
  F(nc_inq_att, (int file, int variable, const char* name, int* type, size_t* length))                  \
  F(nc_get_att_text, (int file, int variable, const char* name, char* text))                            \
  F(nc_get_att_double, (int file, int variable, const char* name, double* values))                      \
  F(nc_get_vara_double, (int file, int variable, const size_t* first, const size_t* count, double* values))

/// The functions for whole chunks of the HDF5 library below netCDF; each result below 0 is an error.
struct Hdf5Api {
  using Id = int64_t;
  static constexpr Id kDefault = 0;
  Id (*H5Fopen)(const char* path, unsigned flags, Id access) = nullptr;
  int (*H5Fclose)(Id file) = nullptr;
  Id (*H5Dopen2)(Id file, const char* name, Id access) = nullptr;
  int (*H5Dclose)(Id dataset) = nullptr;
  int (*H5Dwrite_chunk)(Id dataset, Id transfer, uint32_t filters_left_out, const unsigned long long* first,
                        size_t bytes, const void* data) = nullptr;
  /// Null where this HDF5 has none of that form; then chunks are not read.
  int (*H5Dget_chunk_storage_size)(Id dataset, const unsigned long long* first,
                                   unsigned long long* bytes) = nullptr;
  int (*H5Dread_chunk)(Id dataset, Id transfer, const unsigned long long* first, uint32_t* filters_left_out,
                       void* data) = nullptr;
};

struct NetcdfApi {
#define LOCKSTEP_NETCDF_POINTER(name, parameters) int(*name) parameters = nullptr;
  LOCKSTEP_NETCDF_FUNCTIONS(LOCKSTEP_NETCDF_POINTER)
#undef LOCKSTEP_NETCDF_POINTER
  const char* (*nc_strerror)(int error) = nullptr;
  std::optional<Hdf5Api> hdf5;  ///< absent where netCDF hides its HDF5, or that is older than 1.10.3
  DynamicLibrary library;       ///< open as long as its functions are known
};

/// Loads a library as netCDF. On failure `reason` says why.
std::optional<NetcdfApi> load_netcdf(const LibrarySearch& search, std::string& reason);

/// Empty if netCDF works, else the reason why it does not.
std::string netcdf_unavailable_reason();
/// The interface; throws UnsupportedError, naming the package, where it is absent. `where` names the file.
const NetcdfApi& require_netcdf(const std::string& where);
/// To be asked before the library, or GDAL's driver, opens a file of others: throws InputError where its header cannot be true or
/// its data lie elsewhere.
void check_netcdf(const std::filesystem::path& path);

}  // namespace lockstep::io
