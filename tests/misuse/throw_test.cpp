// Mistakes that only the tracing or a launch sees: errors that name the kernel, the file and what to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/refusal.hpp"
#include "device/devices.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

template <class Body>
std::string trace_error(Body body) {
  return refusal([&] {
    kernel("test.throw",
           [&](At<1> at, Grid<f32, 1> a, InOut<f32, 1> b, Out<f32, 1> o) { body(at, a, b, o); });
  });
}
using A = const Grid<f32, 1>&;
using B = const InOut<f32, 1>&;
using O = const Out<f32, 1>&;

TEST(Throws, WithFileAndWhatToWrite) {
  const auto said = [](const char* text) {
    return AllOf(HasSubstr("test.throw"), HasSubstr("throw_test.cpp:"), HasSubstr(text));
  };
  EXPECT_THAT(trace_error([](At<1> at, A a, B b, O) {
                Val<f32> x = a[at];
                for_(0, 3, [&](Val<i32>) { x = x + 1; });
                b[at] = x;
              }),
              said("a Var"));
  EXPECT_THAT(trace_error([](At<1> at, A a, B b, O) {
                Val<f32> x = a[at], y = x + 1;
                if_(x > 0, [&] { std::swap(x, y); });
                b[at] = x;
              }),
              said("a Var"));
  EXPECT_THAT(trace_error([](At<1> at, A, B, O o) {
                const auto t = o[at];
                o[at] = t;
              }),
              said("is read"));
  EXPECT_THAT(trace_error([](At<1>, A a, B b, O) { b[0] = a(0.5f); }), said("0.5"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) { b[at.x + 0.5] = 1; }), said("0.5"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) {
                SharedArray<f32> s(4);
                b[at] = s[0];
              }),
              said("Group<N>"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) {
                LocalArray<f32> l(0);
                b[at] = l[0];
              }),
              said("1 to 2^24"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) {
                VarArray<f32, 4> v(0.0f);
                b[at] = v[4];
              }),
              said("0 to 3"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) { for_(0, 3, 0, [&](Val<i32>) { b[at] = 1; }); }),
              said("other than 0"));
  EXPECT_THAT(trace_error([](At<1> at, A, B b, O) {
                break_();
                b[at] = 1;
              }),
              said("loop"));
  EXPECT_THAT(trace_error([](At<1> at, A a, B, O o) {
                a.require(1, 3);
                o[at] = 1;
              }),
              said("axis"));
  EXPECT_THAT(
      trace_error([](At<1> at, A a, B b, O) {
        LocalArray<f32> l(2);
        const auto f = function("f", [&](Val<f32> x) {
          l[0] = x;
          return Val<f32>(l[0]);
        });
        b[at] = f(a[at]);
      }),
      AllOf(HasSubstr("throw_test.cpp:"), HasSubstr("arrays that it declares, or a plain C++ function")));
}

TEST(Throws, WhereControlFlowIsTooDeep) {
  const std::function<void(int, const std::function<void()>&)> nest = [&](int levels,
                                                                          const std::function<void()>& body) {
    if (levels == 0) return body();
    if_(Val<bool>(true), [&] { nest(levels - 1, body); });
  };
  EXPECT_EQ(trace_error([&](At<1> at, A, B b, O) { nest(200, [&] { b[at] = 1; }); }), "");
  EXPECT_THAT(trace_error([&](At<1> at, A, B b, O) { nest(201, [&] { b[at] = 1; }); }),
              AllOf(HasSubstr("201 levels"), HasSubstr("throw_test.cpp:")));
  EXPECT_THAT(trace_error([&](At<1> at, A a, B b, O) {
                const auto f = function("deep", [&](Val<f32> x) {
                  Var<f32> y = x;
                  nest(120, [&] { y += 1; });
                  return Val<f32>(y);
                });
                nest(120, [&] { b[at] = f(a[at]); });
              }),
              HasSubstr("240 levels"));
}

TEST(Throws, WhereABufferHasAnotherShape) {
  const Kernel vectors = kernel("test.vectors", [](At<1> at, Grid<f32, 2> in, Out<f32, 2> out) {
    elements<Vec3<f32>>(out)[at] = elements<Vec3<f32>>(in)[at] * 2.0f;
  });
  const Kernel alike =
      kernel("test.alike", [](At<2> at, Grid<f32, 2> in, Grid<f32, 1> rows, Out<f32, 2> out) {
        require_same_shape(in, out);
        rows.require(0, in, 0);
        out[at] = in[at] + rows[at.y];
      });
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const auto buffer = [&](const Shape& shape) {
      const std::vector<float> ones(size_t(shape.elements()), 1.0f);
      return device.upload(std::span<const float>(ones), shape);
    };
    device.launch(vectors, {2}, buffer({2, 3}), buffer({2, 3}));
    for (const int64_t width : {2, 4})
      EXPECT_THAT(refusal([&] { device.launch(vectors, {2}, buffer({2, width}), buffer({2, 3})); }),
                  AllOf(HasSubstr("argument 1 (b0"), HasSubstr("3 along axis 1")));
    EXPECT_THAT(refusal([&] { device.launch(vectors, {2}, buffer({2, 3}), buffer({2, 4})); }),
                HasSubstr("argument 2 (b1"));
    device.launch(alike, {2, 3}, buffer({2, 3}), buffer({2}), buffer({2, 3}));
    EXPECT_THAT(refusal([&] { device.launch(alike, {2, 3}, buffer({2, 3}), buffer({2}), buffer({3, 3})); }),
                AllOf(HasSubstr("argument 3 (b2"), HasSubstr("2 along axis 0")));
    EXPECT_THAT(refusal([&] { device.launch(alike, {2, 3}, buffer({2, 3}), buffer({5}), buffer({2, 3})); }),
                AllOf(HasSubstr("argument 2 (b1"), HasSubstr("b0")));
  }
}

