// Kernels of the language on the adapter, bit for bit against the interpreter, which defines their meaning.
#include <cmath>
#include <cstring>
#include <random>

#include "adapter.hpp"
#include "device/loops.hpp"

namespace lockstep {
namespace {

/// Host side of a buffer argument.
struct Array {
  Storage storage;
  Shape shape;
  std::vector<std::byte> data;
  template <class E>
  static Array of(const std::vector<E>& v, Shape shape) {
    Array a{detail::kStorage<E>, shape, std::vector<std::byte>(v.size() * sizeof(E))};
    std::memcpy(a.data.data(), v.data(), a.data.size());
    return a;
  }
  template <class E>
  static Array zeros(Shape shape) {
    return of(std::vector<E>(size_t(shape.elements())), shape);
  }
};

std::vector<Array> run(const Device& device, const Kernel& kernel, const Shape& extent,
                       std::vector<Array> arrays, std::vector<Argument> numbers) {
  std::vector<Argument> arguments;
  std::vector<Buffer> buffers;
  for (const Array& a : arrays) {
    buffers.push_back(device.allocate(a.storage, a.shape));
    device.write(buffers.back(), a.data.data(), int64_t(a.data.size()));
    arguments.emplace_back(buffers.back());
  }
  for (const Argument& n : numbers) arguments.push_back(n);
  device.launch_with(kernel, extent, arguments, {});
  for (size_t i = 0; i < arrays.size(); ++i)
    device.read(buffers[i], arrays[i].data.data(), int64_t(arrays[i].data.size()));
  return arrays;
}

/// Bits with NaN made alike.
std::vector<uint32_t> comparable(const Array& a) {
  std::vector<uint32_t> v;
  const size_t size = size_t(size_of(a.storage));
  for (size_t i = 0; i < a.data.size(); i += size) {
    uint32_t bits = 0;
    std::memcpy(&bits, a.data.data() + i, size);
    if (a.storage == Storage::f32 && (bits & 0x7fffffffu) > 0x7f800000u) bits = 0x7fc00000u;
    if (a.storage == Storage::f16 && (bits & 0x7fffu) > 0x7c00u) bits = 0x7e00u;
    if (a.storage == Storage::bf16 && (bits & 0x7fffu) > 0x7f80u) bits = 0x7fc0u;
    v.push_back(bits);
  }
  return v;
}

class WebgpuKernels : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    adapter_ = test::open_adapter(why, lower_);
    if (!why.empty()) GTEST_SKIP() << "no WebGPU adapter: " << why;
    interp_ = Device::open("interp");
  }
  void same(const Kernel& kernel, const Shape& extent, const std::vector<Array>& arrays,
            const std::vector<Argument>& numbers = {}) {
    const auto want = run(interp_, kernel, extent, arrays, numbers),
               got = run(adapter_, kernel, extent, arrays, numbers);
    for (size_t b = 0; b < arrays.size(); ++b) {
      const auto w = comparable(want[b]), g = comparable(got[b]);
      int wrong = 0;
      for (size_t i = 0; i < w.size(); ++i)
        if (w[i] != g[i] && ++wrong <= 4)
          ADD_FAILURE() << kernel.name() << ", buffer " << b << ", element " << i << ": " << std::hex << g[i]
                        << ", expected " << w[i];
      EXPECT_EQ(wrong, 0) << kernel.name() << " of " << w.size();
    }
  }
  std::function<void(Limits&)> lower_;
  Device adapter_, interp_;
};

std::vector<float> numbers(size_t n, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> d(-8, 8);
  std::vector<float> v(n);
  for (float& x : v) x = d(random);
  return v;
}
std::vector<uint32_t> words(size_t n, uint32_t seed = 2) {
  std::mt19937 random(seed);
  std::vector<uint32_t> v(n);
  for (auto& x : v) x = uint32_t(random());
  return v;
}
std::vector<int32_t> whole(size_t n, int32_t low, int32_t high, uint32_t seed = 3) {
  std::mt19937 random(seed);
  std::vector<int32_t> v(n);
  for (auto& x : v) x = low + int32_t(random() % uint32_t(high - low + 1));
  return v;
}

