// Reductions of segments, each by the tree of primitives.hpp. A lane reduces a short segment. Longer ones become a list of
// chunks, those of segments of one chunk first, which groups share evenly; a last kernel reduces the chunks of a segment.
#include <fmt/format.h>

#include <algorithm>

#include "device/capabilities.hpp"
#include "primitives/flat.hpp"
#include "primitives/sort/emission.hpp"
#include "primitives/sums/chunk.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kChunk = int(kReduceChunk);
constexpr int64_t kMostElements = INT32_MAX - (1 << 16);
/// Groups that share a list whose length the host does not have.
constexpr int64_t kMostGroups = 4096;

/// body(n) for the entries begin + n of a list that the groups share, n = group, group + groups …
template <class Body>
void for_each_shared(const Group<1>& g, const Val<u32>& begin, const Val<u32>& end, const Val<i32>& room,
                     Body body) {
  const Val<i32> first = bitcast<i32>(begin) + g.id(), last = min(bitcast<i32>(end), room);
  for_(0, uniform((last - first + g.count() - 1) / g.count()),
       [&](Val<i32> round) { body(first + round * g.count()); });
}

template <class T>
std::string segment_kernel_name(std::string_view part, Chunk how) {
  static constexpr const char* kNames[] = {"sum", "min", "max"};
  return kernel_name<T>(fmt::format("segmented_reduce.{}{}", kNames[int(how)], part));
}

}  // namespace

/// A segment, moved into x.
struct Segment {
  Val<i32> begin, length;
  Segment(const Grid<i32, 1>& first, const Val<i32>& row, const Val<i32>& size)
      : begin(clamp(first[row], 0, size)), length(clamp(first[row + 1], begin, size) - begin) {}
  /// Entries in the list of segments of one chunk, and in that of chunks of longer ones.
  Val<u32> lone() const { return cast<u32>(length > kShort && length <= kChunk); }
  Val<u32> chunks() const {
    return select(length > kChunk, bitcast<u32>((length - 1) / kChunk + 1), Val<u32>(0u));
  }
};

template <class T>
Kernel short_segments_kernel(Chunk how) {
  static Memo<Chunk, Kernel> kernels;
  return kernels.get(how, [&] {
    return kernel(segment_kernel_name<T>("", how), [=](At<1> at, Grid<T, 1> x, Grid<i32, 1> first,
                                                       Out<T, 1> result) {
      const Segment s(first, at.x, x.size(0));
      if_(s.length <= kShort, [&] {
        const Val<T> value = short_value<T>(how, s.length, [&](const Val<i32>& k) { return x[s.begin + k]; });
        result[at] = how == Chunk::sum ? select(s.length == 0, Val<T>(T(0)), value) : value;
      });
    });
  });
}

Kernel segment_counts_kernel(int lanes) {
  static Memo<int, Kernel> kernels;
  return kernels.get(lanes, [&] {
    return kernel(fmt::format("primitives.segmented_reduce.counts{}", lanes == 1 ? ".serial" : ""),
                  [](Group<1> g, Grid<i32, 1> first, Out<u32, 1> counts, Param<i32> size) {
                    const Emission rows(g, first.size(0) - 1);
                    rows.count(counts, g.id(),
                               [&](const Val<i32>& row) { return Segment(first, row, size).lone(); });
                    rows.count(counts, g.count() + g.id(),
                               [&](const Val<i32>& row) { return Segment(first, row, size).chunks(); });
                    if_(g.global() == 0, [&] { counts[g.count() * 2] = 0u; });
                  },
                  {{lanes, 1, 1}, 0});
  });
}

Kernel segment_list_kernel(int lanes) {
  static Memo<int, Kernel> kernels;
  return kernels.get(lanes, [&] {
    return kernel(fmt::format("primitives.segmented_reduce.list{}", lanes == 1 ? ".serial" : ""),
                  [](Group<1> g, Grid<i32, 1> first, Grid<u32, 1> starts, Out<i32, 1> rows,
                     Out<i32, 1> begins, Param<i32> size) {
                    const Emission all(g, first.size(0) - 1);
                    const auto put = [&](const Val<i32>& row, const Val<u32>& entries, const Val<i32>& to) {
                      const Val<i32> begin = Segment(first, row, size).begin;
                      for_(0, min(bitcast<i32>(entries), rows.size(0) - to), [&](Val<i32> k) {
                        rows[to + k] = row;
                        begins[to + k] = begin + k * kChunk;
                      });
                    };
                    all.emit(
                        starts, g.id(), [&](const Val<i32>& row) { return Segment(first, row, size).lone(); },
                        put);
                    all.emit(
                        starts, g.count() + g.id(),
                        [&](const Val<i32>& row) { return Segment(first, row, size).chunks(); }, put);
                  },
                  {{lanes, 1, 1}, 0});
  });
}

