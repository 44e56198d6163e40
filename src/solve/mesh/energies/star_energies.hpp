// Developability of a vertex star: energies that vanish where the star's triangles are in one plane or in two
// that meet in a line through the vertex. Formulas and zero sets are in README.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve::mesh {

enum class Developability : uint8_t {
  covariance,         // E^lambda: smallest in-plane eigenvalue of the normals' covariance
  covariance_max,     // its largest-deviation variant: min over u of max over faces <u, N>^2
  partition,          // E^P: best split into two arcs
  partition_sampled,  // E^P over one cut and a tenth of the others, given as data
  midpoint,           // split at the middle index
  bimodal,            // split at the middle index, alignment with each half's mean direction
  ridge,              // split at the two sharpest edges
  eigen_proxy,        // smallest eigenvalue of the centred covariance over its trace
  covariance_grid,    // E^lambda's sum, least over the directions of an icosahedron
  great_circle,       // distance from the great circle through the two normals furthest apart
  plane_alignment,    // distance from the great circle that all pairs of normals vote for
};
/// "developable", "developable-max", "partition", …: names of the command line, in the order of the enum.
std::span<const std::string_view> developability_names();

/// The star as Values: faces (vertex, ring[k], ring[k + 1]), cyclic.
struct StarFaces {
  std::vector<autodiff::Vec3> normals;  // unit; zero for a face without area
  std::vector<Value> tip_angles;
  autodiff::Vec3 mean_normal;  // unit, weighted by area
};
StarFaces star_faces(const autodiff::Vec3& vertex, std::span<const autodiff::Vec3> ring);

/// The energy of a closed star of three faces or more. `masks`: for partition_sampled only, the cuts: for
/// each one number per face, 1 for the first arc and 0 for the second.
Value star_energy(Developability kind, const StarFaces& star, std::span<const Value> masks = {});

/// An energy term with slots (vertex, ring …) of three numbers each. Its topology depends on the valence
/// alone.
TermType star_term(Developability kind, int valence);

/// Cuts [p, q) of a star of `valence` faces, n (n - 1) / 2 of them, and how many partition_sampled looks at:
/// one that is given and a tenth of them.
int cut_count(int valence);
int sampled_cut_count(int valence);
/// Masks of a given cut and of sampled ones: a function of the arguments alone. `round` draws again.
std::vector<double> sampled_masks(std::array<int, 2> given, int valence, uint64_t seed, uint64_t round,
                                  uint64_t vertex);
/// The cut that gives the partition energy of faces with these unit normals.
std::array<int, 2> best_cut(std::span<const std::array<double, 3>> normals);

}  // namespace lockstep::solve::mesh
