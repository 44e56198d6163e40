// The sweep written out by hand computes what the Value graph's kernels do.
#include "flow_by_hand.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

TEST(FlowByHand, EqualsTheValueGraph) {
  std::vector<Device> devices{Device::open("interp")};
  try {
    devices.push_back(Device::open("cpu"));
  } catch (const UnsupportedError&) {}
  for (const Device& device : devices) {
    const Mesh mesh = testing::mesh_of({32, 16, 12}, "periodic");
    std::mt19937 random(4);
    Inputs in;
    for (size_t l = 0; l < 3; ++l) {
      const auto u = testing::random_array<float>(random, size_t(3 * mesh.count()));
      in.fields["u"][l] = device.upload(std::span<const float>(u), {3, 12, 16, 32});
    }
    const auto p = testing::random_array<float>(random, size_t(mesh.count()));
    in.fields["p"][1] = device.upload(std::span<const float>(p), {12, 16, 32});
    in.parameters["nu"] = kFlowViscosity;
    const Loss loss(incompressible_flow(kFlowDivergence), mesh);
    const BoundLoss graph = loss.bind(device, in);
    graph.run();
    const std::vector<Buffer> want{graph.gradient("u", -1), graph.gradient("u", 0), graph.gradient("u", 1),
                                   graph.gradient("p", 0)};
    for (const auto& [x, y, rows, chunk] :
         std::vector<std::array<int, 4>>{{0, 0, 0, 0}, {32, 4, 2, 4}, {16, 4, 4, 12}}) {
      LossOptions options;
      options.tile_x = x, options.tile_y = y, options.tile_rows = rows, options.chunk = chunk;
      const FlowByHand hand = bind_flow_by_hand(device, mesh, in, options);
      hand.run();
      EXPECT_NEAR(hand.loss(), graph.loss(), 1e-6 * graph.loss());
      for (size_t k = 0; k < 4; ++k) {
        const auto a = device.download<float>(want[k]), b = device.download<float>(hand.gradients[k]);
        float largest = 0, worst = 0;
        for (size_t i = 0; i < a.size(); ++i) {
          largest = std::max(largest, std::abs(a[i]));
          worst = std::max(worst, std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : INFINITY);
        }
        EXPECT_LE(worst, 4e-6f * largest) << "array " << k << " tile " << x << " on " << device.info().name;
      }
    }
    Mesh odd = mesh;
    odd.cells = {30, 17, 12};
    EXPECT_THROW(bind_flow_by_hand(device, odd, in), UnsupportedError);
  }
}

// The graph's own sweep can do this system, and gives the bits of two kernels.
TEST(FlowByHand, TheGraphsPathsAreTheSameBits) {
  const Device device = Device::open("cpu,interp");
  const Mesh mesh = testing::mesh_of({24, 13, 12}, "periodic");
  std::mt19937 random(5);
  Inputs in;
  for (size_t l = 0; l < 3; ++l) {
    const auto u = testing::random_array<float>(random, size_t(3 * mesh.count()));
    in.fields["u"][l] = device.upload(std::span<const float>(u), {3, 12, 13, 24});
  }
  const auto p = testing::random_array<float>(random, size_t(mesh.count()));
  in.fields["p"][1] = device.upload(std::span<const float>(p), {12, 13, 24});
  in.parameters["nu"] = 0.05;
  const Loss loss(incompressible_flow(0.5), mesh);
  std::vector<std::vector<float>> first;
  for (Path path : {Path::two_kernel, Path::fused, Path::two_sweep}) {
    LossOptions options;
    options.path = path;
    const BoundLoss bound = loss.bind(device, in, options);
    EXPECT_EQ(bound.path(), path);
    bound.run();
    std::vector<std::vector<float>> all{device.download<float>(bound.gradient("p", 0))};
    for (int level : {-1, 0, 1}) all.push_back(device.download<float>(bound.gradient("u", level)));
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << name(path);
  }
}

}  // namespace
}  // namespace lockstep::pde
