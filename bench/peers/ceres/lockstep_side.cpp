// The same problems by Lockstep's library. A time is taken with the kernels in the process, as Ceres' code is; the first
// run's, which fetches them from the cache on disk or compiles them, is printed next to it.
//   lockstep_side PROBLEM [FILE]: seconds, cost, iterations, seconds of the first run
#include <lockstep/solve.hpp>
#include <lockstep/solve/covariance.hpp>
#include <lockstep/solve/factors.hpp>
#include <lockstep/solve/files.hpp>
#include <memory>

#include "scenes.hpp"

namespace {

using namespace peers;
using namespace lockstep;
using autodiff::Value;

Context& context() {
  static Context one([] {
    ContextOptions options;
    options.device = "cpu";
    options.threads = 2;
    return options;
  }());
  return one;
}
solve::Options tolerances() {
  solve::Options options;
  options.max_iterations = 200;
  options.function_tolerance = 1e-9;
  options.gradient_tolerance = options.parameter_tolerance = 1e-12;
  return options;
}
/// `damping`: at the start, and then at the end.
Outcome minimise(solve::Problem& problem, double* damping = nullptr) {
  solve::Options options = tolerances();
  if (damping) options.initial_damping = *damping;
  const double begin = now();
  const solve::Summary summary = solve::minimize(problem, context(), options);
  if (damping && !summary.trace.empty()) *damping = std::clamp(summary.trace.back().damping, 1e-10, 1e-4);
  return {now() - begin, summary.final_cost, summary.iterations};
}

template <class File>
Outcome minimise_of(File file) {
  return minimise(file.problem);
}

/// The first run's seconds, then `run` again; its outcome has the median.
template <class Run>
void report(int repetitions, Run run) {
  const double first = run(0).seconds;
  Outcome out;
  std::vector<double> seconds;
  for (int k = 0; k < repetitions; ++k) {
    out = run(k);
    seconds.push_back(out.seconds);
  }
  std::printf("%.9g %.12g %d %.9g\n", median(seconds), out.cost, out.iterations, first);
}

Outcome pnp(int k) {
  static const solve::TermType seen{
      "pnp", {7}, 5, [](const solve::TermArguments& a) {
        const auto p =
            rotate(a.quaternion(0, 3), autodiff::Vec3{{a.data(0), a.data(1), a.data(2)}}) + a.vec3(0);
        return std::vector{500.0 * p[0] / p[2] - a.data(3), 500.0 * p[1] / p[2] - a.data(4)};
      }};
  const std::vector<double> rows = pnp_rows(uint64_t(k), 30);
  const std::vector<int32_t> blocks(30, 0);
  const double begin = now(), start[7] = {0, 0, 6, 1, 0, 0, 0};
  solve::Problem problem;
  const auto pose = problem.add_blocks("pose", solve::se3(), start);
  problem.add_terms(seen, {pose}, blocks, rows);
  Outcome out = minimise(problem);
  out.seconds = now() - begin;
  return out;
}

Outcome curve(int points) {
  static const solve::TermType oscillation{
      "oscillation", {5}, 2, [](const solve::TermArguments& a) {
        const Value t = a.data(0);
        return std::vector{a.x(0, 0) * exp(-a.x(0, 1) * t) * cos(a.x(0, 2) * t + a.x(0, 3)) + a.x(0, 4) -
                           a.data(1)};
      }};
  const std::vector<double> rows = curve_rows(points);
  const double begin = now();
  solve::Problem problem;
  const auto x = problem.add_blocks("x", solve::euclidean(5), kCurveStart);
  problem.add_terms(oscillation, {x}, std::vector<int32_t>(size_t(points), 0), rows);
  Outcome out = minimise(problem);
  out.seconds = now() - begin;
  return out;
}

/// Intrinsics f_x, f_y, c_x, c_y, k_1 … k_6, p_1, p_2, s_1, s_2: rational and tangential distortion and a thin prism.
std::vector<Value> wide_camera(const solve::TermArguments& a, const Value& x, const Value& y) {
  const auto k = [&](int i) { return a.x(0, i); };
  const Value s = x * x + y * y;
  const Value scale = (1.0 + s * (k(4) + s * (k(5) + s * k(6)))) / (1.0 + s * (k(7) + s * (k(8) + s * k(9))));
  const Value u = scale * x + 2.0 * k(10) * x * y + k(11) * (s + 2.0 * x * x) + k(12) * s;
  const Value v = scale * y + k(10) * (s + 2.0 * y * y) + 2.0 * k(11) * x * y + k(13) * s;
  return {k(0) * u + k(2) - a.data(2), k(1) * v + k(3) - a.data(3)};
}

/// `width`: 5 numbers of a camera, or 14.
Outcome calibration(int width) {
  const solve::TermType corner{"corner", {width, 7}, 4, [width](const solve::TermArguments& a) {
                                 const auto p =
                                     rotate(a.quaternion(1, 3),
                                            autodiff::Vec3{{a.data(0), a.data(1), a.graph().constant(0)}}) +
                                     a.vec3(1);
                                 const Value x = p[0] / p[2], y = p[1] / p[2];
                                 if (width == 14) return wide_camera(a, x, y);
                                 const Value s = 1.0 + a.x(0, 4) * (x * x + y * y);
                                 return std::vector{a.x(0, 0) * s * x + a.x(0, 2) - a.data(2),
                                                    a.x(0, 1) * s * y + a.x(0, 3) - a.data(3)};
                               }};
  const std::vector<double> rows = calibration_rows();
  std::vector<int32_t> blocks;
  std::vector<double> data, poses;
  for (size_t i = 0; i < rows.size(); i += 5) {
    blocks.insert(blocks.end(), {0, int32_t(rows[i])});
    data.insert(data.end(), &rows[i + 1], &rows[i] + 5);
  }
  for (int k = 0; k < 20; ++k) poses.insert(poses.end(), {-0.12, -0.08, 0.5, 1, 0, 0, 0});
  std::vector<double> start(size_t(width), 0.0);
  std::copy(kCalibrationStart.begin(), kCalibrationStart.end(), start.begin());
  solve::Problem problem;
  const auto intrinsics = problem.add_blocks("intrinsics", solve::euclidean(width), start);
  const auto views = problem.add_blocks("views", solve::se3(), poses);
  problem.add_terms(corner, {intrinsics, views}, blocks, data);
  return minimise(problem);
}

/// `carried`: each minimisation begins with the damping that the last one ended with.
Outcome incremental(bool carried) {
  constexpr int kPoses = 2000, kSteps = 50;
  const PlaneWorld world = plane_world(kPoses);
  const std::array<double, 6> w{20, 0, 0, 20, 0, 100};
  solve::Problem problem;
  const auto poses = problem.add_blocks("poses", solve::se2(), std::array<double, 3>{});
  problem.fix(poses, 0);
  const solve::TermType between = solve::se2_between();
  Outcome out;
  size_t closure = 0;
  int have = 1;
  double damping = 1e-4;
  for (int step = 1; step <= kSteps; ++step) {
    const double begin = now();
    std::vector<double> fresh, data;
    std::vector<int32_t> blocks;
    const auto add = [&](const PlaneEdge& e) {
      blocks.insert(blocks.end(), {e.i, e.j});
      const std::vector<double> row = solve::se2_between_data(e.z, w);
      data.insert(data.end(), row.begin(), row.end());
    };
    const auto values = std::as_const(problem).values(poses);
    std::array<double, 3> last{values[values.size() - 3], values[values.size() - 2], values.back()};
    for (; have < kPoses * step / kSteps; ++have) {
      const PlaneEdge& e = world.odometry[size_t(have - 1)];
      last = compose(last.data(), e.z);
      fresh.insert(fresh.end(), last.begin(), last.end());
      add(e);
    }
    while (closure < world.closures.size() && world.closures[closure].j < have)
      add(world.closures[closure++]);
    problem.append_blocks(poses, fresh);
    problem.add_terms(between, {poses, poses}, blocks, data);
    const Outcome one = minimise(problem, carried ? &damping : nullptr);
    out.seconds += now() - begin, out.cost = one.cost, out.iterations += one.iterations;
  }
  return out;
}

/// Seconds a frame; the iterations of all. The damping continues from frame to frame.
Outcome window() {
  const WindowWorld world = window_world();
  const std::array<double, 6> w{50, 0, 0, 50, 0, 200};
  solve::Problem problem;
  const auto poses = problem.add_blocks("frames", solve::se2(), world.starts[0]);
  problem.fix(poses, 0);
  const solve::TermType between = solve::se2_between();
  std::vector<solve::TermSet> terms(1);
  Outcome out;
  double damping = 1e-4;
  for (int k = 1; k < kFrames; ++k) {
    const double begin = now();
    problem.append_blocks(poses, world.starts[size_t(k)]);
    std::vector<double> data;
    std::vector<int32_t> blocks;
    for (const PlaneEdge& e : world.edges[size_t(k)]) {
      blocks.insert(blocks.end(), {e.i, e.j});
      const std::vector<double> row = solve::se2_between_data(e.z, w);
      data.insert(data.end(), row.begin(), row.end());
    }
    terms.push_back(problem.add_terms(between, {poses, poses}, blocks, data));
    if (k >= kWindow) problem.fix(poses, k - kWindow);
    if (k > kWindow) problem.remove(terms[size_t(k - kWindow)]);
    const Outcome one = minimise(problem, &damping);
    out.seconds += (now() - begin) / kFrames, out.cost = one.cost, out.iterations += one.iterations;
  }
  return out;
}

Outcome loose(int count) {
  const std::vector<double> rows = loose_rows(count);
  const double begin = now();
  solve::Problem problem;
  const auto x = problem.add_blocks("x", solve::euclidean(1), std::vector<double>(size_t(count) + 1, 0.0));
  problem.fix(x, 0);
  std::vector<Value> residuals;
  for (int k = 0; k < count; ++k) {
    const Value at = problem.variable(x, k), next = problem.variable(x, k + 1);
    residuals.push_back(rows[size_t(2 * k)] * (next - at) + sin(at) - rows[size_t(2 * k) + 1]);
  }
  problem.add_residuals(residuals);
  Outcome out = minimise(problem);
  out.seconds = now() - begin;
  return out;
}

/// Marginals of all poses of a plane; the sum of their variances stands for the cost, poses for iterations.
Outcome marginals(int count) {
  static const PlaneWorld world = plane_world(count);
  const std::array<double, 6> w{20, 0, 0, 20, 0, 100};
  std::vector<double> x(3, 0.0), data;
  std::vector<int32_t> blocks;
  for (const PlaneEdge& e : world.odometry) {
    const Vector3 next = compose(&x[x.size() - 3], e.z);
    x.insert(x.end(), next.begin(), next.end());
  }
  for (const auto* edges : {&world.odometry, &world.closures})
    for (const PlaneEdge& e : *edges) {
      blocks.insert(blocks.end(), {e.i, e.j});
      const std::vector<double> row = solve::se2_between_data(e.z, w);
      data.insert(data.end(), row.begin(), row.end());
    }
  solve::Problem problem;
  const auto poses = problem.add_blocks("poses", solve::se2(), x);
  problem.fix(poses, 0);
  problem.add_terms(solve::se2_between(), {poses, poses}, blocks, data);
  const double begin = now();
  const solve::Covariance covariance(problem, context());
  const std::vector<double> all = covariance.marginals(poses);
  Outcome out{now() - begin, 0, int(world.closures.size())};
  for (size_t k = 0; k < all.size(); k += 9) out.cost += all[k] + all[k + 4] + all[k + 8];
  return out;
}

Outcome wide(int n) {
  const solve::TermType all{"wide", {n}, n + 1, [n](const solve::TermArguments& a) {
                              Value s = a.x(0, 0) * a.data(0);
                              for (int k = 1; k < n; ++k) s = s + a.x(0, k) * a.data(k);
                              return std::vector{exp(s) - a.data(n)};
                            }};
  const std::vector<double> rows = wide_rows(n);
  solve::Problem problem;
  const auto x = problem.add_blocks("x", solve::euclidean(n), std::vector<double>(size_t(n), 0.0));
  problem.add_terms(all, {x}, std::vector<int32_t>(size_t(20 * n), 0), rows);
  return minimise(problem);
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string what = count > 1 ? arguments[1] : "", file = count > 2 ? arguments[2] : "";
  if (what == "pnp")
    report(300, pnp);
  else if (what == "curve")
    report(200, [](int) { return curve(67); });
  else if (what == "long_curve")
    report(1, [](int) { return curve(100000); });
  else if (what == "calibration")
    report(10, [](int) { return calibration(5); });
  else if (what == "camera14")
    report(5, [](int) { return calibration(14); });
  else if (what == "incremental")
    report(1, [](int) { return incremental(false); });
  else if (what == "carried")
    report(1, [](int) { return incremental(true); });
  else if (what == "window")
    report(1, [](int) { return window(); });
  else if (what == "marginals")
    report(1, [](int) { return marginals(20000); });
  else if (what == "loose5000" || what == "loose100000")
    report(1, [count = std::stoi(what.substr(5))](int) { return loose(count); });
  else if (what == "wide20")
    report(10, [](int) { return wide(20); });
  else if (what == "wide60")
    report(10, [](int) { return wide(60); });
  else if (what == "g2o")
    report(1, [&](int) { return minimise_of(solve::read_pose_graph(file)); });
  else if (what == "bal")
    report(1, [&](int) { return minimise_of(solve::read_bundle(file)); });
  else
    return std::fprintf(stderr, "lockstep_side: %s, expected a problem of scenes.hpp, g2o FILE or bal FILE\n",
                        what.c_str()),
           2;
} catch (const Error& error) {
  std::fprintf(stderr, "lockstep_side: %s\n", error.what());
  return 2;
}
