// The problems of scenes.hpp, pose graphs and bundle adjustment by Ceres Solver, as its own examples would state them.
//   ceres_side PROBLEM [FILE]: seconds in the solver (problems as small as pnp and curve: with the building), cost, iterations
#include <ceres/ceres.h>
#include <ceres/rotation.h>

#include <Eigen/Dense>
#include <fstream>
#include <map>
#include <sstream>

#include "scenes.hpp"

namespace {

using namespace peers;

ceres::Solver::Options tolerances(ceres::LinearSolverType linear) {
  ceres::Solver::Options options;
  options.linear_solver_type = linear;
  options.num_threads = 2;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-9;
  options.gradient_tolerance = options.parameter_tolerance = 1e-12;
  options.logging_type = ceres::SILENT;
  return options;
}
/// `radius`: of the trust region at the start, and then at the end.
Outcome solve(ceres::Problem& problem, ceres::LinearSolverType linear, double* radius = nullptr) {
  ceres::Solver::Summary summary;
  ceres::Solver::Options options = tolerances(linear);
  if (radius) options.initial_trust_region_radius = *radius;
  const double begin = now();
  ceres::Solve(options, &problem, &summary);
  if (radius) *radius = std::clamp(summary.iterations.back().trust_region_radius, 1e4, 1e10);
  return {now() - begin, summary.final_cost, int(summary.iterations.size()) - 1};
}

struct Pnp {
  const double* d;
  template <class T>
  bool operator()(const T* t, const T* q, T* r) const {
    const Eigen::Map<const Eigen::Quaternion<T>> rotation(q);
    const Eigen::Matrix<T, 3, 1> p = rotation * Eigen::Matrix<T, 3, 1>(T(d[0]), T(d[1]), T(d[2])) +
                                     Eigen::Map<const Eigen::Matrix<T, 3, 1>>(t);
    r[0] = 500. * p[0] / p[2] - d[3], r[1] = 500. * p[1] / p[2] - d[4];
    return true;
  }
};
Outcome pnp() {
  Outcome out;
  std::vector<double> seconds;
  for (int k = 0; k < 300; ++k) {
    const std::vector<double> rows = pnp_rows(uint64_t(k), 30);
    const double begin = now();
    ceres::Problem problem;
    double t[3] = {0, 0, 6}, q[4] = {0, 0, 0, 1};
    for (size_t i = 0; i < rows.size(); i += 5)
      problem.AddResidualBlock(new ceres::AutoDiffCostFunction<Pnp, 2, 3, 4>(new Pnp{&rows[i]}), nullptr, t,
                               q);
    problem.SetManifold(q, new ceres::EigenQuaternionManifold);
    out = solve(problem, ceres::DENSE_QR);
    seconds.push_back(now() - begin);
  }
  out.seconds = median(seconds);
  return out;
}

struct Oscillation {
  double t, y;
  template <class T>
  bool operator()(const T* p, T* r) const {
    r[0] = p[0] * exp(-p[1] * t) * cos(p[2] * t + p[3]) + p[4] - y;
    return true;
  }
};
Outcome curve(int points, int repetitions) {
  const std::vector<double> rows = curve_rows(points);
  Outcome out;
  std::vector<double> seconds;
  for (int k = 0; k < repetitions; ++k) {
    const double begin = now();
    std::array<double, 5> x = kCurveStart;
    ceres::Problem problem;
    for (size_t i = 0; i < rows.size(); i += 2)
      problem.AddResidualBlock(
          new ceres::AutoDiffCostFunction<Oscillation, 1, 5>(new Oscillation{rows[i], rows[i + 1]}), nullptr,
          x.data());
    out = solve(problem, ceres::DENSE_QR);
    seconds.push_back(now() - begin);
  }
  out.seconds = median(seconds);
  return out;
}

struct Corner {
  const double* d;
  template <class T>
  bool operator()(const T* k, const T* t, const T* q, T* r) const {
    const Eigen::Map<const Eigen::Quaternion<T>> rotation(q);
    const Eigen::Matrix<T, 3, 1> p = rotation * Eigen::Matrix<T, 3, 1>(T(d[1]), T(d[2]), T(0)) +
                                     Eigen::Map<const Eigen::Matrix<T, 3, 1>>(t);
    const T a = p[0] / p[2], b = p[1] / p[2], s = T(1) + k[4] * (a * a + b * b);
    r[0] = k[0] * s * a + k[2] - d[3], r[1] = k[1] * s * b + k[3] - d[4];
    return true;
  }
};
Outcome calibration() {
  const std::vector<double> rows = calibration_rows();
  Outcome out;
  std::vector<double> seconds;
  for (int k = 0; k < 10; ++k) {
    std::array<double, 5> intrinsics = kCalibrationStart;
    std::vector<std::array<double, 3>> t(20, {-0.12, -0.08, 0.5});
    std::vector<std::array<double, 4>> q(20, {0, 0, 0, 1});
    ceres::Problem problem;
    for (size_t i = 0; i < rows.size(); i += 5)
      problem.AddResidualBlock(new ceres::AutoDiffCostFunction<Corner, 2, 5, 3, 4>(new Corner{&rows[i]}),
                               nullptr, intrinsics.data(), t[size_t(rows[i])].data(),
                               q[size_t(rows[i])].data());
    for (auto& block : q) problem.SetManifold(block.data(), new ceres::EigenQuaternionManifold);
    out = solve(problem, ceres::DENSE_SCHUR);
    seconds.push_back(out.seconds);
  }
  out.seconds = median(seconds);
  return out;
}

struct PlaneBetween {
  Vector3 z;
  Eigen::Matrix3d w;
  template <class T>
  bool operator()(const T* a, const T* b, T* r) const {
    const T c = cos(a[2]), s = sin(a[2]), dx = b[0] - a[0], dy = b[1] - a[1];
    const double cz = std::cos(z[2]), sz = std::sin(z[2]);
    const T x = c * dx + s * dy - z[0], y = c * dy - s * dx - z[1], turn = b[2] - a[2] - z[2];
    const Eigen::Matrix<T, 3, 1> e(cz * x + sz * y, cz * y - sz * x,
                                   turn - 2 * M_PI * floor((turn + M_PI) / (2 * M_PI)));
    Eigen::Map<Eigen::Matrix<T, 3, 1>> out(r);
    out = w.cast<T>() * e;
    return true;
  }
};
ceres::CostFunction* plane_between(const Vector3& z, const Eigen::Matrix3d& w) {
  return new ceres::AutoDiffCostFunction<PlaneBetween, 3, 3, 3>(new PlaneBetween{z, w});
}

/// `carried`: each solve begins with the trust region that the last one ended with.
Outcome incremental(bool carried) {
  constexpr int kPoses = 2000, kSteps = 50;
  const PlaneWorld world = plane_world(kPoses);
  const Eigen::Matrix3d w = Eigen::Vector3d(20, 20, 100).asDiagonal();
  std::vector<double> x(3 * kPoses, 0.0);
  ceres::Problem problem;
  problem.AddParameterBlock(x.data(), 3);
  problem.SetParameterBlockConstant(x.data());
  Outcome out;
  size_t closure = 0;
  int have = 1;
  double radius = 1e4;
  const auto add = [&](const PlaneEdge& e) {
    problem.AddResidualBlock(plane_between(e.z, w), nullptr, &x[size_t(3 * e.i)], &x[size_t(3 * e.j)]);
  };
  for (int step = 1; step <= kSteps; ++step) {
    const double begin = now();
    for (; have < kPoses * step / kSteps; ++have) {
      const PlaneEdge& e = world.odometry[size_t(have - 1)];
      const Vector3 next = compose(&x[size_t(3 * (have - 1))], e.z);
      std::copy(next.begin(), next.end(), x.begin() + 3 * have);
      add(e);
    }
    while (closure < world.closures.size() && world.closures[closure].j < have)
      add(world.closures[closure++]);
    const Outcome one = solve(problem, ceres::SPARSE_NORMAL_CHOLESKY, carried ? &radius : nullptr);
    out.seconds += now() - begin, out.cost = one.cost, out.iterations += one.iterations;
  }
  return out;
}

/// Seconds a frame; the iterations of all. The trust region continues from frame to frame.
Outcome window() {
  const WindowWorld world = window_world();
  const Eigen::Matrix3d w = Eigen::Vector3d(50, 50, 200).asDiagonal();
  std::vector<Vector3> x = world.starts;
  std::vector<std::vector<ceres::ResidualBlockId>> residuals(kFrames);
  ceres::Problem problem;
  Outcome out;
  double radius = 1e4;
  for (int k = 0; k < kFrames; ++k) {
    const double begin = now();
    problem.AddParameterBlock(x[size_t(k)].data(), 3);
    for (const PlaneEdge& e : world.edges[size_t(k)])
      residuals[size_t(k)].push_back(problem.AddResidualBlock(plane_between(e.z, w), nullptr,
                                                              x[size_t(e.i)].data(), x[size_t(e.j)].data()));
    if (k == 0 || k >= kWindow) problem.SetParameterBlockConstant(x[size_t(k == 0 ? 0 : k - kWindow)].data());
    if (k >= kWindow)
      for (const auto id : residuals[size_t(k - kWindow)]) problem.RemoveResidualBlock(id);
    if (k == 0) continue;
    const Outcome one = solve(problem, ceres::SPARSE_NORMAL_CHOLESKY, &radius);
    out.seconds += (now() - begin) / kFrames, out.cost = one.cost, out.iterations += one.iterations;
  }
  return out;
}

struct Loose {
  double a, b;
  template <class T>
  bool operator()(const T* x, const T* y, T* r) const {
    r[0] = a * (y[0] - x[0]) + sin(x[0]) - b;
    return true;
  }
};
Outcome loose(int count) {
  const std::vector<double> rows = loose_rows(count);
  std::vector<double> x(size_t(count) + 1, 0.0);
  const double begin = now();
  ceres::Problem problem;
  for (int k = 0; k < count; ++k)
    problem.AddResidualBlock(new ceres::AutoDiffCostFunction<Loose, 1, 1, 1>(
                                 new Loose{rows[size_t(2 * k)], rows[size_t(2 * k) + 1]}),
                             nullptr, &x[size_t(k)], &x[size_t(k) + 1]);
  problem.SetParameterBlockConstant(x.data());
  Outcome out = solve(problem, ceres::SPARSE_NORMAL_CHOLESKY);
  out.seconds = now() - begin;
  return out;
}

struct Wide {
  int n;
  const double* d;
  template <class T>
  bool operator()(T const* const* p, T* r) const {
    T s(0);
    for (int k = 0; k < n; ++k) s += p[0][k] * d[k];
    r[0] = exp(s) - d[n];
    return true;
  }
};
Outcome wide(int n) {
  const std::vector<double> rows = wide_rows(n);
  Outcome out;
  std::vector<double> seconds;
  for (int k = 0; k < 10; ++k) {
    std::vector<double> x(size_t(n), 0.0);
    ceres::Problem problem;
    for (size_t i = 0; i < rows.size(); i += size_t(n) + 1) {
      auto* cost = new ceres::DynamicAutoDiffCostFunction<Wide, 4>(new Wide{n, &rows[i]});
      cost->AddParameterBlock(n);
      cost->SetNumResiduals(1);
      problem.AddResidualBlock(cost, nullptr, x.data());
    }
    out = solve(problem, ceres::DENSE_QR);
    seconds.push_back(out.seconds);
  }
  out.seconds = median(seconds);
  return out;
}

struct SpaceBetween {
  Eigen::Vector3d t;
  Eigen::Quaterniond q;
  Eigen::Matrix<double, 6, 6> w;
  template <class T>
  bool operator()(const T* ta, const T* qa, const T* tb, const T* qb, T* r) const {
    using V = Eigen::Matrix<T, 3, 1>;
    const Eigen::Map<const Eigen::Quaternion<T>> a(qa), b(qb);
    const V moved = a.conjugate() * (Eigen::Map<const V>(tb) - Eigen::Map<const V>(ta)) - t.cast<T>();
    Eigen::Quaternion<T> turn = q.conjugate().cast<T>() * (a.conjugate() * b);
    if (turn.w() < T(0)) turn.coeffs() = -turn.coeffs();
    Eigen::Matrix<T, 6, 1> e;
    e << q.conjugate().cast<T>() * moved, turn.vec();
    Eigen::Map<Eigen::Matrix<T, 6, 1>> out(r);
    out = w.cast<T>() * e;
    return true;
  }
};

template <int N>
Eigen::Matrix<double, N, N> root_of_information(std::istream& in) {
  Eigen::Matrix<double, N, N> information;
  for (int i = 0; i < N; ++i)
    for (int j = i; j < N; ++j) in >> information(i, j), information(j, i) = information(i, j);
  return information.llt().matrixU();
}

/// Poses of a g2o file: a plane's as three numbers, space's as a translation and a quaternion (x, y, z, w).
struct PoseGraph {
  std::map<int, std::array<double, 7>> poses;
  ceres::Problem problem;

