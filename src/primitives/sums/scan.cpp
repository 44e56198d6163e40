// Scans: sums of chunks, their scan, the scan inside of the chunks. The order of additions is fixed by the
// count.
#include <optional>
#include <vector>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/sums/tree.hpp"

namespace lockstep::primitives {

namespace {

std::string narrow(bool wide) { return wide ? "" : ".narrow"; }

/// A chunk of a row of the flat view, as one group sees it.
struct Place {
  Val<i32> row, begin, columns, lane;
  Val<bool> full;
  explicit Place(const Group<2>& g, const Val<i32>& row_columns)
      : row(g.id(1)),
        begin(g.id(0) * kScanChunk),
        columns(row_columns),
        lane(g.lane()),
        full(uniform(g.id(0) * kScanChunk <= row_columns - kScanChunk)) {}
  Val<i32> at(int round, int j) const { return begin + lane * kWide + (round * kRound + j); }
};

/// The lane's elements, `missing` past the end.
template <class T, class G>
std::vector<Val<T>> read_chunk(const Place& p, const G& from, T missing, bool wide) {
  std::vector<Var<T>> v;
  v.reserve(kScanRounds * kWide);
  for (int k = 0; k < kScanRounds * kWide; ++k) v.emplace_back(missing);
  if_(
      p.full,
      [&] {
        for (int r = 0; r < kScanRounds; ++r) {
          if (wide) {
            const auto all = from.template wide<kWide>(p.row, p.at(r, 0));
            for (int j = 0; j < kWide; ++j) v[size_t(r * kWide + j)] = all[j];
          } else {
            for (int j = 0; j < kWide; ++j) v[size_t(r * kWide + j)] = from(p.row, p.at(r, j));
          }
        }
      },
      [&] {
        for (int r = 0; r < kScanRounds; ++r)
          for (int j = 0; j < kWide; ++j)
            if_(p.at(r, j) < p.columns, [&] { v[size_t(r * kWide + j)] = from(p.row, p.at(r, j)); });
      });
  std::vector<Val<T>> values;
  for (auto& x : v) values.push_back(Val<T>(x));
  return values;
}

template <class T>
Kernel make_sums_kernel(bool segmented, bool wide) {
  const auto place_of = [](const Group<2>& g, Val<i32> first) {
    return first + g.id(1) * g.count(0) + g.id(0);
  };
  const KernelOptions options{{kLanes, 1, 1}, 0};
  const auto total = [](const std::vector<Val<T>>& v) {
    std::vector<Val<T>> a(v.begin(), v.begin() + kWide);
    for (int r = 1; r < kScanRounds; ++r)
      for (int j = 0; j < kWide; ++j) a[size_t(j)] = a[size_t(j)] + v[size_t(r * kWide + j)];
    return group_sum((a[0] + a[1]) + (a[2] + a[3]));
  };
  if (!segmented)
    return kernel(
        kernel_name<T>("scan.sums" + narrow(wide)),
        [=](Group<2> g, Grid<T, 2> from, Out<T, 1> sums, Param<i32> first) {
          const Place p(g, from.size(1));
          const Val<T> sum = total(read_chunk<T>(p, from, neutral<T>(Chunk::sum), wide));
          if_(p.lane == 0, [&] { sums[place_of(g, first)] = sum; });
        },
        options);
  // The sum from the chunk's last head on, and whether there is one.
  return kernel(
      kernel_name<T>("scan.sums.segmented" + narrow(wide)),
      [=](Group<2> g, Grid<T, 2> from, Grid<u32, 2> heads, Out<T, 1> sums, Out<u32, 1> any,
          Param<i32> first) {
        const Place p(g, from.size(1));
        auto v = read_chunk<T>(p, from, neutral<T>(Chunk::sum), wide);
        const auto h = read_chunk<u32>(p, heads, 0u, wide);
        Val<i32> last = -1;
        for (int r = 0; r < kScanRounds; ++r)
          for (int j = 0; j < kWide; ++j) last = select(h[size_t(r * kWide + j)] != 0u, p.at(r, j), last);
        last = group_max(last);
        for (int r = 0; r < kScanRounds; ++r)
          for (int j = 0; j < kWide; ++j) {
            auto& x = v[size_t(r * kWide + j)];
            x = select(p.at(r, j) >= last, x, Val<T>(neutral<T>(Chunk::sum)));
          }
        const Val<T> sum = total(v);
        if_(p.lane == 0, [&] {
          sums[place_of(g, first)] = sum;
          any[place_of(g, first)] = cast<u32>(last >= 0);
        });
      },
      options);
}

/// The shared memory of an inclusive scan over the lanes by Hillis and Steele, `kRounds` values a lane, two
/// copies so that one barrier a step is enough. A band of neutral values in front of each round stands for
/// lanes that do not exist.
template <class T, int kRounds>
class LaneScan {
 public:
  static constexpr int kBand = kLanes / 2, kStride = kBand + kLanes;
  LaneScan() : values_(2 * kRounds * kStride) {}

