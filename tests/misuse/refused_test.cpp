// Bodies that the tracing refuses: each error names the kernel, this file and what to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::misuse {
namespace {

using test::refusal;
using testing::AllOf;
using testing::HasSubstr;
using A = const Grid<f32, 1>&;
using B = const InOut<f32, 1>&;
using O = const Out<f32, 1>&;
using N = const InOut<i32, 1>&;

struct Refused {
  int line;
  std::string said;
  std::function<void(At<1>, A, B, O, N)> body;
};

// REFUSED(part of the message, the body of a kernel with at, a (read), b and n (read and written), o (written))
#define REFUSED(said, ...)                                                                               \
  Refused {                                                                                              \
    __LINE__, said,                                                                                      \
        [=]([[maybe_unused]] At<1> at, [[maybe_unused]] A a, [[maybe_unused]] B b, [[maybe_unused]] O o, \
            [[maybe_unused]] N n) { __VA_ARGS__ }                                                        \
  }

// Names that an if_ or a loop cannot change.
std::vector<Refused> names() {
  return {
    REFUSED("a Var", Val<f32> x = a[at]; if_(x > 0.0f, [&] { x = 0.0f; }); o[at] = x;),
        REFUSED("a Var", Val<f32> x = a[at]; for_(0, 3, [&](Val<i32>) { x = x * 2.0f; }); o[at] = x;),
        REFUSED("a Var", Val<f32> x = a[at]; while_([&] { return x < 3.0f; }, [&] { x = x + 1.0f; });
                o[at] = x;),
        REFUSED("a Var", Val<f32> x = a[at], y = x; if_(x > 0.0f, [&] { std::swap(x, y); }); o[at] = x;),
        REFUSED("a Var", Val<f32> x = a[at]; for_(0, 3, [&](Val<i32>) { (void)std::exchange(x, 1.0f); });
                o[at] = x;),
        REFUSED("a Var", std::vector<Val<f32>> v{a[at], a[at]}; if_(v[0] > 0.0f, [&] { v[1] = v[0]; });
                o[at] = v[1];),
        REFUSED("a Var", std::array<Val<f32>, 2> v{a[at], b[at]};
                if_(v[0] > v[1], [&] { std::reverse(v.begin(), v.end()); }); o[at] = v[0];),
        REFUSED("a Var", std::pair<Val<f32>, Val<f32>> p(a[at], b[at]);
                if_(p.first > 0.0f, [&] { std::swap(p.first, p.second); }); o[at] = p.first;),
        REFUSED("a Var", std::optional<Val<f32>> x(a[at]); if_(*x > 0.0f, [&] { x = b[at]; }); o[at] = *x;),
        REFUSED("a Var", Vec2<f32> v(a[at], b[at]); if_(v.x() > 0.0f, [&] { v = Vec2<f32>(v.y(), v.x()); });
                o[at] = v.x();),
        REFUSED("outside of the block", std::vector<Val<f32>> v;
                for_(0, 3, [&](Val<i32> k) { v.push_back(a(k)); }); o[at] = v[0];),
        REFUSED("outside of the block", std::vector<Val<i32>> v;
                for_(0, 3, [&](Val<i32> k) { v.push_back(k); }); n[at] = v[0];),
        REFUSED("outside of the block", std::optional<Val<f32>> x;
                if_(a[at] > 0.0f, [&] { x = a[at] * 2.0f; }); o[at] = *x;),
        REFUSED("outside of the block", std::vector<Val<f32>> v; if_(
                    a[at] > 0.0f, [&] { v.push_back(a[at] * 2.0f); }, [&] { o[at] = v[0]; });),
        REFUSED("outside of the block", std::vector<Var<f32>> v;
                if_(a[at] > 0.0f, [&] { v.push_back(Var<f32>(a[at])); }); o[at] = v[0];),
  };
}

// Numbers that a type does not hold.
std::vector<Refused> numbers() {
  return {
    REFUSED("0.5", n[at] = n[at] * 0.5;), REFUSED("1.5", n[at] += 1.5f;),
        REFUSED("2.5", n[at] = cast<i32>(n[at] < 2.5f);),
        REFUSED("0.5", n[at] = select(a[at] > 0.0f, Val<i32>(n[at]), 0.5f);),
        REFUSED("1.5", n[at] = min(n[at], 1.5f);), REFUSED("16777217", o[at] = a[at] + 16777217;),
        REFUSED("5000000000", n[at] = n[at] + 5000000000;),
        REFUSED("-1", n[at] = cast<i32>(bitcast<u32>(n[at]) > -1);),
        REFUSED("-1", n[at] = bitcast<i32>(bitcast<u32>(n[at]) * -1);),
        REFUSED("2.7", Val<i32> i = 2.7; n[at] = i;), REFUSED("0.5", n[at] = 0.5f;),
        REFUSED("1.5", Var<i32> i = 1; i = 1.5; n[at] = i;),
        REFUSED("2", Val<bool> t = 2; n[at] = cast<i32>(t);),
        REFUSED("2", n[at] = cast<i32>((a[at] > 0.0f) == 2);), REFUSED("1e+300", o[at] = a[at] * 1e300;),
        REFUSED("5000000000", for_(0, 5000000000, [&](Val<i32> k) { b[k] = 1.0f; });),
        REFUSED("other than 0", for_(0, 3, 0, [&](Val<i32> k) { b[k] = 1.0f; });),
        REFUSED("0.5", for_(0.5f, 3.0f, [&](Val<i32> k) { b[k] = 1.0f; });),
        REFUSED("5000000000", o[at] = a(5000000000);), REFUSED("0.5", o[at] = a(0.5);),
        REFUSED("0 to 3", VarArray<f32, 4> v(0.0f); o[at] = v[-1];),
        REFUSED("0 to 3", VarArray<f32, 4> v(0.0f); v[4] = 1.0f; o[at] = v[0];),
        REFUSED("1 to 2^24", LocalArray<f32> l(-1); o[at] = l[0];),
        REFUSED("1 to 2^24", LocalArray<f32> l(int64_t(1) << 25); o[at] = l[0];),
  };
}

// Words that stand at a wrong place.
std::vector<Refused> places() {
  return {
    REFUSED("loop", break_(); o[at] = 1.0f;), REFUSED("loop", continue_(); o[at] = 1.0f;),
        REFUSED("loop", if_(a[at] > 0.0f, [&] { break_(); }); o[at] = 1.0f;),
        REFUSED("Group<N>", SharedArray<f32> s(4); o[at] = s[0];),
        REFUSED("group", o[at] = group_sum(a[at]);), REFUSED("Group<N>", barrier(); o[at] = a[at];),
        REFUSED("is read", const auto t = o[at]; o[at] = t;), REFUSED("is read", o[at] += 1.0f;),
        REFUSED("axis", a.require(2, 3); o[at] = a[at];),
        REFUSED(
            "200", std::function<void(int)> nest = [&](int k) { if_(a[at] > f32(k), [&] { nest(k + 1); }); };
            nest(0); o[at] = a[at];),
        REFUSED(
            "200", std::function<Val<i32>(Val<i32>)> f =
                       [&](Val<i32> k) {
                         Var<i32> r = 1;
                         if_(k > 1, [&] { r = k * f(k - 1); });
                         return Val<i32>(r);
                       };
            n[at] = f(n[at]);),
  };
}

void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& each : all) {
    const std::string said = refusal([&] {
      kernel("test.refused", [&](At<1> at, Grid<f32, 1> a, InOut<f32, 1> b, Out<f32, 1> o, InOut<i32, 1> n) {
        each.body(at, a, b, o, n);
      });
    });
    EXPECT_THAT(said, AllOf(HasSubstr(each.said), HasSubstr("test.refused"), HasSubstr("refused_test.cpp:")))
        << "refused_test.cpp:" << each.line;
  }
}

