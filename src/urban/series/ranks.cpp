#include "urban/series/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/platform/process.hpp"

namespace lockstep::urban {
namespace {

/// Tiles for each rank, so that a slow tile at the end leaves few ranks without work.
constexpr int64_t kTilesOfRank = 4;

/// The largest side whose tiles are enough for all ranks; more and smaller ones would read more of their rims twice.
int64_t side_for_ranks(const City& city, int ranks) {
  const double pixels = static_cast<double>(city.rows) * static_cast<double>(city.cols);
  const int64_t wanted = static_cast<int64_t>(std::sqrt(pixels / static_cast<double>(kTilesOfRank * ranks)));
  return std::max<int64_t>(wanted / kTileGranule, 1) * kTileGranule;
}

template <class T>
parallel::Bytes as_message(const T& value) {
  parallel::Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
template <class T>
std::vector<T> from_messages(const std::vector<parallel::Bytes>& by_rank) {
  std::vector<T> all;
  for (const parallel::Bytes& data : by_rank) std::memcpy(&all.emplace_back(), data.data(), sizeof(T));
  return all;
}

}  // namespace

TilePlan plan_for_ranks(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                        int64_t kept_side, const parallel::Group& group) {
  if (group.size() == 1) return plan_tiles(context, city, job, options, kept_side);
  TileOptions own = options;
  if (own.memory_bytes == 0)  // ranks of a host share its memory
    own.memory_bytes =
        platform::resident_bytes() +
        static_cast<int64_t>(free_host_bytes(options) / static_cast<uint64_t>(group.local_size()));
  int64_t side = plan_tiles(context, city, job, own, kept_side).side;
  if (own.side == 0 && kept_side == 0) side = std::min(side, side_for_ranks(city, group.size()));
  own.side = std::ranges::min(from_messages<int64_t>(group.all_gather(as_message(side))));
  return plan_tiles(context, city, job, own, 0);
}

std::vector<RankWork> gather_work(const parallel::Group& group, const RankWork& mine) {
  return from_messages<RankWork>(group.gather(as_message(mine)));
}

}  // namespace lockstep::urban