TEST_F(WebgpuKernels, BoundariesOfEveryRank) {
  const Kernel k1 = kernel("edge.1", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
    o[at] = a[at.x(-3)] + a.periodic()[at.x(+5)] * 0.5f + a.zero()[at.x(+2)];
  });
  for (int64_t n : {1, 2, 7, 255, 256, 257, 1000})
    same(k1, {n}, {Array::of(numbers(size_t(n)), {n}), Array::zeros<float>({n})});
  const Kernel k2 = kernel("edge.2", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> o) {
    o[at] = a[at.x(-1).y(+2)] - a.periodic()[at.y(-9)] + a.zero()[at.x(+1).y(+1)] +
            cast<f32>(Val<i32>(at.x) * 3 + Val<i32>(at.y));
  });
  for (Shape s : {Shape{1, 1}, Shape{3, 70}, Shape{70, 3}, Shape{33, 31}})
    same(k2, s, {Array::of(numbers(size_t(s.elements())), s), Array::zeros<float>(s)});
  const Kernel k4 = kernel("edge.4", [](At<3> at, Grid<f32, 4> a, Out<f32, 3> o) {
    o[at] = a(0, at.x(+1)) + a(1, at.y(-1)) * a(2, at.z(+1)) + cast<f32>(at.extent(2));
  });
  same(k4, {3, 5, 9}, {Array::of(numbers(3 * 135), {3, 3, 5, 9}), Array::zeros<float>({3, 5, 9})});
}

TEST_F(WebgpuKernels, LoopsRunAsOftenAsTheyShould) {
  test::loops_run_as_often_as_they_should(adapter_, false);
}

TEST_F(WebgpuKernels, DivergentLoopsBreaksAndReturns) {
  const Kernel k = kernel("flow", [](At<1> at, Grid<i32, 1> n, Out<i32, 1> steps, Out<f32, 1> value) {
    Var<i32> x = n[at], count = 0;
    Var<f32> sum = 0.0f;
    return_if(x == 13);
    loop_([&] {
      break_if(x <= 1);
      count += 1;
      if_(count > 200, [] { break_(); });
      if_((x & 1) == 0, [&] {
        x = x / 2;
        continue_();
      });
      x = x * 3 + 1;
      sum += 1.0f / cast<f32>(x);
    });
    for_(0, count, 3, [&](Val<i32> i) {
      continue_if(i % 2 == 1);
      for_(count, i, -2, [&](Val<i32> j) {
        break_if(j < 4);
        sum += cast<f32>(j - i) * 0.25f;
      });
    });
    steps[at] = count;
    value[at] = sum;
  });
  same(k, {3000},
       {Array::of(whole(3000, -5, 900), {3000}), Array::zeros<int32_t>({3000}), Array::zeros<float>({3000})});
}

TEST_F(WebgpuKernels, LocalArraysAndUnsignedLoops) {
  const Kernel k = kernel("locals", [](At<1> at, Grid<u32, 1> in, Out<u32, 1> out) {
    LocalArray<u32> bins(8);
    LocalArray<f32> f(3);
    for_(0, 8, [&](Val<i32> i) { bins[i] = u32(0); });
    for (int i = 0; i < 3; ++i) f[i] = float(i) * 1.5f;
    Var<u32> bits = in[at];
    while_([&] { return bits != 0u; },
           [&] {
             const Val<u32> low = bits & 7u;
             bins[cast<i32>(low)] += 1u;
             bits = bits >> 3u;
           });
    Var<u32> sum = 0u;
    for_(Val<u32>(1u), Val<u32>(8u), [&](Val<u32> i) { sum = sum * 5u + bins[cast<i32>(i)]; });
    f[cast<i32>(in[at] % 3u)] += 1.0f;
    out[at] = sum ^ bitcast<u32>(f[0] + f[1] * 10.0f + f[2] * 100.0f);
  });
  same(k, {777}, {Array::of(words(777), {777}), Array::zeros<uint32_t>({777})});
}

