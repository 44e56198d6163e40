// A loop recorded once and replayed with another number each time: heat in a rod whose time step grows.
//   recorded_loop [verify] [--device NAMES]     recorded_loop bench --device cpu
#include <cmath>

#include "lockstep/emit.hpp"
#include "lockstep/verify.hpp"

using namespace lockstep;

struct Rod {
  float left, right;  // temperatures of the ends
};
LOCKSTEP_STRUCT(Rod, left, right)

static constexpr int kSteps = 50;
static constexpr Rod kRod{1.0f, -0.5f};

static Kernel heat_kernel() {
  return kernel("example.rod",
                [](At<1> at, Grid<f32, 1> t, Out<f32, 1> next, Param<f32> step, Param<Rod> rod) {
                  const Val<i32> last = at.extent(0) - 1;
                  const Val<f32> left = select(at.x == 0, rod.left, t[at.x(-1)]),
                                 right = select(at.x == last, rod.right, t[at.x(+1)]);
                  next[at] = fma(step, fma(-2.0f, t[at], left) + right, t[at]);
                });
}
static float step_of(int k) { return 0.4f * float(k + 1) / float(kSteps); }

/// The plain loop.
static std::vector<f32> heated(std::vector<f32> t) {
  std::vector<f32> next(t.size());
  for (int k = 0; k < 2 * kSteps; ++k) {
    for (size_t i = 0; i < t.size(); ++i) {
      const float left = i == 0 ? kRod.left : t[i - 1], right = i + 1 == t.size() ? kRod.right : t[i + 1];
      next[i] = std::fma(step_of(k / 2), std::fma(-2.0f, t[i], left) + right, t[i]);
    }
    t.swap(next);
  }
  return t;
}

static Case rod_case() {
  const Kernel heat = heat_kernel();
  Case c;
  c.name = "example.rod";
  c.small = {"1", "2", "1000"};
  c.bench = {"65536"};
  c.kernels = [=] { return std::vector{heat}; };
  c.make = [=](const std::string& size, uint64_t) {
    const int64_t n = parse_size(size)[0];
    std::vector<f32> t(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) t[size_t(i)] = float(i % 17) / 16;
    CaseProblem problem;
    problem.bytes = 8.0 * 2 * kSteps * double(n);
    problem.operations = 2 * kSteps;
    problem.reference = [=] { return std::vector{Array::of(heated(t))}; };
    problem.bind = [=](const Device& device) {
      const Buffer start = device.upload(t), a = device.allocate<f32>({n}), b = device.allocate<f32>({n});
      const Graph two = device.record([&] {
        device.launch(heat, {n}, a, b, per_replay("step", 0.0f), kRod);
        device.launch(heat, {n}, b, a, per_replay("step", 0.0f), kRod);
      });
      const auto run = [=] {
        device.copy(start, a);
        for (int k = 0; k < kSteps; ++k) device.replay(two, Arguments().set("step", step_of(k)));
      };
      return CaseRun{run, [=] { return std::vector{device.download(a)}; }};
    };
    return problem;
  };
  c.webgpu = Bound::absolute(1e-5);  // WGSL may round the products of fma
  return c;
}

int main(int argc, char** argv) {
  CaseRegistry cases;
  cases.add(rod_case());
  return run_cases(argc, argv, cases);
}