  explicit PoseGraph(const std::string& file) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) read(line);
  }
  void read(const std::string& line) {
    std::istringstream in(line);
    std::string tag;
    int a = 0, b = 0;
    in >> tag >> a;
    if (tag == "VERTEX_SE2" || tag == "VERTEX_SE3:QUAT") {
      auto& pose = poses[a];
      for (int k = 0; k < (tag == "VERTEX_SE2" ? 3 : 7); ++k) in >> pose[size_t(k)];
      if (tag != "VERTEX_SE2") Eigen::Map<Eigen::Quaterniond>(&pose[3]).normalize();
    } else if (tag == "EDGE_SE2") {
      Vector3 z{};
      in >> b >> z[0] >> z[1] >> z[2];
      const Eigen::Matrix3d w = root_of_information<3>(in);
      problem.AddResidualBlock(plane_between(z, w), nullptr, poses[a].data(), poses[b].data());
    } else if (tag == "EDGE_SE3:QUAT") {
      auto edge = std::make_unique<SpaceBetween>();
      in >> b >> edge->t[0] >> edge->t[1] >> edge->t[2] >> edge->q.x() >> edge->q.y() >> edge->q.z() >>
          edge->q.w();
      edge->q.normalize();
      edge->w = root_of_information<6>(in);
      problem.AddResidualBlock(new ceres::AutoDiffCostFunction<SpaceBetween, 6, 3, 4, 3, 4>(edge.release()),
                               nullptr, poses[a].data(), &poses[a][3], poses[b].data(), &poses[b][3]);
    }
  }
};
Outcome pose_graph(const std::string& file) {
  PoseGraph graph(file);
  auto& first = graph.poses.begin()->second;
  for (auto& [id, pose] : graph.poses)
    if (graph.problem.HasParameterBlock(&pose[3]))
      graph.problem.SetManifold(&pose[3], new ceres::EigenQuaternionManifold);
  graph.problem.SetParameterBlockConstant(first.data());
  if (graph.problem.HasParameterBlock(&first[3])) graph.problem.SetParameterBlockConstant(&first[3]);
  return solve(graph.problem, ceres::SPARSE_NORMAL_CHOLESKY);
}

