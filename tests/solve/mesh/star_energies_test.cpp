// Developability energies: gradients by complex steps, plain references, zero sets and symmetries.
#include "solve/mesh/energies/star_energies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <random>
#include <set>

#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/connectivity.hpp"

namespace lockstep::solve::mesh {
namespace {

constexpr int kKinds = 11;

std::vector<Developability> all_kinds() {
  std::vector<Developability> kinds;
  for (int k = 0; k < kKinds; ++k) kinds.push_back(Developability(k));
  return kinds;
}
std::string label(Developability kind) { return std::string(developability_names()[size_t(kind)]); }

using Star = std::vector<Point>;  // the vertex, then its ring

// The energy with leaves: positions, then masks.
struct TracedStar {
  TracedStar(Developability kind, int valence, uint64_t vertex = 3, std::array<int, 2> given = {0, 1}) {
    const TermType type = star_term(kind, valence);
    std::vector<std::vector<Value>> blocks;
    for (int k = 0; k <= valence; ++k) {
      blocks.emplace_back();
      for (int c = 0; c < 3; ++c) blocks.back().push_back(graph.variable("x"));
    }
    std::vector<Value> data;
    for (int k = 0; k < type.data; ++k) data.push_back(graph.parameter("mask"));
    energy = type.residual(TermArguments(graph, blocks, data)).at(0);
    if (type.data > 0) masks = sampled_masks(given, valence, 1, 2, vertex);
  }
  std::vector<double> leaves(const Star& star) const {
    std::vector<double> all;
    for (const Point& p : star) all.insert(all.end(), p.begin(), p.end());
    all.insert(all.end(), masks.begin(), masks.end());
    return all;
  }
  double operator()(const Star& star) const { return autodiff::evaluate(energy, leaves(star)); }
  autodiff::Tape graph;
  Value energy;
  std::vector<double> masks;
};

Star random_star(int valence, std::mt19937& random, double height) {
  std::uniform_real_distribution<double> share(-1, 1);
  Star star{{0.1 * share(random), 0.1 * share(random), 0.3 * share(random)}};
  for (int k = 0; k < valence; ++k) {
    const double angle = 2 * std::numbers::pi * (k + 0.3 * share(random)) / valence,
                 r = 1 + 0.3 * share(random);
    star.push_back({r * std::cos(angle), r * std::sin(angle), height * share(random)});
  }
  return star;
}

Point turned(const Point& v, const Point& axis, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return v * c + cross(axis, v) * s + axis * (dot(axis, v) * (1 - c));
}

Star moved(Star star) {
  const Point axis = Point{0.48, -0.6, 0.64};
  for (Point& p : star) p = turned(p * 2.5, axis, 1.234) + Point{4, -3, 2};
  return star;
}
Star shifted(Star star, int by) {
  std::rotate(star.begin() + 1, star.begin() + 1 + by, star.end());
  return star;
}

// Two half planes that meet in the line along x through the vertex, folded by `angle`; edges 0 and `half` of
// the ring lie on the line.
Star hinge_star(int valence, double angle, int half) {
  Star star{{0, 0, 0}};
  for (int k = 0; k < valence; ++k) {
    const double turn =
        k < half ? std::numbers::pi * k / half : std::numbers::pi * (1 + double(k - half) / (valence - half));
    Point p{std::cos(turn), std::sin(turn), 0};
    if (k > half) p = turned(p, {1, 0, 0}, angle);
    star.push_back(p * (1 + 0.1 * k));
  }
  return star;
}

// A vertex of a faceted cone: equal heights on a circle.
Star cone_star(int valence, double depth) {
  Star star{{0, 0, 0}};
  for (int k = 0; k < valence; ++k) {
    const double turn = 2 * std::numbers::pi * k / valence;
    star.push_back({std::cos(turn), std::sin(turn), -depth});
  }
  return star;
}

// ── plain references ──

struct PlainStar {
  explicit PlainStar(const Star& star) {
    const size_t n = star.size() - 1;
    for (size_t k = 0; k < n; ++k) {
      const Point u = star[1 + k] - star[0], v = star[1 + (k + 1) % n] - star[0], doubled = cross(u, v);
      mean = mean + doubled;
      normals.push_back(doubled * (1 / length(doubled)));
      angles.push_back(std::acos(dot(u, v) / (length(u) * length(v))));
    }
    mean = mean * (1 / length(mean));
  }
  std::vector<Point> normals;
  std::vector<double> angles;
  Point mean{0, 0, 0};
};

// Least value over directions u in the plane perpendicular to the mean normal, by a scan.
template <class F>
double least_over_tangents(const PlainStar& star, F value) {
  Point e = std::abs(star.mean[0]) < 0.5 ? Point{1, 0, 0} : Point{0, 1, 0};
  e = e - star.mean * dot(e, star.mean);
  e = e * (1 / length(e));
  double best = std::numeric_limits<double>::infinity();
  const int steps = 200000;
  for (int k = 0; k < steps; ++k)
    best = std::min(best, value(turned(e, star.mean, std::numbers::pi * k / steps)));
  return best;
}

double plain_covariance(const PlainStar& s) {
  std::vector<Point> w;
  for (const Point& n : s.normals) {
    const Point t = cross(cross(s.mean, n), s.mean);
    w.push_back(t * (std::acos(std::min(1.0, dot(s.mean, n))) / length(t)));
  }
  return least_over_tangents(s, [&](const Point& u) {
    double sum = 0;
    for (size_t f = 0; f < w.size(); ++f) sum += s.angles[f] * dot(u, w[f]) * dot(u, w[f]);
    return sum;
  });
}

double plain_covariance_max(const PlainStar& s) {
  return least_over_tangents(s, [&](const Point& u) {
    double most = 0;
    for (const Point& n : s.normals) most = std::max(most, dot(u, n) * dot(u, n));
    return most;
  });
}

// Sum over the faces chosen of |n - mean|^2, and their number.
double plain_scatter(const PlainStar& s, const std::vector<int>& faces) {
  Point mean{0, 0, 0};
  for (const int f : faces) mean = mean + s.normals[size_t(f)] * (1.0 / double(faces.size()));
  double sum = 0;
  for (const int f : faces) {
    const Point d = s.normals[size_t(f)] - mean;
    sum += dot(d, d);
  }
  return sum;
}

struct Split {
  std::vector<int> first, second;
};
Split split(int valence, int p, int q) {
  Split s;
  for (int f = 0; f < valence; ++f) (f >= p && f < q ? s.first : s.second).push_back(f);
  return s;
}

double plain_partition(const PlainStar& s) {
  const int n = int(s.normals.size());
  double best = std::numeric_limits<double>::infinity();
  for (int p = 0; p < n; ++p) {
    for (int q = p + 1; q < n; ++q) {
      const Split arcs = split(n, p, q);
      best = std::min(best, plain_scatter(s, arcs.first) + plain_scatter(s, arcs.second));
    }
  }
  return best;
}

double plain_variances(const PlainStar& s, const Split& arcs) {
  return plain_scatter(s, arcs.first) / double(arcs.first.size()) +
         plain_scatter(s, arcs.second) / double(arcs.second.size());
}

double plain_bimodal(const PlainStar& s) {
  const int n = int(s.normals.size());
  const Split halves = split(n, 0, n / 2);
  double energy = 0;
  for (const auto& half : {halves.first, halves.second}) {
    Point mean{0, 0, 0};
    for (const int f : half) mean = mean + s.normals[size_t(f)];
    mean = mean * (1 / length(mean));
    for (const int f : half) energy += (1 - dot(s.normals[size_t(f)], mean)) / double(half.size());
  }
  return energy;
}

double plain_ridge(const PlainStar& s) {
  const int n = int(s.normals.size());
  std::vector<std::pair<double, int>> edges;  // angle, edge
  for (int k = 0; k < n; ++k)
    edges.push_back({-std::acos(dot(s.normals[size_t((k + n - 1) % n)], s.normals[size_t(k)])), k});
  std::sort(edges.begin(), edges.end());
  return plain_variances(
      s, split(n, std::min(edges[0].second, edges[1].second), std::max(edges[0].second, edges[1].second)));
}

double plain_off_circle(const PlainStar& s, Point pole) {
  pole = pole * (1 / length(pole));
  double sum = 0, angles = 0;
  for (size_t f = 0; f < s.normals.size(); ++f) {
    sum += s.angles[f] * dot(s.normals[f], pole) * dot(s.normals[f], pole);
    angles += s.angles[f];
  }
  return sum / angles;
}

Point plain_widest(const PlainStar& s) {
  double lowest = 2;
  Point pole{};
  for (size_t i = 0; i < s.normals.size(); ++i) {
    for (size_t j = i + 1; j < s.normals.size(); ++j) {
      if (dot(s.normals[i], s.normals[j]) >= lowest) continue;
      lowest = dot(s.normals[i], s.normals[j]);
      pole = cross(s.normals[i], s.normals[j]);
    }
  }
  return pole;
}

double plain_plane_alignment(const PlainStar& s) {
  Point reference = plain_widest(s);
  reference = reference * (1 / length(reference));
  Point votes{0, 0, 0};
  for (size_t i = 0; i < s.normals.size(); ++i) {
    for (size_t j = i + 1; j < s.normals.size(); ++j) {
      Point pole = cross(s.normals[i], s.normals[j]);
      pole = pole * (1 / length(pole));
      votes = votes + pole * (dot(pole, reference) * s.angles[i] * s.angles[j] *
                              (1 - dot(s.normals[i], s.normals[j])));
    }
  }
  return plain_off_circle(s, votes);
}

double plain_grid(const PlainStar& s) {
  double best = std::numeric_limits<double>::infinity();
  for (const double sign : {-1.0, 1.0}) {
    for (const double other : {-1.0, 1.0}) {
      for (size_t axis = 0; axis < 3; ++axis) {
        Point u{};
        u[axis] = sign;
        u[(axis + 1) % 3] = other * std::numbers::phi;
        u = u * (1 / length(u));
        double sum = 0;
        for (size_t f = 0; f < s.normals.size(); ++f)
          sum += s.angles[f] * dot(s.normals[f], u) * dot(s.normals[f], u);
        best = std::min(best, sum);
      }
    }
  }
  return best;
}

TEST(StarEnergies, GradientsAgreeWithComplexSteps) {
  std::mt19937 random(11);
  for (const Developability kind : all_kinds()) {
    for (int valence = 3; valence <= 8; ++valence) {
      TracedStar traced(kind, valence);
      for (int trial = 0; trial < 3; ++trial) {
        const Star star = random_star(valence, random, 0.2 + 0.4 * trial);
        const auto check = autodiff::check_gradient(traced.energy, traced.leaves(star));
        EXPECT_LT(check.max_error, 1e-10) << label(kind) << " valence " << valence;
        EXPECT_LT(check.forward_error, 1e-10) << label(kind) << " valence " << valence;
      }
    }
  }
}

TEST(StarEnergies, AgreeWithPlainReferences) {
  std::mt19937 random(5);
  for (int valence = 3; valence <= 8; ++valence) {
    const Star star = random_star(valence, random, 0.5);
    const PlainStar plain(star);
    const auto energy = [&](Developability kind) { return TracedStar(kind, valence)(star); };
    // Scans in steps of 1.6e-5 rad miss the least value by at most their square (covariance) or by a step
    // (max).
    EXPECT_NEAR(energy(Developability::covariance), plain_covariance(plain), 1e-9) << valence;
    EXPECT_NEAR(energy(Developability::covariance_max), plain_covariance_max(plain), 3e-5) << valence;
    EXPECT_NEAR(energy(Developability::partition), plain_partition(plain), 1e-13) << valence;
    EXPECT_NEAR(energy(Developability::midpoint), plain_variances(plain, split(valence, 0, valence / 2)),
                1e-13);
    EXPECT_NEAR(energy(Developability::bimodal), plain_bimodal(plain), 1e-13) << valence;
    EXPECT_NEAR(energy(Developability::ridge), plain_ridge(plain), 1e-13) << valence;
    // Poles are divided by sqrt(|c|^2 + 1e-12) there.
    EXPECT_NEAR(energy(Developability::great_circle), plain_off_circle(plain, plain_widest(plain)), 1e-10);
    EXPECT_NEAR(energy(Developability::plane_alignment), plain_plane_alignment(plain), 1e-10) << valence;
    EXPECT_NEAR(energy(Developability::covariance_grid), plain_grid(plain), 1e-13) << valence;
  }
}

// det(C - lambda I) vanishes at the eigenvalue, and C - lambda I has no negative direction.
TEST(StarEnergies, EigenProxyIsTheSmallestEigenvalue) {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> share(-1, 1);
  const Star star = random_star(6, random, 0.6);
  const PlainStar plain(star);
  double c[3][3] = {}, trace = 0;
  Point mean{0, 0, 0};
  for (const Point& n : plain.normals) mean = mean + n * (1.0 / 6);
  for (const Point& n : plain.normals)
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j) c[i][j] += (n[i] - mean[i]) * (n[j] - mean[j]) / 6;
  for (size_t i = 0; i < 3; ++i) trace += c[i][i];
  const double lambda = TracedStar(Developability::eigen_proxy, 6)(star) * (trace + 3e-4);
  double least = 1e30;
  for (int k = 0; k < 20000; ++k) {
    Point u{share(random), share(random), share(random)};
    u = u * (1 / length(u));
    double quotient = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j) quotient += c[i][j] * u[i] * u[j];
    EXPECT_GE(quotient, lambda - 1e-14);
    least = std::min(least, quotient);
  }
  EXPECT_NEAR(least, lambda, 2e-4);
}

