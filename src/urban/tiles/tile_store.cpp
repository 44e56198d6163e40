#include "urban/tiles/tile_store.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string_view>

#include "core/atomic_file.hpp"
#include "core/hash.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kManifest = "manifest.txt";
constexpr std::string_view kHeading = "lockstep urban tiles 1";
constexpr size_t kChecksumBytes = sizeof(Hash128);

bool is_tile(const fs::path& path) { return path.extension() == ".tile"; }

}  // namespace

TileStore::TileStore(fs::path folder, std::string key) : folder_(std::move(folder)), key_(std::move(key)) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_))
    throw InputError(fmt::format("folder cannot be made: {}", error.message()), folder_.string(),
                     "a folder for tiles");
  std::ifstream manifest(folder_ / kManifest);
  std::string heading, word, key_there;
  int64_t side = 0;
  if (std::getline(manifest, heading) && heading == kHeading &&
      manifest >> word >> key_there >> word >> side && key_there == key_ && side > 0)
    side_ = side;
}

void TileStore::begin(int64_t side) {
  if (!active() || side == side_) return;
  remove_tiles();
  side_ = side;
  write_file(folder_ / kManifest, fmt::format("{}\nkey {}\nside {}\n", kHeading, key_, side_));
}

void TileStore::remove_tiles() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    if (entry.is_regular_file() && is_tile(entry.path())) fs::remove(entry.path());
}

fs::path TileStore::file(const Tile& tile) const {
  return folder_ / fmt::format("{}_{}.tile", tile.row, tile.col);
}

void TileStore::save(const Tile& tile, std::span<const std::byte> data) const {
  if (!active()) return;
  const Hash128 checksum = hash128(data);
  AtomicFile out(file(tile));
  out.write(std::as_bytes(std::span(&checksum, 1)));
  out.write(data);
  out.commit();
}

bool TileStore::load(const Tile& tile, std::span<std::byte> data) const {
  std::error_code error;
  if (!active() || fs::file_size(file(tile), error) != data.size() + kChecksumBytes || error) return false;
  std::ifstream in(file(tile), std::ios::binary);
  Hash128 checksum;
  in.read(reinterpret_cast<char*>(&checksum), sizeof(checksum));
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return in && hash128(data) == checksum;
}

}  // namespace lockstep::urban
