// One array of a file, frame by frame along its first axis: long runs whose moments are needed one at a time.
#pragma once

#include <filesystem>
#include <string>

#include "io/arrays/npy.hpp"

namespace lockstep::io {

/// Frames of NetCDF variables, of .npy files and of stored members of .npz archives are read when they are asked for.
/// Other arrays (deflated, in Fortran order, of another byte order) are held as a whole.
class FrameFile {
 public:
  /// The array `name` of an .nc or .npz file, or that of an .npy file. Throws InputError where there is none.
  FrameFile(const std::filesystem::path& path, const std::string& name);
  const Sizes& shape() const { return shape_; }
  /// Without the first axis. Claims its own share of the budget.
  Array frame(int64_t number) const;

 private:
  void read_header();

  std::filesystem::path path_;
  std::string name_;
  Sizes shape_;
  Array whole_;                        // held, where it cannot be read by frames
  std::optional<StoredArray> stored_;  // none: NetCDF, or held
};

}  // namespace lockstep::io
