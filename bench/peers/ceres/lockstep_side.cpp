// The same problems by Lockstep's library. A time is taken with the kernels in the process, as Ceres' code is; the first
// run's, which fetches them from the cache on disk or compiles them, is printed beside it.
//   lockstep_side PROBLEM [FILE]: seconds, cost, iterations, seconds of the first run
#include <lockstep/solve.hpp>
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
Outcome minimise(solve::Problem& problem) {
  const double begin = now();
  const solve::Summary summary = solve::minimize(problem, context(), tolerances());
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

Outcome calibration() {
  static const solve::TermType corner{
      "corner", {5, 7}, 4, [](const solve::TermArguments& a) {
        const auto p =
            rotate(a.quaternion(1, 3), autodiff::Vec3{{a.data(0), a.data(1), a.graph().constant(0)}}) +
            a.vec3(1);
        const Value x = p[0] / p[2], y = p[1] / p[2], s = 1.0 + a.x(0, 4) * (x * x + y * y);
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
  solve::Problem problem;
  const auto intrinsics = problem.add_blocks("intrinsics", solve::euclidean(5), kCalibrationStart);
  const auto views = problem.add_blocks("views", solve::se3(), poses);
  problem.add_terms(corner, {intrinsics, views}, blocks, data);
  return minimise(problem);
}

Outcome incremental() {
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
    const Outcome one = minimise(problem);
    out.seconds += now() - begin, out.cost = one.cost, out.iterations += one.iterations;
  }
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
    report(10, [](int) { return calibration(); });
  else if (what == "incremental")
    report(1, [](int) { return incremental(); });
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
