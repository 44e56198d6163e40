#include "solve/mesh/energies/star_energies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/numbers/split_mix.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve::mesh {
namespace {

using autodiff::Condition;
using autodiff::Vec2;
using autodiff::Vec3;

constexpr std::array<std::string_view, 11> kNames = {
    "developable", "developable-max", "partition",       "partition-sampled", "midpoint",       "bimodal",
    "ridge",       "eigen-proxy",     "covariance-grid", "great-circle",      "plane-alignment"};

Value least(std::span<const Value> values) {
  Value best = values[0];
  for (size_t k = 1; k < values.size(); ++k) best = min(best, values[k]);
  return best;
}
Value largest(std::span<const Value> values) {
  Value best = values[0];
  for (size_t k = 1; k < values.size(); ++k) best = max(best, values[k]);
  return best;
}

Vec3 zero3(autodiff::Tape& graph) {
  const Value zero = graph.constant(0);
  return {{zero, zero, zero}};
}

// Two unit vectors that complete n to a right-handed basis. The sign of n.z chooses the chart; what is built
// on the basis here does not depend on its turn around n.
std::array<Vec3, 2> tangent_basis(const Vec3& n) {
  const Value sign = copysign(1.0, n[2]);
  const Value a = -1.0 / (sign + n[2]), b = n[0] * n[1] * a;
  return {Vec3{{1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]}},
          Vec3{{b, sign + n[1] * n[1] * a, -n[1]}}};
}

// The normals' parts in the tangent plane.
std::vector<Vec2> tangent_parts(const StarFaces& star) {
  const auto [e1, e2] = tangent_basis(star.mean_normal);
  std::vector<Vec2> parts;
  for (const Vec3& n : star.normals) parts.push_back({{dot(e1, n), dot(e2, n)}});
  return parts;
}

// angle / sin(angle) of a vector with tangent part of squared length s2 and normal part c; 1 where both are
// parallel.
Value angle_over_sine(const Value& s2, const Value& c) {
  const Condition apart = s2 > 1e-4 || c < 0;
  const Value sine = sqrt(select(apart, max(s2, 1e-24), 1));
  const Value series = 1.0 + s2 * (1.0 / 6 + s2 * (3.0 / 40 + s2 * (15.0 / 336)));
  return select(apart, atan2(sine, c) / sine, series);
}

Value smallest_eigenvalue(const Value& xx, const Value& xy, const Value& yy) {
  return 0.5 * (xx + yy - safe_sqrt(square(xx - yy) + 4.0 * square(xy)));
}

Value covariance(const StarFaces& star) {
  const std::vector<Vec2> parts = tangent_parts(star);
  std::vector<Value> xx, xy, yy;
  for (size_t f = 0; f < parts.size(); ++f) {
    const Value scale = angle_over_sine(squared_norm(parts[f]), dot(star.mean_normal, star.normals[f]));
    const Vec2 w = parts[f] * scale;
    xx.push_back(star.tip_angles[f] * w[0] * w[0]);
    xy.push_back(star.tip_angles[f] * w[0] * w[1]);
    yy.push_back(star.tip_angles[f] * w[1] * w[1]);
  }
  return smallest_eigenvalue(sum(xx), sum(xy), sum(yy));
}

// In the plane the least largest deviation is met where two of them are equal: u is perpendicular to a sum or
// a difference of two parts. Pairs that give no direction take the bound that any u keeps.
Value covariance_max(const StarFaces& star) {
  constexpr double kLeastDirection = 1e-24;
  const std::vector<Vec2> parts = tangent_parts(star);
  std::vector<Value> lengths;
  for (const Vec2& w : parts) lengths.push_back(squared_norm(w));
  const Value bound = largest(lengths);
  Value best = bound;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j) {
      for (const Vec2& d : {parts[i] + parts[j], parts[i] - parts[j]}) {
        const Value d2 = squared_norm(d);
        std::vector<Value> deviations;
        for (const Vec2& w : parts) deviations.push_back(square(cross(d, w)));
        const Condition usable = d2 > kLeastDirection;
        best = min(best, select(usable, largest(deviations) / select(usable, d2, 1), bound));
      }
    }
  }
  return best;
}