  void clear(const Val<i32>& lane, T value) const {
    if_(lane < kBand, [&] {
      for (int k = 0; k < 2 * kRounds; ++k) values_[lane + k * kStride] = value;
    });
  }
  void put(int step, int round, const Val<i32>& lane, const Val<T>& value) const {
    values_[lane + (slot(step, round) + kBand)] = value;
  }
  /// Value of the lane `distance` before.
  Val<T> before(int step, int round, const Val<i32>& lane, int distance) const {
    return values_[lane + (slot(step, round) + kBand - distance)];
  }
  Val<T> of_lane(int step, int round, int lane) const {
    return values_[Val<i32>(slot(step, round) + kBand + lane)];
  }

 private:
  static int slot(int step, int round) { return ((step & 1) * kRounds + round) * kStride; }
  SharedArray<T> values_;
};

/// `out` into the places of a round that exist.
template <class T>
void store_round(const Place& p, int round, bool wide, const std::vector<Val<T>>& out, const Out<T, 2>& to) {
  const auto one_by_one = [&] {
    for (int j = 0; j < kWide; ++j)
      if_(p.at(round, j) < p.columns, [&] { to(p.row, p.at(round, j)) = out[size_t(j)]; });
  };
  if (wide)
    if_(
        p.full,
        [&] { to.store_wide(Wide<T, kWide>{{out[0], out[1], out[2], out[3]}}, p.row, p.at(round, 0)); },
        one_by_one);
  else
    one_by_one();
}

/// The body of the second pass; `heads` is null for plain scans.
template <class T>
void scan_chunk(const Group<2>& g, bool exclusive, bool wide, const Grid<T, 2>& from,
                const Grid<u32, 2>* heads, const Grid<T, 1>& carries, const Out<T, 2>& to,
                const Val<i32>& first) {
  const T none = neutral<T>(Chunk::sum);
  const Place p(g, from.size(1));
  std::vector<Val<T>> s = read_chunk<T>(p, from, none, wide);
  std::vector<Val<bool>> f;  // a head at or before this element, in the lane's round
  if (heads)
    for (const Val<u32>& h : read_chunk<u32>(p, *heads, 0u, wide)) f.push_back(h != 0u);
  for (int r = 0; r < kScanRounds; ++r)
    for (int j = 1; j < kWide; ++j) {
      const size_t k = size_t(r * kWide + j);
      const Val<T> sum = s[k - 1] + s[k];
      s[k] = heads ? select(f[k], s[k], sum) : sum;
      if (heads) f[k] = f[k] || f[k - 1];
    }

  // The lanes' sums of each round, and in bit r whether the lane has a head in round r.
  const LaneScan<T, kScanRounds> sums;
  std::optional<LaneScan<u32, 1>> flags;
  sums.clear(p.lane, none);
  std::vector<Val<T>> v;
  for (int r = 0; r < kScanRounds; ++r) v.push_back(s[size_t(r * kWide + kWide - 1)]);
  Val<u32> h = 0u;
  if (heads) {
    flags.emplace();
    flags->clear(p.lane, 0u);
    for (int r = 0; r < kScanRounds; ++r)
      h = h | select(f[size_t(r * kWide + kWide - 1)], Val<u32>(1u << r), Val<u32>(0u));
  }
  int step = 0;
  const auto publish = [&] {
    for (int r = 0; r < kScanRounds; ++r) sums.put(step, r, p.lane, v[size_t(r)]);
    if (heads) flags->put(step, 0, p.lane, h);
    barrier();
  };
  const auto bit = [](const Val<u32>& flag, int r) { return (flag & (1u << r)) != 0u; };
  for (int d = 1; d < kLanes; d *= 2, ++step) {
    publish();
    for (int r = 0; r < kScanRounds; ++r) {
      const Val<T> sum = sums.before(step, r, p.lane, d) + v[size_t(r)];
      v[size_t(r)] = heads ? select(bit(h, r), v[size_t(r)], sum) : sum;
    }
    if (heads) h = h | flags->before(step, 0, p.lane, d);
  }
  publish();

  // The sum before the round: of earlier chunks, then of earlier rounds.
  const Val<i32> chunk = first + g.id(1) * g.count(0) + g.id(0);
  Var<T> carry = none;
  if_(chunk > 0, [&] { carry = carries[chunk - 1]; });
  Val<T> base = carry;
  Val<u32> h_before = 0u, h_all = 0u;
  if (heads) {
    h_before = flags->before(step, 0, p.lane, 1);
    h_all = flags->of_lane(step, 0, kLanes - 1);
  }
  for (int r = 0; r < kScanRounds; ++r) {
    const Val<T> lanes_before = sums.before(step, r, p.lane, 1);
    Val<T> prefix = base + lanes_before;
    if (heads) prefix = select(bit(h_before, r), lanes_before, prefix);
    std::vector<Val<T>> out;
    for (int j = 0; j < kWide; ++j) {
      const size_t k = size_t(r * kWide + j);
      if (exclusive)
        out.push_back(j > 0 ? prefix + s[k - 1]
                            : select(p.at(r, j) == 0 && chunk == 0, Val<T>(T(0)), prefix));
      else if (heads)
        out.push_back(select(f[k], s[k], prefix + s[k]));
      else
        out.push_back(prefix + s[k]);
    }
    store_round(p, r, wide, out, to);
    const Val<T> of_round = sums.of_lane(step, r, kLanes - 1);
    base = heads ? select(bit(h_all, r), of_round, base + of_round) : base + of_round;
  }
}

template <class T>
Kernel make_scan_kernel(bool exclusive, bool segmented, bool wide) {
  const KernelOptions options{{kLanes, 1, 1}, 0};
  if (segmented)
    return kernel(
        kernel_name<T>("scan.segmented" + narrow(wide)),
        [=](Group<2> g, Grid<T, 2> from, Grid<u32, 2> heads, Grid<T, 1> carries, Out<T, 2> to,
            Param<i32> first) { scan_chunk<T>(g, false, wide, from, &heads, carries, to, first); },
        options);
  return kernel(
      kernel_name<T>((exclusive ? "scan.exclusive" : "scan.inclusive") + narrow(wide)),
      [=](Group<2> g, Grid<T, 2> from, Grid<T, 1> carries, Out<T, 2> to, Param<i32> first) {
        scan_chunk<T>(g, exclusive, wide, from, nullptr, carries, to, first);
      },
      options);
}

Shape groups_of(const Shape& shape) { return {shape[0], divide_up(shape[1], kScanChunk)}; }

template <class T>
void plain_scan(const Device& device, bool exclusive, const Buffer& from, const Buffer& to,
                const Stream& stream) {
  const int64_t chunks = divide_up(from.elements(), kScanChunk);
  const Buffer sums = device.allocate<T>({std::max<int64_t>(chunks, 1)});
  Buffer carries = sums;
  if (chunks > 1) {
    for_each_view(from.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, scan_sums_kernel<T>(false, wide_aligned(from)), groups_of(shape),
                       view(from, first, shape), sums, first / kScanChunk);
    });
    carries = device.allocate<T>({chunks});
    plain_scan<T>(device, false, sums, carries, stream);
  }
  for_each_view(from.elements(), [&](int64_t first, const Shape& shape) {
    device.launch_on(stream, scan_kernel<T>(exclusive, false, wide_aligned(from) && wide_aligned(to)),
                     groups_of(shape), view(from, first, shape), carries, view(to, first, shape),
                     first / kScanChunk);
  });
}

