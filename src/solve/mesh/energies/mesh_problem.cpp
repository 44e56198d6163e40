#include "solve/mesh/energies/mesh_problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lockstep/error.hpp"
#include "lockstep/solve/run.hpp"
#include "solve/mesh/energies/terms.hpp"
#include "solve/mesh/geometry.hpp"
#include "solve/mesh/parameterize.hpp"
#include "solve/minimize/checkpoint.hpp"

namespace lockstep::solve::mesh {
namespace {

constexpr int kLeastValence = 4;  // three faces are developable only where they are flat

std::optional<Developability> developability(const std::string& name) {
  const auto names = developability_names();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return Developability(it - names.begin());
}

// Inner vertices by valence.
std::map<int, std::vector<int32_t>> stars_by_valence(const Connectivity& connectivity) {
  std::map<int, std::vector<int32_t>> groups;
  for (int64_t v = 0; v < connectivity.vertices; ++v) {
    const auto valence = int(connectivity.star(v).size());
    if (!connectivity.on_boundary[size_t(v)] && valence >= kLeastValence)
      groups[valence].push_back(int32_t(v));
  }
  return groups;
}

// Weights below this share of the mean would let an obtuse mesh fold.
constexpr double kLeastCotangent = 1e-3;

std::vector<double> positive_cotangents(const TriangleMesh& mesh, const Connectivity& connectivity) {
  std::vector<double> weights = cotangent_weights(mesh, connectivity);
  double mean = 0;
  for (const double w : weights) mean += std::abs(w) / double(weights.size());
  for (double& w : weights) w = std::max(w, kLeastCotangent * mean);
  return weights;
}

/// Refuses options that the energy would pass over.
void check_used(const MeshOptions& options) {
  const std::string& energy = options.energy;
  const bool springs = energy == "springs" || energy == "bend" || energy == "cloth";
  const struct {
    const char* option;
    bool given, used;
    const char* by;
  } all[] = {
      {"attach", options.attach.has_value(), energy != "parameterize", "every energy but parameterize"},
      {"stiffness", options.stiffness.has_value(), springs, "springs, bend and cloth"},
      {"rest_scale", options.rest_scale.has_value(), springs, "springs, bend and cloth"},
      {"bend", options.bend.has_value(), energy == "bend" || energy == "cloth", "bend and cloth"},
      {"gravity", options.gravity.has_value(), energy == "cloth", "cloth"},
      {"seed", options.seed.has_value(), energy == "partition-sampled", "partition-sampled"},
  };
  for (const auto& o : all)
    if (o.given && !o.used)
      throw schema_of<MeshRun>().error({OptionError::Kind::useless, o.option,
                                        fmt::format("it has no effect with {{energy}} {}", energy),
                                        fmt::format("an {{energy}} of {}", o.by), ""});
}

}  // namespace

std::vector<std::string> energy_names() {
  std::vector<std::string> names{"smooth", "smooth-cotangent", "springs", "bend", "cloth",
                                 "arap",   "parameterize"};
  for (const std::string_view name : developability_names()) names.emplace_back(name);
  return names;
}

EnergyDefaults energy_defaults(const std::string& energy) {
  EnergyDefaults defaults;
  if (energy == "smooth" || energy == "smooth-cotangent") defaults.attach = 0.1;
  if (energy == "cloth")
    defaults = {.method = Method::newton, .iterations = 200, .stiffness = 100, .bend = 1e-4};
  if (energy == "parameterize") defaults.method = Method::newton;
  if (developability(energy)) defaults.method = Method::lbfgs, defaults.iterations = 200;
  return defaults;
}

MeshProblem::MeshProblem(TriangleMesh mesh, Connectivity connectivity, const MeshOptions& options)
    : rest_(std::move(mesh)),
      connectivity_(std::move(connectivity)),
      options_(options),
      defaults_(energy_defaults(options.energy)) {
  check_used(options_);
  start_ = rest_.vertices;
  std::vector<uint8_t> held(size_t(connectivity_.vertices), 0);
  for (const int32_t v : options_.fixed) held[size_t(v)] = 1;
  for (const Handle& handle : options_.handles) {
    uint8_t& h = held[size_t(handle.vertex)];
    if (h) {
      throw InputError(h == 1 ? fmt::format("vertex {} is fixed and has a handle", handle.vertex)
                              : fmt::format("vertex {} has two handles", handle.vertex),
                       "mesh handles", "each vertex held once");
    }
    h = 2;
    std::copy(handle.target.begin(), handle.target.end(), start_.begin() + 3 * handle.vertex);
  }
  build();
  if (options_.loss.kind != RobustLoss::Kind::none && !has_residuals_)
    throw schema_of<MeshRun>().error({OptionError::Kind::useless, "loss",
                                      fmt::format("{{energy}} {} has no residuals", options_.energy),
                                      "an {energy} of residuals, or {attach}", ""});
}

void MeshProblem::build() {
  const std::string& energy = options_.energy;
  used_.assign(size_t(connectivity_.vertices), 0);
  problem_ = Problem();
  if (energy == "parameterize") {
    add_parameterization();
    return;
  }
  points_ = problem_.add_blocks("vertices", euclidean(3), start_);
  const double attach = options_.attach.value_or(defaults_.attach);
  if (energy == "smooth" || energy == "smooth-cotangent") {
    add_smoothing(energy == "smooth-cotangent");
  } else if (energy == "springs") {
    add_springs();
  } else if (energy == "bend") {
    add_springs();
    add_bend(true);
  } else if (energy == "cloth") {
    add_cloth();
  } else if (energy == "arap") {
    add_arap();
  } else if (const auto kind = developability(energy)) {
    const bool all_cuts = *kind == Developability::partition_sampled && options_.round == 0;
    add_stars(all_cuts ? Developability::partition : *kind);
  } else {
    throw InputError(fmt::format("energy '{}'", energy), "mesh",
                     fmt::format("one of {}", fmt::join(energy_names(), ", ")));
  }
  if (attach > 0) add_attachments(attach);
  hold();
}

void MeshProblem::add(TermType type, int slots, std::span<const int32_t> indices,
                      std::span<const double> data) {
  if (!type.energy) type.loss = options_.loss, has_residuals_ = true;
  problem_.add_terms(type, std::vector<BlockSet>(size_t(slots), points_), indices, data);
}

void MeshProblem::hold() {
  for (const int32_t v : options_.fixed) problem_.fix(points_, v);
  for (const Handle& handle : options_.handles) problem_.fix(points_, handle.vertex);
  for (size_t v = 0; v < used_.size(); ++v)
    if (!used_[v]) problem_.fix(points_, int64_t(v));
}

void MeshProblem::add_attachments(double stiffness) {
  std::vector<int32_t> indices;
  std::vector<double> data;
  for (int64_t v = 0; v < connectivity_.vertices; ++v) {
    const Point p = point(rest_, v);
    indices.push_back(int32_t(v));
    data.insert(data.end(), {p[0], p[1], p[2], std::sqrt(stiffness)});
  }
  add(attachment_term(), 1, indices, data);
  std::fill(used_.begin(), used_.end(), uint8_t(1));
}

void MeshProblem::add_smoothing(bool cotangent) {
  const std::vector<double> cotangents =
      cotangent ? positive_cotangents(rest_, connectivity_) : std::vector<double>{};
  const std::vector<double> areas = vertex_areas(rest_);
  double mean_area = 0, mean_sum = 0;
  int64_t inner = 0;
  if (cotangent) {
    for (const double a : areas) mean_area += a / double(areas.size());
    for (int64_t v = 0; v < connectivity_.vertices; ++v) {
      if (connectivity_.on_boundary[size_t(v)]) continue;
      ++inner;
      for (const int32_t w : connectivity_.star(v))
        mean_sum += cotangents[size_t(edge_index(connectivity_, int32_t(v), w))];
    }
    mean_sum /= double(std::max<int64_t>(inner, 1));
  }
  // Instances by number of neighbours; a boundary vertex sees its two neighbours along the boundary.
  std::map<int, std::pair<std::vector<int32_t>, std::vector<double>>> groups;
  for (int64_t v = 0; v < connectivity_.vertices; ++v) {
    const auto ring = connectivity_.star(v);
    std::vector<int32_t> neighbours(ring.begin(), ring.end());
    std::vector<double> weights;
    if (connectivity_.on_boundary[size_t(v)]) {
      neighbours = {ring.front(), ring.back()};
      weights = {0.5, 0.5};
    } else if (cotangent) {
      for (const int32_t w : neighbours)
        weights.push_back(cotangents[size_t(edge_index(connectivity_, int32_t(v), w))] / mean_sum *
                          std::sqrt(mean_area / areas[size_t(v)]));
    } else {
      weights.assign(neighbours.size(), 1.0 / double(neighbours.size()));
    }
    auto& [indices, data] = groups[int(neighbours.size())];
    indices.push_back(int32_t(v));
    indices.insert(indices.end(), neighbours.begin(), neighbours.end());
    data.insert(data.end(), weights.begin(), weights.end());
  }
  for (const auto& [neighbours, instances] : groups) {
    add(laplacian_term(neighbours), neighbours + 1, instances.first, instances.second);
  }
  std::fill(used_.begin(), used_.end(), uint8_t(1));
}

void MeshProblem::add_springs() {
  const double weight = std::sqrt(options_.stiffness.value_or(defaults_.stiffness)),
               scale = options_.rest_scale.value_or(defaults_.rest_scale);
  std::vector<int32_t> indices;
  std::vector<double> data;
  const std::vector<double> lengths = edge_lengths(rest_, connectivity_);
  for (size_t e = 0; e < lengths.size(); ++e) {
    indices.insert(indices.end(), connectivity_.edges[e].begin(), connectivity_.edges[e].end());
    data.insert(data.end(), {lengths[e] * scale, weight});
  }
  add(spring_term(), 2, indices, data);
  std::fill(used_.begin(), used_.end(), uint8_t(1));
}

void MeshProblem::add_bend(bool flat) {
  const double weight = std::sqrt(options_.bend.value_or(defaults_.bend));
  std::vector<int32_t> indices;
  std::vector<double> data;
  for (const Hinge& h : connectivity_.hinges) {
    indices.insert(indices.end(), {h.a, h.b, h.c, h.d});
    if (!flat) data.push_back(hinge_angle(rest_, h));
    data.push_back(weight);
  }
  add(flat ? normal_difference_term() : bend_term(), 4, indices, data);
}

void MeshProblem::add_cloth() {
  add_springs();
  if (options_.bend.value_or(defaults_.bend) > 0) add_bend(false);
  // Heights count from a depth that no vertex reaches, so the cost stays positive.
  const Box box = bounding_box(rest_);
  const double depth = box.low[2] - 2 * length(box.high - box.low);
  const double gravity = options_.gravity.value_or(defaults_.gravity);
  const std::vector<double> areas = vertex_areas(rest_);
  std::vector<int32_t> indices;
  std::vector<double> data;
  for (int64_t v = 0; v < connectivity_.vertices; ++v) {
    indices.push_back(int32_t(v));
    data.insert(data.end(), {gravity * areas[size_t(v)], 0, 0, 1, depth});
  }
  add(gravity_term(), 1, indices, data);
}

void MeshProblem::add_arap() {
  std::vector<double> identities;
  for (int64_t v = 0; v < connectivity_.vertices; ++v) identities.insert(identities.end(), {1, 0, 0, 0});
  const BlockSet rotations = problem_.add_blocks("rotations", so3(), identities);
  const std::vector<double> weights = positive_cotangents(rest_, connectivity_);
  std::vector<int32_t> indices;
  std::vector<double> data;
  for (size_t e = 0; e < connectivity_.edges.size(); ++e) {
    const auto [a, b] = connectivity_.edges[e];
    for (const auto& [i, j] : {std::array{a, b}, std::array{b, a}}) {
      const Point rest = point(rest_, j) - point(rest_, i);
      indices.insert(indices.end(), {i, j, i});
      data.insert(data.end(), {rest[0], rest[1], rest[2], std::sqrt(weights[e])});
    }
  }
  TermType type = arap_term();
  type.loss = options_.loss, has_residuals_ = true;
  problem_.add_terms(type, {points_, points_, rotations}, indices, data);
  std::fill(used_.begin(), used_.end(), uint8_t(1));
}

void MeshProblem::add_parameterization() {
  if (!options_.fixed.empty() || !options_.handles.empty())
    throw InputError("fixed vertices or handles", "mesh parameterize", "none: the map is free");
  check_disk(connectivity_, "mesh parameterize");
  points_ = problem_.add_blocks("uv", euclidean(2), tutte_embedding(rest_, connectivity_));
  problem_.add_terms(symmetric_dirichlet_term(), {points_, points_, points_}, rest_.faces,
                     rest_frames(rest_));
}

Point MeshProblem::start_normal(int32_t a, int32_t b, int32_t c) const {
  const auto at = [&](int32_t v) {
    return Point{start_[size_t(3 * v)], start_[size_t(3 * v) + 1], start_[size_t(3 * v) + 2]};
  };
  const Point doubled = cross(at(b) - at(a), at(c) - at(a));
  const double twice = length(doubled);
  return twice > 0 ? doubled * (1 / twice) : doubled;
}

void MeshProblem::add_stars(Developability kind) {
  const auto groups = stars_by_valence(connectivity_);
  if (groups.empty())
    throw InputError("no inner vertex with four neighbours or more", "mesh " + options_.energy,
                     "at least one");
  for (const auto& [valence, vertices] : groups) {
    std::vector<int32_t> indices;
    std::vector<double> data;
    for (const int32_t v : vertices) {
      const auto ring = connectivity_.star(v);
      indices.push_back(v);
      indices.insert(indices.end(), ring.begin(), ring.end());
      if (kind == Developability::partition_sampled) {
        std::vector<Point> normals;
        for (size_t k = 0; k < ring.size(); ++k)
          normals.push_back(start_normal(v, ring[k], ring[(k + 1) % ring.size()]));
        const std::vector<double> masks =
            sampled_masks(best_cut(normals), valence, options_.seed.value_or(0), options_.round, uint64_t(v));
        data.insert(data.end(), masks.begin(), masks.end());
      }
    }
    for (const int32_t v : indices) used_[size_t(v)] = 1;
    add(star_term(kind, valence), valence + 1, indices, data);
  }
}

void MeshProblem::resample(uint64_t round) {
  const auto now = problem_.values(points_);
  start_.assign(now.begin(), now.end());
  options_.round = round;
  build();
}

TriangleMesh MeshProblem::result() const {
  TriangleMesh mesh = rest_;
  const auto values = problem_.values(points_);
  if (options_.energy != "parameterize") {
    mesh.vertices.assign(values.begin(), values.end());
    return mesh;
  }
  for (int64_t v = 0; v < rest_.vertex_count(); ++v) {
    mesh.vertices[size_t(3 * v)] = values[size_t(2 * v)];
    mesh.vertices[size_t(3 * v) + 1] = values[size_t(2 * v) + 1];
    mesh.vertices[size_t(3 * v) + 2] = 0;
  }
  return mesh;
}

std::vector<double> MeshProblem::uv() const {
  if (options_.energy != "parameterize") return {};
  const auto values = problem_.values(points_);
  return {values.begin(), values.end()};
}

namespace {

/// `next` after `whole`, as one.
Summary joined(const Summary& whole, Summary next) {
  for (Iteration& row : next.trace) {
    row.iteration += whole.iterations;
    row.seconds += whole.seconds.at("total");
  }
  next.trace.insert(next.trace.begin(), whole.trace.begin(), whole.trace.end());
  for (const auto& [part, seconds] : whole.seconds) next.seconds[part] += seconds;
  next.initial_cost = whole.initial_cost;
  next.iterations += whole.iterations;
  next.linear_iterations += whole.linear_iterations;
  next.kernels = std::max(next.kernels, whole.kernels);
  return next;
}

}  // namespace

Summary minimize_mesh(MeshProblem& mesh, Context& context, const Options& options) {
  constexpr int kAllCuts = 30, kRound = 10;
  const bool sampled = mesh.options().energy == "partition-sampled";
  CheckpointFile file(options);
  Options part = options;
  if (sampled) part.max_iterations = std::min(kAllCuts, options.max_iterations);
  if (mesh.options().seed && options.max_iterations <= kAllCuts)
    throw schema_of<MeshRun>().error(
        {OptionError::Kind::useless, "seed", fmt::format("a seed for {} iterations", options.max_iterations),
         fmt::format("more than {} {{iterations}}, from which on cuts are drawn", kAllCuts), ""});
  Summary whole = minimize_next(mesh.problem(), context, part, file);
  const auto goes_on = [&] {
    return sampled && options.max_iterations > kAllCuts && whole.iterations < options.max_iterations &&
           whole.termination != Termination::stopped && whole.termination != Termination::failure &&
           whole.termination != Termination::time_limit;
  };
  // Rows and calls of a round are those of the whole.
  int before = 0;
  double seconds = 0;
  if (options.callback)
    part.callback = [&](Iteration row) {
      row.iteration += before, row.seconds += seconds;
      return options.callback(row);
    };
  for (uint64_t round = 1; goes_on(); ++round) {
    before = whole.iterations, seconds = whole.seconds["total"];
    mesh.resample(round);
    part.max_iterations = std::min(kRound, options.max_iterations - whole.iterations);
    Summary next = minimize_next(mesh.problem(), context, part, file);
    if (next.iterations == 0) break;
    whole = joined(whole, std::move(next));
  }
  return whole;
}

std::vector<double> star_energies(Developability kind, const TriangleMesh& mesh,
                                  const Connectivity& connectivity) {
  std::vector<double> energies(size_t(connectivity.vertices), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [valence, vertices] : stars_by_valence(connectivity)) {
    autodiff::Tape graph;
    std::vector<autodiff::Vec3> points;
    for (int k = 0; k <= valence; ++k)
      points.push_back({{graph.variable("x"), graph.variable("y"), graph.variable("z")}});
    const bool sampled = kind == Developability::partition_sampled;
    const Value energy = star_energy(sampled ? Developability::partition : kind,
                                     star_faces(points[0], std::span(points).subspan(1)));
    std::vector<double> leaves;
    for (const int32_t v : vertices) {
      leaves.clear();
      const auto add = [&](int32_t w) {
        const Point p = point(mesh, w);
        leaves.insert(leaves.end(), p.begin(), p.end());
      };
      add(v);
      for (const int32_t w : connectivity.star(v)) add(w);
      energies[size_t(v)] = autodiff::evaluate(energy, leaves);
    }
  }
  return energies;
}

}  // namespace lockstep::solve::mesh

namespace lockstep::solve {

std::vector<std::string> mesh_energies() { return mesh::energy_names(); }
Method usual_method(const std::string& energy) { return mesh::energy_defaults(energy).method; }

}  // namespace lockstep::solve
