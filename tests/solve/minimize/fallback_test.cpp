// A device that fails in the middle of a minimisation: the CPU continues from the last accepted point, with one
// line, one count and the same answer.
#include <gtest/gtest.h>

#include <cmath>

#include "device/devices.hpp"
#include "lockstep/context.hpp"
#include "lockstep/error.hpp"
#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

using test::Instance;

std::vector<std::string> gpus() {
  std::vector<std::string> found;
  for (const DeviceStatus& status : Device::list())
    if (status.available && (status.info.kind == DeviceKind::cuda || status.info.kind == DeviceKind::webgpu))
      found.push_back(status.info.name);
  return found;
}

struct Answer {
  Summary summary;
  std::vector<double> values;
};
Answer solve_net(Context& context, Method method, Linear linear) {
  Instance net = test::net(5);
  Options options;
  options.method = method;
  options.linear = linear;
  options.precision = Precision::f32;
  options.max_iterations = method == Method::adam ? 60 : 25;
  options.function_tolerance = 1e-6;
  options.learning_rate = 0.02;
  int last = 0;
  options.callback = [&](const Iteration& row) {
    EXPECT_EQ(row.iteration, last + 1);  // nothing is reported twice
    last = row.iteration;
    return true;
  };
  Answer out;
  out.summary = minimize(net.problem, context, options);
  EXPECT_EQ(last, out.summary.iterations);
  const auto values = net.problem.values(net.set);
  out.values.assign(values.begin(), values.end());
  return out;
}
/// The bits of the CPU on CUDA; on WebGPU each point of the net as near as the tolerance of the cost leaves it.
void expect_close(const std::string& device, const Answer& got, const Answer& expected) {
  ASSERT_EQ(got.values.size(), expected.values.size());
  if (device.starts_with("cuda")) {
    EXPECT_EQ(got.summary.final_cost, expected.summary.final_cost);
    EXPECT_EQ(got.values, expected.values);
    return;
  }
  EXPECT_NEAR(got.summary.final_cost, expected.summary.final_cost, 2e-4 * expected.summary.final_cost);
  double apart = 0;
  for (size_t k = 0; k < got.values.size(); ++k)
    apart = std::max(apart, std::abs(got.values[k] - expected.values[k]));
  EXPECT_LE(apart, 1e-3);
}

class SolveOnGpu : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { set_fault(""); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SolveOnGpu);

const std::vector<std::pair<Method, Linear>> kSolvers{{Method::lm, Linear::pcg},
                                                      {Method::lm, Linear::cholesky},
                                                      {Method::dogleg, Linear::cholesky},
                                                      {Method::lbfgs, Linear::automatic},
                                                      {Method::adam, Linear::automatic}};

TEST_P(SolveOnGpu, AgreesWithTheCpu) {
  for (const auto& [method, linear] : kSolvers) {
    SCOPED_TRACE(testing::Message() << name(method) << " " << name(linear));
    Context cpu(ContextOptions{.device = "cpu"}), gpu(ContextOptions{.device = GetParam()});
    const Answer answer = solve_net(gpu, method, linear);
    expect_close(GetParam(), answer, solve_net(cpu, method, linear));
    EXPECT_TRUE(gpu.fallbacks().empty());
    EXPECT_EQ(answer.summary.device, GetParam());
  }
}