// Rounding only; Cardano's formula keeps half the digits where two eigenvalues meet, as they do on a hinge.
double zero_bound(Developability kind) { return kind == Developability::eigen_proxy ? 2e-8 : 1e-12; }

TEST(StarEnergies, VanishOnDevelopableStars) {
  // The straight edges are edges 0 and half of the ring; half is the middle index, so that the energies that
  // split there see the fold.
  for (int valence = 4; valence <= 8; ++valence) {
    for (const double angle : {0.0, 0.4, 1.2}) {
      const Star star = hinge_star(valence, angle, valence / 2);
      for (const Developability kind : all_kinds()) {
        if (kind == Developability::covariance_grid || kind == Developability::partition_sampled) continue;
        EXPECT_NEAR(TracedStar(kind, valence)(star), 0, zero_bound(kind))
            << label(kind) << " " << valence << " " << angle;
        EXPECT_NEAR(TracedStar(kind, valence)(moved(star)), 0, zero_bound(kind))
            << label(kind) << " " << valence << " " << angle;
      }
    }
  }
}

TEST(StarEnergies, FoldsElsewhereThanTheMiddleIndexCountForThoseThatLook) {
  const Star star = shifted(hinge_star(7, 0.7, 3), 2);
  for (const Developability kind :
       {Developability::covariance, Developability::covariance_max, Developability::partition,
        Developability::ridge, Developability::eigen_proxy, Developability::great_circle,
        Developability::plane_alignment})
    EXPECT_NEAR(TracedStar(kind, 7)(star), 0, zero_bound(kind)) << label(kind);
  EXPECT_GT(TracedStar(Developability::midpoint, 7)(star), 0.01);
  EXPECT_GT(TracedStar(Developability::bimodal, 7)(star), 0.01);
}