// Prefix sums of the normals: an arc's sum is a difference of two of them.
struct Arcs {
  explicit Arcs(const StarFaces& star) : count(int(star.normals.size())) {
    sums.push_back(zero3(star.mean_normal[0].graph()));
    for (const Vec3& n : star.normals) sums.push_back(sums.back() + n);
  }
  // Sum over faces of |n - mean|^2 in the arc [p, q) and in the rest.
  std::array<Value, 2> scatter(int p, int q) const {
    const Vec3 inside = sums[size_t(q)] - sums[size_t(p)], outside = sums.back() - inside;
    const double k = q - p;
    return {k - squared_norm(inside) / k, (count - k) - squared_norm(outside) / (count - k)};
  }
  Value variances(int p, int q) const {
    const auto [inside, outside] = scatter(p, q);
    return inside / double(q - p) + outside / double(count - (q - p));
  }
  int count;
  std::vector<Vec3> sums;
};

Value partition(const StarFaces& star) {
  const Arcs arcs(star);
  std::vector<Value> energies;
  for (int p = 0; p < arcs.count; ++p) {
    for (int q = p + 1; q < arcs.count; ++q) {
      const auto [inside, outside] = arcs.scatter(p, q);
      energies.push_back(inside + outside);
    }
  }
  return least(energies);
}

Value partition_sampled(const StarFaces& star, std::span<const Value> masks) {
  const size_t faces = star.normals.size();
  Vec3 total = star.normals[0];
  for (size_t f = 1; f < faces; ++f) total = total + star.normals[f];
  std::vector<Value> energies;
  for (size_t first = 0; first + faces <= masks.size(); first += faces) {
    Vec3 inside = star.normals[0] * masks[first];
    Value count = masks[first];
    for (size_t f = 1; f < faces; ++f) {
      inside = inside + star.normals[f] * masks[first + f];
      count = count + masks[first + f];
    }
    const Value rest = double(faces) - count;
    energies.push_back(double(faces) - squared_norm(inside) / count - squared_norm(total - inside) / rest);
  }
  return least(energies);
}

Value midpoint(const StarFaces& star) {
  const Arcs arcs(star);
  return arcs.variances(0, arcs.count / 2);
}

Value bimodal(const StarFaces& star) {
  const Arcs arcs(star);
  const int half = arcs.count / 2;
  Value energy = star.mean_normal[0].graph().constant(0);
  for (const auto& [from, to] : {std::array{0, half}, std::array{half, arcs.count}}) {
    const Vec3 mean = safe_normalize(arcs.sums[size_t(to)] - arcs.sums[size_t(from)]);
    std::vector<Value> misfits;
    for (int f = from; f < to; ++f) misfits.push_back(1.0 - dot(star.normals[size_t(f)], mean));
    energy = energy + autodiff::mean(misfits);
  }
  return energy;
}

// Edge k lies between faces k - 1 and k. The sharpest pair is chosen by the sum of 1 - cos of its angles.
Value ridge(const StarFaces& star) {
  const Arcs arcs(star);
  std::vector<Value> sharpness;
  for (int k = 0; k < arcs.count; ++k)
    sharpness.push_back(
        1.0 - dot(star.normals[size_t((k + arcs.count - 1) % arcs.count)], star.normals[size_t(k)]));
  Value energy = arcs.variances(0, 1), sharpest = sharpness[0] + sharpness[1];
  for (int p = 0; p < arcs.count; ++p) {
    for (int q = p + 1; q < arcs.count; ++q) {
      if (p == 0 && q == 1) continue;
      const Value both = sharpness[size_t(p)] + sharpness[size_t(q)];
      const Condition sharper = both > sharpest;
      energy = select(sharper, arcs.variances(p, q), energy);
      sharpest = select(sharper, both, sharpest);
    }
  }
  return energy;
}

