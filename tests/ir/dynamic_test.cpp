// Kernels of run-time types and arity, on the interpreter and the CPU; launches by name.
#include "lockstep/kernel/dynamic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/refusal.hpp"
#include "device/devices.hpp"

namespace lockstep {
namespace {

using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

class Dynamic : public testing::TestWithParam<std::string> {
 protected:
  const Device& device() const { return test_device(GetParam()); }
  bool wide() const { return device().info().limits.f64; }
};
INSTANTIATE_TEST_SUITE_P(Devices, Dynamic, testing::ValuesIn(test_devices()),
                         [](const auto& tested) { return test_name(tested.param); });

/// sum of the inputs, each scaled: as many parameters as the caller wants.
Kernel weighted_sum(int inputs, Storage storage, Type compute) {
  return kernel("test.weighted_sum", [&](At<1> at, Parameters& p) {
    std::vector<AnyGrid> x;
    for (int k = 0; k < inputs; ++k) x.push_back(p.read("x" + std::to_string(k), storage, 1));
    const AnyGrid out = p.write("out", storage, 1);
    std::vector<AnyVal> weights;
    for (int k = 0; k < inputs; ++k) weights.push_back(p.scalar("weight" + std::to_string(k), compute));
    AnyVar sum = AnyVal::number(compute, 0);
    for (int k = 0; k < inputs; ++k)
      sum = fma(weights[size_t(k)], x[size_t(k)].load_as(compute, {at.x}), sum);
    out.store({at.x}, sum);
  });
}

TEST_P(Dynamic, AsManyParametersAsTheCallerWants) {
  for (int inputs : {1, 3, 5})
    for (Type compute : {Type::f32, Type::f64}) {
      if (compute == Type::f64 && !wide()) continue;
      Arguments arguments;
      const Buffer out = device().allocate<float>({4});
      arguments.set("out", out);
      float expected = 0;
      for (int k = inputs - 1; k >= 0; --k) {
        arguments.set("x" + std::to_string(k), device().upload(std::vector<float>(4, float(k + 1))));
        arguments.set("weight" + std::to_string(k), 0.5 * k);
        expected += 0.5f * float(k) * float(k + 1);
      }
      device().launch(weighted_sum(inputs, Storage::f32, compute), {4}, arguments);
      EXPECT_EQ(device().download<float>(out), std::vector<float>(4, expected));
    }
}

TEST_P(Dynamic, TypedAndUntypedKernelsAreTheSameText) {
  const Kernel typed = kernel("test.same", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b, Param<f32> c) {
    const Val<f32> v = a(at.y, at.x);
    b(at.y, at.x) = select(v < 1.0f, sqrt(abs(v)) - c, max(v / c, 2.0f * v));
  });
  const Kernel untyped = kernel("test.same", [](At<2> at, Parameters& p) {
    const AnyGrid a = p.read("b0", Storage::f32, 2), b = p.write("b1", Storage::f32, 2);
    const AnyVal c = p.scalar("p0", Type::f32);
    const AnyVal v = a.load({at.y, at.x});
    b.store({at.y, at.x}, select(v < 1.0f, sqrt(abs(v)) - c, max(v / c, 2.0f * v)));
  });
  const auto effects = [](const Kernel& k) {
    std::map<ir::Op, int> count;
    for (const auto& i : k.function().instructions) ++count[i.op];
    return count;
  };
  EXPECT_EQ(effects(typed), effects(untyped));
  const std::vector<float> a{0.25f, -4, 9, 2.5f};
  const Buffer in = device().upload(std::span<const float>(a), {2, 2}), x = device().allocate<float>({2, 2}),
               y = device().allocate<float>({2, 2});
  device().launch(typed, {2, 2}, in, x, 3.0f);
  device().launch(untyped, {2, 2}, Arguments().set("b0", in).set("b1", y).set("p0", 3.0f));
  EXPECT_EQ(device().download<float>(x), device().download<float>(y));
}

TEST_P(Dynamic, FunctionsOfFloats) {
  const std::vector<float> data{0.3f, 0.7f, 2.5f, -1.5f};
  constexpr int kCount = 14;
  const Kernel k = kernel("test.functions", [](At<1> at, Parameters& p) {
    const auto x = p.read<f32, 1>("x");
    const AnyGrid out = p.write("out", Storage::f32, 2);
    const AnyVal v = x[at];
    const std::vector<AnyVal> all{v + 1,
                                  1 - v,
                                  v * 2.0,
                                  v / 4,
                                  min(v, 1),
                                  max(0.5, v),
                                  clamp(v, 0, 1),
                                  powi(v, 3),
                                  powi(v, -2),
                                  round(v),
                                  copysign(3, v),
                                  -v,
                                  select(isnan(v / 0 * 0), 7, v),
                                  rounded_product(v, v)};
    EXPECT_EQ(all.size(), size_t(kCount));
    for (size_t f = 0; f < all.size(); ++f) out.store({int(f), at.x}, all[f]);
  });
  const Buffer out = device().allocate<float>({kCount, 4});
  device().launch(k, {4}, Arguments().set("x", device().upload(data)).set("out", out));
  const std::vector<float> got = device().download<float>(out);
  for (size_t i = 0; i < 4; ++i) {
    const float v = data[i];
    const float expected[kCount] = {v + 1,
                                    1 - v,
                                    v * 2,
                                    v / 4,
                                    std::min(v, 1.0f),
                                    std::max(v, 0.5f),
                                    std::clamp(v, 0.0f, 1.0f),
                                    v * (v * v),
                                    1 / (v * v),
                                    std::round(v),
                                    std::copysign(3.0f, v),
                                    -v,
                                    7,
                                    v * v};
    for (size_t f = 0; f < size_t(kCount); ++f)
      if (f != 12 || wide()) { EXPECT_EQ(got[f * 4 + i], expected[f]) << f << " of " << v; }
  }
}

TEST_P(Dynamic, WholeNumbersAndConversions) {
  const Kernel k = kernel("test.whole", [](At<1> at, Parameters& p) {
    const AnyGrid out = p.write("out", Storage::i32, 2);
    const AnyVal i = at.x;
    const std::vector<AnyVal> all{i * 3 % 4,   i << 2,
                                  (i & 1) | 8, ~i,
                                  abs(i - 2),  (i.convert(Type::f32) * 1.75f).convert(Type::i32),
                                  popcount(i), cast<i32>(i == 2)};
    for (size_t f = 0; f < all.size(); ++f) out.store({int(f), at.x}, all[f]);
  });
  const Buffer out = device().allocate<int32_t>({8, 4});
  device().launch(k, {4}, Arguments().set("out", out));
  const std::vector<int32_t> got = device().download<int32_t>(out);
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t expected[] = {i * 3 % 4,
                                i << 2,
                                (i & 1) | 8,
                                ~i,
                                std::abs(i - 2),
                                int32_t(float(i) * 1.75f),
                                __builtin_popcount(unsigned(i)),
                                i == 2};
    for (int32_t f = 0; f < 8; ++f) EXPECT_EQ(got[size_t(f * 4 + i)], expected[f]) << f << " of " << i;
  }
}

