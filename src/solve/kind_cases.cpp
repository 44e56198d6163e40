#include "solve/kind_cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "solve/datasets/bal.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/mesh/energies/star_energies.hpp"
#include "solve/mesh/energies/terms.hpp"
#include "solve/reference.hpp"
#include "solve/sketch/constraints.hpp"
#include "verify/inputs.hpp"

namespace lockstep::solve {

namespace {

constexpr double kFast = 1e-10;       // relative, of a gradient in f64 in fast numerics
constexpr double kReference = 1e-11;  // against complex steps

/// A term with numbers around which its blocks and data lie.
struct TermKind {
  std::string name;
  TermType type;
  std::vector<Manifold> manifolds;  // of the slots
  std::vector<double> blocks, data;
  double spread = 0.2;
};

/// Points of the unit circle around the origin, in a plane or in space.
std::vector<double> ring(int count, int dimension) {
  std::vector<double> points;
  for (int k = 0; k < count; ++k) {
    const double angle = 2 * std::numbers::pi * k / count;
    points.insert(points.end(), {std::cos(angle), std::sin(angle)});
    if (dimension == 3) points.push_back(0.3 * std::sin(2.3 * k));
  }
  return points;
}
std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TermKind euclidean_kind(const std::string& name, const TermType& type, std::vector<double> blocks,
                        std::vector<double> data, double spread = 0.2) {
  TermKind kind{name, type, {}, std::move(blocks), std::move(data), spread};
  for (const int size : type.slots) kind.manifolds.push_back(euclidean(size));
  return kind;
}

std::vector<TermKind> graph_kinds() {
  const std::vector<double> flat{0.1, 0.2, 0.3}, pose{0.1, 0.2, 0.3, 0.9, 0.1, -0.3, 0.2};
  std::vector<double> weights2{2, 0.1, 3}, weights3{2, 0.1, 0.2, 3, 0.3, 4}, weights6;
  for (int r = 0; r < 6; ++r)
    for (int c = r; c < 6; ++c) weights6.push_back(r == c ? 2 + r : 0.1 * (c - r));
  return {
      {"g2o_se2",
       se2_edge(),
       {se2(), se2()},
       joined(flat, {1, 0.5, 0.9}),
       joined({0.9, 0.2, 0.6, std::cos(0.6), std::sin(0.6)}, weights3),
       0.2},
      {"g2o_se3",
       se3_edge({RobustLoss::Kind::huber, 1}),
       {se3(), se3()},
       joined(pose, {1, 0.5, 0.2, 0.7, 0.5, 0.1, -0.4}),
       joined({0.9, 0.2, 0.1, 0.8, 0.4, 0.2, -0.3}, weights6),
       0.2},
      {"g2o_se2_xy",
       se2_sight(),
       {se2(), euclidean(2)},
       joined(flat, {2, 1}),
       joined({1.5, 0.2}, weights2),
       0.2},
      {"g2o_se3_xyz",
       se3_sight({RobustLoss::Kind::cauchy, 1}),
       {se3(), euclidean(3)},
       joined(pose, {2, 1, 0.5}),
       joined({0.1, 0, 0.2, 1, 0, 0, 0, 1.5, 0.2, 0.3}, weights3),
       0.1},
      {"g2o_xy", point_link(), {euclidean(2), euclidean(2)}, {0, 0, 1, 1}, joined({0.7, 1.2}, weights2), 0.2},
      {"bal_snavely",
       snavely_observation(),
       {euclidean(9), euclidean(3)},
       {0.1, -0.2, 0.05, 0.1, 0.2, -5, 500, -1e-2, 1e-3, 0.4, -0.3, 0.2},
       {20, -30},
       0.05},
  };
}

std::vector<TermKind> mesh_kinds() {
  using namespace mesh;
  const std::vector<double> hinge{0, 0, 0, 1, 0, 0, 0.5, 1, 0.2, 0.5, -1, 0.3};
  TermKind arap{"mesh_arap",
                arap_term(),
                {euclidean(3), euclidean(3), so3()},
                {0, 0, 0, 1, 0.5, 0.2, 0.9, 0.1, -0.3, 0.2},
                {0.8, 0.6, 0.1, 1.5},
                0.2};
  std::vector<TermKind> kinds{
      euclidean_kind("mesh_spring", mesh::spring_term(), {0, 0, 0, 1, 0.5, 0.2},
                     std::vector<double>(size_t(mesh::spring_term().data), 0.8)),
      euclidean_kind("mesh_laplacian", laplacian_term(6), joined({0.1, 0.1, 0.2}, ring(6, 3)),
                     std::vector<double>(6, 0.4)),
      euclidean_kind("mesh_attachment", attachment_term(), {0.3, 0.4, 0.5}, {0.1, 0.2, 0.3, 2}),
      euclidean_kind("mesh_normal_difference", normal_difference_term(), hinge, {1.3}),
      euclidean_kind("mesh_bend", bend_term(), hinge, {0.3, 1.7}),
      euclidean_kind("mesh_gravity", gravity_term(), {0.3, 0.4, 0.5}, {9.81, 0, 0.6, 0.8, 0.1}),
      arap,
      euclidean_kind("mesh_symmetric_dirichlet", symmetric_dirichlet_term(), {0, 0, 1, 0.1, 0.2, 0.9},
                     {1.1, 0.1, -0.1, 0.9, 0.7}, 0.1),
  };
  const std::span<const std::string_view> names = developability_names();
  for (size_t k = 0; k < names.size(); ++k) {
    const auto kind = Developability(k);
    const int valence = 5;
    const TermType type = star_term(kind, valence);
    std::vector<double> data(size_t(type.data), 1.0);
    if (kind == Developability::partition_sampled) {
      const std::vector<double> masks = sampled_masks({1, 3}, valence, 1, 0, 0);
      std::copy(masks.begin(), masks.end(), data.begin());
    }
    kinds.push_back(euclidean_kind(fmt::format("star_{}", names[k]), type,
                                   joined({0.1, 0.05, 0.4}, ring(valence, 3)), data, 0.1));
  }
  return kinds;
}

std::vector<TermKind> sketch_kinds() {
  using sketch::ConstraintKind;
  static constexpr const char* kNames[] = {
      "length",       "horizontal",      "vertical",      "coincident", "midpoint",
      "collinear",    "parallel",        "perpendicular", "angle",      "point_on_line",
      "distance",     "point_on_circle", "tangent",       "radial",     "equal_length",
      "equal_radius", "circles_tangent", "concentric",    "symmetry",   "radius"};
  static_assert(std::size(kNames) == size_t(ConstraintKind::count_));
  std::vector<TermKind> kinds;
  const auto add = [&](ConstraintKind kind, bool at_end) {
    const TermType type = sketch::constraint_term(kind, at_end);
    std::vector<double> blocks, points = ring(5, 2);
    size_t point = 0;
    for (const int size : type.slots)
      for (int c = 0; c < size; ++c) blocks.push_back(size == 2 ? points[point++] : 0.7);
    kinds.push_back(euclidean_kind(fmt::format("sketch_{}{}", kNames[size_t(kind)], at_end ? "_at_end" : ""),
                                   type, blocks, std::vector<double>(size_t(type.data), 0.8), 0.1));
  };
  for (size_t k = 0; k < size_t(ConstraintKind::count_); ++k) add(ConstraintKind(k), false);
  add(ConstraintKind::tangent, true);
  add(ConstraintKind::circles_tangent, true);
  return kinds;
}

/// Instances with blocks of their own.
Problem problem_of(const TermKind& kind, int64_t instances, uint64_t seed) {
  Problem problem;
  std::vector<BlockSet> sets;
  size_t first = 0;
  for (size_t s = 0; s < kind.manifolds.size(); ++s) {
    const Manifold& m = kind.manifolds[s];
    const size_t size = size_t(m.ambient);
    std::vector<double> values =
        cases::uniform<double>(instances * m.ambient, seed * 100 + s, -kind.spread, kind.spread);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = kind.blocks[first + k % size] * (1 + values[k]) + 0.1 * values[k];
    // Rotations are the last numbers of a block and have unit length.
    if (m.ambient != m.tangent)
      for (size_t at = size - 4; at < values.size(); at += size) {
        double squares = 0;
        for (size_t k = 0; k < 4; ++k) squares += values[at + k] * values[at + k];
        for (size_t k = 0; k < 4; ++k) values[at + k] /= std::sqrt(squares);
      }
    sets.push_back(problem.add_blocks(fmt::format("slot {}", s), m, values));
    first += size;
  }
  std::vector<int32_t> indices;
  std::vector<double> data;
  for (int64_t i = 0; i < instances; ++i) {
    indices.insert(indices.end(), sets.size(), int32_t(i));
    data.insert(data.end(), kind.data.begin(), kind.data.end());
  }
  problem.add_terms(kind.type, sets, indices, data);
  return problem;
}

Case make_case(const TermKind& kind) {
  Case c;
  c.name = "solve.kinds." + kind.name;
  c.dtype = "f64";
  c.small = {"1", "37"};
  c.full = {"1000"};
  c.needs_f64 = true;
  c.reference = Bound::relative(kReference);
  c.fast = Bound::relative(kFast);
  c.make = [kind](const std::string& size, uint64_t seed) {
    const auto problem = std::make_shared<const Problem>(problem_of(kind, parse_size(size).at(0), seed));
    CaseProblem p;
    p.bytes = double(problem->state().ambient + problem->state().tangent) * 8;
    p.bind = [problem](const Device& device) {
      const auto evaluator = std::make_shared<Evaluator>(*problem, device, Precision::f64);
      return CaseRun{
          [evaluator] { evaluator->value_and_gradient(); },
          [evaluator] { return std::vector{evaluator->device().download(evaluator->gradient())}; }};
    };
    p.reference = [problem] {
      return std::vector{Array::of(reference::gradient(*problem, problem->state().values))};
    };
    return p;
  };
  c.kernels = [kind] {
    const Problem problem = problem_of(kind, 1, 1);
    return std::vector{
        instance_kernel(derivatives_of(problem.state().batches[0]), ElementTypes{}, kCost | kGradient)};
  };
  return c;
}

}  // namespace

void add_kind_cases(CaseRegistry& registry) {
  for (const auto& kinds : {graph_kinds(), mesh_kinds(), sketch_kinds()})
    for (const TermKind& kind : kinds) registry.add(make_case(kind));
}

}  // namespace lockstep::solve
