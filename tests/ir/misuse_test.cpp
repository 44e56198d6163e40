// An author's mistake must not compile or must throw, with the kernel's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/refusal.hpp"
#include "device/devices.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/native.hpp"

namespace lockstep {
namespace {

using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

// A read-only buffer's elements are not assigned.
template <class G, class P, class V>
concept Assigns = requires(const G& g, P p, V v) { g[p] = v; };
static_assert(!Assigns<Grid<f32, 1>, At<1>, float>);
static_assert(!Assigns<Grid<f32, 1>, At<1>, Val<f32>>);
static_assert(!Assigns<Grid<f32, 1>, int, float>);
static_assert(Assigns<Out<f32, 1>, At<1>, float> && Assigns<InOut<f32, 1>, int, Val<f32>>);

// Only element types that exist.
template <class E>
concept HasStorage = requires { detail::kStorage<E>; };
template <class E>
concept Downloads = requires(const Device& d, const Buffer& b) { d.download<E>(b); };
static_assert(HasStorage<f32> && HasStorage<uint8_t> && HasStorage<bf16> && Downloads<int64_t>);
static_assert(!HasStorage<int8_t> && !HasStorage<bool> && !HasStorage<long long> && !HasStorage<char>);
static_assert(!Downloads<int8_t> && !Downloads<long long> && !Downloads<int16_t>);
static_assert(detail::Value<bool> && detail::Value<f64> && !detail::Value<int8_t> &&
              !detail::Value<long long>);

template <class Body>
std::string trace_error(Body body) {
  return refusal(
      [&] { kernel("test.misuse", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { body(at, a, b); }); });
}
using G = const Grid<f32, 1>&;
using O = const Out<f32, 1>&;
using P = At<1>;

TEST(Misuse, AValAssignedInsideALoopOrBranch) {
  const auto said = AllOf(HasSubstr("test.misuse"), HasSubstr("a Var"));
  EXPECT_THAT(trace_error([](P at, G a, O b) {
                Val<f32> x = a[at];
                for_(0, 3, [&](Val<i32>) {
                  b[at] = x;
                  x = x * 2.0f;  // each pass would see the first x
                });
              }),
              said);
  EXPECT_THAT(trace_error([](P at, G a, O b) {
                Val<f32> x = a[at];
                while_([&] { return a[at] > x; }, [&] { x = x + 1.0f; });
                b[at] = 0.0f;
              }),
              said);
  EXPECT_THAT(trace_error([](P at, G a, O b) {
                const Val<f32> one = a[at], other = one + 1.0f;
                Val<f32> x = one;
                if_(one > 0.0f, [&] { x = other; });  // would hold for all lanes
                b[at] = x;
              }),
              said);
  EXPECT_THAT(trace_error([](P at, G a, O b) {
                AnyVal x = a[at];
                for_(0, 3, [&](Val<i32>) { x = x + 1; });
                b[at] = 0.0f;
              }),
              said);
}

TEST(Misuse, AValAssignedWhereItWasMadeIsFine) {
  EXPECT_EQ(trace_error([](P at, G a, O b) {
              Val<f32> x = a[at];
              x = x * 2.0f;
              Var<f32> sum = 0.0f;
              for_(0, 3, [&](Val<i32> i) {
                Val<f32> y = x;
                for (int k = 0; k < 2; ++k) y = y + cast<f32>(i);
                sum += y;
              });
              b[at] = sum;
            }),
            "");
}

TEST(Misuse, AValueOfAnotherKernel) {
  std::optional<Val<f32>> kept;
  kernel("test.first", [&](At<1> at, Grid<f32, 1> a) { kept = a[at]; });
  EXPECT_THAT(trace_error([&](P at, G, O b) { b[at] = *kept; }),
              AllOf(HasSubstr("test.misuse"), HasSubstr("test.first")));
  EXPECT_THAT(trace_error([&](P at, G a, O b) {
                const Val<f32> outer = a[at];
                kernel("test.inner", [&](At<1> to, Out<f32, 1> c) { c[to] = outer; });
                b[at] = outer;
              }),
              AllOf(HasSubstr("test.misuse"), HasSubstr("test.inner")));
}

TEST(Misuse, AnEmptyKernel) {
  const Kernel none;
  const Device device = Device::open("interp");
  EXPECT_THAT(refusal([&] { none.name(); }), HasSubstr("never traced"));
  EXPECT_THROW(device.launch(none, {1}), InputError);
  EXPECT_THROW(device.prepare(none), InputError);
  EXPECT_THROW(device.supports(none), InputError);
}

TEST(Misuse, TheLambdaRunsOnce) {
  int runs = 0;
  const auto make = [&](float factor) {
    const std::string name = "test.once";
    return kernel(name, [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) {  // captures what dies with make
      ++runs;
      b[at] = a[at] * factor;
    });
  };
  const Kernel k = make(3);
  EXPECT_EQ(runs, 1);
  for (const std::string& name : host_devices()) {
    DeviceOptions wide;
    wide.wide_index = true;
    const Device device = Device::open(name, wide);
    const Buffer b = device.allocate<float>({2});
    device.launch(k, {2}, device.upload(std::vector<float>{1, 2}), b);
    EXPECT_EQ(device.download<float>(b), (std::vector<float>{3, 6}));
  }
  EXPECT_EQ(k.function(Type::i64).index_type, Type::i64);
  EXPECT_EQ(native_kernel(k, {{"// CUDA", "entry"}, {}}).function(Type::i64).name, "test.once.native");
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace lockstep
