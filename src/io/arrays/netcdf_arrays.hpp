// Named arrays with named dimensions in NetCDF-4 files; netCDF is loaded when a file needs it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/arrays/npy.hpp"

namespace lockstep::io {

struct NetcdfVariable {
  std::string name;
  std::vector<std::string> dimensions;  // one an axis; those of one name have one size
  Array values;                         // f32 or f64
  std::vector<std::pair<std::string, std::string>> attributes;
};

/// Empty if netCDF works here, else the reason why it does not.
std::string netcdf_missing();
/// Throws UnsupportedError, naming the package, where netCDF is absent; InputError where the disk refuses.
void write_netcdf(const std::filesystem::path& path, const std::vector<NetcdfVariable>& variables,
                  const std::vector<std::pair<std::string, std::string>>& attributes);
/// The numeric variables of those names that the file has, as f64. Throws InputError for what is no NetCDF
/// file.
NpzArrays read_netcdf(const std::filesystem::path& path, const std::vector<std::string>& names);
/// All numeric variables.
NpzArrays read_netcdf(const std::filesystem::path& path);
/// A file whose variables are read by parts, as the CF conventions pack them.
class NetcdfInput {
 public:
  /// Throws InputError for what is no NetCDF file, UnsupportedError where netCDF is absent.
  explicit NetcdfInput(const std::filesystem::path& path);
  ~NetcdfInput();
  bool has(const std::string& variable) const;
  /// Names and lengths of the variable's dimensions.
  std::vector<std::pair<std::string, int64_t>> dimensions(const std::string& variable) const;
  std::string text(const std::string& variable, const char* attribute) const;  ///< empty: none
  /// `count` numbers along each dimension from `first` on, times scale_factor plus add_offset; missing ones are NaN.
  Array read(const std::string& variable, const std::vector<size_t>& first, const Sizes& count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
/// By its first bytes.
bool is_netcdf(const std::filesystem::path& path);

/// The shape of a variable, and one of its frames along the first axis, as f64: what a series needs of a long run.
Sizes netcdf_shape(const std::filesystem::path& path, const std::string& name);
Array read_netcdf_frame(const std::filesystem::path& path, const std::string& name, int64_t frame);

}  // namespace lockstep::io
