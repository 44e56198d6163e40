// An .npz archive whose members are read one by one.
#pragma once

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/npy.hpp"

namespace lockstep::io {

/// Limits of an array, checked by its header before its elements take memory.
struct ArrayLimits {
  std::optional<Storage> storage;                      // none: any
  int rank = -1;                                       // -1: any
  Sizes sizes;                                         // empty: any; a size of -1: any
  int64_t most = std::numeric_limits<int64_t>::max();  // elements

  /// The text of what was expected; empty where the array is within the limits.
  std::string broken_by(Storage storage, const Sizes& shape) const;
};

/// CRC-32 of consecutive bytes.
struct PartChecksum {
  uint32_t crc = 0;
  uint64_t bytes = 0;
};
PartChecksum checksum_of(std::span<const std::byte> bytes);

/// The directory is read at once, a member when it is requested. All functions throw InputError for what is malformed
/// and for members of types that Lockstep does not have.
class NpzFile {
 public:
  explicit NpzFile(const std::filesystem::path& path);
  /// Of bytes that outlive it; `where` names them in errors.
  NpzFile(std::span<const std::byte> bytes, std::string_view where);
  ~NpzFile();

  const std::string& where() const;
  std::vector<std::string> names() const;
  bool has(std::string_view name) const;
  NpyHeader header(std::string_view name) const;
  /// With its share of the budget for what is read.
  Array read(std::string_view name, const ArrayLimits& limits = {}) const;
  /// See io::read_npz.
  NpzArrays read_all(const std::vector<std::string>& names = {}) const;
  /// The place of an array that is stored as it is in memory, its checksum verified; none for any other.
  std::optional<StoredArray> find_stored(std::string_view name) const;
  /// A stored array at these positions of an axis; the others are not read, and the checksum is not verified. Nothing for
  /// an array that is not stored as it is in memory.
  std::optional<Array> read_slices(std::string_view name, size_t axis,
                                   std::span<const int64_t> positions) const;
  /// As the archive has it, of the whole member.
  uint32_t checksum(std::string_view name) const;
  /// Throws where parts, which are a stored array's elements in order, do not have the archive's checksum.
  void verify(std::string_view name, std::span<const PartChecksum> parts) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::io
