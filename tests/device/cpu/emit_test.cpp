// Code that the index analysis leads to, other processors, the object cache, launches from several threads.
#include "compile/llvm/emit.hpp"

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <thread>

#include "compile/native/native.hpp"
#include "device/cpu/support.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace {

using compile::emit_llvm;
using test::cpu;

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Kernel emitted_heat() {
  return kernel("emit.heat", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next) {
    next[at] = t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] + t[at.z(+1)] + t[at.z(-1)];
  });
}

/// A march over shifted rows, the shifts read from tables.
Kernel march() {
  return kernel("emit.march", [](At<2> at, Grid<f32, 2> h, Grid<i32, 1> dy, Grid<i32, 1> dx, Grid<f32, 1> dz,
                                 Out<u32, 2> out, Param<i32> steps) {
    const Val<f32> own = h[at];
    const Val<i32> x = at.x, y = at.y;
    Var<u32> hit = 0u;
    Var<i32> s = 0;
    loop_([&] {
      break_if(s >= steps);
      const Val<i32> row = y + dy[s], column = x + dx[s];
      if_(row >= 0 && row < h.size(0) && column >= 0 && column < h.size(1), [&] {
        if_(h(row, column) - dz[s] > own, [&] {
          hit = 1u;
          break_();
        });
      });
      s += 1;
    });
    out[at] = hit;
  });
}

TEST(Emit, ShiftedRowsAreVectorLoads) {
  for (const char* processor : {"x86-64-v4", "x86-64-v3", "x86-64"}) {
    for (const Kernel& k : {emitted_heat(), march()}) {
      const std::string ir = emit_llvm(k.function(), Numerics::exact, false, processor);
      SCOPED_TRACE(std::string(processor) + " " + k.name());
      EXPECT_NE(ir.find("define void @lockstep_kernel"), std::string::npos);
      const bool clamped_rows_need_gathers = std::string(processor) == "x86-64" && k.name() == "emit.heat";
      if (!clamped_rows_need_gathers) { EXPECT_EQ(count(ir, "masked.gather"), 0); }
      EXPECT_EQ(count(ir, "fast"), 0);
    }
  }
}

/// Sums over a window whose distances are read from a table, and a neighbour that is clamped.
Kernel window_sums() {
  return kernel("emit.window", [](At<2> at, Grid<i32, 2> a, Grid<i32, 1> dx, Grid<i32, 1> weight,
                                  Out<i32, 2> out, Param<i32> rows, Param<i32> columns) {
    Var<i32> sum(0);
    for_(0, rows, [&](const Val<i32>& row) {
      for_(0, columns, [&](const Val<i32>& k) {
        sum += a(row, at.x + dx[k]) * weight[k] + (a(row, at.x + k) ^ weight[row]);
      });
    });
    out[at] = sum + a[at.x(+1)];
  });
}

TEST(Emit, LoopsOfSharedWorkRunTwoVectorsAtOnce) {
  const auto widest = [](const char* processor) {
    const std::string ir = emit_llvm(window_sums().function(), Numerics::exact, false, processor);
    int lanes = 32;
    while (lanes > 1 && count(ir, "<" + std::to_string(lanes) + " x i32>") == 0) lanes /= 2;
    return lanes;
  };
  EXPECT_EQ(widest("x86-64-v3"), 16);  // of 8 lanes each
  EXPECT_EQ(widest("x86-64-v4"), 16);

  constexpr int kRows = 3, kColumns = 7, kWidth = 45, kDistance = 9;
  const Device device = cpu();
  const auto a = test::random_numbers<int32_t>(size_t(kRows * (kWidth + kDistance)), -100, 100);
  const std::vector<int32_t> dx = {0, 9, 4, 1, 1, 7, 3}, weight = {3, -1, 4, 1, -5, 9, 2};
  const int pitch = kWidth + kDistance;
  const Buffer out = device.allocate<i32>({kRows, kWidth});
  device.launch(window_sums(), {kRows, kWidth}, device.upload<int32_t>(a, {kRows, pitch}),
                device.upload<int32_t>(dx, {kColumns}), device.upload<int32_t>(weight, {kColumns}), out,
                kRows, kColumns);
  const auto got = device.download<int32_t>(out);
  for (int y = 0; y < kRows; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const auto at = [&](int row, int column) { return a[size_t(row * pitch + column)]; };
      int32_t sum = at(y, x + 1);
      for (int row = 0; row < kRows; ++row)
        for (int k = 0; k < kColumns; ++k)
          sum += at(row, x + dx[size_t(k)]) * weight[size_t(k)] + (at(row, x + k) ^ weight[size_t(row)]);
      ASSERT_EQ(got[size_t(y * kWidth + x)], sum) << y << " " << x;
    }
}

