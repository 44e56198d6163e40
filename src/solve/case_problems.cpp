#include "solve/case_problems.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace lockstep::solve {

using autodiff::Vec3;

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double operator()(double low, double high) {
    return low + (high - low) * double(engine_() >> 11) * 0x1p-53;
  }
  int32_t below(int64_t n) { return int32_t(engine_() % uint64_t(n)); }

 private:
  std::mt19937_64 engine_;
};

Vec3 unit_normal(const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 n = cross(b - a, c - a);
  return n * rsqrt(squared_norm(n) + 1e-12);
}

std::vector<Value> bend(const TermArguments& a) {
  const Vec3 first = unit_normal(a.vec3(0), a.vec3(1), a.vec3(2)),
             second = unit_normal(a.vec3(1), a.vec3(0), a.vec3(3));
  std::vector<Value> r;
  for (int k = 0; k < 3; ++k) r.push_back(0.3 * (first[k] - second[k]));
  return r;
}

}  // namespace

TermType spring_term() {
  return {"spring", {3, 3}, 1, [](const TermArguments& a) {
            return std::vector<Value>{norm(a.vec3(0) - a.vec3(1)) - a.data(0)};
          }};
}
TermType dihedral_term() { return {"dihedral", {3, 3, 3, 3}, 0, bend}; }
TermType hinge_term() {
  return {"hinge", {3, 3, 3, 3}, 1, [](const TermArguments& a) {
            std::vector<Value> r = bend(a);
            r.insert(r.begin(), norm(a.vec3(0) - a.vec3(1)) - a.data(0));
            return r;
          }};
}

Problem mesh_problem(int subdivisions, bool joined, uint64_t seed) {
  const Icosphere sphere = icosphere(subdivisions);
  Random random(seed);
  std::vector<double> moved = sphere.vertices, lengths;
  for (size_t k = 0; k < moved.size(); k += 3) {
    const double scale = random(0.9, 1.1);
    for (size_t c = 0; c < 3; ++c) moved[k + c] *= scale;
  }
  std::vector<int32_t> hinges, edges;
  for (const auto& h : sphere.hinges) {
    hinges.insert(hinges.end(), h.begin(), h.end());
    edges.insert(edges.end(), {h[0], h[1]});
    double squares = 0;
    for (size_t c = 0; c < 3; ++c)
      squares += std::pow(sphere.vertices[size_t(3 * h[0]) + c] - sphere.vertices[size_t(3 * h[1]) + c], 2);
    lengths.push_back(std::sqrt(squares));
  }
  Problem problem;
  const BlockSet x = problem.add_blocks("vertices", euclidean(3), moved);
  if (joined) {
    problem.add_terms(hinge_term(), {x, x, x, x}, hinges, lengths);
  } else {
    problem.add_terms(spring_term(), {x, x}, edges, lengths);
    problem.add_terms(dihedral_term(), {x, x, x, x}, hinges, {});
  }
  return problem;
}

TermType reprojection_term(RobustLoss loss) {
  return {"reprojection",
          {9, 3},
          2,
          [](const TermArguments& a) {
            const Vec3 p = rotate(exp_map(a.vec3(0)), a.vec3(1)) + a.vec3(0, 3);
            const Value x = -p[0] / p[2], y = -p[1] / p[2], n = x * x + y * y;
            const Value scale = a.x(0, 6) * (1 + n * (a.x(0, 7) + n * a.x(0, 8)));
            return std::vector<Value>{scale * x - a.data(0), scale * y - a.data(1)};
          },
          loss};
}

