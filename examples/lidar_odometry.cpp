// A robot drives laps through a hall. Its wheels measure every move with a slip, and its lidar sees reflectors on the walls
// in range. The log is generated here; a smoother takes it in frame by frame: poses leave after a while, reflectors as long
// as they have not been seen.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <random>
#include <vector>

#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/smoother.hpp"

using namespace lockstep;

namespace {

using Pose = std::vector<double>;  // x, y, angle
constexpr int kFrames = 600, kReflectors = 40;
constexpr double kWheels[] = {0.01, 0.01, 0.004}, kLidar = 0.02, kRange = 8;  // standard deviations, metres

struct Sight {
  int reflector;
  double x, y;  // in the robot's frame
};
struct Frame {
  Pose truth, move;  // move: since the frame before, as the wheels measured it
  std::vector<Sight> sights;
};

Pose compose(const Pose& a, const Pose& b) {
  const double c = std::cos(a[2]), s = std::sin(a[2]);
  return {a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1],
          std::remainder(a[2] + b[2], 2 * std::numbers::pi)};
}

std::vector<Frame> drive() {
  std::mt19937_64 engine(1);
  const auto uniform = [&] { return double(engine() >> 11) * 0x1p-53; };
  const auto normal = [&] {  // Box and Muller
    return std::sqrt(-2 * std::log(uniform() + 1e-18)) * std::cos(2 * std::numbers::pi * uniform());
  };
  std::vector<std::pair<double, double>> reflectors;
  for (int k = 0; k < kReflectors; ++k) {
    const double angle = 2 * std::numbers::pi * k / kReflectors;
    reflectors.emplace_back(14 * std::cos(angle) + uniform(), 9 * std::sin(angle) + uniform());
  }
  std::vector<Frame> log;
  Pose at{10, 0, std::numbers::pi / 2};
  for (int k = 0; k < kFrames; ++k) {
    const double lap = 2 * std::numbers::pi * k / 200;
    const Pose move{0.2, 0, 2 * std::numbers::pi / 200 * (1 + 0.5 * std::cos(2 * lap))};
    if (k > 0) at = compose(at, move);
    Frame frame{at, move, {}};
    for (int c = 0; c < 3; ++c) frame.move[size_t(c)] += kWheels[c] * normal();
    for (int r = 0; r < kReflectors; ++r) {
      const double dx = reflectors[size_t(r)].first - at[0], dy = reflectors[size_t(r)].second - at[1];
      if (std::hypot(dx, dy) > kRange || uniform() < 0.3) continue;
      const double c = std::cos(at[2]), s = std::sin(at[2]);
      frame.sights.push_back({r, c * dx + s * dy + kLidar * normal(), c * dy - s * dx + kLidar * normal()});
    }
    log.push_back(std::move(frame));
  }
  return log;
}

double distance(const Pose& a, const Pose& b) { return std::hypot(a[0] - b[0], a[1] - b[1]); }

}  // namespace

int main() {
  const std::vector<Frame> log = drive();
  Context context;
  solve::SmootherOptions options;
  options.lag = 100;
  solve::Smoother smoother(context, options);
  const auto poses = smoother.add_set("poses", solve::se2());
  const auto reflectors = smoother.add_set("reflectors", solve::euclidean(2));
  const auto start = smoother.add_kind(solve::se2_pose_prior_log(), {poses});
  const auto wheels = smoother.add_kind(solve::se2_between_log(), {poses, poses});
  const auto sight = smoother.add_kind(solve::se2_point(), {poses, reflectors});
  const std::vector<double> of_wheels = solve::w_from_standard_deviations(kWheels);
  const std::vector<double> of_lidar = solve::w_from_standard_deviations(std::vector<double>{kLidar, kLidar});

  std::map<int, int64_t> known;  // block of a reflector
  Pose dead = log[0].truth, estimate = dead;
  double worst = 0, worst_dead = 0;
  for (int k = 0; k < kFrames; ++k) {
    const Frame& frame = log[size_t(k)];
    if (k > 0) estimate = compose(estimate, frame.move), dead = compose(dead, frame.move);
    const int32_t pose = int32_t(smoother.append_blocks(poses, estimate, k));
    if (k == 0)
      smoother.add_terms(start, std::vector{pose}, solve::se2_between_data(estimate, of_wheels));
    else
      smoother.add_terms(wheels, std::vector{pose - 1, pose}, solve::se2_between_data(frame.move, of_wheels));
    for (const Sight& s : frame.sights) {
      const Pose seen = compose(estimate, {s.x, s.y, 0});
      const std::vector<double> z{s.x, s.y};
      // A reflector that left the window begins again.
      const auto numbers = smoother.block_numbers(reflectors);
      const auto old = known.find(s.reflector);
      if (old == known.end() || !std::binary_search(numbers.begin(), numbers.end(), old->second))
        known[s.reflector] = smoother.append_blocks(reflectors, std::vector<double>{seen[0], seen[1]}, k);
      smoother.touch(reflectors, known[s.reflector], k);
      smoother.add_terms(sight, std::vector{pose, int32_t(known[s.reflector])},
                         solve::point_data(z, of_lidar));
    }
    smoother.update();
    estimate = smoother.value(poses, pose);
    worst = std::max(worst, distance(estimate, frame.truth));
    worst_dead = std::max(worst_dead, distance(dead, frame.truth));
  }
  const std::pair<solve::BlockSet, int64_t> last[] = {{poses, kFrames - 1}};
  const std::vector<double> covariance = smoother.covariance(last);
  std::printf("%d frames, %lld poses and %lld reflectors in the window\n", kFrames,
              static_cast<long long>(smoother.block_numbers(poses).size()),
              static_cast<long long>(smoother.block_numbers(reflectors).size()));
  std::printf("off the truth: wheels alone %.2f m, smoothed %.2f m; standard deviation at the end %.2f m\n",
              worst_dead, worst, std::sqrt(covariance[0] + covariance[4]));
  return worst < 0.25 * worst_dead ? 0 : 1;
}
