// One array of a file, frame by frame along its first axis: long runs whose moments are needed one at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/arrays/npy.hpp"
#include "io/text/file.hpp"

namespace lockstep::io {

/// Of an open .npy file; none where its elements lie otherwise, or there is no array, which the reader of whole arrays judges.
std::optional<StoredArray> find_stored(const InputFile& file, std::string_view where);

/// Frames of NetCDF variables, of .npy files and of stored members of .npz archives are read when they are requested.
/// Other arrays (deflated, in Fortran order, of another byte order) are held as a whole.
class FrameFile {
 public:
  /// The array `name` of an .nc or .npz file, or that of an .npy file. Throws InputError where there is none.
  FrameFile(const std::filesystem::path& path, const std::string& name);
  const Sizes& shape() const { return shape_; }
  /// Without the first axis. Claims its own share of the budget.
  Array frame(int64_t number) const;

 private:
  std::filesystem::path path_;
  std::string name_;
  Sizes shape_;
  Array whole_;                        // held, where it cannot be read by frames
  std::optional<StoredArray> stored_;  // none: NetCDF, or held
};

}  // namespace lockstep::io
