// A sliding window of 20 poses in space: each frame adds a pose and its edges to the poses 1, 2 and 5 frames before, and the
// oldest pose leaves into a prior: by a Smoother, or with `minimize` by minimize() and marginalize(). With `landmarks` a frame has
// the edge to the pose before it and sees 12 points, of which one is new; a point leaves 20 frames after it was last seen. One
// line for each tenth of the frames: how many there were, the median of a frame's milliseconds and of its milliseconds of CPU
// time, resident MiB of the process; then the same medians of all frames past the first 40; at the end the last frame's
// position and how far it is from the truth.
//   bench_solve_window FRAMES [SCENE [minimize|landmarks]]: writes the measurements to SCENE for gtsam_window.py
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fstream>
#include <lockstep/solve.hpp>
#include <lockstep/solve/factors.hpp>
#include <lockstep/solve/marginalize.hpp>
#include <lockstep/solve/smoother.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

constexpr int kWindow = 20, kSteps[] = {1, 2, 5};
constexpr int kSeen = 12;                                 // landmarks of a frame
constexpr double kTranslation = 0.02, kRotation = 0.005;  // standard deviations of measurements
constexpr double kPoint = 0.05;

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
  /// A landmark, numbered as the frame that saw it first, in the frame of the pose.
  struct Sight {
    int64_t frame = 0, landmark = 0;
    Place z{};
  };
  struct Frame {
    std::vector<Edge> edges;
    std::vector<Sight> sights;
  };
  explicit World(bool landmarks) : landmarks_(landmarks) {}

  Frame next() {
    Frame out;
    truth_.push_back(frame_ == 0 ? Pose{0, 0, 0, 1, 0, 0, 0}
                                 : compose(truth_.back(), move(0.5, 0, 0, 0.05 * uniform(), 0.05 * uniform(),
                                                               0.3 * uniform())));
    if (truth_.size() > 6) truth_.pop_front();
    for (const int64_t step : kSteps) {
      if (step > frame_ || (landmarks_ && step > 1)) continue;
      const Pose off = move(kTranslation * normal(), kTranslation * normal(), kTranslation * normal(),
                            kRotation * normal(), kRotation * normal(), kRotation * normal());
      const Pose& before = truth_[truth_.size() - 1 - size_t(step)];
      out.edges.push_back({frame_ - step, frame_, compose(compose(inverse(before), truth_.back()), off)});
    }
    if (landmarks_) look(out.sights);
    ++frame_;
    return out;
  }
  const Pose& truth() const { return truth_.back(); }

 private:
  void look(std::vector<Sight>& sights) {
    const Place place{4 + 3 * uniform(), 5 * uniform(), 2 * uniform()};
    const Pose at = compose(truth_.back(), move(place[0], place[1], place[2], 0, 0, 0));
    marks_.push_back({at[0], at[1], at[2]});
    if (marks_.size() > kSeen) marks_.pop_front();
    const Pose back = inverse(truth_.back());
    for (size_t k = 0; k < marks_.size(); ++k) {
      const Pose seen = compose(back, {marks_[k][0], marks_[k][1], marks_[k][2], 1, 0, 0, 0});
      sights.push_back(
          {frame_,
           frame_ + 1 + int64_t(k) - int64_t(marks_.size()),
           {seen[0] + kPoint * normal(), seen[1] + kPoint * normal(), seen[2] + kPoint * normal()}});
    }
  }
  double uniform() { return 2 * (double(engine_() >> 11) * 0x1p-53) - 1; }
  double normal() {  // Box and Muller
    const double u = 0.5 * (uniform() + 1) + 1e-18, v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(M_PI * v);
  }
  std::mt19937_64 engine_{17};
  bool landmarks_ = false;
  std::deque<Pose> truth_;
  std::deque<Place> marks_;
  int64_t frame_ = 0;
};

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * double(sysconf(_SC_PAGESIZE)) / 0x1p20;
}

