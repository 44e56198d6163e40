// Choices of Linear::automatic, by the rules of choose.hpp.
#include "solve/minimize/choose.hpp"

#include <gtest/gtest.h>

#include "solve/minimize/problems.hpp"

namespace lockstep::solve {
namespace {

DeviceInfo device(DeviceKind kind, bool software = false) {
  DeviceInfo info;
  info.kind = kind, info.software = software;
  return info;
}

/// Cameras of 6 numbers that each see all points of 3.
Problem sights(int cameras, int points) {
  Problem problem;
  const BlockSet c = problem.add_blocks("cameras", euclidean(6), std::vector<double>(size_t(cameras) * 6, 1));
  const BlockSet p = problem.add_blocks("points", euclidean(3), std::vector<double>(size_t(points) * 3, 2));
  const TermType sight{"sight", {6, 3}, 0, [](const TermArguments& a) {
                         return std::vector{a.x(0, 0) * a.x(1, 0) - a.x(0, 5),
                                            a.x(0, 1) + a.x(1, 1) * a.x(1, 2)};
                       }};
  std::vector<int32_t> pairs;
  for (int i = 0; i < cameras; ++i)
    for (int j = 0; j < points; ++j) pairs.push_back(i), pairs.push_back(j);
  problem.add_terms(sight, {c, p}, pairs, {});
  return problem;
}

TEST(ChooseLinear, FollowsSizeAndStructure) {
  const DeviceInfo cpu = device(DeviceKind::cpu), gpu = device(DeviceKind::cuda);
  EXPECT_EQ(choose_linear(test::rosenbrock().problem, {}, gpu), Linear::dense_qr);
  EXPECT_EQ(choose_linear(test::net(9).problem, {}, cpu), Linear::dense_cholesky);  // 147 unknowns
  EXPECT_EQ(choose_linear(test::net(14).problem, {}, gpu), Linear::cholesky);       // 432
  const Problem bundle = sights(4, 120);
  EXPECT_EQ(eliminable_set(bundle), 1);
  EXPECT_EQ(choose_linear(bundle, {}, cpu), Linear::dense_schur);
  EXPECT_EQ(choose_linear(bundle, {}, gpu), Linear::dense_schur);  // 960 residuals
  const Problem large = sights(20, 500);                           // 20,000
  EXPECT_EQ(choose_linear(large, {}, cpu), Linear::dense_schur);
  EXPECT_EQ(choose_linear(large, {}, gpu), Linear::schur_pcg);
  EXPECT_EQ(choose_linear(large, {}, device(DeviceKind::webgpu, true)), Linear::dense_schur);
  const Problem surface = test::net(60).problem;  // 21,301 residuals, 10,092 unknowns
  EXPECT_EQ(choose_linear(surface, {}, cpu), Linear::cholesky);
  EXPECT_EQ(choose_linear(surface, {}, gpu), Linear::cholesky);  // the bits of the CPU
  EXPECT_EQ(choose_linear(surface, {}, gpu, Numerics::fast), Linear::device_cholesky);
  EXPECT_EQ(choose_linear(surface, {}, cpu, Numerics::fast), Linear::cholesky);
  EXPECT_EQ(choose_linear(surface, {}, device(DeviceKind::webgpu), Numerics::fast), Linear::cholesky);
  EXPECT_EQ(choose_linear(surface, {}, device(DeviceKind::webgpu)), Linear::cholesky);
  Options narrow;
  narrow.precision = Precision::mixed;
  EXPECT_EQ(choose_linear(surface, narrow, gpu, Numerics::fast), Linear::cholesky);
  EXPECT_EQ(eliminable_set(test::net(14).problem), -1);  // springs join points to points
  Options given;
  given.linear = Linear::pcg;
  EXPECT_EQ(choose_linear(bundle, given, cpu), Linear::pcg);
}

TEST(ChooseLinear, BoundsChangeNothing) {
  Problem bundle = sights(20, 500);
  bundle.bound({1}, 3, 0, 0, 5);
  EXPECT_EQ(choose_linear(bundle, {}, device(DeviceKind::cuda)), Linear::schur_pcg);
  EXPECT_EQ(choose_linear(bundle, {}, device(DeviceKind::cpu)), Linear::dense_schur);
}

TEST(ChooseLinear, FixedBlocksDoNotCount) {
  Problem bundle = sights(4, 120);
  for (int k = 0; k < 120; ++k)
    if (k != 5) bundle.fix({1}, k);
  EXPECT_EQ(choose_linear(bundle, {}, device(DeviceKind::cpu)), Linear::dense_qr);  // 27 unknowns
}

}  // namespace
}  // namespace lockstep::solve
