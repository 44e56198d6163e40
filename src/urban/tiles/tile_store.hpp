// Finished tiles on disk, so that a killed run loses none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/folder.hpp"
#include "core/files/folder_lock.hpp"
#include "core/hash.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

/// Hash of the hashes of parts of a mebibyte, by all threads.
Hash128 hash_in_parts(std::span<const std::byte> data);

/// The same of data that come one piece after the other.
class HashInParts {
 public:
  void add(std::span<const std::byte> data);
  Hash128 finish();

 private:
  std::vector<std::byte> begun_;  // of the part that is not whole yet
  std::vector<Hash128> parts_;
};

/// A folder with a manifest and one file a finished tile. Each file appears whole or not at all, and carries
/// the key of its computation and a checksum: one that is short, damaged or of another key counts as absent.
/// An empty folder name stores nothing.
class TileStore {
 public:
  /// `key` names all that a tile's bits depend on but the tile itself: inputs, options, numerics, device
  /// family, versions. Throws InputError if the folder cannot be made or another process holds it.
  /// `holds`: false where another rank of the run holds the folder for all.
  TileStore(std::filesystem::path folder, std::string_view key, bool holds = true);

  bool active() const { return !folder_.empty(); }
  /// Side of the tiles of this key that the folder already holds; 0 if none.
  int64_t side() const { return side_; }
  /// The folder holds tiles, but of another key.
  bool holds_others() const { return holds_others_; }
  /// Starts with tiles of this side; those of another key or side are removed.
  void begin(int64_t side);

  void save(const Tile& tile, std::span<const std::byte> data) const;
  /// Reads a stored tile; false where there is none of that size and key, or a damaged one.
  bool load(const Tile& tile, std::span<std::byte> data) const;

  /// The name of a tile's file, for scratch files and messages.
  std::filesystem::path file(const Tile& tile) const;
  /// A saved tile, open for reading.
  class Saved {
   public:
    Saved(const TileStore& store, const Tile& tile);
    ~Saved();
    Saved(Saved&& other) noexcept;
    Saved& operator=(Saved&&) = delete;
    /// Bytes of its data from `offset` on; false where they are not there.
    bool read(uint64_t offset, std::span<std::byte> data) const;

   private:
    friend class TileStore;
    int descriptor_ = -1;
  };

 private:
  void remove_tiles() const;
  bool holds_tiles() const;
  std::vector<std::string> tile_names() const;

  static std::string name_of(const Tile& tile);

  std::filesystem::path folder_;
  Folder open_;  // the folder itself, even if another takes its name
  FolderLock lock_;
  Hash128 key_;
  int64_t side_ = 0;
  bool holds_others_ = false;
};

}  // namespace lockstep::urban
