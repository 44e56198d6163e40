#include "forecast/predict/jump/jump_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "device/cached_kernel.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::forecast {
namespace {

template <class F>
Kernel by_ring(Storage ring, F make) {
  switch (ring) {
    case Storage::f64: return make(double{}, double{});
    case Storage::bf16: return make(bf16{}, float{});
    default: return make(float{}, float{});
  }
}

Kernel jump_kernel(const std::string& what, Storage storage, int snapshots,
                   const std::function<Kernel(std::string)>& make) {
  const std::string full = fmt::format("forecast.jump.{}.{}{}", what, name(storage),
                                       snapshots ? fmt::format(".{}", snapshots) : "");
  return cached_kernel(full, [&] { return make(full); });
}

/// Rows of the newest snapshots, newest first.
template <class E>
std::vector<Val<i32>> rows_of(const Grid<E, 2>& ring, const Val<i32>& newest, int snapshots) {
  std::vector<Val<i32>> rows;
  for (int j = 0; j < snapshots; ++j) {
    const Val<i32> row = newest - j;
    rows.push_back(select(row < 0, row + ring.size(0), row));
  }
  return rows;
}

/// Differences of neighbouring snapshots at an element, newest first.
template <class E, class T>
std::vector<Val<T>> differences(const Grid<E, 2>& ring, const std::vector<Val<i32>>& rows,
                                const Val<i32>& at) {
  std::vector<Val<T>> x, d;
  for (const Val<i32>& row : rows) x.push_back(ring(row, at));
  for (size_t j = 0; j + 1 < x.size(); ++j) d.push_back(x[j] - x[j + 1]);
  return d;
}

/// Over the elements of the group's chunk.
template <class Body>
void over_chunk(const Group<1>& g, const Grid<i32, 2>& chunks, Body body) {
  const Val<i32> first = chunks(g.id(), 1), end = chunks(g.id(), 2);
  for_(first + g.lane(), end, kJumpLanes, body);
}

const KernelOptions kJumpGroup{{kJumpLanes, 1, 1}, 0};

}  // namespace

Storage value_storage(Storage ring) { return ring == Storage::f64 ? Storage::f64 : Storage::f32; }

std::vector<int32_t> jump_chunks(std::span<const nn::ParameterTensor> tensors) {
  if (nn::parameter_count(tensors) > INT32_MAX)
    throw UnsupportedError("more than 2^31 - 1 parameters", "forecast: jumps", "fewer");
  std::vector<int32_t> chunks;
  for (size_t t = 0; t < tensors.size(); ++t)
    for (int64_t first = 0; first < tensors[t].size; first += kJumpChunk) {
      const int64_t end = std::min<int64_t>(first + kJumpChunk, tensors[t].size), offset = tensors[t].offset;
      chunks.insert(chunks.end(), {int32_t(t), int32_t(offset + first), int32_t(offset + end)});
    }
  return chunks;
}

Kernel gram_kernel(Storage ring_storage, int snapshots) {
  return jump_kernel("gram", ring_storage, snapshots, [=](const std::string& full) {
    return by_ring(ring_storage, [&]<class E, class T>(E, T) {
      return kernel(
          full,
          [=](Group<1> g, Grid<E, 2> ring, Grid<i32, 2> chunks, Out<T, 2> partial, Param<i32> newest) {
            const std::vector<Val<i32>> rows = rows_of(ring, Val<i32>(newest), snapshots);
            const int count = snapshots - 1;
            std::vector<Var<T>> sums;
            sums.reserve(size_t(gram_pairs(count)));
            for (int q = 0; q < gram_pairs(count); ++q) sums.emplace_back(T(0));
            over_chunk(g, chunks, [&](Val<i32> at) {
              const std::vector<Val<T>> d = differences<E, T>(ring, rows, at);
              size_t q = 0;
              for (size_t i = 0; i < d.size(); ++i)
                for (size_t j = i; j < d.size(); ++j, ++q) sums[q] = fma(d[i], d[j], Val<T>(sums[q]));
            });
            for (int q = 0; q < gram_pairs(count); ++q) {
              const Val<T> total = group_sum(Val<T>(sums[size_t(q)]));
              if_(g.lane() == 0, [&] { partial(g.id(), q) = total; });
            }
          },
          kJumpGroup);
    });
  });
}

Kernel move_kernel(Storage ring_storage, int snapshots) {
  return jump_kernel("move", ring_storage, snapshots, [=](const std::string& full) {
    return by_ring(ring_storage, [&]<class E, class T>(E, T) {
      return kernel(
          full,
          [=](Group<1> g, Grid<E, 2> ring, Grid<i32, 2> chunks, Grid<T, 1> base, Grid<T, 2> factors,
              Out<T, 1> to, Param<i32> newest) {
            const std::vector<Val<i32>> rows = rows_of(ring, Val<i32>(newest), snapshots);
            const Val<i32> tensor = chunks(g.id(), 0);
            std::vector<Val<T>> a;
            for (int j = 0; j + 1 < snapshots; ++j) a.push_back(factors(tensor, j));
            over_chunk(g, chunks, [&](Val<i32> at) {
              const std::vector<Val<T>> d = differences<E, T>(ring, rows, at);
              Val<T> sum = T(0);
              for (size_t j = 0; j < d.size(); ++j) sum = fma(a[j], d[j], sum);
              to[at] = base[at] + sum;
            });
          },
          kJumpGroup);
    });
  });
}