template <class T>
void segmented(const Device& device, const Buffer& from, const Buffer& heads, const Buffer& to,
               const Stream& stream) {
  const bool wide = wide_aligned(from) && wide_aligned(heads) && wide_aligned(to);
  const int64_t chunks = divide_up(from.elements(), kScanChunk);
  const Buffer sums = device.allocate<T>({std::max<int64_t>(chunks, 1)});
  Buffer carries = sums;
  if (chunks > 1) {
    const Buffer any = device.allocate<u32>({chunks});
    for_each_view(from.elements(), [&](int64_t first, const Shape& shape) {
      device.launch_on(stream, scan_sums_kernel<T>(true, wide), groups_of(shape), view(from, first, shape),
                       view(heads, first, shape), sums, any, first / kScanChunk);
    });
    carries = device.allocate<T>({chunks});
    segmented<T>(device, sums, any, carries, stream);
  }
  for_each_view(from.elements(), [&](int64_t first, const Shape& shape) {
    device.launch_on(stream, scan_kernel<T>(false, true, wide), groups_of(shape), view(from, first, shape),
                     view(heads, first, shape), carries, view(to, first, shape), first / kScanChunk);
  });
}

}  // namespace

template <class T>
Kernel scan_sums_kernel(bool segmented, bool wide) {
  static Memo<std::pair<bool, bool>, Kernel> kernels;
  return kernels.get({segmented, wide}, [&] { return make_sums_kernel<T>(segmented, wide); });
}
template <class T>
Kernel scan_kernel(bool exclusive, bool segmented, bool wide) {
  static Memo<std::tuple<bool, bool, bool>, Kernel> kernels;
  return kernels.get({exclusive && !segmented, segmented, wide},
                     [&] { return make_scan_kernel<T>(exclusive, segmented, wide); });
}

