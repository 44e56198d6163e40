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
        REFUSED("2.0", n[at] = n[at] / 2.0;), REFUSED("4.0", n[at] *= 4.0f;),
        REFUSED("2.0", n[at] = cast<i32>(n[at] < 2.0);), REFUSED("1.0", o[at] = a(1.0);),
        REFUSED("2.0", AnyVal i = Val<i32>(n[at]); n[at] = (i / 2.0).as<i32>();),
        REFUSED("1.5", for_(0, 3, 1.5, [&](Val<i32> k) { b[k] = 1.0f; });),
        REFUSED("5000000000", for_(0, 3, 5000000000, [&](Val<i32> k) { b[k] = 1.0f; });),
        REFUSED("2.5", o[at] = powi(a[at], 2.5);), REFUSED("0.5", n[at] = powi(n[at], -0.5);),
        REFUSED("1.5", o[at] = a[at.x(1.5)];), REFUSED("2.5", LocalArray<f32> l(2.5); o[at] = l[0];),
        REFUSED("1.5", VarArray<f32, 4> v(0.0f); o[at] = v[1.5];), REFUSED("1.5", n[at] = n[at] << 1.5;),
        REFUSED("by 32 bits", n[at] = n[at] << 32;), REFUSED("by -1 bits", n[at] = n[at] >> -1;),
        REFUSED("by 33 bits", n[at] <<= 33;), REFUSED("0 to 1", Vec2<f32> v(a[at], b[at]); o[at] = v[2];),
        REFUSED("0 to 1", const Complex<f32> z{a[at], b[at]}; o[at] = z[2];),
        REFUSED("axis 1", n[at] = at.extent(1);),
  };
}

// Statements at a wrong place.
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

// Handles of one kernel while another is traced, inside of the first or behind it.
struct Handles {
  At<1> at;
  Grid<f32, 1> a;
  InOut<f32, 1> b;
  LocalArray<f32> local{4};
  VarArray<f32, 2> variables{0.0f};
  AnyLocal any{Storage::f32, 4};
};
struct GroupHandles {
  Group<1> g;
  SharedArray<f32> shared{4};
  AnyShared any{Storage::f32, 4};
};

template <class Use>
std::string in_a_kernel_of_its_own(Use use) {
  return refusal([&] {
    kernel("test.inner",
           [&](Group<1>, InOut<f32, 1> out) {
             const LocalArray<f32> l(4);  // the same number as that of the other kernel
             const SharedArray<f32> s(4);
             use(out);
           },
           {.group = {4}});
  });
}

TEST(Refused, HandlesOfAnotherKernel) {
  using Inner = const InOut<f32, 1>&;
  using Use = std::function<void(const Handles&, Inner)>;
  const std::vector<std::pair<const char*, Use>> uses = {
      {"an array of", [](const Handles& h, Inner) { h.local[0] = 1.0f; }},
      {"an array of", [](const Handles& h, Inner out) { out[0] = h.local[0]; }},
      {"a value of", [](const Handles& h, Inner out) { out[0] = h.variables[1]; }},
      {"an array of", [](const Handles& h, Inner) { (void)h.any.load(0); }},
      {"an array of", [](const Handles& h, Inner) { h.any.store(0, Val<f32>(1.0f)); }},
      {"a buffer of", [](const Handles& h, Inner out) { out[0] = h.a(0); }},
      {"a buffer of", [](const Handles& h, Inner) { h.b[0] = 1.0f; }},
      {"a buffer of", [](const Handles& h, Inner) { h.b(0).unordered_atomic_add(1.0f); }},
      {"a buffer of", [](const Handles& h, Inner) { (void)h.a.size(0); }},
      {"a buffer of", [](const Handles& h, Inner) { h.a.require(0, 4); }},
      {"a point of", [](const Handles& h, Inner out) { out[h.at.x] = 1.0f; }},
      {"a point of", [](const Handles& h, Inner) { (void)h.at.x(1); }},
      {"a point of", [](const Handles& h, Inner) { (void)h.at.extent(0); }},
  };
  for (size_t k = 0; k < uses.size(); ++k) {
    const auto& [said, use] = uses[k];
    const auto refused = AllOf(HasSubstr(said), HasSubstr("kernel test.outer"), HasSubstr("test.inner"),
                               HasSubstr("refused_test.cpp:"));
    std::optional<Handles> kept;
    kernel("test.outer", [&](At<1> at, Grid<f32, 1> a, InOut<f32, 1> b) {
      kept.emplace(Handles{at, a, b});
      EXPECT_THAT(in_a_kernel_of_its_own([&](Inner out) { use(*kept, out); }), refused) << "nested " << k;
      use(*kept, b);  // still right in its own
    });
    EXPECT_THAT(in_a_kernel_of_its_own([&](Inner out) { use(*kept, out); }), refused) << "behind " << k;
  }
}

TEST(Refused, HandlesOfAGroupOfAnotherKernel) {
  using Inner = const InOut<f32, 1>&;
  using Use = std::function<void(const GroupHandles&, Inner)>;
  const std::vector<std::pair<const char*, Use>> uses = {
      {"an array of", [](const GroupHandles& h, Inner) { h.shared[0] = 1.0f; }},
      {"an array of", [](const GroupHandles& h, Inner) { (void)h.shared.id(); }},
      {"an array of", [](const GroupHandles& h, Inner) { (void)h.any.load(0); }},
      {"a group of", [](const GroupHandles& h, Inner out) { out[h.g.lane()] = 1.0f; }},
      {"a group of", [](const GroupHandles& h, Inner) { (void)h.g.lanes(); }},
      {"a group of", [](const GroupHandles& h, Inner) { (void)h.g.size(); }},
  };
  for (size_t k = 0; k < uses.size(); ++k)
    kernel("test.outer",
           [&](Group<1> g, InOut<f32, 1> b) {
             const GroupHandles handles{g};
             const auto& [said, use] = uses[k];
             EXPECT_THAT(in_a_kernel_of_its_own([&](Inner out) { use(handles, out); }),
                         AllOf(HasSubstr(said), HasSubstr("kernel test.outer")))
                 << k;
             use(handles, b);
           },
           {.group = {4}});
}

TEST(Accepted, LocalConstantsAsStepsShiftsPowersAndSizes) {
  EXPECT_EQ(refusal([] {
              kernel("test.constants", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
                constexpr int kTwo = 2;
                const LocalArray<f32> l(kTwo);
                const Vec4<f32> v(1, 2, 3, 4);
                VarArray<f32, 3> sums(0.0f);
                for_(0, kTwo, kTwo, [](Val<i32>) {});
                l[0] = powi(a[at.x(kTwo)], kTwo) + v[kTwo];
                sums[kTwo] += l[0];
                o[at] = sums[kTwo];
              });
            }),
            "");
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