TEST(StarEnergies, GradientsVanishOnFlatStars) {
  for (int valence = 4; valence <= 8; ++valence) {
    const Star star = hinge_star(valence, 0, valence / 2);
    for (const Developability kind : all_kinds()) {
      if (kind == Developability::covariance_grid) continue;
      TracedStar traced(kind, valence);
      std::vector<Value> inputs;
      for (uint32_t k = 0; k < uint32_t(3 * (valence + 1)); ++k) inputs.push_back(traced.graph.leaf_value(k));
      for (const double g : autodiff::evaluate<double>(gradient(traced.energy, inputs), traced.leaves(star)))
        EXPECT_NEAR(g, 0, 1e-7) << label(kind) << " " << valence;
    }
  }
}

TEST(StarEnergies, ConesAreSeenByAllButTheCentredProxy) {
  for (const Developability kind : all_kinds()) {
    const double energy = TracedStar(kind, 6)(cone_star(6, 0.6));
    // The normals of a right cone are in one plane, which is all that the centred covariance depends on.
    if (kind == Developability::eigen_proxy) {
      EXPECT_NEAR(energy, 0, zero_bound(kind));
    } else {
      EXPECT_GT(energy, 0.03) << label(kind);
    }
  }
}

TEST(StarEnergies, KeepTheirValueUnderRigidMotionsAndScale) {
  std::mt19937 random(2);
  for (int valence = 4; valence <= 7; ++valence) {
    const Star star = random_star(valence, random, 0.5);
    for (const Developability kind : all_kinds()) {
      if (kind == Developability::covariance_grid) continue;  // its directions are fixed
      const TracedStar traced(kind, valence);
      EXPECT_NEAR(traced(star), traced(moved(star)), 1e-12) << label(kind) << " " << valence;
    }
  }
}