int64_t scan_bytes(Storage storage, int64_t count) {
  const int64_t chunks = divide_up(count, kScanChunk);
  return chunks > 1 ? 2 * chunks * size_of(storage) + scan_bytes(storage, chunks) : size_of(storage);
}

void inclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream) {
  expect_flat(from, "primitives::inclusive_scan");
  expect_flat(to, from.storage(), from.elements(), "primitives::inclusive_scan");
  with_element(from.storage(), "primitives::inclusive_scan",
               [&]<class T>(T) { plain_scan<T>(device, false, from, to, stream); });
}
void exclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream) {
  expect_flat(from, "primitives::exclusive_scan");
  expect_flat(to, from.storage(), from.elements(), "primitives::exclusive_scan");
  with_element(from.storage(), "primitives::exclusive_scan",
               [&]<class T>(T) { plain_scan<T>(device, true, from, to, stream); });
}
void segmented_scan(const Device& device, const Buffer& from, const Buffer& heads, const Buffer& to,
                    const Stream& stream) {
  expect_flat(from, "primitives::segmented_scan");
  expect_flat(heads, Storage::u32, from.elements(), "primitives::segmented_scan");
  expect_flat(to, from.storage(), from.elements(), "primitives::segmented_scan");
  with_element(from.storage(), "primitives::segmented_scan",
               [&]<class T>(T) { segmented<T>(device, from, heads, to, stream); });
}

#define LOCKSTEP_INSTANCE(T)                       \
  template Kernel scan_sums_kernel<T>(bool, bool); \
  template Kernel scan_kernel<T>(bool, bool, bool);
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
LOCKSTEP_INSTANCE(i32)
LOCKSTEP_INSTANCE(u32)
#undef LOCKSTEP_INSTANCE

}  // namespace lockstep::primitives
