#include "io/arrays/frames.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"

namespace lockstep::io {

std::optional<StoredArray> find_stored(const InputFile& file, std::string_view where) {
  constexpr uint64_t kLongestHeader = 1 << 16;
  if (!file.is_regular()) return std::nullopt;
  std::vector<std::byte> begin(std::min(file.size(), kLongestHeader));
  if (!read_at(file.descriptor(), 0, begin)) return std::nullopt;
  try {
    const NpyHeader header = parse_npy_header(begin, where);
    if (header.swapped || header.fortran_order) return std::nullopt;
    return StoredArray{header, header.data_offset, file.size() - header.data_offset};
  } catch (const InputError&) { return std::nullopt; }
}

namespace {

uint64_t bytes_of(const NpyHeader& header) {
  uint64_t bytes = uint64_t(size_of(header.storage));  // no overflow: the header was checked
  for (const int64_t n : header.shape) bytes *= uint64_t(n);
  return bytes;
}

}  // namespace

FrameFile::FrameFile(const std::filesystem::path& path, const std::string& name) : path_(path), name_(name) {
  if (path.extension() == ".nc") {
    shape_ = netcdf_shape(path, name);
    return;
  }
  const bool archive = path.extension() == ".npz";
  stored_ =
      archive ? NpzFile(path).find_stored(name) : find_stored(InputFile(path, "an .npy file"), path.string());
  // Truth values are checked and texts refused where arrays are read as a whole.
  if (stored_ && (stored_->header.storage == Storage::boolean || stored_->header.shape.empty() ||
                  stored_->bytes != bytes_of(stored_->header)))
    stored_.reset();
  if (!stored_) whole_ = archive ? find_array(read_npz(path, {name}), name, path.string()) : read_npy(path);
  shape_ = stored_ ? stored_->header.shape : whole_.shape();
}

Array FrameFile::frame(int64_t number) const {
  const std::string where = path_.string();
  if (shape_.empty() || number < 0 || number >= shape_[0])
    throw InputError(fmt::format("no frame {} of '{}'", number, name_), where, "a file that has it");
  if (path_.extension() == ".nc") return read_netcdf_frame(path_, name_, number);
  if (!stored_) return whole_[number];
  return within_memory(where, [&] {
    const Sizes shape(shape_.begin() + 1, shape_.end());
    const uint64_t bytes = stored_->bytes / uint64_t(shape_[0]);
    InputClaim claim(double(bytes), fmt::format("a frame of '{}'", name_), where);
    Array array(stored_->header.storage, shape);
    const InputFile file(path_, "the file of before");
    if (!read_at(file.descriptor(), stored_->offset + uint64_t(number) * bytes, array.mutate_raw()))
      throw InputError("a file that became shorter", where, "a complete file");
    return claimed(array, std::move(claim));
  });
}

}  // namespace lockstep::io