TEST_P(SolveOnGpu, EveryStageFallsBackFromEveryFault) {
  for (const auto& [method, linear] : kSolvers) {
    Context cpu(ContextOptions{.device = "cpu"}), gpu(ContextOptions{.device = GetParam()});
    set_fault("");
    const Answer untouched = solve_net(gpu, method, linear);
    const Answer right = solve_net(cpu, method, linear);
    for (const std::string stage : {"solve.evaluate", "solve.linear"})
      for (const std::string fault :
           {"allocation", "compile", "launch", "launch:60", "launch:300", "device_lost", "device_lost:90"}) {
        SCOPED_TRACE(testing::Message()
                     << name(method) << " " << name(linear) << " " << stage << ":" << fault);
        set_fault(stage + ":" + fault);
        std::vector<std::string> lines;
        ContextOptions options{.device = GetParam()};
        options.on_fallback = [&](const std::string& line) { lines.push_back(line); };
        Context context(options);
        const Answer answer = solve_net(context, method, linear);
        expect_close(GetParam(), answer, right);
        const auto counts = context.fallbacks();
        ASSERT_LE(lines.size(), 1u);  // a stage may do too little of a kind to reach the nth operation
        if (lines.empty()) {
          EXPECT_TRUE(counts.empty());
          EXPECT_EQ(answer.values, untouched.values);
          continue;
        }
        EXPECT_EQ(lines[0].find("[GPU] " + stage + " failed: "), 0u) << lines[0];
        ASSERT_EQ(counts.count(stage), 1u);
        EXPECT_EQ(counts.at(stage), 1);
        EXPECT_EQ(answer.summary.device, "cpu");
      }
  }
}

TEST_P(SolveOnGpu, FaultsAtTheFirstOperationAlwaysFallBack) {
  for (const std::string fault : {"allocation", "compile", "launch", "device_lost"}) {
    set_fault("solve.evaluate:" + fault);
    int lines = 0;
    ContextOptions options{.device = GetParam()};
    options.on_fallback = [&](const std::string&) { ++lines; };
    Context context(options);
    solve_net(context, Method::lm, Linear::pcg);
    EXPECT_EQ(lines, 1) << fault;
  }
}

TEST_P(SolveOnGpu, WithoutFallbackTheFaultIsThrown) {
  set_fault("solve.evaluate:launch:40");
  ContextOptions options{.device = GetParam()};
  options.fallback = false;
  Context context(options);
  EXPECT_THROW(solve_net(context, Method::lm, Linear::pcg), DeviceError);
}

// Directions without effect are found after the last iteration: whichever launch fails, those of the note among them, the CPU
// ends with the same note.
TEST_P(SolveOnGpu, NotesSurviveAFailure) {
  if (GetParam().starts_with("webgpu"))
    GTEST_SKIP() << GetParam() << " has no f64, which notes of directions need";
  const auto noted = [](Context& context, Method method) {
    Problem problem;
    const BlockSet points = problem.add_blocks("points", euclidean(2), std::vector<double>{3, 4, 5, 6});
    const TermType apart{"apart", {2, 2}, 1, [](const TermArguments& a) {
                           const Value x = a.x(0, 0) - a.x(1, 0), y = a.x(0, 1) - a.x(1, 1);
                           return std::vector{sqrt(x * x + y * y) - a.data(0)};
                         }};
    problem.add_terms(apart, {points, points}, std::vector<int32_t>{0, 1}, std::vector<double>{2});
    Options options;
    options.method = method;
    return minimize(problem, context, options).notes;
  };
  for (const Method method : {Method::lm, Method::lbfgs}) {
    set_fault("");  // the last of the first method's faults met no launch
    Context cpu(ContextOptions{.device = "cpu"});
    const std::vector<std::string> expected = noted(cpu, method);
    ASSERT_EQ(expected.size(), 1u);
    int launch = 1;
    for (bool fell = true; fell; ++launch) {
      SCOPED_TRACE(testing::Message() << name(method) << ", launch " << launch);
      set_fault("solve.evaluate:launch:" + std::to_string(launch));
      Context gpu(ContextOptions{.device = GetParam()});
      EXPECT_EQ(noted(gpu, method), expected);
      fell = !gpu.fallbacks().empty();
    }
    EXPECT_GT(launch, 5);
  }
  set_fault("");
}

INSTANTIATE_TEST_SUITE_P(Devices, SolveOnGpu, ::testing::ValuesIn(gpus()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace lockstep::solve
