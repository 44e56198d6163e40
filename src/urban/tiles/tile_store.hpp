// Finished tiles on disk, so that a killed run loses none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

/// A folder with a manifest (what the tiles belong to, and their side) and one file a finished tile. Files
/// appear whole or not at all; one that is short or belongs to other inputs counts as absent. An empty folder
/// name stores nothing.
class TileStore {
 public:
  /// `key` names the inputs and options; tiles of another key are not taken over.
  /// Throws InputError if the folder cannot be made.
  TileStore(std::filesystem::path folder, std::string key);

  bool active() const { return !folder_.empty(); }
  /// Side of the tiles that the folder already holds; 0 if none.
  int64_t side() const { return side_; }
  /// Starts with tiles of this side; earlier ones of another key or side are removed.
  void begin(int64_t side);

  void save(const Tile& tile, std::span<const std::byte> data) const;
  /// Reads a stored tile; false where there is none of that size, or a damaged one.
  bool load(const Tile& tile, std::span<std::byte> data) const;

 private:
  std::filesystem::path file(const Tile& tile) const;
  void remove_tiles() const;

  std::filesystem::path folder_;
  std::string key_;
  int64_t side_ = 0;
};

}  // namespace lockstep::urban
