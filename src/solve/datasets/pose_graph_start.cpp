#include "solve/datasets/pose_graph_start.hpp"

#include <Eigen/Dense>
#include <Eigen/Geometry>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

constexpr double kFullTurn = 2 * std::numbers::pi;
using Pose = std::array<double, 7>;

std::array<double, 3> rotated(const double* q, const double* v) {
  // v + 2 w (u x v) + 2 u x (u x v), u the vector part.
  std::array<double, 3> t, r;
  for (size_t k = 0; k < 3; ++k) {
    const size_t i = (k + 1) % 3, j = (k + 2) % 3;
    t[k] = 2 * (q[1 + i] * v[j] - q[1 + j] * v[i]);
  }
  for (size_t k = 0; k < 3; ++k) {
    const size_t i = (k + 1) % 3, j = (k + 2) % 3;
    r[k] = v[k] + q[0] * t[k] + q[1 + i] * t[j] - q[1 + j] * t[i];
  }
  return r;
}

Pose composed(int dimension, const double* a, const double* b) {
  Pose c{};
  if (dimension == 2) {
    const double cosine = std::cos(a[2]), sine = std::sin(a[2]);
    c[0] = a[0] + cosine * b[0] - sine * b[1];
    c[1] = a[1] + sine * b[0] + cosine * b[1];
    c[2] = std::remainder(a[2] + b[2], kFullTurn);
    return c;
  }
  const std::array<double, 3> t = rotated(a + 3, b);
  for (size_t k = 0; k < 3; ++k) c[k] = a[k] + t[k];
  const double *p = a + 3, *q = b + 3;
  c[3] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
  for (size_t k = 1; k <= 3; ++k) {
    const size_t i = k % 3 + 1, j = i % 3 + 1;
    c[3 + k] = p[0] * q[k] + p[k] * q[0] + p[i] * q[j] - p[j] * q[i];
  }
  // A long chain of products must not leave the unit sphere.
  const double length = std::sqrt(c[3] * c[3] + c[4] * c[4] + c[5] * c[5] + c[6] * c[6]);
  for (size_t k = 3; k < 7; ++k) c[k] /= length;
  return c;
}

Pose inverted(int dimension, const double* a) {
  Pose c{};
  if (dimension == 2) {
    const double cosine = std::cos(a[2]), sine = std::sin(a[2]);
    c[0] = -cosine * a[0] - sine * a[1];
    c[1] = sine * a[0] - cosine * a[1];
    c[2] = -a[2];
    return c;
  }
  c[3] = a[3];
  for (size_t k = 4; k < 7; ++k) c[k] = -a[k];
  const std::array<double, 3> t = rotated(&c[3], a);
  for (size_t k = 0; k < 3; ++k) c[k] = -t[k];
  return c;
}

/// Puts landmarks where the first sight from a pose of `reached` saw them; fixed ones stay.
void place_landmarks(io::PoseGraph& graph, const std::vector<bool>& reached) {
  io::Landmarks& l = graph.landmarks;
  const size_t d = size_t(graph.dimension), pose = size_t(graph.pose_size());
  std::vector<bool> placed(l.ids.size());
  for (const int32_t v : l.fixed) placed[size_t(v)] = true;
  for (size_t e = 0; e < size_t(graph.sight_count()); ++e) {
    const size_t from = size_t(l.sights[2 * e]), to = size_t(l.sights[2 * e + 1]);
    if (placed[to] || !reached[from]) continue;
    placed[to] = true;
    Pose seen{};  // the landmark as a pose that is not turned
    std::copy_n(l.seen.begin() + std::ptrdiff_t(e * d), d, seen.begin());
    if (d == 3) {
      seen[3] = 1;
      seen = composed(3, &l.sensor_poses[7 * size_t(l.sensors[e])], seen.data());
    }
    const Pose there = composed(graph.dimension, &graph.poses[from * pose], seen.data());
    std::copy_n(there.begin(), d, l.points.begin() + std::ptrdiff_t(to * d));
  }
}

// ── chordal relaxation ──

using Matrix = Eigen::MatrixXd;  // (d, d), or (d, 1) of a translation