TEST(StarEnergies, DoNotDependOnWhereTheRingBegins) {
  std::mt19937 random(3);
  for (int valence = 4; valence <= 7; ++valence) {
    const Star star = random_star(valence, random, 0.5);
    for (const Developability kind :
         {Developability::covariance, Developability::covariance_max, Developability::partition,
          Developability::ridge, Developability::eigen_proxy, Developability::covariance_grid,
          Developability::great_circle, Developability::plane_alignment}) {
      const TracedStar traced(kind, valence);
      for (int by = 1; by < valence; ++by)
        EXPECT_NEAR(traced(star), traced(shifted(star, by)), 1e-12) << label(kind) << " " << valence;
    }
  }
}

TEST(StarEnergies, SampledPartitionIsAnUpperBoundDrawnDeterministically) {
  std::mt19937 random(4);
  for (int valence = 4; valence <= 8; ++valence) {
    EXPECT_EQ(sampled_cut_count(valence), 1 + (valence * (valence - 1) / 2 + 9) / 10);
    const Star star = random_star(valence, random, 0.5);
    const double full = TracedStar(Developability::partition, valence)(star);
    const std::array<int, 2> best = best_cut(PlainStar(star).normals);
    EXPECT_NEAR(TracedStar(Developability::partition_sampled, valence, 3, best)(star), full, 1e-13);
    bool met = false, above = false;
    for (uint64_t vertex = 0; vertex < 200; ++vertex) {
      const double sampled = TracedStar(Developability::partition_sampled, valence, vertex)(star);
      EXPECT_GE(sampled, full - 1e-13);
      met = met || sampled < full + 1e-13;
      above = above || sampled > full + 1e-6;
    }
    EXPECT_TRUE(met) << "some draw holds the best cut";
    EXPECT_TRUE(above) << "not all do";
    const std::vector<double> masks = sampled_masks({1, 3}, valence, 1, 2, 3);
    EXPECT_EQ(masks, sampled_masks({1, 3}, valence, 1, 2, 3));
    // The given cut comes first, and no cut twice.
    std::set<std::vector<double>> cuts;
    for (size_t k = 0; k < masks.size(); k += size_t(valence))
      cuts.insert({masks.begin() + long(k), masks.begin() + long(k) + valence});
    EXPECT_EQ(int(cuts.size()), sampled_cut_count(valence));
    for (int f = 0; f < valence; ++f) EXPECT_EQ(masks[size_t(f)], f == 1 || f == 2);
    bool differ = false;
    for (uint64_t vertex = 0; vertex < 20; ++vertex)
      differ = differ ||
               sampled_masks({1, 3}, valence, 1, 2, vertex) != sampled_masks({1, 3}, valence, 1, 3, vertex);
    EXPECT_TRUE(differ) << "rounds draw anew";
  }
}

