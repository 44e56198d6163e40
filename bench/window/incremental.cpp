// Pose graphs fed pose by pose to a Smoother: each frame adds a pose and its edges to earlier ones.
//   bench_solve_incremental GRAPH.g2o|manhattan [SCENE [RELINEARIZE [PROPAGATE]]]
// manhattan: 3,500 poses on a grid of streets, with noise, as M. Kaess' Manhattan world. The edges are written to SCENE for
// gtsam_incremental.py. Prints the total of the updates' seconds and of their
// CPU time, their median and slowest milliseconds, the cost, and cost
// and seconds of solve() after the last frame and of minimize() from the same edges.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <lockstep/solve.hpp>
#include <lockstep/solve/factors.hpp>
#include <lockstep/solve/smoother.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

struct Edge {
  int64_t from = 0, to = 0;
  std::vector<double> z, information;  // (x, y, angle) or (t, q); the whole matrix
};
struct Scene {
  int dimension = 2;
  std::vector<Edge> edges;  // by the later pose
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<double> evaluate(const std::vector<solve::Value>& values, const std::vector<double>& leaves) {
  return autodiff::evaluate<double>(values, leaves);
}

/// a * b of poses.
std::vector<double> compose(int dimension, const std::vector<double>& a, const std::vector<double>& b) {
  static autodiff::Tape graphs[2];
  static std::vector<solve::Value> results[2];
  std::vector<solve::Value>& result = results[dimension - 2];
  const size_t n = a.size();
  if (result.empty()) {
    autodiff::Tape* const own = &graphs[dimension - 2];
    std::vector<solve::Value> x, y;
    for (size_t k = 0; k < n; ++k) x.push_back(own->variable("a"));
    for (size_t k = 0; k < n; ++k) y.push_back(own->variable("b"));
    result = dimension == 2 ? solve::se2_compose(x, y) : solve::se3_compose(x, y);
  }
  std::vector<double> leaves = a;
  leaves.insert(leaves.end(), b.begin(), b.end());
  std::vector<double> out = evaluate(result, leaves);
  if (dimension == 3) {
    double squares = 0;
    for (size_t k = 3; k < 7; ++k) squares += out[k] * out[k];
    for (size_t k = 3; k < 7; ++k) out[k] /= std::sqrt(squares);
  }
  return out;
}

Scene read(const std::string& path) {
  Scene scene;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no file " + path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    if (kind != "EDGE_SE2" && kind != "EDGE_SE3:QUAT") continue;
    scene.dimension = kind == "EDGE_SE2" ? 2 : 3;
    const size_t n = scene.dimension == 2 ? 3 : 6;
    Edge e;
    in >> e.from >> e.to;
    e.z.resize(scene.dimension == 2 ? 3 : 7), e.information.resize(n * n);
    for (double& v : e.z) in >> v;
    if (scene.dimension == 3) std::rotate(e.z.begin() + 3, e.z.begin() + 6, e.z.end());  // w first
    for (size_t r = 0; r < n; ++r)
      for (size_t c = r; c < n; ++c)
        in >> e.information[r * n + c], e.information[c * n + r] = e.information[r * n + c];
    scene.edges.push_back(std::move(e));
  }
  return scene;
}

/// Streets on a grid: moves of 1 with turns of 90 degrees; poses near earlier ones see them.
Scene manhattan(int64_t poses) {
  std::mt19937_64 engine(3500);
  const auto uniform = [&] { return double(engine() >> 11) * 0x1p-53; };
  const auto normal = [&] {
    return std::sqrt(-2 * std::log(uniform() + 1e-18)) * std::cos(2 * M_PI * uniform());
  };
  constexpr double kMove = 0.04, kTurn = 0.02, kSquare = 18;
  Scene scene;
  std::vector<std::array<double, 3>> truth{{0, 0, 0}};
  const auto edge = [&](int64_t from, int64_t to) {
    const auto &a = truth[size_t(from)], &b = truth[size_t(to)];
    const double c = std::cos(a[2]), s = std::sin(a[2]), x = b[0] - a[0], y = b[1] - a[1];
    Edge e{
        from,
        to,
        {c * x + s * y + kMove * normal(), c * y - s * x + kMove * normal(), b[2] - a[2] + kTurn * normal()},
        {}};
    e.information = {1 / (kMove * kMove), 0, 0, 0, 1 / (kMove * kMove), 0, 0, 0, 1 / (kTurn * kTurn)};
    scene.edges.push_back(std::move(e));
  };
  double heading = 0;
  for (int64_t k = 1; k < poses; ++k) {
    auto next = truth.back();
    if (k % 4 == 0 && uniform() < 0.4) heading += uniform() < 0.5 ? M_PI_2 : -M_PI_2;
    if (std::abs(next[0] + std::cos(heading)) > kSquare || std::abs(next[1] + std::sin(heading)) > kSquare)
      heading += M_PI;
    next = {next[0] + std::cos(heading), next[1] + std::sin(heading), heading};
    truth.push_back(next);
    edge(k - 1, k);
    int seen = 0;
    for (int64_t j = 0; j + 20 < k && seen < 1; ++j)
      if (std::hypot(truth[size_t(j)][0] - next[0], truth[size_t(j)][1] - next[1]) < 0.5 && uniform() < 0.6)
        edge(j, k), ++seen;
  }
  return scene;
}

