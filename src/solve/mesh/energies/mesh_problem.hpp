// A mesh, an energy and what holds it, as a Problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/solve.hpp"
#include "solve/mesh/connectivity.hpp"
#include "solve/mesh/energies/star_energies.hpp"
#include "solve/mesh/selection.hpp"

namespace lockstep::solve::mesh {

/// Names of all energies: smooth, smooth-cotangent, springs, bend, cloth, arap, parameterize and
/// developability_names().
std::vector<std::string> energy_names();

/// Options left out follow from the energy. Those that an energy does not use are refused.
struct MeshOptions {
  std::string energy = "smooth";
  std::vector<int32_t> fixed;        // vertices held where they are
  std::vector<Handle> handles;       // vertices held elsewhere; no vertex twice, none of `fixed`
  std::optional<double> attach;      // stiffness that draws each vertex to its place
  std::optional<double> stiffness;   // of springs
  std::optional<double> bend;        // of hinges: bend and cloth
  std::optional<double> gravity;     // cloth: force per area, along -z
  std::optional<double> rest_scale;  // rest lengths of springs over those of the file
  std::optional<uint64_t> seed;      // of partition-sampled
  uint64_t round = 0;  // of partition-sampled: 0 looks at all cuts, later ones at the best and a tenth
  RobustLoss loss;     // of every residual; energies are added as they are
};

/// Defaults of an energy.
struct EnergyDefaults {
  Method method = Method::lm;
  int iterations = 100;
  double stiffness = 1, bend = 0.09, attach = 0, gravity = 1, rest_scale = 1;
};
EnergyDefaults energy_defaults(const std::string& energy);

/// The problem of one energy. Vertices in no term are held, too.
class MeshProblem {
 public:
  /// Throws InputError for an unknown energy, an option that it does not use, a vertex with two handles or with
  /// a handle though it is fixed, a mesh that cannot be parameterised, an energy that has no vertex to act on,
  /// or a robust loss where nothing is a residual.
  MeshProblem(TriangleMesh mesh, Connectivity connectivity, const MeshOptions& options);

  Problem& problem() { return problem_; }
  const TriangleMesh& rest() const { return rest_; }
  const Connectivity& connectivity() const { return connectivity_; }
  const MeshOptions& options() const { return options_; }
  /// The mesh at the problem's values; for parameterize the flat one, (u, v, 0).
  TriangleMesh result() const;
  /// (n, 2) of parameterize, else empty.
  std::vector<double> uv() const;
  /// Draws the cuts of partition-sampled again at the present positions.
  void resample(uint64_t round);

 private:
  void build();
  void add(TermType type, int slots, std::span<const int32_t> indices, std::span<const double> data);
  void hold();
  void add_smoothing(bool cotangent);
  void add_springs();
  void add_bend(bool flat);
  void add_cloth();
  void add_arap();
  void add_parameterization();
  void add_stars(Developability kind);
  void add_attachments(double stiffness);
  Point start_normal(int32_t a, int32_t b, int32_t c) const;

  TriangleMesh rest_;
  Connectivity connectivity_;
  MeshOptions options_;
  EnergyDefaults defaults_;
  std::vector<double> start_;  // positions with handles in place
  std::vector<uint8_t> used_;  // vertices in a term
  bool has_residuals_ = false;
  Problem problem_;
  BlockSet points_;
};

/// Minimises as the energy wants it: partition-sampled looks at all cuts for its first 30 iterations, then
/// draws again every 10; all others are one minimisation. The summary spans all of it, as does the checkpoint.
/// Throws InputError for a seed where nothing is drawn.
Summary minimize_mesh(MeshProblem& mesh, Context& context, const Options& options);

/// Developability of each star on the host; NaN at the boundary and where the valence is below 4.
std::vector<double> star_energies(Developability kind, const TriangleMesh& mesh,
                                  const Connectivity& connectivity);

}  // namespace lockstep::solve::mesh