TEST_F(WebgpuKernels, ParametersOfEveryType) {
  const Kernel k = kernel("params", [](At<1> at, Out<f32, 1> o, Param<f32> f, Param<i32> i, Param<u32> u,
                                       Param<bool> yes, Param<bool> no) {
    o[at] = select(yes, f, 0.0f) + select(no, Val<f32>(1000.0f), 0.5f) + cast<f32>(i) * 3.0f + cast<f32>(u) +
            cast<f32>(Val<i32>(at.x));
  });
  same(k, {5}, {Array::zeros<float>({5})},
       {Argument(-0.375), Argument(int64_t(-7)), Argument(uint64_t(0xfffffff0u)), Argument(true),
        Argument(false)});
}

TEST_F(WebgpuKernels, SharedArraysBarriersAndReductions) {
  const KernelOptions options{{16, 4, 1}, 0};
  const Kernel k = kernel(
      "group",
      [](Group<2> g, Grid<f32, 1> in, Grid<i32, 1> whole_in, Out<f32, 1> out, Out<i32, 1> most) {
        SharedArray<f32> s(64);
        const Val<i32> group = g.id(1) * g.count(0) + g.id(0), lane = g.lane();
        s[lane] = in(group * 64 + lane);
        barrier();
        Var<f32> v = Val<f32>(s[63 - lane]);
        for_(0, 5, [&](Val<i32> i) {
          barrier();
          s[lane] = v + cast<f32>(i);
          barrier();
          v = s[(lane + 1) % 64] * 0.5f + v;
        });
        const Val<f32> sum = group_sum(v), low = group_min(v), high = group_max(v);
        out(group * 64 + lane) = sum + low * 3.0f - high + v;
        const Val<i32> a = group_max(whole_in(group * 64 + lane)), b = group_sum(whole_in(group * 64 + lane)),
                       c = group_min(whole_in(group * 64 + lane));
        most(group * 64 + lane) = a * 1000 + b + c;
      },
      options);
  same(k, {3, 5},
       {Array::of(numbers(960), {960}), Array::of(whole(960, -50, 50), {960}), Array::zeros<float>({960}),
        Array::zeros<int32_t>({960})});
}

TEST_F(WebgpuKernels, BuffersOrderedByBarriers) {
  const Kernel k = kernel("memory",
                          [](Group<1> g, InOut<u32, 1> data) {
                            const Val<i32> base = g.id() * 128, lane = g.lane();
                            data(base + lane) = cast<u32>(lane) * 7u;
                            barrier();
                            const Val<u32> other = data(base + (lane + 37) % 128);
                            barrier();
                            data(base + lane) = other;
                          },
                          {{128, 1, 1}, 0});
  same(k, {9}, {Array::zeros<uint32_t>({9 * 128})});
}

TEST_F(WebgpuKernels, WideAndAsynchronousCopies) {
  const Kernel k =
      kernel("wide",
             [](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out, Out<f32, 1> doubled) {
               SharedArray<f32> s(256);
               const Val<i32> base = g.id() * 256, lane = g.lane();
               in.copy_async<4>(s, lane * 4, base + lane * 4);
               async_commit();
               async_wait(0);
               barrier();
               const auto w = in.wide<4>(base + lane * 4);
               Wide<f32, 2> pair{{s[255 - lane * 4] + w[0], s[(lane * 4 + 9) % 256] * w[3] + w[1]}};
               out.store_wide(pair, g.id() * 128 + lane * 2);
               Wide<f32, 4> four{{w[0] * 2.0f, w[1] * 2.0f, w[2] * 2.0f, w[3] * 2.0f}};
               doubled.store_wide(four, base + lane * 4);
             },
             {{64, 1, 1}, 0});
  same(k, {4}, {Array::of(numbers(1024), {1024}), Array::zeros<float>({512}), Array::zeros<float>({1024})});
}

Val<u32> shared_atomic(ir::AtomicOp op, const SharedArray<u32>& array, const Val<i32>& index,
                       const Val<u32>& value, ir::Id compare = ir::kNone) {
  const uint64_t target = ir::AtomicTarget{op, true, array.id()}.bits();
  return Val<u32>::from(
      compare == ir::kNone
          ? detail::builder().emit(ir::Op::atomic, Type::u32, {index.id(), value.id()}, target)
          : detail::builder().emit(ir::Op::atomic, Type::u32, {index.id(), value.id(), compare}, target));
}