void write(const Scene& scene, const std::string& path) {
  std::ofstream out(path);
  out.precision(17);
  for (const Edge& e : scene.edges) {
    out << e.from << ' ' << e.to;
    for (const double v : e.z) out << ' ' << v;
    for (const double v : e.information) out << ' ' << v;
    out << '\n';
  }
}

void run(const Scene& scene, const solve::SmootherOptions& given) {
  ContextOptions on_cpu;
  on_cpu.device = "cpu", on_cpu.threads = 2;
  Context context(on_cpu);
  const bool flat = scene.dimension == 2;
  solve::Smoother smoother(context, given);
  const solve::BlockSet poses = smoother.add_set("poses", flat ? solve::se2() : solve::se3());
  const solve::FactorKind between =
      smoother.add_kind(flat ? solve::se2_between_log() : solve::se3_between_log(), {poses, poses});
  std::vector<double> frames, origin(flat ? 3 : 7, 0.0);
  if (!flat) origin[3] = 1;
  smoother.append_blocks(poses, origin);
  smoother.fix(poses, 0);
  int64_t eliminated = 0, relinearized = 0;
  double cpu = 0;
  std::vector<double> newest = origin;
  for (size_t e = 0; e < scene.edges.size();) {
    const int64_t k = std::max(scene.edges[e].from, scene.edges[e].to);
    std::vector<int32_t> blocks;
    std::vector<double> data, guess = newest;
    for (; e < scene.edges.size() && std::max(scene.edges[e].from, scene.edges[e].to) == k; ++e) {
      const Edge& edge = scene.edges[e];
      blocks.insert(blocks.end(), {int32_t(edge.from), int32_t(edge.to)});
      const std::vector<double> w = solve::w_from_information(edge.information);
      const std::vector<double> row =
          flat ? solve::se2_between_data(edge.z, w) : solve::se3_between_log_data(edge.z, w);
      data.insert(data.end(), row.begin(), row.end());
      if (edge.from == k - 1) guess = compose(scene.dimension, newest, edge.z);
    }
    const std::clock_t ticks = std::clock();
    const auto begin = std::chrono::steady_clock::now();
    smoother.append_blocks(poses, guess);
    smoother.add_terms(between, blocks, data);
    const solve::SmootherUpdate update = smoother.update();
    newest = smoother.value(poses, k);
    frames.push_back(1000 * seconds_since(begin));
    cpu += double(std::clock() - ticks) / CLOCKS_PER_SEC;
    eliminated += update.eliminated, relinearized += update.relinearized;
  }
  double total = 0;
  for (const double f : frames) total += f / 1000;
  std::vector<double> sorted = frames;
  std::ranges::sort(sorted);
  std::printf(
      "lockstep: %zu updates, %.3f s, %.3f s of CPU, median %.3f ms, slowest %.1f ms, cost %.9f; %.1f blocks "
      "eliminated, %.1f relinearized an update\n",
      frames.size(), total, cpu, sorted[sorted.size() / 2], sorted.back(), smoother.cost(),
      double(eliminated) / double(frames.size()), double(relinearized) / double(frames.size()));
  auto begin = std::chrono::steady_clock::now();
  const int iterations = smoother.solve();
  std::printf("solve(): %.3f s, %d iterations, cost %.12f\n", seconds_since(begin), iterations,
              smoother.cost());
  solve::Problem batch = smoother.problem();
  begin = std::chrono::steady_clock::now();
  solve::Options exact;
  exact.function_tolerance = 1e-15;
  const solve::Summary summary = solve::minimize(batch, context, exact);
  std::printf("minimize(): %.3f s, %d iterations, cost %.12f\n", seconds_since(begin), summary.iterations,
              summary.final_cost);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) throw std::runtime_error("expected GRAPH.g2o or manhattan");
  Scene scene = std::string(arguments[1]) == "manhattan" ? manhattan(3500) : read(arguments[1]);
  std::ranges::stable_sort(scene.edges, {}, [](const Edge& e) { return std::max(e.from, e.to); });
  if (count > 2) write(scene, arguments[2]);
  solve::SmootherOptions options;
  if (count > 3) options.relinearize = std::stod(arguments[3]);
  if (count > 4) options.propagate = std::stod(arguments[4]);
  run(scene, options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_solve_incremental: %s\n", error.what());
  return 2;
}