/// Tiles of 8 pass through shared memory; each group turns its tile around and sums it.
Kernel turned_tiles(Storage storage) {
  KernelOptions options;
  options.group = {8, 1, 1};
  return kernel(
      "test.turned_tiles",
      [storage](Group<1> g, Parameters& p) {
        const AnyGrid from = p.read("from", storage, 1), to = p.write("to", storage, 1).streaming(),
                      sums = p.write("sums", storage, 1), count = p.read_write("count", Storage::u32, 1);
        const AnyShared tile(storage, 8);
        const AnyLocal two(storage, 2);
        const Index first = Index(g.id()) * 8, lane = g.lane();
        from.copy_async(tile, lane, first + lane);
        async_commit();
        async_wait(0);
        barrier();
        two.store(0, tile.load(7 - lane));
        two.store(1, 2 * two.load(0));
        to.store_at((first + lane).offset(), two.load(1) - two.load(0));
        const AnyVal sum = group_sum(tile.load(lane));
        if_(lane == 0, [&] {
          sums.store({g.id()}, sum);
          count.atomic_add(0, AnyVal::number(Type::u32, 1));
        });
      },
      options);
}

TEST_P(Dynamic, SharedAndLocalArraysCopiesAndAtomics) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80};
  const Buffer to = device().allocate<float>({16}), sums = device().allocate<float>({2}),
               count = device().upload(std::vector<uint32_t>{5});
  device().launch(
      turned_tiles(Storage::f32), {2},
      Arguments().set("from", device().upload(x)).set("to", to).set("sums", sums).set("count", count));
  EXPECT_EQ(device().download<float>(to),
            (std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1, 80, 70, 60, 50, 40, 30, 20, 10}));
  EXPECT_EQ(device().download<float>(sums), (std::vector<float>{36, 360}));
  EXPECT_EQ(device().download<uint32_t>(count), (std::vector<uint32_t>{7}));
}