Problem bundle_problem(int cameras, int points, int views, uint64_t seed) {
  Random random(seed);
  std::vector<double> eyes, seen;
  for (int k = 0; k < cameras; ++k) {
    // On a circle of radius 4, looking at the middle: x_camera = R x + t with R about the y axis.
    const double angle = 2 * std::numbers::pi * k / cameras;
    eyes.insert(eyes.end(),
                {0, angle, 0, 0, 0, -4, 500 + random(-20, 20), random(-0.02, 0.02), random(-0.01, 0.01)});
  }
  for (int k = 0; k < points * 3; ++k) seen.push_back(random(-1, 1));
  std::vector<int32_t> pairs;
  std::vector<double> pixels;
  const TermType term = reprojection_term();
  autodiff::Tape graph;
  std::vector<std::vector<Value>> blocks(2);
  for (int c = 0; c < 9; ++c) blocks[0].push_back(graph.variable("camera"));
  for (int c = 0; c < 3; ++c) blocks[1].push_back(graph.variable("point"));
  const std::vector<Value> projected =
      term.residual(TermArguments(graph, blocks, {graph.constant(0), graph.constant(0)}));
  for (int k = 0; k < points; ++k) {
    const int32_t first = random.below(cameras);
    for (int v = 0; v < std::min(views, cameras); ++v) {
      const int32_t camera = int32_t((first + v) % cameras);
      pairs.insert(pairs.end(), {camera, k});
      std::vector<double> at(eyes.begin() + camera * 9, eyes.begin() + camera * 9 + 9);
      at.insert(at.end(), seen.begin() + k * 3, seen.begin() + k * 3 + 3);
      for (const double pixel : autodiff::evaluate<double>(projected, at))
        pixels.push_back(pixel + random(-0.5, 0.5));
    }
  }
  for (size_t k = 0; k < eyes.size(); ++k)
    eyes[k] += k % 9 < 6 ? random(-0.01, 0.01) : k % 9 == 6 ? random(-5, 5) : 0;
  for (double& v : seen) v += random(-0.02, 0.02);
  Problem problem;
  const BlockSet camera_set = problem.add_blocks("cameras", euclidean(9), eyes);
  const BlockSet point_set = problem.add_blocks("points", euclidean(3), seen);
  problem.add_terms(term, {camera_set, point_set}, pairs, pixels);
  return problem;
}

Problem random_problem(int blocks, int terms, uint64_t seed) {
  Random random(seed);
  std::vector<double> x, y;
  for (int k = 0; k < blocks * 3; ++k) x.push_back(random(-1, 1));
  for (int k = 0; k < blocks * 2; ++k) y.push_back(random(0.5, 2));
  Problem problem;
  const BlockSet points = problem.add_blocks("points", euclidean(3), x),
                 scales = problem.add_blocks("scales", euclidean(2), y);
  std::vector<int32_t> pairs, triples, stars;
  std::vector<double> lengths, targets;
  for (int k = 0; k < terms; ++k) {
    const int32_t a = random.below(blocks),
                  b = int32_t((a + 1 + random.below(std::max(1, blocks - 1))) % blocks);
    pairs.insert(pairs.end(), {a, b});
    lengths.push_back(random(0.2, 1));
    triples.insert(triples.end(), {a, random.below(blocks), b});
    stars.insert(stars.end(), {a, k % 3});
    targets.push_back(random(-1, 1));
  }
  if (blocks > 1) problem.add_terms(spring_term(), {points, points}, pairs, lengths);
  problem.add_terms({"product",
                     {3, 2, 3},
                     0,
                     [](const TermArguments& a) {
                       return std::vector<Value>{dot(a.vec3(0), a.vec3(2)) * a.x(1, 0) - 0.2,
                                                 sin(a.x(0, 1) * a.x(1, 1)) + 0.5 * a.x(2, 2)};
                     },
                     {RobustLoss::Kind::cauchy, 0.5}},
                    {points, scales, points}, triples, {});
  for (int32_t& v : stars) v = std::min(v, int32_t(blocks - 1));
  problem.add_terms(
      {"star",
       {3, 2},
       1,
       [](const TermArguments& a) {
         return std::vector<Value>{exp(0.3 * a.x(1, 0)) * a.x(0, 0) + log(a.x(1, 1)) * a.x(0, 1) - a.data(0)};
       }},
      {points, scales}, stars, targets);
  for (int k = 5; k < blocks; k += 17) problem.fix(points, k);
  return problem;
}

Problem wide_problem(int width, int instances, uint64_t seed) {
  Random random(seed);
  std::vector<double> x, data;
  for (int k = 0; k < 3 * width; ++k) x.push_back(random(-0.5, 0.5));
  std::vector<int32_t> blocks;
  for (int i = 0; i < instances; ++i) {
    blocks.push_back(i < 4 ? i % 3 : 0);
    for (int k = 0; k < width; ++k) data.push_back(random(-1, 1) / std::sqrt(double(width)));
    data.push_back(random(0.5, 1.5));
  }
  Problem problem;
  const BlockSet set = problem.add_blocks("wide", euclidean(width), x);
  problem.add_terms({"wide",
                     {width},
                     width + 1,
                     [width](const TermArguments& a) {
                       Value s = a.x(0, 0) * a.data(0);
                       for (int k = 1; k < width; ++k) s = s + a.x(0, k) * a.data(k);
                       return std::vector<Value>{exp(s) - a.data(width), 0.5 * s};
                     },
                     {RobustLoss::Kind::cauchy, 0.8}},
                    {set}, blocks, data);
  problem.fix(set, 1);
  return problem;
}

}  // namespace lockstep::solve