template <class T>
Kernel segment_chunks_kernel(Chunk how) {
  static Memo<Chunk, Kernel> kernels;
  return kernels.get(how, [&] {
    return kernel(
        segment_kernel_name<T>(".chunks", how),
        [=](Group<1> g, Grid<T, 2> x, Grid<i32, 1> first, Grid<u32, 1> starts, Grid<i32, 1> rows,
            Grid<i32, 1> begins, Out<T, 1> values, Out<T, 1> result) {
          for_each_shared(g, Val<u32>(0u), starts[starts.size(0) - 1], rows.size(0), [&](const Val<i32>& n) {
            const Val<i32> row = rows[n], begin = begins[n];
            const Segment s(first, row, x.size(1));
            const Val<i32> end = min(s.begin + s.length, begin + kChunk);
            const Val<T> value = chunk_value<T>(how, false, x, x, 0, begin, end, g.lane());
            if_(g.lane() == 0,
                [&] { if_(s.length <= kChunk, [&] { result[row] = value; }, [&] { values[n] = value; }); });
          });
        },
        {{kLanes, 1, 1}, 0});
  });
}

template <class T>
Kernel long_segments_kernel(Chunk how) {
  static Memo<Chunk, Kernel> kernels;
  return kernels.get(how, [&] {
    return kernel(
        segment_kernel_name<T>(".long", how),
        [=](Group<1> g, Grid<T, 2> values, Grid<i32, 1> first, Grid<u32, 1> starts, Grid<i32, 1> rows,
            Grid<i32, 1> begins, Out<T, 1> result, Param<i32> size) {
          const SharedArray<T> tops(kShort);  // 2^31 elements have 2^18 chunks, and these 2^5
          const Val<i32> chunks = (starts.size(0) - 1) / 2;
          for_each_shared(g, starts[chunks], starts[chunks * 2], rows.size(0), [&](const Val<i32>& n) {
            const Segment s(first, rows[n], size);
            if_(uniform(begins[n] == s.begin), [&] {
              const Val<i32> end = min(n + bitcast<i32>(s.chunks()), values.size(1));
              const Val<i32> count = uniform((end - n - 1) / kChunk + 1);
              for_(0, count, [&](Val<i32> k) {
                const Val<i32> begin = n + k * kChunk;
                const Val<T> value =
                    chunk_value<T>(how, false, values, values, 0, begin, min(begin + kChunk, end), g.lane());
                if_(g.lane() == 0, [&] { tops[k] = value; });
              });
              barrier();
              if_(g.lane() == 0, [&] {
                result[rows[n]] =
                    short_value<T>(how, count, [&](const Val<i32>& k) { return Val<T>(tops[k]); });
              });
              barrier();
            });
          });
        },
        {{kLanes, 1, 1}, 0});
  });
}

void segmented_reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& first,
                      const Buffer& result, const Stream& stream) {
  const auto where = "primitives::segmented_reduce";
  expect_flat(x, where);
  expect_flat(result, x.storage(), result.elements(), where);
  const int64_t count = x.elements(), rows = result.elements();
  expect_flat(first, Storage::i32, rows + 1, where);
  if (std::max(count, rows) > kMostElements)
    throw InputError(fmt::format("{} segments of {} elements", rows, count), where,
                     "fewer than 2^31 - 2^16 of each");
  expect_apart({result}, {x, first}, where);
  if (rows == 0) return;
  const Buffer from = x.reshape({count}), offsets = first.reshape({rows + 1}), to = result.reshape({rows});
  with_element(x.storage(), where, [&]<class T>(T) {
    const Chunk chunk = Chunk(int(how));
    device.launch_on(stream, short_segments_kernel<T>(chunk), {rows}, from, offsets, to);
    // A chunk in the list has more than kShort elements on average, one of a long segment more than kChunk / 2.
    const int64_t room = count / (kShort + 1), long_room = count / (kChunk / 2);
    if (room == 0) return;
    const int64_t chunks = divide_up(rows, kEmissionChunk);
    const int lanes = kEmissionLanes[capabilities_of(device).vectors ? 0 : 1];
    const Buffer counts = device.allocate<u32>({2 * chunks + 1}),
                 starts = device.allocate<u32>({2 * chunks + 1}), list = device.allocate<i32>({room}),
                 begins = device.allocate<i32>({room}), values = device.allocate<T>({room});
    device.launch_on(stream, segment_counts_kernel(lanes), {chunks}, offsets, counts, count);
    exclusive_scan(device, counts, starts, stream);
    device.launch_on(stream, segment_list_kernel(lanes), {chunks}, offsets, starts, list, begins, count);
    device.launch_on(stream, segment_chunks_kernel<T>(chunk), {std::min(room, kMostGroups)},
                     from.reshape({1, count}), offsets, starts, list, begins, values, to);
    if (long_room > 0)
      device.launch_on(stream, long_segments_kernel<T>(chunk), {std::min(long_room, kMostGroups)},
                       values.reshape({1, room}), offsets, starts, list, begins, to, count);
  });
}

#define LOCKSTEP_INSTANCE(T)                       \
  template Kernel short_segments_kernel<T>(Chunk); \
  template Kernel segment_chunks_kernel<T>(Chunk); \
  template Kernel long_segments_kernel<T>(Chunk);
LOCKSTEP_INSTANCE(f32)
LOCKSTEP_INSTANCE(f64)
LOCKSTEP_INSTANCE(i32)
LOCKSTEP_INSTANCE(u32)
#undef LOCKSTEP_INSTANCE

}  // namespace lockstep::primitives
