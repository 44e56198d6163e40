// The CUDA back end, except arithmetic: copies, streams, graphs, big buffers and domains, group
// functions.
#include <algorithm>
#include <numeric>

#include "device/cuda/gpu.hpp"
#include "device/loops.hpp"

namespace lockstep::cuda_test {
namespace {

struct CudaTest : GpuTest {};

std::vector<u32> ramp(int64_t n, u32 scale = 1) {
  std::vector<u32> v(static_cast<size_t>(n));
  for (size_t k = 0; k < v.size(); ++k) v[k] = u32(k) * scale;
  return v;
}

TEST_F(CudaTest, CopiesOfEverySizeComeBack) {
  for (int64_t n :
       {int64_t(1), int64_t(3), int64_t(1000), int64_t(1) << 20, (int64_t(1) << 20) + 7, int64_t(9) << 20}) {
    const std::vector<u32> data = ramp(n, 2654435761u);
    EXPECT_EQ(device().download<u32>(device().upload(data)), data) << n;
  }
}

TEST_F(CudaTest, ManySmallUploadsKeepTheirData) {
  std::vector<Buffer> buffers;
  for (u32 k = 0; k < 3000; ++k) buffers.push_back(device().upload(std::vector<u32>(300, k)));
  for (u32 k = 0; k < 3000; k += 117) EXPECT_EQ(device().download<u32>(buffers[k]), std::vector<u32>(300, k));
}

const Kernel& increment() {
  static const Kernel k =
      kernel("test.increment", [](At<1> at, InOut<u32, 1> a, Param<u32> by) { a[at] += by; });
  return k;
}

TEST_F(CudaTest, FreedMemoryIsReusedInOrder) {
  // Each buffer is freed while its work runs; the next one takes its memory.
  const int64_t n = 1 << 22;
  for (u32 k = 0; k < 50; ++k) {
    Buffer a = device().allocate<u32>({n});
    device().clear(a);
    for (int m = 0; m < 5; ++m) device().launch(increment(), {n}, a, k);
    if (k % 10 != 9) continue;
    const std::vector<u32> out = device().download<u32>(a);
    EXPECT_EQ(out.front(), 5 * k);
    EXPECT_EQ(out.back(), 5 * k);
  }
}

TEST_F(CudaTest, StreamsAndTheDefaultQueue) {
  const int64_t n = 1 << 20;
  std::vector<Stream> streams;
  std::vector<Buffer> buffers;
  for (int s = 0; s < 4; ++s) {
    streams.push_back(device().stream());
    buffers.push_back(device().allocate<u32>({n}));
  }
  for (int s = 0; s < 4; ++s) {
    const std::vector<u32> data = ramp(n, u32(s + 1));
    device().write(buffers[size_t(s)], data.data(), n * 4, streams[size_t(s)]);
    for (u32 k = 0; k < 20; ++k)
      device().launch_on(streams[size_t(s)], increment(), {n}, buffers[size_t(s)], k);
  }
  for (int s = 0; s < 4; ++s) {
    std::vector<u32> out(static_cast<size_t>(n)), expected = ramp(n, u32(s + 1));
    device().read(buffers[size_t(s)], out.data(), n * 4, streams[size_t(s)]);
    for (u32& v : expected) v += 190;
    EXPECT_EQ(out, expected);
  }
}

TEST_F(CudaTest, GraphsReplayWhatWasRecorded) {
  const int64_t n = 10000;
  const Buffer a = device().upload(std::vector<u32>(size_t(n), 0)), b = device().allocate<u32>({n});
  const Graph graph = device().record([&] {
    for (u32 k = 1; k <= 10; ++k) device().launch(increment(), {n}, a, k);
    device().copy(a, b);
    const Buffer scratch = device().allocate<u32>({n});  // lives as long as the graph
    device().clear(scratch);
    device().launch(increment(), {n}, scratch, 3u);
  });
  EXPECT_EQ(device().download<u32>(a), std::vector<u32>(size_t(n), 0));  // nothing ran while it was recorded
  for (int r = 0; r < 7; ++r) device().replay(graph);
  EXPECT_EQ(device().download<u32>(b), std::vector<u32>(size_t(n), 385));
}

TEST_F(CudaTest, MoreThan65535GroupsAlongYAndZ) {
  static const Kernel mark = kernel("test.mark3", [](At<3> at, InOut<u32, 3> out) {
    out[at] =
        cast<u32>(Val<i32>(at.z)) * 3u + cast<u32>(Val<i32>(at.y)) * 5u + cast<u32>(Val<i32>(at.x)) + 1u;
  });
  for (const Shape& shape : {Shape{200001, 3, 2}, Shape{2, 400003, 3}}) {
    const Buffer out = device().allocate<u32>(shape);
    device().clear(out);
    device().launch(mark, shape, out);
    const std::vector<u32> got = device().download<u32>(out);
    int64_t wrong = 0, k = 0;
    for (int64_t z = 0; z < shape[0]; ++z)
      for (int64_t y = 0; y < shape[1]; ++y)
        for (int64_t x = 0; x < shape[2]; ++x)
          wrong += got[size_t(k++)] != u32(z) * 3u + u32(y) * 5u + u32(x) + 1u;
    EXPECT_EQ(wrong, 0);
  }
  static const Kernel groups = kernel("test.groups2",
                                      [](Group<2> g, InOut<u32, 2> out) {
                                        out(g.id(1), g.global(0)) =
                                            cast<u32>(g.id(1)) * 7u + cast<u32>(g.global(0));
                                      },
                                      {{32, 1, 1}});
  const int64_t rows = 150007;
  const Buffer out = device().allocate<u32>({rows, 64});
  device().launch(groups, {rows, 2}, out);
  const std::vector<u32> got = device().download<u32>(out);
  int64_t wrong = 0;
  for (int64_t n = 0; n < rows * 64; ++n) wrong += got[size_t(n)] != u32(n / 64) * 7u + u32(n % 64);
  EXPECT_EQ(wrong, 0);
}

/// Sum over a cross of neighbours, clamped at the edges, in plain C++.
std::vector<f32> cross_sums(const std::vector<f32>& t, int64_t nz, int64_t ny, int64_t nx, bool across_z) {
  std::vector<f32> out(t.size());
  const auto at = [&](int64_t z, int64_t y, int64_t x) {
    const auto fix = [](int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; };
    return t[size_t((fix(z, nz) * ny + fix(y, ny)) * nx + fix(x, nx))];
  };
  size_t n = 0;
  for (int64_t z = 0; z < nz; ++z)
    for (int64_t y = 0; y < ny; ++y)
      for (int64_t x = 0; x < nx; ++x) {
        f32 sum = at(z, y, x + 2) + at(z, y, x - 1) + at(z, y + 1, x) + at(z, y - 3, x);
        if (across_z) sum = sum + at(z + 1, y, x) + at(z - 1, y, x);
        out[n++] = sum;
      }
  return out;
}

// Domains big enough for several points per lane, with sizes that leave partly filled groups on every side.
TEST_F(CudaTest, BigDomainsWithOddSizes) {
  const auto random = [](int64_t n) {
    std::vector<f32> v(static_cast<size_t>(n));
    for (size_t k = 0; k < v.size(); ++k) v[k] = f32((k * 2654435761u) % 65521u) * 0.37f - 9000.0f;
    return v;
  };
  {
    static const Kernel k = kernel("test.line", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
      out[at] = in[at.x(1)] + in[at.x(-1)];
    });
    const int64_t n = 9000001;
    const std::vector<f32> in = random(n);
    const Buffer out = device().allocate<f32>({n});
    device().launch(k, {n}, device().upload(in), out);
    const std::vector<f32> got = device().download<f32>(out);
    int64_t wrong = 0;
    for (int64_t x = 0; x < n; ++x)
      wrong += got[size_t(x)] != in[size_t(std::min(x + 1, n - 1))] + in[size_t(std::max<int64_t>(x - 1, 0))];
    EXPECT_EQ(wrong, 0);
  }
  {
    static const Kernel k = kernel("test.cross2", [](At<2> at, Grid<f32, 2> in, Out<f32, 2> out) {
      out[at] = in[at.x(2)] + in[at.x(-1)] + in[at.y(1)] + in[at.y(-3)];
    });
    const int64_t ny = 3001, nx = 2999;
    const std::vector<f32> in = random(ny * nx);
    const Buffer out = device().allocate<f32>({ny, nx});
    device().launch(k, {ny, nx}, device().upload(std::span<const f32>(in), {ny, nx}), out);
    EXPECT_EQ(device().download<f32>(out), cross_sums(in, 1, ny, nx, false));
  }
  {
    static const Kernel k = kernel("test.cross3", [](At<3> at, Grid<f32, 3> in, Out<f32, 3> out) {
      out[at] = in[at.x(2)] + in[at.x(-1)] + in[at.y(1)] + in[at.y(-3)] + in[at.z(1)] + in[at.z(-1)];
    });
    const int64_t nz = 131, ny = 259, nx = 517;
    const std::vector<f32> in = random(nz * ny * nx);
    const Buffer from = device().upload(std::span<const f32>(in), {nz, ny, nx}),
                 out = device().allocate<f32>({nz, ny, nx});
    device().launch(k, {nz, ny, nx}, from, out);
    EXPECT_EQ(device().download<f32>(out), cross_sums(in, nz, ny, nx, true));
    // A smaller domain than the buffers: the stencil reaches beyond the domain but not beyond the buffer.
    device().clear(out);
    device().launch(k, {nz - 2, ny - 5, nx - 3}, from, out);
    const std::vector<f32> part = device().download<f32>(out), whole = cross_sums(in, nz, ny, nx, true);
    int64_t wrong = 0;
    for (int64_t z = 0; z < nz; ++z)
      for (int64_t y = 0; y < ny; ++y)
        for (int64_t x = 0; x < nx; ++x) {
          const size_t n = size_t((z * ny + y) * nx + x);
          wrong += part[n] != (z < nz - 2 && y < ny - 5 && x < nx - 3 ? whole[n] : 0.0f);
        }
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(CudaTest, LoopsRunAsOftenAsTheyShould) { test::loops_run_as_often_as_they_should(device(), true); }

TEST_F(CudaTest, BuffersBeyond4GiB) {
  const int64_t rows = 70001, columns = 1 << 16;  // 4.6e9 elements of one byte
  if (device().memory().free_bytes < 3 * rows * columns) GTEST_SKIP() << "too little device memory";
  static const Kernel fill = kernel("test.fill_bytes", [](At<2> at, Out<uint8_t, 2> out) {
    out[at] = cast<u32>(Val<i32>(at.y)) * 31u + cast<u32>(Val<i32>(at.x)) * 7u;
  });
  static const Kernel pick =
      kernel("test.pick_bytes", [](At<1> at, Grid<uint8_t, 2> in, Grid<i32, 1> y, Grid<i32, 1> x,
                                   Out<u32, 1> out) { out[at] = in(y[at], x[at]); });
  const Buffer big = device().allocate<uint8_t>({rows, columns});
  device().launch(fill, {rows, columns}, big);
  std::vector<i32> y, x;
  for (int k = 0; k < 5000; ++k) {
    y.push_back(i32((int64_t(k) * 7919 + 13) % rows));
    x.push_back(i32((int64_t(k) * 104729 + 5) % columns));
  }
  y.push_back(i32(rows - 1));
  x.push_back(i32(columns - 1));
  const Buffer out = device().allocate<u32>({int64_t(y.size())});
  device().launch(pick, {int64_t(y.size())}, big, device().upload(y), device().upload(x), out);
  const std::vector<u32> got = device().download<u32>(out);
  for (size_t k = 0; k < y.size(); ++k)
    ASSERT_EQ(got[k], (u32(y[k]) * 31u + u32(x[k]) * 7u) & 0xffu) << y[k] << ", " << x[k];
}

template <class T>
void check_reductions(const Device& device, const Device& reference) {
  for (int lanes : {1, 2, 16, 32, 64, 256, 512, 1024}) {
    const Kernel k = kernel("test.reduce." + std::string(name(detail::kType<T>)),
                            [](Group<1> g, Grid<T, 1> in, Out<T, 2> out) {
                              const Val<T> v = in[g.global()];
                              const Val<T> sum = group_sum(v), low = group_min(v), high = group_max(v),
                                           again = group_sum(sum);
                              out(0, g.global()) = sum;
                              out(1, g.global()) = low;
                              out(2, g.global()) = high;
                              out(3, g.global()) = again;
                            },
                            {{lanes, 1, 1}});
    const int64_t groups = 5, n = groups * lanes;
    std::vector<T> data(static_cast<size_t>(n));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] =
          T(double((i * 2654435761u) % 1000003) / (std::is_integral_v<T> ? 1 : 977)) * T(i % 3 ? 1 : -1);
    const auto run = [&](const Device& d) {
      const Buffer out = d.allocate<T>({4, n});
      d.launch(k, {groups}, d.upload(data), out);
      return d.download<T>(out);
    };
    EXPECT_EQ(run(device), run(reference)) << lanes << " lanes of " << name(detail::kType<T>);
  }
}
TEST_F(CudaTest, GroupReductionsFollowTheTree) {
  const Device interp = Device::open("interp");
  check_reductions<f32>(device(), interp);
  check_reductions<f64>(device(), interp);
  check_reductions<i32>(device(), interp);
  check_reductions<u32>(device(), interp);
  check_reductions<i64>(device(), interp);
  check_reductions<u64>(device(), interp);
}

/// Reverses each tile of 64 * K elements through two stages of asynchronous copies.
template <class E, int K>
void check_async(const Device& device, const Device& reference) {
  using T = detail::value_of<E>;
  static const Kernel k = kernel("test.async",
                                 [](Group<1> g, Grid<E, 1> in, Out<T, 1> out) {
                                   constexpr int kTile = 64 * K;
                                   SharedArray<T> tile(2 * kTile);
                                   const Val<i32> first = g.id() * (4 * kTile);
                                   in.template copy_async<K>(tile, g.lane() * K, first + g.lane() * K);
                                   async_commit();
                                   for_(0, 4, [&](Val<i32> stage) {
                                     const Val<i32> next = stage + 1;
                                     if_(next < 4, [&] {
                                       in.template copy_async<K>(tile, (next & 1) * kTile + g.lane() * K,
                                                                 first + next * kTile + g.lane() * K);
                                     });
                                     async_commit();
                                     async_wait(1);
                                     barrier();
                                     for (int m = 0; m < K; ++m) {
                                       const Val<i32> at = g.lane() + 64 * m;
                                       out[first + stage * kTile + at] =
                                           Val<T>(tile[(stage & 1) * kTile + (kTile - 1) - at]);
                                     }
                                     barrier();
                                   });
                                 },
                                 {{64, 1, 1}});
  const int64_t groups = 7, n = groups * 4 * 64 * K;
  std::vector<T> data(static_cast<size_t>(n));
  std::iota(data.begin(), data.end(), T(1));
  const auto run = [&](const Device& d) {
    const Buffer out = d.allocate<T>({n});
    d.launch(k, {groups}, d.upload(data), out);
    return d.template download<T>(out);
  };
  EXPECT_EQ(run(device), run(reference)) << K << " elements of " << sizeof(T) << " bytes";
}
TEST_F(CudaTest, AsynchronousCopies) {
  const Device interp = Device::open("interp");
  check_async<f32, 1>(device(), interp);
  check_async<f32, 2>(device(), interp);
  check_async<f32, 4>(device(), interp);
  check_async<f64, 1>(device(), interp);
  check_async<f64, 2>(device(), interp);
  check_async<u32, 4>(device(), interp);
}

/// Copies through wide accesses, with streaming hints on every second kernel.
template <class E, int K>
void check_wide(const Device& device, const Device& reference, std::vector<E> data) {
  using T = detail::value_of<E>;
  static const Kernel k = kernel("test.wide", [](At<1> at, Grid<E, 1> in, Out<E, 1> out, Out<T, 1> sums) {
    const Val<i32> first = at.x * K;
    const Wide<T, K> v = in.streaming().template wide<K>(first), w = in.template wide<K>(first);
    out.template store_wide<K>(v, first);
    Val<T> sum = w[0];
    for (int m = 1; m < K; ++m) sum = sum + w[m];
    sums.store_streaming(sum, at.x);
  });
  const int64_t n = int64_t(data.size()) / K;
  const auto run = [&](const Device& d) {
    const Buffer out = d.template allocate<E>({n * K}), sums = d.template allocate<T>({n});
    d.launch(k, {n}, d.upload(data), out, sums);
    std::vector<std::byte> bytes(size_t(out.bytes())), sum_bytes(size_t(sums.bytes()));
    d.read(out, bytes.data(), out.bytes());
    d.read(sums, sum_bytes.data(), sums.bytes());
    bytes.insert(bytes.end(), sum_bytes.begin(), sum_bytes.end());
    return bytes;
  };
  EXPECT_EQ(run(device), run(reference)) << K << " elements of " << sizeof(E) << " bytes";
}
template <class E, class Make>
void check_wide_both(const Device& device, const Device& reference, Make make) {
  std::vector<E> data;
  for (u32 k = 0; k < 4096; ++k) data.push_back(make(k));
  check_wide<E, 2>(device, reference, data);
  check_wide<E, 4>(device, reference, data);
}
TEST_F(CudaTest, WideAccesses) {
  const Device interp = Device::open("interp");
  check_wide_both<f32>(device(), interp, [](u32 k) { return f32(k) * 0.25f; });
  check_wide_both<f64>(device(), interp, [](u32 k) { return f64(k) / 3; });
  check_wide_both<i32>(device(), interp, [](u32 k) { return i32(k) - 2000; });
  check_wide_both<u32>(device(), interp, [](u32 k) { return k * 2654435761u; });
  check_wide_both<i64>(device(), interp, [](u32 k) { return i64(k) * -1234567890123; });
  check_wide_both<u64>(device(), interp, [](u32 k) { return u64(k) << 40; });
  check_wide_both<f16>(device(), interp, [](u32 k) { return f16{uint16_t(k * 7)}; });
  check_wide_both<bf16>(device(), interp, [](u32 k) { return bf16{uint16_t(k * 7)}; });
  check_wide_both<uint8_t>(device(), interp, [](u32 k) { return uint8_t(k); });
}

TEST_F(CudaTest, SharedMemoryAbove48KiB) {
  static constexpr int kCount = 20000;  // 80 kB
  static const Kernel k = kernel("test.big_shared",
                                 [](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out) {
                                   SharedArray<f32> s(kCount);
                                   for_(g.lane(), kCount, 256, [&](Val<i32> i) { s[i] = Val<f32>(in[i]); });
                                   const Val<f32> total = group_sum(Val<f32>(s[g.lane()]));
                                   barrier();
                                   for_(g.lane(), kCount, 256,
                                        [&](Val<i32> i) { out[i] = Val<f32>(s[(kCount - 1) - i]) + total; });
                                 },
                                 {{256, 1, 1}});
  if (const Support support = device().supports(k); !support.ok) GTEST_SKIP() << support.reason;
  std::vector<f32> data(kCount);
  std::iota(data.begin(), data.end(), 0.5f);
  const Buffer out = device().allocate<f32>({kCount});
  device().launch(k, {1}, device().upload(data), out);
  const std::vector<f32> got = device().download<f32>(out);
  // 0.5 + 1.5 + … + 255.5: exact in any order.
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(got[size_t(i)], data[size_t(kCount - 1 - i)] + 32768.0f) << i;
}

TEST_F(CudaTest, TooMuchMemoryIsAnAllocationFault) {
  const MemoryInfo before = device().memory();
  try {
    const int64_t rows = before.total_bytes >> 20;
    const Buffer a = device().allocate<uint8_t>({rows / 2, 1 << 20}),
                 b = device().allocate<uint8_t>({rows * 3 / 4, 1 << 20});
    FAIL() << "more memory than there is";
  } catch (const DeviceError& error) { EXPECT_EQ(error.fault(), DeviceFault::allocation); }
  device().synchronize();
  const Buffer again = device().allocate<uint8_t>({before.free_bytes >> 21, 1 << 20});  // it is free again
  EXPECT_EQ(device().download<u32>(device().upload(ramp(100))), ramp(100));
}

TEST_F(CudaTest, FastNumericsComeClose) {
  DeviceOptions options;
  options.numerics = Numerics::fast;
  const Device fast = Device::open("cuda", options);
  static const Kernel k = kernel("test.fast", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    const Val<f32> v = in[at];
    out[at] = exp(sin(v)) / sqrt(v + 1.0f) + log(v + 2.0f) * 0.5f + pow(v, 0.3f);
  });
  std::vector<f32> data;
  for (int i = 0; i < 5000; ++i) data.push_back(f32(i) * 0.001f);
  const auto run = [&](const Device& d) {
    const Buffer out = d.allocate<f32>({int64_t(data.size())});
    d.launch(k, {int64_t(data.size())}, d.upload(data), out);
    return d.download<f32>(out);
  };
  const std::vector<f32> exact = run(device()), approximate = run(fast);
  int differing = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_NEAR(approximate[i], exact[i], 2e-5f * std::abs(exact[i])) << data[i];
    differing += approximate[i] != exact[i];
  }
  EXPECT_GT(differing, 0);  // other instructions were used
}

}  // namespace
}  // namespace lockstep::cuda_test
