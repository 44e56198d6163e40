// A sliding window of 20 poses in space: each frame adds a pose and its edges to the poses 1, 2 and 5 frames before,
// minimises, and marginalises the oldest pose. One line for each tenth of the frames: how many there were, the median of a
// frame's milliseconds, iterations a frame, resident MiB of the process; at the end the last frame's position and how far it
// is from the truth.
//   bench_solve_window FRAMES [SCENE]: writes the edges to SCENE for gtsam_window.py, if given
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <fstream>
#include <lockstep/solve.hpp>
#include <lockstep/solve/factors.hpp>
#include <lockstep/solve/marginalize.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

constexpr int kWindow = 20, kSteps[] = {1, 2, 5};
constexpr double kTranslation = 0.02, kRotation = 0.005;  // standard deviations of measurements

using Pose = std::array<double, 7>;
using Quaternion = std::array<double, 4>;
using Place = std::array<double, 3>;

Quaternion product(const Quaternion& a, const Quaternion& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
          a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
          a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
Place rotated(const Quaternion& q, const Place& v) {
  const Quaternion r = product(product(q, {0, v[0], v[1], v[2]}), {q[0], -q[1], -q[2], -q[3]});
  return {r[1], r[2], r[3]};
}
Quaternion turn_of(const Pose& p) { return {p[3], p[4], p[5], p[6]}; }
Pose pose_of(const Place& t, Quaternion q) {
  const double n = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  return {t[0], t[1], t[2], q[0] / n, q[1] / n, q[2] / n, q[3] / n};
}
Pose compose(const Pose& a, const Pose& b) {
  const Place t = rotated(turn_of(a), {b[0], b[1], b[2]});
  return pose_of({a[0] + t[0], a[1] + t[1], a[2] + t[2]}, product(turn_of(a), turn_of(b)));
}
Pose inverse(const Pose& a) {
  const Quaternion q{a[3], -a[4], -a[5], -a[6]};
  const Place t = rotated(q, {-a[0], -a[1], -a[2]});
  return pose_of(t, q);
}
/// A move by translation and rotation vector.
Pose move(double x, double y, double z, double a, double b, double c) {
  const double angle = std::sqrt(a * a + b * b + c * c), s = angle > 0 ? std::sin(angle / 2) / angle : 0.5;
  return pose_of({x, y, z}, {std::cos(angle / 2), s * a, s * b, s * c});
}

/// A drive with noisy measurements; it keeps the last poses only.
class World {
 public:
  struct Edge {
    int64_t from = 0, to = 0;
    Pose z{};
  };
  std::vector<Edge> next() {
    std::vector<Edge> edges;
    truth_.push_back(frame_ == 0 ? Pose{0, 0, 0, 1, 0, 0, 0}
                                 : compose(truth_.back(), move(0.5, 0, 0, 0.05 * uniform(), 0.05 * uniform(),
                                                               0.3 * uniform())));
    if (truth_.size() > 6) truth_.pop_front();
    for (const int64_t step : kSteps) {
      if (step > frame_) continue;
      const Pose off = move(kTranslation * normal(), kTranslation * normal(), kTranslation * normal(),
                            kRotation * normal(), kRotation * normal(), kRotation * normal());
      const Pose& before = truth_[truth_.size() - 1 - size_t(step)];
      edges.push_back({frame_ - step, frame_, compose(compose(inverse(before), truth_.back()), off)});
    }
    ++frame_;
    return edges;
  }
  const Pose& truth() const { return truth_.back(); }

 private:
  double uniform() { return 2 * (double(engine_() >> 11) * 0x1p-53) - 1; }
  double normal() {  // Box and Muller
    const double u = 0.5 * (uniform() + 1) + 1e-18, v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(M_PI * v);
  }
  std::mt19937_64 engine_{17};
  std::deque<Pose> truth_;
  int64_t frame_ = 0;
};

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * double(sysconf(_SC_PAGESIZE)) / 0x1p20;
}

void run(int64_t frames, std::FILE* scene) {
  ContextOptions on_cpu;
  on_cpu.device = "cpu", on_cpu.threads = 2;
  Context context(on_cpu);
  const std::vector<double> w = solve::w_from_standard_deviations(
      std::vector<double>{kTranslation, kTranslation, kTranslation, kRotation, kRotation, kRotation});
  World world;
  world.next();
  solve::Problem problem;
  Pose last = world.truth();
  const solve::BlockSet poses = problem.add_blocks("poses", solve::se3(), last);
  problem.add_terms(solve::se3_pose_prior_log(), {poses}, std::vector<int32_t>{0},
                    solve::se3_between_log_data(last, w));
  const solve::TermType between = solve::se3_between_log();
  solve::Options options;
  options.function_tolerance = 1e-9;
  std::vector<double> milliseconds;
  double iterations = 0;
  for (int64_t k = 1; k < frames; ++k) {
    const std::vector<World::Edge> edges = world.next();
    const auto begin = std::chrono::steady_clock::now();
    std::vector<int32_t> blocks;
    std::vector<double> data;
    for (const World::Edge& e : edges) {
      blocks.insert(blocks.end(), {int32_t(e.from), int32_t(e.to)});
      const std::vector<double> row = solve::se3_between_log_data(e.z, w);
      data.insert(data.end(), row.begin(), row.end());
    }
    problem.append_blocks(poses, compose(last, edges.front().z));
    problem.add_terms(between, {poses, poses}, blocks, data);
    const solve::Summary summary = solve::minimize(problem, context, options);
    if (!summary.trace.empty())
      options.initial_damping = std::clamp(summary.trace.back().damping, 1e-10, 1e-4);
    std::ranges::copy(std::as_const(problem).value(poses, k), last.begin());
    if (k >= kWindow) solve::marginalize(problem, context, poses, std::vector<int64_t>{k - kWindow});
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    iterations += summary.iterations;
    if (scene)
      for (const World::Edge& e : edges) {
        std::fprintf(scene, "%lld %lld", static_cast<long long>(e.from), static_cast<long long>(e.to));
        for (const double v : e.z) std::fprintf(scene, " %.17g", v);
        std::fputc('\n', scene);
      }
    if ((k + 1) % std::max<int64_t>(frames / 10, 1) != 0) continue;
    std::nth_element(milliseconds.begin(), milliseconds.begin() + int64_t(milliseconds.size() / 2),
                     milliseconds.end());
    std::printf("%lld frames: %.3f ms, %.2f iterations a frame, %.2f MiB\n", static_cast<long long>(k + 1),
                milliseconds[milliseconds.size() / 2], iterations / double(milliseconds.size()),
                resident_mib());
    std::fflush(stdout);
    milliseconds.clear(), iterations = 0;
  }
  const Pose off = compose(inverse(world.truth()), last);
  std::printf("last at %.9f %.9f %.9f, off the truth by %.3f\n", last[0], last[1], last[2],
              std::hypot(off[0], off[1], off[2]));
}

}  // namespace

int main(int count, char** arguments) try {
  const int64_t frames = count > 1 ? std::stoll(arguments[1]) : 1000;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> scene(
      count > 2 ? std::fopen(arguments[2], "w") : nullptr, [](std::FILE* f) { return std::fclose(f); });
  run(frames, scene.get());
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_solve_window: %s\n", error.what());
  return 2;
}
