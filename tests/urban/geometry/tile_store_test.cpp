// Finished tiles on disk: what counts as one, and folders that become links while they are used.
#include "urban/tiles/tile_store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "core/temporary_folder.hpp"

namespace lockstep::urban {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

constexpr Tile kTile{0, 32, 8, 8};

std::vector<std::byte> data_of(int seed) {
  std::vector<std::byte> data(4096);
  for (size_t k = 0; k < data.size(); ++k) data[k] = std::byte(k * 31 + size_t(seed));
  return data;
}
bool holds(const TileStore& store, const std::vector<std::byte>& data) {
  std::vector<std::byte> back(data.size());
  return store.load(kTile, back) && back == data;
}

TEST(TileStores, SavedTilesComeBack) {
  TemporaryFolder folder;
  const auto data = data_of(1);
  {
    TileStore store(folder / "t", "key");
    store.begin(32);
    store.save(kTile, data);
    EXPECT_TRUE(holds(store, data));
    std::vector<std::byte> part(16);
    EXPECT_TRUE(TileStore::Saved(store, kTile).read(100, part));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), data.begin() + 100));
    EXPECT_FALSE(TileStore::Saved(store, kTile).read(4090, part));
  }
  EXPECT_EQ(TileStore(folder / "t", "key").side(), 32);
  EXPECT_TRUE(TileStore(folder / "t", "another").holds_others());
}

TEST(TileStores, LinksAreNoTilesAndNoManifest) {
  TemporaryFolder folder;
  const auto data = data_of(1);
  TileStore store(folder / "t", "key");
  store.begin(32);
  store.save(kTile, data);
  fs::rename(store.file(kTile), folder / "elsewhere.tile");
  fs::create_symlink(folder / "elsewhere.tile", store.file(kTile));
  EXPECT_FALSE(holds(store, data));
  store.begin(16);  // removes the link, not what it leads to
  EXPECT_FALSE(fs::is_symlink(store.file(kTile)));
  EXPECT_TRUE(fs::exists(folder / "elsewhere.tile"));
}

TEST(TileStores, ManifestThatIsALinkIsNotRead) {
  TemporaryFolder folder;
  { TileStore(folder / "t", "key").begin(32); }
  fs::rename(folder / "t" / "manifest.txt", folder / "manifest.txt");
  fs::create_symlink(folder / "manifest.txt", folder / "t" / "manifest.txt");
  EXPECT_EQ(TileStore(folder / "t", "key").side(), 0);
}

// A thread exchanges the folder with a link to another one, again and again: nothing is written or read there.
TEST(TileStores, FolderThatBecomesALinkWhileItIsUsed) {
  TemporaryFolder folder;
  const fs::path at = folder / "t", away = folder / "away", other = folder / "other";
  const auto data = data_of(1);
  {
    TileStore planted(other, "key");
    planted.begin(32);
    planted.save(kTile, data_of(2));
  }
  const auto before = test::read_text(other / "0_32.tile");
  TileStore store(at, "key");
  store.begin(32);
  std::atomic<bool> done{false};
  std::thread swapping([&] {
    std::error_code ignored;
    while (!done) {
      fs::rename(at, away, ignored);
      fs::create_directory_symlink(other, at, ignored);
      std::this_thread::yield();
      fs::remove(at, ignored);
      fs::rename(away, at, ignored);
    }
  });
  int whole = 0;
  for (int k = 0; k < 300; ++k) {
    store.save(kTile, data);
    whole += holds(store, data);
  }
  done = true;
  swapping.join();
  EXPECT_EQ(whole, 300);
  EXPECT_EQ(test::read_text(other / "0_32.tile"), before);
  EXPECT_EQ(test::file_count(other), 2u);  // the manifest and the tile
}

}  // namespace
}  // namespace lockstep::urban