Value eigen_proxy(const StarFaces& star) {
  constexpr double kJitter = 1e-4;
  const double count = double(star.normals.size());
  const Vec3 mean = Arcs(star).sums.back() / count;
  autodiff::Mat3 c = autodiff::outer(star.normals[0] - mean, star.normals[0] - mean);
  for (size_t f = 1; f < star.normals.size(); ++f)
    c = c + autodiff::outer(star.normals[f] - mean, star.normals[f] - mean);
  const Value scale = mean[0].graph().constant(1 / count);
  c = c * scale;
  return symmetric_eigenvalues(c)[0] / (trace(c) + 3 * kJitter);
}

Value covariance_grid(const StarFaces& star) {
  // Twelve directions in six pairs of opposites, which give the same sums.
  const double a = 1 / std::sqrt(1 + std::numbers::phi * std::numbers::phi), b = a * std::numbers::phi;
  std::vector<Value> energies;
  for (const auto& u : std::initializer_list<std::array<double, 3>>{
           {0, a, b}, {0, -a, b}, {a, b, 0}, {-a, b, 0}, {b, 0, a}, {b, 0, -a}}) {
    std::vector<Value> terms;
    for (size_t f = 0; f < star.normals.size(); ++f) {
      const Vec3& n = star.normals[f];
      terms.push_back(star.tip_angles[f] * square(n[0] * u[0] + n[1] * u[1] + n[2] * u[2]));
    }
    energies.push_back(sum(terms));
  }
  return least(energies);
}

// Of unit length where the vector is clearly longer than rounding errors, and zero where it is not: the pole
// of a flat star is not defined, and its energy is 0.
Vec3 soft_normalize(const Vec3& v) { return v / sqrt(squared_norm(v) + 1e-12); }

Value off_circle(const StarFaces& star, const Vec3& pole) {
  std::vector<Value> terms;
  for (size_t f = 0; f < star.normals.size(); ++f)
    terms.push_back(star.tip_angles[f] * square(dot(star.normals[f], pole)));
  return safe_div(sum(terms), sum(star.tip_angles));
}

// Cross product of the two normals that are furthest apart.
Vec3 widest_pair(const StarFaces& star) {
  Vec3 product = cross(star.normals[0], star.normals[1]);
  Value lowest = dot(star.normals[0], star.normals[1]);
  for (size_t i = 0; i < star.normals.size(); ++i) {
    for (size_t j = i + 1; j < star.normals.size(); ++j) {
      if (i == 0 && j == 1) continue;
      const Value cosine = dot(star.normals[i], star.normals[j]);
      const Condition wider = cosine < lowest;
      product = select(wider, cross(star.normals[i], star.normals[j]), product);
      lowest = select(wider, cosine, lowest);
    }
  }
  return product;
}

Value great_circle(const StarFaces& star) { return off_circle(star, soft_normalize(widest_pair(star))); }

// Poles of pairs are axes, not directions: each votes by its projection of the widest pair's pole, which has
// no sign of its own, so that the result does not depend on where the ring begins.
Value plane_alignment(const StarFaces& star) {
  const Vec3 reference = soft_normalize(widest_pair(star));
  Vec3 votes = zero3(reference[0].graph());
  for (size_t i = 0; i < star.normals.size(); ++i) {
    for (size_t j = i + 1; j < star.normals.size(); ++j) {
      const Vec3 pole = soft_normalize(cross(star.normals[i], star.normals[j]));
      votes = votes + pole * (dot(pole, reference) * star.tip_angles[i] * star.tip_angles[j] *
                              (1.0 - dot(star.normals[i], star.normals[j])));
    }
  }
  return off_circle(star, soft_normalize(votes));
}

}  // namespace

std::span<const std::string_view> developability_names() { return kNames; }

StarFaces star_faces(const Vec3& vertex, std::span<const Vec3> ring) {
  if (ring.size() < 3) {
    throw InputError(fmt::format("{} neighbours", ring.size()), "mesh star energy",
                     "three or more around a vertex");
  }
  std::vector<Vec3> spokes;
  for (const Vec3& q : ring) spokes.push_back(q - vertex);
  StarFaces star;
  star.mean_normal = zero3(vertex[0].graph());
  for (size_t k = 0; k < ring.size(); ++k) {
    const Vec3 &u = spokes[k], &v = spokes[(k + 1) % ring.size()], doubled = cross(u, v);
    star.mean_normal = star.mean_normal + doubled;
    star.normals.push_back(safe_normalize(doubled));
    star.tip_angles.push_back(safe_atan2(safe_norm(doubled), dot(u, v)));
  }
  star.mean_normal = safe_normalize(star.mean_normal);
  return star;
}