Matrix rotation_of(int dimension, const double* pose) {
  if (dimension == 2) return Eigen::Rotation2Dd(pose[2]).toRotationMatrix();
  return Eigen::Quaterniond(pose[3], pose[4], pose[5], pose[6]).toRotationMatrix();
}
void set_rotation(int dimension, const Matrix& r, double* pose) {
  if (dimension == 2) {
    pose[2] = std::atan2(r(1, 0), r(0, 0));
    return;
  }
  const Eigen::Quaterniond q(Eigen::Matrix3d{r});
  pose[3] = q.w(), pose[4] = q.x(), pose[5] = q.y(), pose[6] = q.z();
}
Matrix nearest_rotation(const Matrix& m) {
  const Eigen::JacobiSVD<Matrix> svd(m, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Eigen::VectorXd signs = Eigen::VectorXd::Ones(m.rows());
  signs[m.rows() - 1] = (svd.matrixU() * svd.matrixV().transpose()).determinant() < 0 ? -1 : 1;
  return svd.matrixU() * signs.asDiagonal() * svd.matrixV().transpose();
}

/// Vertices that stay: the fixed ones, and the first of every piece that has none.
std::vector<bool> anchors_of(const io::PoseGraph& graph) {
  std::vector<std::vector<int32_t>> neighbours(graph.ids.size());
  for (size_t k = 0; k < graph.edges.size(); k += 2) {
    neighbours[size_t(graph.edges[k])].push_back(graph.edges[k + 1]);
    neighbours[size_t(graph.edges[k + 1])].push_back(graph.edges[k]);
  }
  std::vector<bool> anchor(graph.ids.size()), reached(graph.ids.size());
  const auto reach = [&](int32_t from) {
    if (reached[size_t(from)]) return;
    anchor[size_t(from)] = true;
    std::vector<int32_t> queue{from};
    reached[size_t(from)] = true;
    for (size_t at = 0; at < queue.size(); ++at)
      for (const int32_t to : neighbours[size_t(queue[at])])
        if (!reached[size_t(to)]) reached[size_t(to)] = true, queue.push_back(to);
  };
  for (const int32_t v : graph.fixed) reach(v);
  for (const int32_t v : graph.fixed) anchor[size_t(v)] = true;
  for (size_t v = 0; v < graph.ids.size(); ++v) reach(int32_t(v));
  return anchor;
}

/// Mean diagonal element of each edge's information from `first` on; what has none counts a little.
std::vector<double> weights_of(const io::PoseGraph& graph, int first, int count) {
  const int n = graph.error_size();
  std::vector<double> weights;
  double mean = 0;
  for (int64_t e = 0; e < graph.edge_count(); ++e) {
    double sum = 0;
    for (int k = first; k < first + count; ++k) sum += graph.information[size_t(e * n * n + k * n + k)];
    weights.push_back(sum / count);
    mean += weights.back() / double(graph.edge_count());
  }
  for (double& w : weights) w = std::max(w, 1e-6 * mean);
  return weights;
}

/// Least squares of factor(e)^T x_from + shift(e) = x_to over the edges: x is (d, columns) of each vertex, that of
/// anchors stays, and factor(e) is a rotation.
template <class Factor, class Shift>
void solve_along_edges(const io::PoseGraph& graph, const std::vector<bool>& anchor,
                       const std::vector<double>& weights, Factor factor, Shift shift,
                       std::vector<Matrix>& x) {
  const Eigen::Index d = x[0].rows(), columns = x[0].cols();
  std::vector<Eigen::Index> place(x.size(), -1);
  Eigen::Index free = 0;
  for (size_t v = 0; v < x.size(); ++v)
    if (!anchor[v]) place[v] = d * free++;
  if (free == 0) return;
  std::vector<Eigen::Triplet<double>> entries;
  const auto put = [&](Eigen::Index row, Eigen::Index column, const Matrix& block) {
    for (Eigen::Index i = 0; i < d; ++i)
      for (Eigen::Index j = 0; j < d; ++j)
        if (block(i, j) != 0) entries.emplace_back(row + i, column + j, block(i, j));
  };
  Matrix right = Matrix::Zero(d * free, columns);
  for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
    const size_t from = size_t(graph.edges[2 * e]), to = size_t(graph.edges[2 * e + 1]);
    const Matrix f = factor(e), add = weights[e] * shift(e), own = weights[e] * Matrix::Identity(d, d);
    const Eigen::Index i = place[from], j = place[to];
    if (i >= 0) {
      put(i, i, own);
      right.middleRows(i, d) -= f * add;
      if (j >= 0)
        put(i, j, -weights[e] * f);
      else
        right.middleRows(i, d) += weights[e] * f * x[to];
    }
    if (j >= 0) {
      put(j, j, own);
      right.middleRows(j, d) += add;
      if (i >= 0)
        put(j, i, -weights[e] * f.transpose());
      else
        right.middleRows(j, d) += weights[e] * f.transpose() * x[from];
    }
  }
  Eigen::SparseMatrix<double> matrix(d * free, d * free);
  matrix.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factorised(matrix);
  const Matrix solved = factorised.solve(right);
  if (factorised.info() != Eigen::Success || !solved.allFinite())
    throw InputError("the chordal relaxation has no solution", "pose graph",
                     "edges whose information is positive, or another start");
  for (size_t v = 0; v < x.size(); ++v)
    if (place[v] >= 0) x[v] = solved.middleRows(place[v], d);
}

}  // namespace