/// Indices and data of a frame's edges.
struct Rows {
  std::vector<int32_t> blocks;
  std::vector<double> data;
  explicit Rows(const std::vector<World::Edge>& edges) {
    for (const World::Edge& e : edges) {
      blocks.insert(blocks.end(), {int32_t(e.from), int32_t(e.to)});
      const std::vector<double> row = solve::se3_between_log_data(e.z, kW);
      data.insert(data.end(), row.begin(), row.end());
    }
  }
  static inline const std::vector<double> kW = solve::w_from_standard_deviations(
      std::vector<double>{kTranslation, kTranslation, kTranslation, kRotation, kRotation, kRotation});
};

/// The window as a problem that is minimised, and then marginalised, in every frame.
class Minimised {
 public:
  Minimised(Context& context, const Pose& first) : context_(context) {
    poses_ = problem_.add_blocks("poses", solve::se3(), first);
    problem_.add_terms(solve::se3_pose_prior_log(), {poses_}, std::vector<int32_t>{0},
                       solve::se3_between_log_data(first, Rows::kW));
    options_.function_tolerance = 1e-9;
  }
  static constexpr bool kLandmarks = false;
  void frame(int64_t k, const Pose& guess, const World::Frame& frame, Pose& last) {
    const Rows rows(frame.edges);
    problem_.append_blocks(poses_, guess);
    problem_.add_terms(between_, {poses_, poses_}, rows.blocks, rows.data);
    const solve::Summary summary = solve::minimize(problem_, context_, options_);
    if (!summary.trace.empty())
      options_.initial_damping = std::clamp(summary.trace.back().damping, 1e-10, 1e-4);
    std::ranges::copy(std::as_const(problem_).value(poses_, k), last.begin());
    if (k >= kWindow) solve::marginalize(problem_, context_, poses_, std::vector<int64_t>{k - kWindow});
  }

 private:
  Context& context_;
  solve::Problem problem_;
  solve::BlockSet poses_;
  const solve::TermType between_ = solve::se3_between_log();
  solve::Options options_;
};

/// The window as a fixed-lag smoother.
class Smoothed {
 public:
  Smoothed(Context& context, const Pose& first) : smoother_(context, {.lag = kWindow}) {
    poses_ = smoother_.add_set("poses", solve::se3());
    between_ = smoother_.add_kind(solve::se3_between_log(), {poses_, poses_});
    const solve::FactorKind prior = smoother_.add_kind(solve::se3_pose_prior_log(), {poses_});
    smoother_.append_blocks(poses_, first, 0);
    smoother_.add_terms(prior, std::vector<int32_t>{0}, solve::se3_between_log_data(first, Rows::kW));
  }
  static constexpr bool kLandmarks = false;
  void frame(int64_t k, const Pose& guess, const World::Frame& frame, Pose& last) {
    const Rows rows(frame.edges);
    smoother_.append_blocks(poses_, guess, double(k));
    smoother_.add_terms(between_, rows.blocks, rows.data);
    smoother_.update();
    std::ranges::copy(smoother_.value(poses_, k), last.begin());
  }

 private:
  solve::Smoother smoother_;
  solve::BlockSet poses_;
  solve::FactorKind between_;
};

/// The window with landmarks as a fixed-lag smoother.
class Landmarked {
 public:
  static constexpr bool kLandmarks = true;
  Landmarked(Context& context, const Pose& first) : smoother_(context, {.lag = kWindow}) {
    poses_ = smoother_.add_set("poses", solve::se3());
    marks_ = smoother_.add_set("landmarks", solve::euclidean(3));
    between_ = smoother_.add_kind(solve::se3_between_log(), {poses_, poses_});
    sight_ = smoother_.add_kind(solve::se3_point(), {poses_, marks_});
    const solve::FactorKind prior = smoother_.add_kind(solve::se3_pose_prior_log(), {poses_});
    smoother_.append_blocks(poses_, first, 0);
    smoother_.add_terms(prior, std::vector<int32_t>{0}, solve::se3_between_log_data(first, Rows::kW));
  }
  void frame(int64_t k, const Pose& guess, const World::Frame& frame, Pose& last) {
    const Rows rows(frame.edges);
    smoother_.append_blocks(poses_, guess, double(k));
    smoother_.add_terms(between_, rows.blocks, rows.data);
    std::vector<int32_t> blocks;
    std::vector<double> data;
    for (const World::Sight& s : frame.sights) {
      if (s.landmark >= known_) {
        const Place at = rotated(turn_of(guess), s.z);
        smoother_.append_blocks(
            marks_, std::vector<double>{guess[0] + at[0], guess[1] + at[1], guess[2] + at[2]}, double(k));
        known_ = s.landmark + 1;
      } else {
        smoother_.touch(marks_, s.landmark, double(k));
      }
      blocks.insert(blocks.end(), {int32_t(k), int32_t(s.landmark)});
      const std::vector<double> row = solve::point_data(s.z, kW);
      data.insert(data.end(), row.begin(), row.end());
    }
    smoother_.add_terms(sight_, blocks, data);
    smoother_.update();
    std::ranges::copy(smoother_.value(poses_, k), last.begin());
  }