TEST_F(WebgpuKernels, SharedAtomics) {
  const Kernel k =
      kernel("histogram",
             [](Group<1> g, Grid<u32, 1> in, Out<u32, 1> out) {
               SharedArray<u32> bins(16);
               if_(g.lane() < 16, [&] { bins[g.lane()] = u32(0); });
               barrier();
               const Val<u32> v = in(g.id() * 64 + g.lane());
               shared_atomic(ir::AtomicOp::add, bins, cast<i32>(v & 15u), 1u);
               barrier();
               const Val<u32> third = bins[3];
               barrier();
               shared_atomic(ir::AtomicOp::compare_exchange, bins, 3, third + 77u, third.id());
               barrier();
               if_(g.lane() < 16, [&] { out(g.id() * 16 + g.lane()) = Val<u32>(bins[g.lane()]); });
             },
             {{64, 1, 1}, 0});
  same(k, {6}, {Array::of(words(6 * 64), {6 * 64}), Array::zeros<uint32_t>({6 * 16})});
}

TEST_F(WebgpuKernels, BufferAtomics) {
  const Kernel k = kernel("atomics", [](At<1> at, Grid<i32, 1> in, InOut<i32, 1> o, InOut<u32, 1> u) {
    const Val<i32> v = in[at];
    o.atomic_add(0, v);
    o.atomic_min(1, v);
    o.atomic_max(2, v);
    u.atomic_or(0, bitcast<u32>(v));
    u.atomic_and(1, bitcast<u32>(v) | 0xff000000u);
    u.atomic_max(2, bitcast<u32>(v));
    o.atomic_add(3 + (Val<i32>(at.x) & 7), 1);
  });
  same(k, {5000},
       {Array::of(whole(5000, -1000, 1000), {5000}), Array::zeros<int32_t>({11}),
        Array::of<uint32_t>({0, 0xffffffffu, 0}, {3})});
}

TEST_F(WebgpuKernels, SixteenAndEightBitStorage) {
  std::vector<f16> half(65536);
  std::vector<bf16> brain(65536);
  std::vector<uint8_t> bytes(65536);
  for (size_t i = 0; i < half.size(); ++i)
    half[i].bits = brain[i].bits = uint16_t(i), bytes[i] = uint8_t(i * 7);
  const Shape all{65536};
  const Kernel load = kernel("narrow.load", [](At<1> at, Grid<f16, 1> h, Grid<bf16, 1> b, Grid<uint8_t, 1> u,
                                               Out<f32, 1> x, Out<f32, 1> y, Out<u32, 1> z) {
    x[at] = h[at];
    y[at] = b[at];
    z[at] = u[at] + 1u;
  });
  same(load, all,
       {Array::of(half, all), Array::of(brain, all), Array::of(bytes, all), Array::zeros<float>(all),
        Array::zeros<float>(all), Array::zeros<uint32_t>(all)});
  // Values around each 16-bit number: its halfway points and their neighbours.
  std::vector<uint32_t> bits = words(70001);
  for (size_t i = 0; i < 65536; ++i) {
    const uint32_t f = i % 3 == 0   ? uint32_t(i) << 16 | 0x8000u
                       : i % 3 == 1 ? uint32_t(i) << 16 | 0x7fffu
                                    : (0x33000000u + uint32_t(i) * 0x1003u) | uint32_t(i % 2) << 31;
    bits[i] = f;
  }
  const Shape shape{70001};
  const Kernel store =
      kernel("narrow.store", [](At<1> at, Grid<u32, 1> in, Out<f16, 1> h, Out<bf16, 1> b, Out<uint8_t, 1> u) {
        const Val<f32> v = bitcast<f32>(in[at]);
        h[at] = v;
        b[at] = v;
        u[at] = in[at];
      });
  same(store, shape,
       {Array::of(bits, shape), Array::zeros<f16>(shape), Array::zeros<bf16>(shape),
        Array::zeros<uint8_t>(shape)});
  const Kernel in_place = kernel("narrow.both", [](At<1> at, InOut<f16, 1> h, InOut<uint8_t, 1> u) {
    h[at] = Val<f32>(h[at]) * 0.5f + 1.0f;
    u[at] = Val<u32>(u[at]) * 3u;
  });
  same(in_place, all, {Array::of(half, all), Array::of(bytes, all)});
}

