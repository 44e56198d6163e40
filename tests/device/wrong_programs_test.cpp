// Programs that are wrong, as their authors write them: each is an error that says so. What a device cannot see (races,
// reads outside) is the interpreter's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "lockstep/device.hpp"

namespace lockstep {
namespace {

using testing::HasSubstr;
using G1 = Grid<f32, 1>;
using O1 = Out<f32, 1>;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}
struct Wrong {
  const char* says;
  std::function<void()> program;
};
void expect_errors(const std::vector<Wrong>& programs) {
  for (const Wrong& wrong : programs) EXPECT_THAT(error_of(wrong.program), HasSubstr(wrong.says));
}

TEST(WrongPrograms, Barriers) {
  const KernelOptions lanes{.group = {64}};
  expect_errors({
      {"barrier",
       [&] {
         kernel(
             "w.branch",
             [](Group<1> g, O1 y) {
               SharedArray<f32> s(64);
               if_(g.lane() < 5, [&] { barrier(); });
               y[g.global()] = 1.0f;
             },
             lanes);
       }},
      {"barrier",
       [&] {
         kernel(
             "w.loop",
             [](Group<1> g, O1 y) {
               for_(0, g.lane(), [&](Val<i32>) { barrier(); });
               y[g.global()] = 1.0f;
             },
             lanes);
       }},
      {"barrier",
       [&] {
         kernel(
             "w.return",
             [](Group<1> g, O1 y) {
               return_if(g.lane() > 3);
               barrier();
               y[g.global()] = 1.0f;
             },
             lanes);
       }},
      {"barrier",
       [&] {
         kernel("w.points", [](At<1> at, O1 y) {
           barrier();
           y[at] = 1.0f;
         });
       }},
      {"shared array in a points kernel",
       [&] {
         kernel("w.shared", [](At<1> at, O1 y) {
           SharedArray<f32> s(4);
           y[at] = 1.0f;
         });
       }},
      {"power of two",
       [&] {
         kernel("w.tree", [](Group<1> g, O1 y) { y[g.id()] = group_sum(cast<f32>(g.lane())); },
                {.group = {48}});
       }},
      {"1 to 1024", [&] { kernel("w.none", [](Group<1> g, O1 y) { y[g.id()] = 1.0f; }); }},
      {"1 to 1024", [&] { kernel("w.many", [](Group<1> g, O1 y) { y[g.id()] = 1.0f; }, {.group = {2000}}); }},
      {"1 to 1024",
       [&] { kernel("w.negative", [](Group<1> g, O1 y) { y[g.id()] = 1.0f; }, {.group = {-4}}); }},
  });
}

TEST(WrongPrograms, Tracing) {
  expect_errors({
      {"outside of a kernel", [] { [[maybe_unused]] const Val<f32> v = 1.0f; }},
      {"loop",
       [] {
         kernel("w.break", [](At<1> at, O1 y) {
           break_();
           y[at] = 1.0f;
         });
       }},
      {"step",
       [] { kernel("w.step", [](At<1> at, O1 y) { for_(0, 4, 0, [&](Val<i32>) { y[at] = 1.0f; }); }); }},
      {"number 0.5", [] { kernel("w.half", [](At<1> at, Out<i32, 1> y) { y[at] = 0.5 * at.x; }); }},
      {"number 5000000000",
       [] { kernel("w.big", [](At<1> at, Out<i32, 1> y) { y[at] = at.x + 5000000000; }); }},
      {"array of 0",
       [] {
         kernel("w.array", [](At<1> at, O1 y) {
           LocalArray<f32> a(0);
           y[at] = 1.0f;
         });
       }},
      {"block",
       [] {
         kernel("w.leak", [](At<1> at, G1 x, O1 y) {
           Val<f32>* inside = nullptr;
           if_(at.x > 2, [&] { inside = new Val<f32>(x[at] * 2.0f); });
           y[at] = *inside;
           delete inside;
         });
       }},
  });
}

TEST(WrongPrograms, Arguments) {
  const Device device = Device::open("interp");
  const Kernel axpy =
      kernel("w.axpy", [](At<1> at, G1 x, InOut<f32, 1> y, Param<f32> a) { y[at] += a * x[at]; });
  const Kernel whole = kernel("w.whole", [](At<1> at, Out<u32, 1> y, Param<u32> n) { y[at] = n; });
  const Buffer x = device.upload(std::vector<f32>(10, 1.0f)), y = device.upload(std::vector<f32>(10)),
               words = device.allocate<u32>({10}), plane = device.allocate<f32>({2, 5}),
               few = device.allocate<f32>({5});
  const auto launch = [&](const auto&... a) {
    return [&device, &axpy, a...] { device.launch(axpy, {10}, a...); };
  };
  expect_errors({
      {"2 arguments", launch(x, y)},
      {"4 arguments", launch(x, y, 1, 2)},
      {"argument 1 (b0", launch(words, y, 1)},
      {"argument 1 (b0", launch(3.0f, y, 1)},
      {"argument 3 (p0", launch(x, y, y)},
      {"argument 1 (b0", launch(2.0f, x, y)},
      {"argument 2 (b1", launch(x, plane, 1)},
      {"argument 1 (b0", launch(few, y, 1)},
      {"argument 1 (b0", launch(Buffer(), y, 1)},
      {"16777217", launch(x, y, 16777217)},
      {"overlap", launch(x, x, 1)},
      {"overlap", [&] { device.launch(axpy, {5}, x.rows(0, 5), x.rows(3, 5), 1); }},
      {"1.5", [&] { device.launch(whole, {10}, words, 1.5); }},
      {"-1", [&] { device.launch(whole, {10}, words, -1); }},
      {"extent", [&] { device.launch(axpy, {2, 5}, x, y, 1); }},
      {"extent", [&] { device.launch(axpy, {-1}, x, y, 1); }},
      {"another device",
       [&] { device.launch(axpy, {10}, Device::open("interp").upload(std::vector<f32>(10)), y, 1); }},
      {"rows", [&] { x.rows(8, 4); }},
      {"shape", [&] { x.reshape({3, 4}); }},
      {"u32", [&] { device.download<i32>(words); }},
      {"bytes",
       [&] {
         f32 v = 0;
         device.read(x, &v, 4);
       }},
      {"gpu", [] { Device::open("gpu"); }},
      {"cpuu", [] { Device::open("cpu,cpuu"); }},
      {"expected auto", [] { Device::open(""); }},
  });
}

TEST(WrongPrograms, WhatTheInterpreterSees) {
  const Device device = Device::open("interp");
  const Buffer x = device.upload(std::vector<f32>(20, 1.0f)), y = device.allocate<f32>({10}),
               plane = x.reshape({4, 5}), to = device.allocate<f32>({4, 5}), few = device.allocate<f32>({5}),
               places = device.upload(std::vector<i32>(10, -3)), none = device.allocate<f32>({10});
  const KernelOptions lanes{.group = {64}};
  expect_errors({
      {"out of bounds",
       [&] {
         device.launch(kernel("w.far", [](At<1> at, G1 a, O1 b) { b[at] = a[at.x + 15]; }), {10}, x, y);
       }},
      {"out of bounds",
       [&] {
         device.launch(
             kernel("w.row", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a(at.y, at.x + 1); }),
             {4, 5}, plane, to);
       }},
      {"out of bounds",
       [&] {
         device.launch(kernel("w.window", [](At<1> at, G1 a, O1 b) { b[at] = a[at.x + 3]; }), {5},
                       x.rows(2, 5), few);
       }},
      {"out of bounds",
       [&] {
         device.launch(kernel("w.gather", [](At<1> at, G1 a, Grid<i32, 1> p, O1 b) { b[at] = a[p[at]]; }),
                       {10}, x, places, y);
       }},
      {"out of bounds",
       [&] { device.launch(kernel("w.write", [](At<1> at, O1 b) { b[at.x + 1] = 1.0f; }), {10}, y); }},
      {"out of bounds",
       [&] {
         device.launch(kernel("w.local",
                              [](At<1> at, O1 b) {
                                LocalArray<f32> l(4);
                                for_(0, 4, [&](Val<i32> i) { l[i] = 1.0f; });
                                b[at] = l[at.x];
                              }),
                       {10}, y);
       }},
      {"race",
       [&] { device.launch(kernel("w.race", [](At<1> at, O1 b) { b[0] = cast<f32>(at.x); }), {10}, y); }},
      {"race",
       [&] {
         device.launch(kernel(
                           "w.missing",
                           [](Group<1> g, O1 b) {
                             SharedArray<f32> s(64);
                             s[g.lane()] = 1.0f;
                             b[g.global()] = s[63 - g.lane()];
                           },
                           lanes),
                       {1}, device.allocate<f32>({64}));
       }},
      {"uninitialised memory",
       [&] {
         device.launch(kernel("w.unwritten", [](At<1> at, G1 a, O1 b) { b[at] = a[at]; }), {10}, none, y);
       }},
      {"uniform()",
       [&] {
         device.launch(kernel(
                           "w.uniform",
                           [](Group<1> g, O1 b) {
                             if_(uniform(g.lane()) > 3, [&] { barrier(); });
                             b[g.global()] = 1.0f;
                           },
                           lanes),
                       {1}, device.allocate<f32>({64}));
       }},
  });
}

TEST(WrongPrograms, ADeviceGoesOn) {
  const Device device = Device::open("interp");
  const Kernel add = kernel("w.add", [](At<1> at, InOut<f32, 1> x) { x[at] += 1.0f; });
  const Buffer x = device.upload(std::vector<f32>(4, 1.0f));
  expect_errors({
      {"argument 1", [&] { device.record([&] { device.launch(add, {4}, 1); }); }},
      {"inside a recording", [&] { device.record([&] { device.download<f32>(x); }); }},
  });
  EXPECT_THROW(device.record([&] {
    device.launch(add, {4}, x);
    throw std::runtime_error("the author's own");
  }),
               std::runtime_error);
  device.launch(add, {4}, x);
  EXPECT_EQ(device.download<f32>(x), std::vector<f32>(4, 2.0f));
}

}  // namespace
}  // namespace lockstep
