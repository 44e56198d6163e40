// One's own kernel as a case: inputs, plain reference, bound. The program then has what `lockstep` has:
//   own_case verify --device cuda     own_case bench     own_case emit example.logistic --target wgsl
#include "lockstep/emit.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

/// Logistic map, iterated: a kernel whose result shows the smallest difference in arithmetic.
static Case logistic_case() {
  const Kernel logistic =
      kernel("example.logistic", [](At<1> at, Grid<f32, 1> x0, Out<f32, 1> x, Param<i32> steps) {
        Var<f32> v = x0[at];
        for_(0, steps, [&](Val<i32>) { v = 3.7f * v * (1.0f - v); });
        x[at] = v;
      });
  Case c;
  c.name = "example.logistic";
  c.small = {"1", "1000", "4097"};
  c.bench = {"1048576"};
  c.kernels = [=] { return std::vector{logistic}; };
  c.make = [=](const std::string& size, uint64_t) {
    const int64_t n = parse_size(size)[0];
    std::vector<f32> x0(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) x0[k] = (float(k) + 0.5f) / float(n);
    CaseProblem problem;
    problem.bytes = 8.0 * double(n);
    problem.reference = [=] {
      std::vector<f32> x = x0;
      for (f32& v : x)
        for (int step = 0; step < 20; ++step) v = 3.7f * v * (1.0f - v);
      return std::vector{Array::of(x)};
    };
    problem.bind = [=](const Device& device) {
      const Buffer from = device.upload(x0), to = device.allocate<f32>({n});
      return CaseRun{[=] { device.launch(logistic, {n}, from, to, 20); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    return problem;
  };
  c.webgpu = Bound::absolute(1e-2);  // WGSL may contract the products: chaos magnifies it
  return c;
}

int main(int argc, char** argv) {
  CaseRegistry cases;
  cases.add(logistic_case());
  return run_cases(argc, argv, cases);
}