TEST(Refused, NamesThatABranchChanges) { expect_refused(names()); }
TEST(Refused, NumbersThatATypeDoesNotHold) { expect_refused(numbers()); }
TEST(Refused, WordsAtAWrongPlace) { expect_refused(places()); }

TEST(Refused, ValuesOfAnotherKernel) {
  const auto traced_twice = [](auto body) {
    return refusal([&] {
      for (int k = 0; k < 2; ++k)
        kernel("test.again" + std::to_string(k),
               [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) { body(at, a, o); });
    });
  };
  const auto of_the_first = AllOf(HasSubstr("a value of kernel test.again0"), HasSubstr("test.again1"));
  EXPECT_THAT(traced_twice([](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
                static const Val<f32> half = 0.5f;
                o[at] = a[at] * half;
              }),
              of_the_first);
  EXPECT_THAT(traced_twice([](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
                static Var<f32> sum = 0.0f;
                sum += a[at];
                o[at] = sum;
              }),
              of_the_first);
  std::vector<Val<f32>> kept;
  EXPECT_THAT(traced_twice([&](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
                kept.push_back(a[at]);
                o[at] = kept.front();
              }),
              of_the_first);
  EXPECT_THAT(refusal([] { (void)Val<f32>(1.0f); }), HasSubstr("outside of a kernel"));
}

TEST(Refused, FunctionsThatTakeMoreThanTheyAreGiven) {
  EXPECT_THAT(refusal([] {
                kernel("test.captured", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
                  const Val<f32> x = a[at];
                  const auto f = function("f", [=](Val<f32> y) { return x + y; });
                  o[at] = f(x) + f(2.0f);
                });
              }),
              HasSubstr("refused_test.cpp:"));
}

}  // namespace
}  // namespace lockstep::misuse
