// Loops of every lane over all elements: gradients by loops of every element over all lanes.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using testing::wave;
using Doubles = std::vector<double>;

std::vector<std::string> names(const GradientCase& c) {
  std::vector<std::string> list;
  for (const Kernel& k : differentiate(c.kernel, c.which).kernels()) list.push_back(k.name());
  return list;
}
using Names = std::vector<std::string>;

GradientCase pairs(int64_t n, int64_t elements) {
  GradientCase c{kernel("pairs",
                        [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
                          Var<f64> total = 0.0;
                          for_(0, x.size(0), [&](Val<i32> j) {
                            const Val<f64> d = x[j] - x[at];
                            total = total + 1.0 / (d * d + 0.1);
                          });
                          y[at] = total;
                        }),
                 {n},
                 {},
                 {},
                 {{"b0"}, {"b1"}}};
  c.f64s("b0", wave(elements)).f64s("b1", wave(n));
  return c;
}

TEST(GradientSweep, AllPairs) {
  const GradientCase c = pairs(37, 37);
  EXPECT_EQ(names(c), (Names{"pairs.adjoint", "pairs.sweep_b0"}));
  c.expect_consistent();
  const Doubles x = wave(37), seed = wave(37, 1.9);
  const Doubles got = c.gradients(Device::open("cpu"), {{"b1", seed}}).at("b0");
  for (size_t j = 0; j < 37; ++j) {
    long double sum = 0;
    for (size_t i = 0; i < 37; ++i) {
      const long double d = x[j] - x[i], s = d * d + 0.1L;
      sum -= (seed[i] + seed[j]) * 2 * d / (s * s);
    }
    EXPECT_NEAR(got[j], double(sum), 1e-11) << j;
  }
}

TEST(GradientSweep, OtherSizesKeepExactSums) {
  pairs(20, 37).expect_consistent();
  pairs(37, 37).expect_consistent();
}

TEST(GradientSweep, SeveralInputsConditionsAndNumbers) {
  GradientCase c{kernel("forces",
                        [](At<1> at, Grid<f64, 1> x, Grid<f64, 1> mass, Grid<f64, 1> own, Out<f64, 1> y,
                           Param<f64> a, Param<i32> first) {
                          Var<f64> force = own[at] * x[at];
                          const Val<f64> here = x[at];
                          for_(first, x.size(0), [&](Val<i32> j) {
                            if_(j != at.x, [&] {
                              const Val<f64> d = x(j) - here;
                              if_(
                                  d > 0.0, [&] { force = force + a * mass(j) * sqrt(d) * x(j); },
                                  [&] { force = force - mass(j) * exp(d); });
                            });
                          });
                          y[at] = 3.0 * force;
                        }),
                 {29},
                 {},
                 {{"p0", 0.7}, {"p1", 4}},
                 {{"b0", "b1", "b2", "p0"}, {"b3"}}};
  c.f64s("b0", wave(29)).f64s("b1", wave(29, 0.2)).f64s("b2", wave(29, 0.4)).f64s("b3", wave(29));
  EXPECT_EQ(names(c), (Names{"forces.adjoint", "forces.sweep_b0", "forces.sweep_b1"}));
  c.expect_consistent();
}

// A sum that decides a derivative after the loop; a loop in the loop; bounds of the lane; shifts; a second loop.
TEST(GradientSweep, OtherLoopsKeepExactSums) {
  const auto made = [](const char* name, auto body) {
    GradientCase c{kernel(name,
                          [&](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
                            Var<f64> total = 1.0;
                            body(at, x, total);
                            y[at] = total;
                          }),
                   {9},
                   {},
                   {},
                   {{"b0"}, {"b1"}}};
    c.f64s("b0", wave(9)).f64s("b1", wave(9));
    return c;
  };
  const auto over = [](const Grid<f64, 1>& x, auto body) { for_(0, x.size(0), body); };
  const GradientCase cases[] = {
      made("squared",
           [&](auto, auto x, Var<f64>& total) {
             over(x, [&](Val<i32> j) { total = total + sin(x[j]); });
             total = Val<f64>(total) * total;
           }),
      made("product",
           [&](auto, auto x, Var<f64>& total) { over(x, [&](Val<i32> j) { total = total * x[j]; }); }),
      made("nested",
           [&](auto, auto x, Var<f64>& total) {
             over(x,
                  [&](Val<i32> j) { for_(0, 2, [&](Val<i32> k) { total = total + x[j] * cast<f64>(k); }); });
           }),
      made("lanes", [&](auto at, auto x,
                        Var<f64>& total) { for_(0, at.x, [&](Val<i32> j) { total = total + sin(x[j]); }); }),
      made("shifted",
           [&](auto, auto x, Var<f64>& total) {
             over(x, [&](Val<i32> j) { total = total + sin(x.clamped()[j + 1]); });
           }),
      made("twice", [&](auto, auto x, Var<f64>& total) {
        over(x, [&](Val<i32> j) { total = total + sin(x[j]); });
        over(x, [&](Val<i32> j) { total = total + cos(x[j]); });
      })};
  for (const GradientCase& c : cases) {
    for (const std::string& name : names(c)) EXPECT_EQ(name.find("sweep"), name.npos) << name;
    c.expect_consistent();
  }
}

}  // namespace
}  // namespace lockstep