TEST(StarEnergies, GradientsOnARealMesh) {
  const auto file = test::data_folder() / "solve" / "meshes" / "spot.obj";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const TriangleMesh mesh = io::read_mesh(file);
  const Connectivity connectivity = build_connectivity(mesh, "spot.obj");
  for (const Developability kind : all_kinds()) {
    if (kind == Developability::eigen_proxy) continue;  // see below
    std::map<int, std::unique_ptr<TracedStar>> traced;
    for (int64_t v = 0; v < connectivity.vertices; v += 97) {
      const auto ring = connectivity.star(v);
      std::unique_ptr<TracedStar>& t = traced[int(ring.size())];
      if (!t) t = std::make_unique<TracedStar>(kind, int(ring.size()));
      Star star{point(mesh, v)};
      for (const int32_t w : ring) star.push_back(point(mesh, w));
      const std::vector<double> leaves = t->leaves(star);
      const auto check = autodiff::check_gradient(t->energy, leaves);
      // Triangles are small compared with the unit: derivatives are large, and their errors are relative.
      EXPECT_LT(check.max_error, 1e-8) << label(kind) << " at vertex " << v;
      EXPECT_LT(check.forward_error, 1e-8) << label(kind) << " at vertex " << v;
    }
  }
}

TEST(StarEnergies, TopologyIsAFunctionOfTheValence) {
  for (const Developability kind : all_kinds()) {
    const auto bytes = [&](int valence) {
      const TracedStar traced(kind, valence);
      return autodiff::topology(std::span(&traced.energy, 1)).bytes;
    };
    EXPECT_EQ(bytes(6), bytes(6)) << label(kind);
    EXPECT_NE(bytes(6), bytes(5)) << label(kind);
  }
  EXPECT_THROW(TracedStar(Developability::covariance, 2), InputError);
}

}  // namespace
}  // namespace lockstep::solve::mesh
