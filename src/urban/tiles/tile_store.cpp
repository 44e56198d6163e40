#include "urban/tiles/tile_store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/files/atomic_file.hpp"
#include "core/platform/parallel.hpp"
#include "io/text/file.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kManifest = "manifest.txt";
constexpr std::string_view kHeading = "lockstep urban tiles 3";

/// Head of a stored tile, before its data.
struct TileHead {
  Hash128 key, checksum;
};

constexpr size_t kLongestManifest = 4096;

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

/// The manifest's text; empty where there is none, or one too long to be ours.
std::string read_manifest(const Folder& folder) {
  const int file = folder.open_regular(std::string(kManifest));
  if (file < 0) return {};
  std::string text(kLongestManifest, '\0');
  const ssize_t got = ::read(file, text.data(), text.size());
  ::close(file);
  return got > 0 ? text.substr(0, size_t(got)) : std::string();
}

fs::path made(fs::path folder) {
  if (folder.empty()) return folder;
  make_output_folder(folder);
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

TileStore::TileStore(fs::path folder, std::string_view key, bool holds)
    : folder_(made(std::move(folder))), key_(hash128(key)) {
  if (folder_.empty()) return;
  if (holds) lock_ = FolderLock(folder_);
  open_ = Folder::of_output(folder_ / kManifest);
  std::istringstream manifest(read_manifest(open_));
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

std::vector<std::string> TileStore::tile_names() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(open_.pinned()))
    if (is_tile(entry.path())) names.push_back(entry.path().filename().string());
  return names;
}

bool TileStore::holds_tiles() const { return !tile_names().empty(); }

void TileStore::remove_tiles() const {
  for (const std::string& name : tile_names()) open_.remove(name);
}

std::string TileStore::name_of(const Tile& tile) { return fmt::format("{}_{}.tile", tile.row, tile.col); }

fs::path TileStore::file(const Tile& tile) const { return folder_ / name_of(tile); }

void TileStore::save(const Tile& tile, std::span<const std::byte> data) const {
  if (!active()) return;
  const TileHead head{key_, hash_in_parts(data)};
  AtomicFile out(file(tile));
  out.write(std::as_bytes(std::span(&head, 1)));
  out.write(data);
  out.commit();
}

TileStore::Saved::Saved(const TileStore& store, const Tile& tile)
    : descriptor_(store.active() ? store.open_.open_regular(name_of(tile)) : -1) {}
TileStore::Saved::Saved(Saved&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
TileStore::Saved::~Saved() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
bool TileStore::Saved::read(uint64_t offset, std::span<std::byte> data) const {
  return descriptor_ >= 0 && io::read_at(descriptor_, sizeof(TileHead) + offset, data);
}

bool TileStore::load(const Tile& tile, std::span<std::byte> data) const {
  const Saved saved(*this, tile);
  TileHead head;
  struct stat status{};
  if (saved.descriptor_ < 0 || ::fstat(saved.descriptor_, &status) != 0 ||
      uint64_t(status.st_size) != data.size() + sizeof head)
    return false;
  if (!io::read_at(saved.descriptor_, 0, std::as_writable_bytes(std::span(&head, 1))) || head.key != key_)
    return false;
  return saved.read(0, data) && hash_in_parts(data) == head.checksum;
}

}  // namespace lockstep::urban