TEST_P(Dynamic, OffsetsOfBothWidths) {
  const Kernel k = kernel("test.offsets", [](At<2> at, Parameters& p) {
    const AnyGrid a = p.read("a", Storage::f32, 2), b = p.write("b", Storage::f32, 2);
    const Index n = Index(b.size(1)), own = Index(at.y).offset() * n + at.x;
    b.store_at(own, a.load_at(a.place({at.y, at.x})) + own.value().convert(Type::f32));
  });
  EXPECT_EQ(k.function().index_type, Type::i32);
  EXPECT_FALSE(k.function().uses(Type::i64));
  EXPECT_TRUE(k.function(Type::i64).uses(Type::i64));
  DeviceOptions options;
  options.wide_index = device().info().kind != DeviceKind::webgpu;
  const Device other = Device::open(GetParam(), options);
  const std::vector<float> a{10, 20, 30, 40, 50, 60};
  for (const Device& d : {device(), other}) {
    const Buffer b = d.allocate<float>({2, 3});
    d.launch(k, {2, 3}, Arguments().set("a", d.upload(std::span<const float>(a), {2, 3})).set("b", b));
    EXPECT_EQ(d.download<float>(b), (std::vector<float>{10, 21, 32, 43, 54, 65}));
  }
}

TEST_P(Dynamic, LoopsOverCoordinates) {
  const Kernel k = kernel("test.rows", [](At<1> at, Parameters& p) {
    const AnyGrid a = p.read("a", Storage::f32, 2), b = p.write("b", Storage::f32, 1);
    AnyVar sum = AnyVal::number(Type::f32, 0);
    for_(Index(0), a.size(1), 1, [&](Index i) {
      const Index clamped = clamp_index(i + 1, a.size(1));
      if_(i != 1, [&] { sum += a.load({at.x, clamped}); });
    });
    b.store({at.x}, sum);
  });
  const std::vector<float> a{1, 2, 4, 8, 16, 32};
  const Buffer b = device().allocate<float>({2});
  device().launch(k, {2},
                  Arguments().set("a", device().upload(std::span<const float>(a), {2, 3})).set("b", b));
  EXPECT_EQ(device().download<float>(b), (std::vector<float>{6, 48}));
}

