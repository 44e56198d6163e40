#include "urban/tiles/tile_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "core/platform/parallel.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kManifest = "manifest.txt";
constexpr std::string_view kHeading = "lockstep urban tiles 3";

/// Head of a stored tile, before its data.
struct TileHead {
  Hash128 key, checksum;
};

static_assert(sizeof(TileHead) == TileStore::kDataOffset);

bool is_tile(const fs::path& path) { return path.extension() == ".tile"; }

constexpr size_t kPart = size_t{1} << 20;

/// Of each part, by all threads.
std::vector<Hash128> hashes_of(std::span<const std::byte> data) {
  std::vector<Hash128> parts(data.size() / kPart);
  platform::ThreadArena().for_parts(static_cast<int64_t>(parts.size()), [&](int64_t first, int64_t last) {
    for (size_t k = static_cast<size_t>(first); k < static_cast<size_t>(last); ++k)
      parts[k] = hash128(data.subspan(k * kPart, kPart));
  });
  return parts;
}

fs::path made(fs::path folder) {
  if (folder.empty()) return folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw InputError(fmt::format("folder cannot be made: {}", error.message()), folder.string(),
                     "a folder for tiles");
  return folder;
}

}  // namespace

Hash128 hash_in_parts(std::span<const std::byte> data) {
  HashInParts hash;
  hash.add(data);
  return hash.finish();
}

void HashInParts::add(std::span<const std::byte> data) {
  if (!begun_.empty()) {
    const auto rest = data.first(std::min(data.size(), kPart - begun_.size()));
    begun_.insert(begun_.end(), rest.begin(), rest.end());
    data = data.subspan(rest.size());
    if (begun_.size() < kPart) return;
    parts_.push_back(hash128(begun_));
    begun_.clear();
  }
  const std::span<const std::byte> whole = data.first(data.size() / kPart * kPart);
  const std::vector<Hash128> parts = hashes_of(whole);
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  begun_.assign(data.begin() + static_cast<ptrdiff_t>(whole.size()), data.end());
}

Hash128 HashInParts::finish() {
  if (!begun_.empty()) parts_.push_back(hash128(begun_));
  return hash128(std::as_bytes(std::span(parts_)));
}

TileStore::TileStore(fs::path folder, std::string_view key)
    : folder_(made(std::move(folder))), key_(hash128(key)) {
  if (folder_.empty()) return;
  lock_ = FolderLock(folder_);
  std::ifstream manifest(folder_ / kManifest);
  std::string heading, word, key_there;
  int64_t side = 0;
  if (std::getline(manifest, heading) && heading == kHeading &&
      manifest >> word >> key_there >> word >> side && key_there == to_hex(key_) && side > 0)
    side_ = side;
  holds_others_ = side_ == 0 && holds_tiles();
}

void TileStore::begin(int64_t side) {
  if (!active() || side == side_) return;
  remove_tiles();
  side_ = side;
  write_file(folder_ / kManifest, fmt::format("{}\nkey {}\nside {}\n", kHeading, to_hex(key_), side_));
}

bool TileStore::holds_tiles() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    if (is_tile(entry.path())) return true;
  return false;
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
  const TileHead head{key_, hash_in_parts(data)};
  AtomicFile out(file(tile));
  out.write(std::as_bytes(std::span(&head, 1)));
  out.write(data);
  out.commit();
}

bool TileStore::load(const Tile& tile, std::span<std::byte> data) const {
  std::error_code error;
  if (!active() || fs::file_size(file(tile), error) != data.size() + sizeof(TileHead) || error) return false;
  std::ifstream in(file(tile), std::ios::binary);
  TileHead head;
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!in || head.key != key_) return false;
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return in && hash_in_parts(data) == head.checksum;
}

}  // namespace lockstep::urban