TEST(Loops, EndAtEveryEndOfTheirType) {
  struct Loop {
    int64_t begin, end;
    int step;
  };
  constexpr int64_t kMax = INT32_MAX, kMin = INT32_MIN, kTop = UINT32_MAX;
  const std::vector<Loop> wholes = {{kMax - 3, kMax, 5},
                                    {kMax - 10, kMax, 4},
                                    {kMin + 3, kMin, -5},
                                    {kMin, kMax, kMax},
                                    {kMax, kMin, INT32_MIN},
                                    {0, 7, 3},
                                    {7, -1, -3},
                                    {3, 3, 2},
                                    {5, 3, 2},
                                    {3, 5, -2}};
  const std::vector<Loop> naturals = {{3, 0, -2},       {kTop - 3, kTop, 5}, {0, kTop, kMax},
                                      {kTop, 0, -kMax}, {5, 1, -3},          {1, 5, 3}};
  const auto passes = [](const Loop& l) {  // ceil((end - begin) / step) in wider numbers
    return std::max<int64_t>(0, int64_t(std::ceil(double(l.end - l.begin) / double(l.step))));
  };
  const Kernel count =
      kernel("test.loops", [&](At<1> at, Grid<i32, 1> from, Grid<i32, 1> to, Out<i32, 1> passes_of) {
        int k = 0;
        const auto loop = [&](auto begin, auto end, int step) {
          Var<i32> n = 0;
          for_(begin, end, step, [&](auto) {
            n += 1;
            break_if(n > 100);
          });
          passes_of(k++) = n;
        };
        (void)at;
        for (const Loop& l : wholes) loop(Val<i32>(from(k)), Val<i32>(to(k)), l.step);
        for (const Loop& l : naturals) loop(bitcast<u32>(from(k)), bitcast<u32>(to(k)), l.step);
        for (const Loop& l : wholes)
          loop(Val<i32>(l.begin), Val<i32>(l.end), l.step);  // bounds that are known
      });
  std::vector<int> from, to, expected;
  for (const auto* all : {&wholes, &naturals, &wholes})
    for (const Loop& l : *all)
      from.push_back(int(uint32_t(l.begin))), to.push_back(int(uint32_t(l.end))),
          expected.push_back(int(passes(l)));
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer got = device.allocate<int>({int64_t(expected.size())});
    device.launch(count, {1}, device.upload(from), device.upload(to), got);
    EXPECT_EQ(device.download<int>(got), expected) << name;
  }
}

TEST(Rounding, TheMandelbrotSetIsThatOfPlainCpp) {
  constexpr int kWide = 80, kHigh = 60, kMost = 200;
  const auto made = [](bool contract, bool each) {
    return kernel("test.mandelbrot",
                  [=](At<2> at, Out<i32, 2> out) {
                    const auto kept = [=](const Val<f32>& v) { return each ? rounded(v) : v; };
                    const Val<f32> cx = kept(cast<f32>(at.x) * 0.04f) - 2.2f,
                                   cy = kept(cast<f32>(at.y) * 0.04f) - 1.2f;
                    Var<f32> x = 0.0f, y = 0.0f;
                    Var<i32> n = 0;
                    loop_([&] {
                      break_if(n >= kMost || kept(x * x) + kept(y * y) > 4.0f);
                      const Val<f32> next = kept(x * x) - kept(y * y) + cx;
                      y = kept(2.0f * x * y) + cy;
                      x = next;
                      n += 1;
                    });
                    out[at] = n;
                  },
                  {.contract = contract});
  };
  std::vector<int> expected;
  for (int j = 0; j < kHigh; ++j)
    for (int i = 0; i < kWide; ++i) {
      const float cx = float(i) * 0.04f - 2.2f, cy = float(j) * 0.04f - 1.2f;
      float x = 0, y = 0;
      int n = 0;
      for (; n < kMost && !(x * x + y * y > 4.0f); ++n) {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
      }
      expected.push_back(n);
    }
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer out = device.allocate<int>({kHigh, kWide});
    const auto run = [&](const Kernel& k) {
      device.launch(k, {kHigh, kWide}, out);
      return device.download<int>(out);
    };
    EXPECT_EQ(run(made(false, false)), expected) << name;
    EXPECT_EQ(run(made(true, true)), expected) << name;
    EXPECT_NE(run(made(true, false)), expected) << name;
  }
}

TEST(Uniform, OutlivesEveryPass) {
  const auto whole = function("whole", [](Val<i32> v) { return uniform(v / 4); });
  const Kernel k = kernel("test.uniform",
                          [&](Group<1> g, Grid<f32, 1> a, Out<f32, 1> out) {
                            const Val<f32> x = a[g.lane()];
                            const Val<bool> product = uniform(x * 0.0f) + 1.0f > 0.0f,
                                            root = uniform(exp(x * 0.0f)) > 0.5f;
                            if_(uniform(whole(g.lane())) == 0, [&] { barrier(); });
                            if_(product, [&] { barrier(); });
                            if_(root, [&] { out[g.lane()] = group_sum(x); });
                          },
                          {.group = {4}});
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer out = device.allocate<float>({4});
    device.launch(k, {1}, device.upload(std::vector<float>{1, 2, 3, 4}), out);
    EXPECT_EQ(device.download<float>(out), (std::vector<float>{10, 10, 10, 10})) << name;
  }
}

}  // namespace
}  // namespace lockstep