struct Snavely {
  double u, v;
  template <class T>
  bool operator()(const T* camera, const T* point, T* r) const {
    T p[3];
    ceres::AngleAxisRotatePoint(camera, point, p);
    for (int k = 0; k < 3; ++k) p[k] += camera[3 + k];
    const T x = -p[0] / p[2], y = -p[1] / p[2], s = x * x + y * y;
    const T d = camera[6] * (T(1) + s * (camera[7] + camera[8] * s));
    r[0] = d * x - u, r[1] = d * y - v;
    return true;
  }
};
Outcome bundle(const std::string& file) {
  std::ifstream in(file);
  int cameras = 0, points = 0, observations = 0;
  in >> cameras >> points >> observations;
  struct Seen {
    int camera, point;
    double u, v;
  };
  std::vector<Seen> seen(static_cast<size_t>(observations));
  for (Seen& s : seen) in >> s.camera >> s.point >> s.u >> s.v;
  std::vector<double> x(size_t(9 * cameras + 3 * points));
  for (double& v : x) in >> v;
  ceres::Problem problem;
  for (const Seen& s : seen)
    problem.AddResidualBlock(new ceres::AutoDiffCostFunction<Snavely, 2, 9, 3>(new Snavely{s.u, s.v}),
                             nullptr, &x[size_t(9 * s.camera)], &x[size_t(9 * cameras + 3 * s.point)]);
  return solve(problem, ceres::DENSE_SCHUR);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "", file = count > 2 ? arguments[2] : "";
  if (what == "pnp")
    print(pnp());
  else if (what == "curve")
    print(curve(67, 200));
  else if (what == "long_curve")
    print(curve(100000, 1));
  else if (what == "calibration")
    print(calibration());
  else if (what == "incremental")
    print(incremental(false));
  else if (what == "carried")
    print(incremental(true));
  else if (what == "window")
    print(window());
  else if (what == "loose5000" || what == "loose100000")
    print(loose(std::stoi(what.substr(5))));
  else if (what == "wide20")
    print(wide(20));
  else if (what == "wide60")
    print(wide(60));
  else if (what == "g2o")
    print(pose_graph(file));
  else if (what == "bal")
    print(bundle(file));
  else
    return std::fprintf(stderr, "ceres_side: %s, expected a problem of scenes.hpp, g2o FILE or bal FILE\n",
                        what.c_str()),
           2;
}