TEST_P(Dynamic, NamesThatDoNotFit) {
  const Kernel k = weighted_sum(1, Storage::f32, Type::f32);
  const Buffer x = device().upload(std::vector<float>(4, 1.0f)), out = device().allocate<float>({4}),
               words = device().allocate<int32_t>({4}), flat = device().allocate<float>({2, 2});
  const auto launch = [&](const Arguments& a) { return refusal([&] { device().launch(k, {4}, a); }); };
  const auto good = [&] { return Arguments().set("out", out).set("weight0", 0.5); };
  EXPECT_EQ(launch(good().set("x0", x)), "");
  EXPECT_THAT(launch(good()), AllOf(HasSubstr("test.weighted_sum"), HasSubstr("parameter x0"),
                                    HasSubstr("no argument"), HasSubstr("f32 of rank 1")));
  EXPECT_THAT(launch(good().set("x0", x).set("y", x)), AllOf(HasSubstr("parameter y"), HasSubstr("x0")));
  EXPECT_THAT(launch(good().set("x0", x).set("x0", x)),
              AllOf(HasSubstr("parameter x0"), HasSubstr("second")));
  EXPECT_THAT(launch(good().set("x0", words)), AllOf(HasSubstr("parameter x0"), HasSubstr("i32")));
  EXPECT_THAT(launch(good().set("x0", flat)), AllOf(HasSubstr("(2, 2)"), HasSubstr("rank 1")));
  EXPECT_THAT(launch(good().set("x0", 3)), HasSubstr("the number 3"));
  EXPECT_THAT(launch(good().set("x0", Buffer())), HasSubstr("an empty buffer"));
  EXPECT_THAT(launch(Arguments().set("x0", x).set("out", out).set("weight0", x)),
              HasSubstr("a number of type f32"));
  EXPECT_EQ(good().set("x0", x).set("more", x).bind_known(k).size(), 3u);
}

TEST(DynamicKernel, ParametersOfAKernel) {
  const std::vector<KernelParameter> list = weighted_sum(1, Storage::f16, Type::f64).parameters();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "x0");
  EXPECT_TRUE(list[0].buffer && list[0].read && !list[0].written && list[0].storage == Storage::f16);
  EXPECT_TRUE(list[1].name == "out" && list[1].written && !list[1].read && list[1].rank == 1);
  EXPECT_TRUE(list[2].name == "weight0" && !list[2].buffer && list[2].type == Type::f64);
}

template <class Body>
std::string dynamic_error(Body body) {
  return refusal([&] { kernel("test.wrong", [&](At<1> at, Parameters& p) { body(at, p); }); });
}

TEST(DynamicKernel, WrongUseIsNamed) {
  const auto in = HasSubstr("test.wrong");
  EXPECT_THAT(
      dynamic_error([](At<1>, Parameters& p) { p.read("a", Storage::f32, 1), p.scalar("a", Type::f32); }),
      AllOf(in, HasSubstr("two parameters named a")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { p.read("a b", Storage::f32, 1); }),
              AllOf(in, HasSubstr("'a b'")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { p.read("a", Storage::f32, 5); }), HasSubstr("1 to 4"));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { p.read("a", Storage::i16, 1); }),
              AllOf(in, HasSubstr("elements of i16")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { p.scalar("a", Type::f64).as<f32>(); }),
              AllOf(in, HasSubstr("f64"), HasSubstr("f32")));
  EXPECT_THAT(dynamic_error([](At<1> at, Parameters& p) { p.scalar("a", Type::f64) + AnyVal(at.x); }),
              AllOf(in, HasSubstr("f64"), HasSubstr("i32")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { p.scalar("a", Type::f32) % 2; }),
              AllOf(in, HasSubstr("an integer type")));
  EXPECT_THAT(dynamic_error([](At<1> at, Parameters& p) { p.read("a", Storage::f32, 2).load({at.x}); }),
              AllOf(in, HasSubstr("1 coordinates"), HasSubstr("buffer a")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) { Index(p.scalar("a", Type::f32)); }),
              AllOf(in, HasSubstr("coordinate of type f32")));
  EXPECT_THAT(dynamic_error([](At<1> at, Parameters&) { AnyLocal(Storage::f32, 2).store(0, AnyVal(at.x)); }),
              AllOf(in, HasSubstr("i32 stored in an array of f32")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters& p) {
                p.read_write("a", Storage::f32, 1).atomic_add(0, AnyVal::number(Type::f32, 1));
              }),
              AllOf(in, HasSubstr("atomic")));
  EXPECT_THAT(dynamic_error([](At<1>, Parameters&) { AnyVal() + 1; }),
              AllOf(in, HasSubstr("an empty value")));
}

}  // namespace
}  // namespace lockstep