void start_from_tree(io::PoseGraph& graph) {
  const size_t pose = size_t(graph.pose_size());
  std::vector<std::vector<size_t>> edges_of(graph.ids.size());
  for (size_t k = 0; k < graph.edges.size(); ++k) edges_of[size_t(graph.edges[k])].push_back(k / 2);
  std::vector<size_t> queue(graph.fixed.begin(), graph.fixed.end());
  if (queue.empty() && !graph.ids.empty()) queue.push_back(0);
  std::vector<bool> reached(graph.ids.size());
  for (const size_t v : queue) reached[v] = true;
  for (size_t at = 0; at < queue.size(); ++at) {
    const size_t from = queue[at];
    for (const size_t e : edges_of[from]) {
      const bool forwards = size_t(graph.edges[2 * e]) == from;
      const size_t to = size_t(graph.edges[forwards ? 2 * e + 1 : 2 * e]);
      if (reached[to]) continue;
      reached[to] = true;
      queue.push_back(to);
      const double* z = &graph.measurements[e * pose];
      const Pose step = inverted(graph.dimension, z);
      const Pose next = composed(graph.dimension, &graph.poses[from * pose], forwards ? z : step.data());
      std::copy_n(next.begin(), pose, graph.poses.begin() + std::ptrdiff_t(to * pose));
    }
  }
  place_landmarks(graph, reached);
}

void start_chordal(io::PoseGraph& graph) {
  const int d = graph.dimension;
  const size_t pose = size_t(graph.pose_size()), count = graph.ids.size();
  if (count > 0) {
    const std::vector<bool> anchor = anchors_of(graph);
    std::vector<Matrix> turned(count), places(count);  // transposed rotations; translations
    for (size_t v = 0; v < count; ++v) {
      turned[v] = rotation_of(d, &graph.poses[v * pose]).transpose();
      places[v] = Eigen::Map<const Eigen::VectorXd>(&graph.poses[v * pose], d);
    }
    const auto measured = [&](size_t e) { return rotation_of(d, &graph.measurements[e * pose]); };
    const auto nothing = [&](size_t) -> Matrix { return Matrix::Zero(d, d); };
    solve_along_edges(graph, anchor, weights_of(graph, d, d == 2 ? 1 : 3), measured, nothing, turned);
    for (size_t v = 0; v < count; ++v)
      if (!anchor[v]) turned[v] = nearest_rotation(turned[v]);
    const auto whole = [&](size_t) -> Matrix { return Matrix::Identity(d, d); };
    const auto way = [&](size_t e) -> Matrix {
      return turned[size_t(graph.edges[2 * e])].transpose() *
             Eigen::Map<const Eigen::VectorXd>(&graph.measurements[e * pose], d);
    };
    solve_along_edges(graph, anchor, weights_of(graph, 0, d), whole, way, places);
    for (size_t v = 0; v < count; ++v) {
      if (anchor[v]) continue;
      std::copy_n(places[v].data(), d, &graph.poses[v * pose]);
      set_rotation(d, turned[v].transpose(), &graph.poses[v * pose]);
    }
  }
  place_landmarks(graph, std::vector<bool>(count, true));
}

PoseStart start_poses(io::PoseGraph& graph, PoseStart start) {
  if (start == PoseStart::file && !graph.has_poses) start = PoseStart::tree;
  if (start == PoseStart::tree) start_from_tree(graph);
  if (start == PoseStart::chordal) start_chordal(graph);
  return start;
}

}  // namespace lockstep::solve