/// Operands where the function is defined, some of them far out.
Val<f32> inside_domain(std::string_view function, const Val<f32>& x) {
  if (function == "sin") return x * 100.0f;
  if (function == "asin" || function == "acos") return x * 0.125f;
  for (const char* positive : {"log", "log2", "log10", "pow", "rsqrt"})
    if (function == positive) return abs(x);
  return x;
}

// One kernel each: software adapters take a minute to compile all of them in one.
TEST_F(WebgpuKernels, ElementaryFunctionsFollowTheirBodies) {
  using V = Val<f32>;
  std::vector<std::pair<std::string, std::function<V(const V&, const V&)>>> functions{
      {"sqrt", [](const V& x, const V&) { return sqrt(x); }},
      {"divide", [](const V& x, const V& y) { return x / y; }},
      {"round", [](const V& x, const V&) { return round(x * 2.0f); }},
      {"powi", [](const V& x, const V&) { return powi(x, 7); }},
  };
  const auto add = [&](const char* name, ir::Op op, int arity) {
    functions.emplace_back(name, [=](const V& x, const V& y) {
      const V a = inside_domain(name, x);
      return V::from(arity == 1 ? detail::builder().op(op, {a.id()})
                                : detail::builder().op(op, {a.id(), y.id()}));
    });
  };
#define LOCKSTEP_MATH(name, arity, ...) add(#name, ir::Op::name, arity);
#include "lockstep/ir/ops.def"
  const int64_t n = 4000;
  const std::vector<Array> arrays{Array::of(numbers(size_t(n), 5), {n}),
                                  Array::of(numbers(size_t(n), 6), {n}), Array::zeros<float>({n})};
  for (const auto& [name, function] : functions) {
    const auto& body = function;
    same(kernel("math." + name, [&body](At<1> at, Grid<f32, 1> a, Grid<f32, 1> b,
                                        Out<f32, 1> o) { o[at] = body(a[at], b[at]); }),
         {n}, arrays);
  }
}

TEST_F(WebgpuKernels, ArithmeticIsNotRegrouped) {
  const Kernel k =
      kernel("fixed", [](At<1> at, Grid<f32, 1> a, Grid<f32, 1> b, Grid<f32, 1> c, Out<f32, 2> o) {
        const Val<f32> x = a[at], y = b[at], z = c[at];
        const Val<i32> i = at.x;
        const Val<f32> s = x + y, t = s - x;
        o(0, i) = (x - (s - t)) + (y - t);  // rounding error of a sum
        const Val<f32> m = x * 4097.0f, high = m - (m - x);
        o(1, i) = x - high;
        o(2, i) = (x + 12582912.0f) - 12582912.0f;
        o(3, i) = x * y + x * z;
        o(4, i) = x * z - y * z;
        Var<f32> sum = x, rest = 0.0f;
        for_(0, 5, [&](Val<i32>) {
          const Val<f32> w = y - rest, next = sum + w;
          rest = (next - sum) - w;
          sum = next;
        });
        o(5, i) = sum;
        o(6, i) = rest;
        o(7, i) = (x * y) / y;
      });
  const int64_t n = 5000;
  same(k, {n},
       {Array::of(numbers(size_t(n), 11), {n}), Array::of(numbers(size_t(n), 12), {n}),
        Array::of(numbers(size_t(n), 13), {n}), Array::zeros<float>({8, n})});
}

class WebgpuSmallLimits : public WebgpuKernels {
 protected:
  WebgpuSmallLimits() {
    lower_ = [](Limits& l) {
      l.groups = {3, 2, 2};
      l.group_lanes = 64;
      l.binding_bytes = 1024;
      l.bindings = 10;
    };
  }
};

TEST_F(WebgpuSmallLimits, DispatchesAndBuffersAreSplit) {
  const Kernel k = kernel("split", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> o) {
    o[at] = a[at.x(+1)] + a.periodic()[at.y(-1)] * 2.0f + cast<f32>(Val<i32>(at.y) * 1000 + Val<i32>(at.x));
  });
  // 5 windows of 1 KiB for each.
  same(k, {11, 113}, {Array::of(numbers(11 * 113), {11, 113}), Array::zeros<float>({11, 113})});
}