Kernel sample_kernel(Storage ring_storage, int snapshots) {
  return jump_kernel("sample", ring_storage, snapshots, [=](const std::string& full) {
    return by_ring(ring_storage, [&]<class E, class T>(E, T) {
      return kernel(full,
                    [=](At<1> at, Grid<E, 2> ring, Grid<i32, 1> places, Out<T, 2> to, Param<i32> newest) {
                      const std::vector<Val<i32>> rows = rows_of(ring, Val<i32>(newest), snapshots);
                      const std::vector<Val<T>> d = differences<E, T>(ring, rows, places[at.x]);
                      for (size_t j = 0; j < d.size(); ++j) to(at.x, int(j)) = d[j];
                    });
    });
  });
}

namespace {

/// a x + v tanh(B x + b); weights as DirectionNetwork has them.
template <class T>
Val<T> foretold(const Grid<T, 1>& weights, const Val<i32>& units, const std::vector<Var<T>>& x) {
  const int taps = int(x.size());
  Var<T> sum = T(0);
  for (int j = 0; j < taps; ++j) sum = fma(weights[j], Val<T>(x[size_t(j)]), Val<T>(sum));
  for_(0, units, [&](Val<i32> u) {
    Val<T> before = weights[units * taps + taps + u];
    for (int j = 0; j < taps; ++j) before = fma(weights[u * taps + taps + j], Val<T>(x[size_t(j)]), before);
    sum = fma(weights[units * (taps + 1) + taps + u], tanh(before), Val<T>(sum));
  });
  return sum;
}

}  // namespace

Kernel follow_kernel(Storage ring_storage, int taps) {
  return jump_kernel("follow", ring_storage, taps, [=](const std::string& full) {
    return by_ring(ring_storage, [&]<class E, class T>(E, T) {
      return kernel(
          full,
          [=](Group<1> g, Grid<E, 2> ring, Grid<i32, 2> chunks, Grid<T, 1> base, Grid<T, 1> scales,
              Grid<T, 1> weights, Out<T, 1> to, Param<i32> newest, Param<i32> units, Param<i32> count,
              Param<T> last, Param<T> most) {
            const std::vector<Val<i32>> rows = rows_of(ring, Val<i32>(newest), taps + 1);
            const Val<T> unit = scales[chunks(g.id(), 0)];
            over_chunk(g, chunks, [&](Val<i32> at) {
              std::vector<Var<T>> x;
              for (const Val<T>& d : differences<E, T>(ring, rows, at)) x.emplace_back(d / unit);
              Var<T> total = T(0);
              for_(0, count, [&](Val<i32> k) {
                Val<T> bound = abs(Val<T>(x[0]));
                for (int j = 1; j < taps; ++j) bound = max(bound, abs(Val<T>(x[size_t(j)])));
                bound = bound * most;
                const Val<T> next = clamp(foretold<T>(weights, units, x), -bound, bound);
                total = fma(select(k + 1 < count, Val<T>(T(1)), Val<T>(last)), next, Val<T>(total));
                for (int j = taps - 1; j > 0; --j) x[size_t(j)] = Val<T>(x[size_t(j - 1)]);
                x[0] = next;
              });
              to[at] = fma(total, unit, base[at]);
            });
          },
          kJumpGroup);
    });
  });
}

Kernel scatter_kernel(Storage parameters) {
  return jump_kernel("scatter", parameters, 0, [=](const std::string& full) {
    return by_ring(parameters, [&]<class E, class T>(E, T) {
      return kernel(
          full,
          [=](Group<1> g, Grid<i32, 2> chunks, Grid<T, 1> base, Grid<T, 1> lengths, Out<T, 1> to,
              Param<u32> draw, Param<u32> key) {
            const Val<T> length = lengths[chunks(g.id(), 0)];
            over_chunk(g, chunks, [&](Val<i32> at) {
              const Val<u32> word = random_word<Val<u32>>(cast<u32>(at), Val<u32>(draw), Val<u32>(key));
              to[at] = base[at] + select((word & 1u) != 0u, length, -length);
            });
          },
          kJumpGroup);
    });
  });
}

Kernel average_kernel(Storage ring_storage, int snapshots) {
  return jump_kernel("average", ring_storage, snapshots, [=](const std::string& full) {
    return by_ring(ring_storage, [&]<class E, class T>(E, T) {
      return kernel(full, [=](At<1> at, Grid<E, 2> ring, Out<T, 1> to, Param<i32> newest) {
        const std::vector<Val<i32>> rows = rows_of(ring, Val<i32>(newest), snapshots);
        Val<T> sum = ring(rows[0], at.x);
        for (int j = 1; j < snapshots; ++j) sum = sum + ring(rows[size_t(j)], at.x);
        to[at] = sum / T(snapshots);
      });
    });
  });
}

Kernel snapshot_kernel(Storage parameters, Storage ring) {
  return jump_kernel(fmt::format("snapshot.{}", name(parameters)), ring, 0, [=](const std::string& full) {
    return by_ring(ring, [&]<class E, class T>(E, T) {
      return kernel(full, [](At<1> at, Grid<T, 1> x, Out<E, 1> row) { row[at] = x[at]; });
    });
  });
}

}  // namespace lockstep::forecast