 private:
  static inline const std::vector<double> kW =
      solve::w_from_standard_deviations(std::vector<double>{kPoint, kPoint, kPoint});
  solve::Smoother smoother_;
  solve::BlockSet poses_, marks_;
  solve::FactorKind between_, sight_;
  int64_t known_ = 0;
};

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + int64_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// "from to z" of edges, "L frame landmark z" of sights.
void write(const World::Frame& frame, std::FILE* scene) {
  const auto numbers = [&](auto& z) {
    for (const double v : z) std::fprintf(scene, " %.17g", v);
    std::fputc('\n', scene);
  };
  for (const World::Edge& e : frame.edges) {
    std::fprintf(scene, "%lld %lld", static_cast<long long>(e.from), static_cast<long long>(e.to));
    numbers(e.z);
  }
  for (const World::Sight& s : frame.sights) {
    std::fprintf(scene, "L %lld %lld", static_cast<long long>(s.frame), static_cast<long long>(s.landmark));
    numbers(s.z);
  }
}

template <class Window>
void run(int64_t frames, std::FILE* scene) {
  ContextOptions on_cpu;
  on_cpu.device = "cpu", on_cpu.threads = 2;
  Context context(on_cpu);
  World world(Window::kLandmarks);
  world.next();
  Pose last = world.truth();
  Window window(context, last);
  std::vector<double> milliseconds, cpu, later, later_cpu;
  for (int64_t k = 1; k < frames; ++k) {
    const World::Frame frame = world.next();
    const auto begin = std::chrono::steady_clock::now();
    const double ticks = cpu_milliseconds();
    window.frame(k, compose(last, frame.edges.front().z), frame, last);
    cpu.push_back(cpu_milliseconds() - ticks);
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (k > 2 * kWindow) later.push_back(milliseconds.back()), later_cpu.push_back(cpu.back());
    if (scene) write(frame, scene);
    if ((k + 1) % std::max<int64_t>(frames / 10, 1) != 0) continue;
    std::printf("%lld frames: %.3f ms, %.3f ms of CPU, %.2f MiB\n", static_cast<long long>(k + 1),
                median(milliseconds), median(cpu), resident_mib());
    std::fflush(stdout);
    milliseconds.clear(), cpu.clear();
  }
  if (!later.empty()) std::printf("all: %.4f ms, %.4f ms of CPU\n", median(later), median(later_cpu));
  const Pose off = compose(inverse(world.truth()), last);
  std::printf("last at %.9f %.9f %.9f, off the truth by %.3f\n", last[0], last[1], last[2],
              std::hypot(off[0], off[1], off[2]));
}

}  // namespace

int main(int count, char** arguments) try {
  const int64_t frames = count > 1 ? std::stoll(arguments[1]) : 1000;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> scene(
      count > 2 ? std::fopen(arguments[2], "w") : nullptr, [](std::FILE* f) { return std::fclose(f); });
  const std::string kind = count > 3 ? arguments[3] : "";
  if (kind == "minimize")
    run<Minimised>(frames, scene.get());
  else if (kind == "landmarks")
    run<Landmarked>(frames, scene.get());
  else
    run<Smoothed>(frames, scene.get());
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_solve_window: %s\n", error.what());
  return 2;
}