TEST(Emit, PeriodicRowsAreTwoLoadsUnderMasks) {
  const Kernel k = kernel("emit.periodic", [](At<2> at, Grid<f32, 2> t0, Grid<f64, 2> d0, Grid<f16, 2> h0,
                                              Out<f32, 2> a, Out<f64, 2> b, Out<f16, 2> c) {
    const auto t = t0.periodic();
    const auto d = d0.periodic();
    const auto h = h0.periodic();
    a[at] = t[at.x(+1)] + t[at.x(-1).y(1)];
    b[at] = d[at.x(+1)] - d[at.x(-2)];
    c[at] = h[at.x(+1)];
  });
  const std::string wide = emit_llvm(k.function(), Numerics::exact, false, "x86-64-v4"),
                    narrow = emit_llvm(k.function(), Numerics::exact, false, "x86-64-v3");
  // Sixteen lanes of f64 are in two vectors. Elements below 4 bytes are extracted from gathered words.
  EXPECT_EQ(
      count(wide, "call <16 x float> @llvm.masked.load") + count(wide, "call <8 x float> @llvm.masked.load"),
      4);
  EXPECT_EQ(count(wide, "call <16 x float> @llvm.masked.gather") +
                count(wide, "call <8 x float> @llvm.masked.gather"),
            0);
  EXPECT_GT(count(narrow, "masked.gather"), 0);
}

/// A tile is read by rows whose place comes from quotients and rests, and summed in registers: nothing is stored
/// inside of the loop over the tile.
TEST(Emit, TilesOfGroupsAreRowsAndRegisters) {
  const Kernel k = kernel("emit.tile",
                          [](Group<1> g, Grid<f32, 2> a, Out<f32, 2> out) {
                            SharedArray<f32> s(1024);
                            Var<f32> sum = 0.0f;
                            for_(0, a.size(0), 16, [&](Val<i32> row0) {
                              for (int p = 0; p < 1024; p += 256) {
                                const Val<i32> e = g.lane() + p;
                                s[e] = a(row0 + e / 64, e % 64);
                              }
                              barrier();
                              for_(0, a.size(1), [&](Val<i32> n) { sum += s[n * 4 + g.lane() % 16]; });
                              barrier();
                            });
                            out(g.id(), g.lane()) = sum;
                          },
                          {.group = {256, 1, 1}});
  const std::string ir = emit_llvm(k.function(), Numerics::exact, false, "x86-64-v3");
  EXPECT_EQ(count(ir, "masked.gather"), 0);
  EXPECT_EQ(count(ir, "div <"), 0);
  EXPECT_EQ(count(ir, "rem <"), 0);
  const size_t addition = ir.find("fadd <8 x float>");
  ASSERT_NE(addition, std::string::npos);
  EXPECT_EQ(ir.substr(addition, ir.find("br i1", addition) - addition).find("store"), std::string::npos);
}

TEST(Emit, TheWidthFollowsTheProcessor) {
  const auto ir = [](const char* processor) {
    return emit_llvm(emitted_heat().function(), Numerics::exact, false, processor);
  };
  EXPECT_GT(count(ir("x86-64-v4"), "<16 x float>"), 0);
  EXPECT_GT(count(ir("x86-64-v3"), "<8 x float>"), 0);
  EXPECT_EQ(count(ir("x86-64-v3"), "<16 x float>"), 0);
  EXPECT_GT(count(ir("x86-64"), "<4 x float>"), 0);
  EXPECT_GT(count(emit_llvm(emitted_heat().function(), Numerics::exact, true, "x86-64-v4"), "zmm"), 0);
}

