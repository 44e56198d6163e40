// The ready-made residuals against formulas written out, and poses found from exact measurements.
#include "lockstep/solve/factors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/solve/evaluation.hpp"
#include "problems.hpp"

namespace lockstep::solve::test {
namespace {

std::vector<double> numbers_of(const std::vector<double>& in,
                               const std::function<std::vector<Value>(std::span<const Value>)>& f) {
  autodiff::Tape graph;
  std::vector<Value> leaves;
  for (size_t k = 0; k < in.size(); ++k) leaves.push_back(graph.variable("x"));
  return autodiff::evaluate<double>(f(leaves), in);
}

TEST(Factors, PosesComposeInvertAndMap) {
  const std::vector<double> two{0.3, -0.8, 0.7, 1.1, 0.4, -2.2};
  const auto around = [](std::span<const Value> v) {
    const std::vector<Value> ab = se2_compose(v.first(3), v.subspan(3)),
                             back = se2_compose(se2_inverse(v.first(3)), ab);
    return back;
  };
  const std::vector<double> b = numbers_of(two, around);
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(b[k], two[k + 3], 1e-15);
  for (const double angle : {0.0, 1e-5, 0.9, -3.0}) {
    const std::vector<double> tangent{0.7, -0.4, angle};
    const std::vector<double> again =
        numbers_of(tangent, [](std::span<const Value> v) { return se2_log(se2_exp(v)); });
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(again[k], tangent[k], 1e-12) << angle;
  }
  // A quarter of a circle of radius 2.
  const std::vector<double> arc =
      numbers_of({M_PI, 0, M_PI / 2}, [](std::span<const Value> v) { return se2_exp(v); });
  EXPECT_NEAR(arc[0], 2, 1e-14);
  EXPECT_NEAR(arc[1], 2, 1e-14);
  std::vector<double> poses = random_numbers(14, 4);
  normalize_rows(poses, 7, 3, 4);
  const std::vector<double> second = numbers_of(poses, [](std::span<const Value> v) {
    return se3_compose(se3_inverse(v.first(7)), se3_compose(v.first(7), v.subspan(7)));
  });
  for (size_t k = 0; k < 7; ++k) EXPECT_NEAR(second[k], poses[7 + k], 1e-14);
}

TEST(Factors, CamerasAreOpenCVsFormulas) {
  const std::vector<double> point{0.4, -0.3, 1.6};
  const double x = 0.25, y = -0.1875, r2 = x * x + y * y;
  const auto pixel = [&](CameraModel model, std::vector<double> in) {
    EXPECT_EQ(int(in.size()), intrinsics(model));
    const size_t n = in.size();
    in.insert(in.end(), point.begin(), point.end());
    return numbers_of(in, [&](std::span<const Value> v) {
      const autodiff::Vec2 p = project(model, v.first(n), autodiff::Vec3{{v[n], v[n + 1], v[n + 2]}});
      return std::vector<Value>{p[0], p[1]};
    });
  };
  EXPECT_NEAR(pixel(CameraModel::pinhole, {500, 510, 320, 240})[1], 510 * y + 240, 1e-12);
  EXPECT_NEAR(pixel(CameraModel::radial, {500, 320, 240, -0.2, 0.05})[0],
              500 * x * (1 - 0.2 * r2 + 0.05 * r2 * r2) + 320, 1e-12);
  const double k1 = -0.3, k2 = 0.1, p1 = 0.002, p2 = -0.001, k3 = 0.02;
  const double grown = 1 + k1 * r2 + k2 * r2 * r2 + k3 * r2 * r2 * r2;
  const auto brown = pixel(CameraModel::brown_conrady, {500, 510, 320, 240, k1, k2, p1, p2, k3});
  EXPECT_NEAR(brown[0], 500 * (x * grown + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)) + 320, 1e-12);
  EXPECT_NEAR(brown[1], 510 * (y * grown + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y) + 240, 1e-12);
  const double r = std::sqrt(r2), t = std::atan(r);
  const double far = t * (1 + 0.1 * std::pow(t, 2) - 0.02 * std::pow(t, 4) + 0.003 * std::pow(t, 6) -
                          0.004 * std::pow(t, 8));
  EXPECT_NEAR(pixel(CameraModel::fisheye, {500, 510, 320, 240, 0.1, -0.02, 0.003, -0.004})[0],
              500 * far / r * x + 320, 1e-12);
}

/// At 90 degrees to the axis and behind the camera; pixels and their slopes by P computed in 50 digits.
TEST(Factors, FisheyesSeeAtNinetyDegreesAndBeyond) {
  struct Row {
    std::vector<double> point, pixel, slopes;
  };
  const std::vector<double> camera{500, 510, 320, 240, 0.1, -0.02, 0.003, -0.004};
  for (const Row& row : {
           Row{{1, 0, 0},
               {1122.50850814565676, 240.0},
               {0.0, 0.0, -56.2723330630794848, 0.0, 818.558678308569891, 0.0}},
           Row{{0.6, -0.8, 0},
               {801.505104887394025, -414.846942646855935},
               {513.605445213220347, 385.204083909915225, -33.7633998378476881, 392.908165588113529,
                294.681124191085119, 45.9182237794728601}},
           Row{{3, 4, 1e-09},
               {801.505104880641374, 894.846942637672268},
               {102.721089042013815, -77.040816779822191, -6.75268004195205764, -78.5816331154186348,
                58.9362248388598873, -9.18364485705479839}},
           Row{{-0.5, 2, -1e-12},
               {125.363097379911407, 1034.11856268996146},
               {366.375346108401279, 91.5938365271036298, 6.62027447783248438, 93.4257132576457024,
                23.3564283143979202, -27.0107198695565363}},
           Row{{1, 2, -1},
               {444.716192657394065, 494.421033021083893},
               {216.016571940252097, 182.600758565716063, 581.218089071684224, 186.252773737030385,
                499.716063984602716, 1185.68490170623582}},
           Row{{0.001, 0.002, -1},
               {-24125.6345126369838, -49629.094405779447},
               {-19523977.7369744647, 9843313.55132503712, 162.649365675609509, 10040179.8223515379,
                -4854187.55818664724, 331.804705978243398}},
           Row{{1e-06, -2e-06, 1},
               {320.000499999999999, 239.998980000000001},
               {499.999999999183333, 4.66666666665066613e-10, -0.000499999999998249977,
                4.75999999998367946e-10, 509.999999998453, 0.00101999999999642995}},
           Row{{0, 0, 2}, {320, 240}, {250, 0, 0, 0, 255, 0}},
       }) {
    std::vector<double> in = camera;
    in.insert(in.end(), row.point.begin(), row.point.end());
    const std::vector<double> found = numbers_of(in, [](std::span<const Value> v) {
      const autodiff::Vec2 p = project(CameraModel::fisheye, v.first(8), autodiff::Vec3{{v[8], v[9], v[10]}});
      std::vector<Value> out{p[0], p[1]};
      for (const Value& u : {p[0], p[1]})
        for (const Value& slope : autodiff::gradient(u, {v[8], v[9], v[10]})) out.push_back(slope);
      return out;
    });
    const auto largest = [](const std::vector<double>& v) {
      double most = 0;
      for (const double x : v) most = std::max(most, std::abs(x));
      return most;
    };
    for (size_t k = 0; k < 8; ++k) {
      const double expected = k < 2 ? row.pixel[k] : row.slopes[k - 2];
      EXPECT_NEAR(found[k], expected, 1e-13 * largest(k < 2 ? row.pixel : row.slopes))
          << row.point[0] << " " << row.point[2] << ": " << k;
    }
  }
}

TEST(Factors, FindPosesAndPointsOfExactMeasurements) {
  // Two poses in the plane, a point; every kind of residual of the plane at once.
  Problem problem;
  const BlockSet poses =
      problem.add_blocks("poses", se2(), std::vector<double>{0.2, 0.1, 0.1, 2.2, 0.8, 0.4});
  const BlockSet points = problem.add_blocks("points", euclidean(2), std::vector<double>{2.5, 2.2});
  const std::vector<double> w{2, 0.1, 0, 3, 0.2, 4}, zero{0, 0, 0}, step{2, 1, 0.5};
  problem.add_terms(se2_pose_prior(), {poses}, std::vector<int32_t>{0}, se2_between_data(zero, w));
  problem.add_terms(se2_between(), {poses, poses}, std::vector<int32_t>{0, 1}, se2_between_data(step, w));
  const std::vector<int32_t> both{0, 0, 1, 0};
  const double dx = 1, dy = 2, c = std::cos(0.5), s = std::sin(0.5);  // the point (3, 3) from the second pose
  problem.add_terms(se2_point(), {poses, points}, both,
                    std::vector<double>{3, 3, 1, 0.2, 1, c * dx + s * dy, c * dy - s * dx, 1, 0, 2});
  problem.add_terms(se2_bearing_to(), {poses, points}, both,
                    std::vector<double>{M_PI / 4, 0.1, std::atan2(2, 1) - 0.5, 0.1});
  problem.add_terms(range_to(2), {poses, points}, both,
                    std::vector<double>{std::sqrt(18.0), 0.1, std::sqrt(5.0), 0.1});
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  EXPECT_LT(minimize(problem, context).final_cost, 1e-20);
  const double expected[] = {0, 0, 0, 2, 1, 0.5};
  for (size_t k = 0; k < 6; ++k) EXPECT_NEAR(problem.values(poses)[k], expected[k], 1e-9);
  EXPECT_NEAR(problem.values(points)[0], 3, 1e-9);
}

TEST(Factors, OfSpaceVanishAtTheTruth) {
  std::vector<double> x = random_numbers(14, 9);
  normalize_rows(x, 7, 3, 4);
  const std::vector<double> z = numbers_of(
      x, [](std::span<const Value> v) { return se3_compose(se3_inverse(v.first(7)), v.subspan(7)); });
  Problem problem;
  const BlockSet poses = problem.add_blocks("poses", se3(), x);
  const std::vector<double> p{0.3, 0.1, 4};
  const BlockSet points = problem.add_blocks("points", euclidean(3), p);
  const BlockSet cameras =
      problem.add_blocks("camera", euclidean(4), std::vector<double>{500, 510, 320, 240});
  std::vector<double> data = z, prior(x.begin(), x.begin() + 7);
  for (std::vector<double>* d : {&data, &prior})
    for (int k = 0; k < 21; ++k) d->push_back(k % 4 + 1);
  problem.add_terms(se3_between(), {poses, poses}, std::vector<int32_t>{0, 1}, data);
  problem.add_terms(se3_pose_prior(), {poses}, std::vector<int32_t>{0}, prior);
  std::vector<double> in(x.begin(), x.begin() + 7);
  in.insert(in.end(), p.begin(), p.end());
  const std::vector<double> seen = numbers_of(in, [](std::span<const Value> v) {
    const auto s = se3_act_inverse(v.first(7), autodiff::Vec3{{v[7], v[8], v[9]}});
    return std::vector<Value>{s[0], s[1], s[2]};
  });
  problem.add_terms(se3_point(), {poses, points}, std::vector<int32_t>{0, 0},
                    std::vector<double>{seen[0], seen[1], seen[2], 1, 0, 0, 1, 0, 1});
  const std::vector<double> camera = numbers_of(in, [](std::span<const Value> v) {
    const auto s = se3_act(v.first(7), autodiff::Vec3{{v[7], v[8], v[9]}});
    return std::vector<Value>{s[0], s[1], s[2]};
  });
  problem.add_terms(
      projection(CameraModel::pinhole), {poses, cameras, points}, std::vector<int32_t>{0, 0, 0},
      std::vector<double>{500 * camera[0] / camera[2] + 320, 510 * camera[1] / camera[2] + 240, 0.5});
  problem.add_terms(
      range_to(3), {poses, points}, std::vector<int32_t>{0, 0},
      std::vector<double>{std::sqrt((p[0] - x[0]) * (p[0] - x[0]) + (p[1] - x[1]) * (p[1] - x[1]) +
                                    (p[2] - x[2]) * (p[2] - x[2])),
                          0.1});
  ContextOptions interp;
  interp.device = "interp";
  Context context(interp);
  const Evaluation e = evaluate(problem, context);
  EXPECT_EQ(e.residuals.size(), 6u + 6 + 3 + 2 + 1);
  for (const double r : e.residuals) EXPECT_NEAR(r, 0, 1e-11);
}

}  // namespace
}  // namespace lockstep::solve::test