Value star_energy(Developability kind, const StarFaces& star, std::span<const Value> masks) {
  switch (kind) {
    case Developability::covariance: return covariance(star);
    case Developability::covariance_max: return covariance_max(star);
    case Developability::partition: return partition(star);
    case Developability::partition_sampled: return partition_sampled(star, masks);
    case Developability::midpoint: return midpoint(star);
    case Developability::bimodal: return bimodal(star);
    case Developability::ridge: return ridge(star);
    case Developability::eigen_proxy: return eigen_proxy(star);
    case Developability::covariance_grid: return covariance_grid(star);
    case Developability::great_circle: return great_circle(star);
    case Developability::plane_alignment: return plane_alignment(star);
  }
  throw InternalError(fmt::format("energy {}", int(kind)), "mesh star_energy", "one of the enum");
}

TermType star_term(Developability kind, int valence) {
  TermType type;
  type.name = fmt::format("mesh.{}.{}", kNames[size_t(kind)], valence);
  type.slots.assign(size_t(valence) + 1, 3);
  type.data = kind == Developability::partition_sampled ? sampled_cut_count(valence) * valence : 0;
  type.energy = true;
  type.residual = [kind, valence](const TermArguments& a) {
    std::vector<Vec3> ring;
    for (int k = 1; k <= valence; ++k) ring.push_back(a.vec3(k));
    std::vector<Value> masks;
    for (int k = 0; k < a.data_count(); ++k) masks.push_back(a.data(k));
    return std::vector{star_energy(kind, star_faces(a.vec3(0), ring), masks)};
  };
  return type;
}

int cut_count(int valence) { return valence * (valence - 1) / 2; }
int sampled_cut_count(int valence) { return 1 + (cut_count(valence) + 9) / 10; }

std::vector<double> sampled_masks(std::array<int, 2> given, int valence, uint64_t seed, uint64_t round,
                                  uint64_t vertex) {
  std::vector<std::array<int, 2>> cuts;
  for (int p = 0; p < valence; ++p)
    for (int q = p + 1; q < valence; ++q) cuts.push_back({p, q});
  const auto samples = size_t(sampled_cut_count(valence));
  std::iter_swap(cuts.begin(), std::find(cuts.begin(), cuts.end(), given));
  std::vector<double> masks;
  for (size_t k = 0; k < samples; ++k) {
    // After the given one, the first steps of a Fisher-Yates shuffle: no cut twice.
    if (k > 0) {
      const uint64_t bits = split_mix64(split_mix64(split_mix64(seed) ^ round) ^ (vertex * 64 + k));
      std::swap(cuts[k], cuts[k + size_t(bits % (cuts.size() - k))]);
    }
    for (int f = 0; f < valence; ++f) masks.push_back(f >= cuts[k][0] && f < cuts[k][1]);
  }
  return masks;
}

std::array<int, 2> best_cut(std::span<const std::array<double, 3>> normals) {
  const auto n = int(normals.size());
  std::vector<std::array<double, 3>> sums{{0, 0, 0}};
  for (const auto& normal : normals) {
    sums.push_back(sums.back());
    for (size_t c = 0; c < 3; ++c) sums.back()[c] += normal[c];
  }
  // Both arcs' |n|^2 add up to the same number for all cuts: what counts is the squared length of the sums.
  std::array<int, 2> best{0, 1};
  double most = -1;
  for (int p = 0; p < n; ++p) {
    for (int q = p + 1; q < n; ++q) {
      double inside = 0, outside = 0;
      for (size_t c = 0; c < 3; ++c) {
        const double in = sums[size_t(q)][c] - sums[size_t(p)][c], out = sums.back()[c] - in;
        inside += in * in;
        outside += out * out;
      }
      const double explained = inside / (q - p) + outside / (n - (q - p));
      if (explained > most) {
        most = explained;
        best = {p, q};
      }
    }
  }
  return best;
}

}  // namespace lockstep::solve::mesh