// LLVM 19 mixes up operands of comparisons of native halves; see machine.cpp.
TEST(Emit, HalvesAreStorageOnly) {
  const Kernel k = kernel("emit.half", [](At<1> at, Grid<f16, 1> a, Grid<f16, 1> b, Out<f32, 1> out) {
    out[at] = select(ceil(a[at]) < b[at], a[at], b[at] * 2.0f);
  });
  for (const char* processor : {"sapphirerapids", "graniterapids"}) {
    const std::string code = emit_llvm(k.function(), Numerics::exact, true, processor);
    EXPECT_GT(count(code, "vcvtph2ps"), 0);
    EXPECT_GT(count(code, "vrndscaleps"), 0);
    EXPECT_EQ(count(code, "vrndscaleph") + count(code, "vcmpltph") + count(code, "vmulph"), 0) << code;
  }
}

TEST(Emit, UnknownProcessorIsRefused) {
  EXPECT_THROW(emit_llvm(emitted_heat().function(), Numerics::exact, true, "z80"), InputError);
}

TEST(Emit, NoProductIsFusedByTheBackEnd) {
  // The contraction pass alone fuses; a product that it leaves stays a product and a sum.
  const Kernel k = kernel("emit.fuse", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const Val<f32> v = a[at], square = v * v;
    out[at] = select(v > 0.0f, square + 1.0f, square);
  });
  ir::Function f = k.function();
  f.contract = false;
  const std::string assembly = emit_llvm(f, Numerics::exact, true, "x86-64-v4");
  EXPECT_EQ(count(assembly, "vfmadd"), 0);
  EXPECT_GT(count(assembly, "vmulps"), 0);
}

TEST(Cache, SecondCompilationComesFromDisk) {
  const Kernel k =
      kernel("cache.unique", [](At<1> at, Out<i32, 1> out) { out[at] = Val<i32>(at.x) * 48271 + 11; });
  compile::simd::compile_native(k.function(), Numerics::exact);
  const auto again = compile::simd::compile_native(k.function(), Numerics::exact);
  ASSERT_NE(again->function, nullptr);
  const Device device = cpu();
  if (device.counters().cache_hits == 0 && !again->from_cache)
    GTEST_SKIP() << "no cache folder can be written";
  const Buffer out = device.allocate<i32>({100});
  device.launch(k, {100}, out);
  EXPECT_EQ(device.counters().cache_hits, 1);
  EXPECT_EQ(device.counters().kernels_compiled, 0);
  const auto got = device.download<int32_t>(out);
  for (int x = 0; x < 100; ++x) ASSERT_EQ(got[size_t(x)], x * 48271 + 11);
}

TEST(Threads, LaunchesFromSeveralThreadsAreSafe) {
  const Device device = cpu();
  const Kernel k = kernel("threads.add", [](At<1> at, InOut<u32, 1> a, InOut<u32, 1> total) {
    a[at] = Val<u32>(a[at]) + 1u;
    total.atomic_add(0, 1u);
  });
  constexpr int kThreads = 4, kLaunches = 50, kN = 3000;
  const Buffer total = device.upload(std::vector<uint32_t>{0});
  std::vector<Buffer> own;
  for (int t = 0; t < kThreads; ++t) own.push_back(device.upload(std::vector<uint32_t>(kN, 0)));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int l = 0; l < kLaunches; ++l) device.launch(k, {kN}, own[size_t(t)], total);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.download<uint32_t>(total)[0], uint32_t(kThreads * kLaunches * kN));
  for (const Buffer& buffer : own)
    EXPECT_EQ(device.download<uint32_t>(buffer), std::vector<uint32_t>(kN, kLaunches));
}

}  // namespace
}  // namespace lockstep
