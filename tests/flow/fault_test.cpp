// A device that fails in the middle of a run: the CPU continues. On software WebGPU, which runs the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/temporary_folder.hpp"
#include "device/devices.hpp"
#include "flow/small_run.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/flow/run.hpp"

namespace lockstep::flow {
namespace {

namespace fs = std::filesystem;

std::string software_gpu() {
  for (const std::string& name : test_devices())
    if (name.starts_with("webgpu")) return name;
  return "";
}

struct Outcome {
  Array omega;
  std::map<std::string, int64_t> fallbacks;
  std::vector<std::string> lines;
};
Outcome outcome_of(const std::string& device, const std::string& fault) {
  const test::TemporaryFolder folder;
  Outcome outcome;
  ContextOptions options;
  options.device = device;
  options.on_fallback = [&](const std::string& line) { outcome.lines.push_back(line); };
  Context context(options);
  set_fault(fault);
  const RunResult r = run(context, small_run(folder.path()));
  set_fault("");
  EXPECT_EQ(r.frames, 3);
  EXPECT_EQ(r.steps.front(), 20);
  outcome.omega = io::find_array(io::read_npz(folder.path() / "run.npz"), "omega", "").packed();
  outcome.fallbacks = context.fallbacks();
  return outcome;
}

TEST(FlowFaults, TheCpuGoesOn) {
  const std::string gpu = software_gpu();
  if (gpu.empty()) GTEST_SKIP() << "no WebGPU adapter";
  const Array want = outcome_of("cpu", "").omega;
  struct Fault {
    const char *stage, *text;
    double bound;  // 0: everything was done on the CPU
  };
  for (const Fault& fault : {Fault{"flow.initial", "flow.initial:allocation", 0},
                             Fault{"flow.steps", "flow.steps:launch:30", 1e-4},
                             Fault{"flow.diagnostics", "flow.diagnostics:device_lost:3", 1e-4}}) {
    const Outcome got = outcome_of(gpu, fault.text);
    EXPECT_EQ(got.fallbacks, (std::map<std::string, int64_t>{{fault.stage, 1}})) << fault.text;
    ASSERT_EQ(got.lines.size(), 1u);
    EXPECT_TRUE(got.lines[0].starts_with("[GPU] " + std::string(fault.stage) + " failed: ")) << got.lines[0];
    ASSERT_EQ(got.omega.shape(), want.shape());
    double largest = 0, size = 0;
    for (size_t k = 0; k < want.as<float>().size(); ++k) {
      largest = std::max(largest, std::abs(double(got.omega.as<float>()[k]) - double(want.as<float>()[k])));
      size = std::max(size, std::abs(double(want.as<float>()[k])));
    }
    EXPECT_LE(largest, fault.bound * size) << fault.text;
  }
}

TEST(FlowFaults, NothingIsLeftBehindTheInterpreter) {
  const test::TemporaryFolder folder;
  ContextOptions options;
  options.device = "interp";
  Context context(options);
  set_fault("flow.steps:launch");
  try {
    run(context, small_run(folder.path()));
    ADD_FAILURE() << "no DeviceError";
  } catch (const DeviceError& e) {
    EXPECT_NE(e.hint().find("interp has nothing to fall back to"), e.hint().npos);
  }
  set_fault("");
}

}  // namespace
}  // namespace lockstep::flow