TEST_F(WebgpuSmallLimits, WindowedNarrowStorageAndAtomics) {
  const Kernel k = kernel("split.narrow", [](At<1> at, InOut<f16, 1> h, InOut<u32, 1> bins) {
    const Val<f32> v = h[at];
    h[at] = v * 2.0f;
    bins.atomic_add((Val<i32>(at.x) * 37) % 700, 1);
  });
  std::vector<f16> half(900);
  for (size_t i = 0; i < half.size(); ++i) half[i].bits = uint16_t(0x3000 + i);
  same(k, {900}, {Array::of(half, {900}), Array::zeros<uint32_t>({700})});
}

TEST_F(WebgpuSmallLimits, WindowsBeginInsideABuffer) {
  const Kernel k = kernel("rows", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> o) { o[at] = a[at] * 3.0f; });
  std::vector<float> data(40 * 25);
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  const Buffer all = adapter_.upload(std::span<const float>(data), {40, 25});
  for (int64_t first : {1, 7, 11, 25})
    for (int64_t count : {1, 5, 14}) {
      const Buffer out = adapter_.allocate<f32>({count, 25});
      adapter_.launch(k, {count, 25}, all.rows(first, count), out);
      const auto got = adapter_.download<float>(out);
      for (int64_t i = 0; i < count * 25; ++i)
        ASSERT_EQ(got[size_t(i)], 3.0f * float(first * 25 + i)) << first << " " << count;
    }
  // Rows of one buffer to other rows of it.
  adapter_.launch(k, {6, 25}, all.rows(2, 6), all.rows(30, 6));
  const auto got = adapter_.download<float>(all);
  for (int64_t i = 0; i < 6 * 25; ++i) ASSERT_EQ(got[size_t(30 * 25 + i)], 3.0f * float(2 * 25 + i));
}

TEST_F(WebgpuSmallLimits, TooManyWindowsSayTheNumbers) {
  const Kernel k = kernel("wide", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) { o[at] = a[at]; });
  const Buffer a = adapter_.allocate<f32>({100000}), o = adapter_.allocate<f32>({100000});
  try {
    adapter_.launch(k, {100000}, a, o);
    FAIL() << "391 windows twice were bound";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("bindings"), std::string::npos) << error.what();
  }
}

// Some drivers end loops early. The result must be right or the device must say so.
TEST_F(WebgpuKernels, LongLoopsAreRightOrReported) {
  const Kernel k = kernel("long", [](At<1> at, InOut<u32, 1> a, Param<i32> n, Param<i32> m) {
    Var<u32> x = Val<u32>(a[at]);
    for_(0, n, [&](Val<i32> i) {
      Var<i32> j = 0;
      loop_([&] {
        break_if(j >= Val<i32>(m));
        x = x * 1664525u + cast<u32>(i ^ j);
        j += 1;
      });
    });
    a[at] = x;
  });
  for (const auto& [n, m] : std::vector<std::pair<int, int>>{{3, 10}, {1, 70000}, {400, 300}, {70000, 1}}) {
    std::vector<uint32_t> results;
    try {
      for (const Device& device : {interp_, adapter_}) {
        const Buffer a = device.upload(std::vector<uint32_t>(3, 1u));
        device.launch(k, {3}, a, n, m);
        results.push_back(device.download<uint32_t>(a)[2]);
      }
      EXPECT_EQ(results[0], results[1]) << n << " " << m;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("65535"), std::string::npos) << error.what();
      EXPECT_GT(n * m, 65000);
    }
  }
  // The device continues.
  same(k, {5}, {Array::of(words(5), {5})}, {Argument(int64_t(2)), Argument(int64_t(100))});
}

TEST_F(WebgpuKernels, MoreGroupsThanOneDispatchHolds) {
  const Kernel k =
      kernel("many", [](Group<1> g, Out<u32, 1> o) { o(g.id()) = cast<u32>(g.id()) * 3u; }, {{1, 1, 1}, 0});
  const int64_t n = 70001;
  const Buffer o = adapter_.allocate<u32>({n});
  adapter_.launch(k, {n}, o);
  const auto got = adapter_.download<uint32_t>(o);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[size_t(i)], uint32_t(i * 3));
}

}  // namespace
}  // namespace lockstep
