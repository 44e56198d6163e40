// Inverse kinematics: joint angles of a six-joint arm whose tool follows a circle and points downwards. All
// poses of the path are one problem, so that neighbours can be asked to lie close to each other.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>

#include "lockstep/solve.hpp"

using namespace lockstep;
using autodiff::Vec3;

namespace {

constexpr int kJoints = 6, kPoses = 48;
constexpr double kBase = 0.35, kUpper = 0.6, kFore = 0.5, kTool = 0.15;  // metres
constexpr double kReach = 0.55, kRadius = 0.2, kHeight = 0.4;            // the circle, metres
constexpr double kLimits[kJoints] = {2.9, 1.9, 2.5, 2.9, 2.2, 3.0};      // radians, both ways
constexpr char kAxes[kJoints] = {'z', 'y', 'y', 'z', 'y', 'z'};          // in the link's own frame
constexpr double kLinks[kJoints] = {kBase, kUpper, kFore / 2, kFore / 2, kTool / 2, kTool / 2};  // along z

struct Frame {
  Vec3 x, y, z, origin;
};

/// Turns the frame around its own axis, then moves it along its z.
Frame joint(const Frame& f, char axis, const solve::Value& angle, double length) {
  const solve::Value c = cos(angle), s = sin(angle);
  Frame g = f;
  if (axis == 'z') {
    g.x = f.x * c + f.y * s;
    g.y = f.y * c - f.x * s;
  } else {
    g.z = f.z * c + f.x * s;
    g.x = f.x * c - f.z * s;
  }
  g.origin = f.origin + g.z * length;
  return g;
}

/// The tool's frame for the joint angles of slot 0. The base link is upright before the first joint
/// turns.
Frame tool(const solve::TermArguments& a) {
  const solve::Value zero = a.graph().constant(0), one = a.graph().constant(1);
  Frame frame{{{one, zero, zero}}, {{zero, one, zero}}, {{zero, zero, one}}, {{zero, zero, zero}}};
  for (int k = 0; k < kJoints; ++k) frame = joint(frame, kAxes[k], a.x(0, k), kLinks[k]);
  return frame;
}

}  // namespace

int main() try {
  solve::Problem problem;
  // Elbow bent, tool bent down: far from the singular straight arm.
  std::vector<double> start;
  for (int pose = 0; pose < kPoses; ++pose) start.insert(start.end(), {0.0, 0.3, 1.2, 0.0, 1.4, 0.0});
  const auto angles = problem.add_blocks("joint angles", solve::euclidean(kJoints), start);

  const solve::TermType reach{"arm.reach", {kJoints}, 3, [](const solve::TermArguments& a) {
                                const Frame t = tool(a);
                                const Vec3 miss = t.origin - Vec3{{a.data(0), a.data(1), a.data(2)}};
                                return std::vector{miss[0], miss[1], miss[2], t.z[0], t.z[1]};
                              }};
  const solve::TermType calm{"arm.calm", {kJoints, kJoints}, 1, [](const solve::TermArguments& a) {
                               std::vector<solve::Value> change;
                               for (int k = 0; k < kJoints; ++k)
                                 change.push_back((a.x(1, k) - a.x(0, k)) * a.data(0));
                               return change;
                             }};
  std::vector<int32_t> poses, neighbours;
  std::vector<double> targets, weights;
  for (int pose = 0; pose < kPoses; ++pose) {
    const double turn = 2 * std::numbers::pi * pose / kPoses;
    poses.push_back(pose);
    targets.insert(targets.end(), {kReach + kRadius * std::cos(turn), kRadius * std::sin(turn), kHeight});
    neighbours.insert(neighbours.end(), {pose, (pose + 1) % kPoses});
    weights.push_back(1e-4);
    for (int k = 0; k < kJoints; ++k) problem.bound(angles, pose, k, -kLimits[k], kLimits[k]);
  }
  problem.add_terms(reach, {angles}, poses, targets);
  problem.add_terms(calm, {angles, angles}, neighbours, weights);

  Context context;
  const solve::Summary summary = solve::minimize(problem, context);

  // The arm at the solution, once more on the host.
  autodiff::Tape graph;
  std::vector<solve::Value> symbols;
  for (int k = 0; k < kJoints; ++k) symbols.push_back(graph.variable("angle"));
  const Frame t = tool(solve::TermArguments(graph, {symbols}, {}));
  const std::vector<solve::Value> outputs{t.origin[0], t.origin[1], t.origin[2], t.z[2]};
  double worst_miss = 0, worst_tilt = 0, worst_limit = -std::numeric_limits<double>::infinity(),
         worst_jump = 0;
  for (int pose = 0; pose < kPoses; ++pose) {
    const auto now = problem.values(angles).subspan(size_t(pose * kJoints), kJoints);
    const auto next = problem.values(angles).subspan(size_t((pose + 1) % kPoses * kJoints), kJoints);
    const auto at = autodiff::evaluate(outputs, std::vector<double>(now.begin(), now.end()));
    worst_miss = std::max(worst_miss,
                          std::hypot(at[0] - targets[size_t(3 * pose)], at[1] - targets[size_t(3 * pose) + 1],
                                     at[2] - targets[size_t(3 * pose) + 2]));
    worst_tilt = std::max(worst_tilt, std::acos(std::clamp(-at[3], -1.0, 1.0)));
    for (int k = 0; k < kJoints; ++k) {
      worst_limit = std::max(worst_limit, std::abs(now[size_t(k)]) - kLimits[k]);
      worst_jump = std::max(worst_jump, std::abs(next[size_t(k)] - now[size_t(k)]));
    }
  }
  std::printf(
      "%d poses, %lld variables, %d iterations on %s: %.2e m off the path, %.2e rad off the vertical, "
      "largest step of a joint %.3f rad\n",
      kPoses, static_cast<long long>(summary.variables), summary.iterations, summary.device.c_str(),
      worst_miss, worst_tilt, worst_jump);
  // A hundredth of a millimetre and of a milliradian; the weight of the calm terms allows about that much.
  return worst_miss < 1e-5 && worst_tilt < 1e-5 && worst_limit <= 0 && worst_jump < 0.3 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "robot_arm: %s\n", error.what());
  return 2;
}
