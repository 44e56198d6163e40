#include "solve/run/mesh_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/reports/json_text.hpp"
#include "io/pictures/mesh_picture.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/mesh/geometry.hpp"
#include "solve/mesh/parameterize.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {
namespace {

using mesh::operator-;

MeshRunResult::Curvature curvature_counts(const io::TriangleMesh& shape,
                                          const mesh::Connectivity& connectivity) {
  const std::vector<mesh::Curvature> kinds = mesh::classify_curvature(shape, connectivity);
  const auto count = [&](mesh::Curvature kind) { return std::count(kinds.begin(), kinds.end(), kind); };
  return {count(mesh::Curvature::hinge), count(mesh::Curvature::seam), count(mesh::Curvature::boundary)};
}

io::MeshPictureOptions picture_options(const MeshPictureRun& picture) {
  static constexpr std::array<std::array<double, 3>, 3> kUsual{
      {{0.9, 1, -1.7}, {1, 0.9, 1.7}, {1, -1.7, 0.9}}},
      kUp{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  io::MeshPictureOptions options;
  options.width = picture.width;
  options.height = options.width * 4 / 5;
  options.view = picture.view.value_or(kUsual[size_t(picture.up)]);  // from the right and above
  options.up = kUp[size_t(picture.up)];
  options.edges = picture.edges;
  options.smooth = picture.smooth;
  return options;
}

/// |angle defect| of inner vertices, 0 at the boundary.
std::vector<double> defects_of(const io::TriangleMesh& shape, const mesh::Connectivity& connectivity) {
  std::vector<double> defects = mesh::angle_defects(shape, connectivity);
  for (size_t v = 0; v < defects.size(); ++v)
    defects[v] = connectivity.on_boundary[v] ? 0 : std::abs(defects[v]);
  return defects;
}

io::Image draw(const MeshPictureRun& picture, const mesh::MeshProblem& problem, const io::TriangleMesh& shape,
               bool is_result) {
  io::MeshPictureOptions options = picture_options(picture);
  const io::TriangleMesh& rest = problem.rest();
  if (picture.color == MeshColor::displacement) {
    options.unit = "distance moved";
    for (int64_t v = 0; v < shape.vertex_count(); ++v)
      options.values.push_back(mesh::length(mesh::point(shape, v) - mesh::point(rest, v)));
  } else if (picture.color == MeshColor::curvature) {
    options.unit = "|angle defect|";
    options.values = defects_of(shape, problem.connectivity());
    // One range for both pictures of a comparison.
    const std::vector<double> before = defects_of(rest, problem.connectivity());
    options.minimum = 0;
    options.maximum = std::max(*std::max_element(before.begin(), before.end()), 1e-9) * 3;
  }
  if (picture.compare) options.title = is_result ? problem.options().energy : "before";
  return io::draw_mesh(shape, options);
}

io::Image draw_parameterization(const MeshPictureRun& picture, const mesh::MeshProblem& problem) {
  io::MeshPictureOptions options = picture_options(picture);
  const std::vector<double> uv = problem.uv(), s = mesh::stretches(problem.rest(), uv);
  io::MeshPictureOptions chequered = options;
  chequered.uv = uv;
  std::vector<double> stretch;
  for (size_t k = 0; k < s.size(); k += 2) stretch.push_back(std::max(s[k], 1 / s[k + 1]));
  options.unit = "stretch";
  options.minimum = 1;
  return io::join_images(
      {io::draw_mesh(problem.rest(), chequered), io::draw_uv_layout(problem.rest(), uv, stretch, options)});
}

ordered_json json_of(const MeshRunResult::Curvature& c) {
  return {{"hinges", c.hinges}, {"seams", c.seams}, {"boundary", c.boundary}};
}

}  // namespace

void measure(const mesh::MeshProblem& problem, const io::TriangleMesh& result, MeshRunResult& out) {
  const mesh::Connectivity& connectivity = problem.connectivity();
  const std::string& energy = problem.options().energy;
  if (const std::vector<double> uv = problem.uv(); !uv.empty()) {
    const std::vector<double> s = mesh::stretches(problem.rest(), uv);
    double most = 1;
    for (size_t k = 0; k < s.size(); k += 2) most = std::max({most, s[k], 1 / s[k + 1]});
    out.flat = {mesh::symmetric_dirichlet(problem.rest(), uv), most, mesh::turned_over(problem.rest(), uv)};
    return;
  }
  out.curvature_before = curvature_counts(problem.rest(), connectivity);
  out.curvature_after = curvature_counts(result, connectivity);
  const auto names = mesh::developability_names();
  const auto name = std::find(names.begin(), names.end(), energy);
  if (name == names.end()) return;
  const auto kind = mesh::Developability(name - names.begin());
  const auto sum = [&](const io::TriangleMesh& shape) {
    double total = 0;
    for (const double e : mesh::star_energies(kind, shape, connectivity))
      if (!std::isnan(e)) total += e;
    return total;
  };
  out.developability_before = sum(problem.rest());
  out.developability_after = sum(result);
}

void write_picture(const MeshPictureRun& picture, const mesh::MeshProblem& problem,
                   const io::TriangleMesh& result) {
  if (!problem.uv().empty()) {
    io::write_png(picture.file, draw_parameterization(picture, problem));
  } else if (picture.compare) {
    io::write_png(picture.file, io::join_images({draw(picture, problem, problem.rest(), false),
                                                 draw(picture, problem, result, true)}));
  } else {
    io::write_png(picture.file, draw(picture, problem, result, true));
  }
}

nlohmann::ordered_json document_of(const MeshRunResult& r) {
  ordered_json document{{"mesh", r.mesh},
                        {"energy", r.energy},
                        {"vertices", r.vertices},
                        {"edges", r.edges},
                        {"triangles", r.triangles},
                        {"boundary_loops", r.boundary_loops},
                        {"euler_characteristic", r.euler_characteristic},
                        {"fixed", r.fixed},
                        {"handles", r.handles}};
  if (r.repaired)
    document["repair"] = {{"welded", r.repaired->welded},
                          {"dropped", r.repaired->dropped},
                          {"turned", r.repaired->turned},
                          {"copied", r.repaired->copied},
                          {"unused", r.repaired->unused}};
  if (r.flat) {
    document["symmetric_dirichlet"] = r.flat->symmetric_dirichlet;
    document["largest_stretch"] = r.flat->largest_stretch;
    document["turned_over"] = r.flat->turned_over;
  }
  if (r.curvature_before) document["curvature_before"] = json_of(*r.curvature_before);
  if (r.curvature_after) document["curvature_after"] = json_of(*r.curvature_after);
  if (r.developability_before) document["developability_before"] = *r.developability_before;
  if (r.developability_after) document["developability_after"] = *r.developability_after;
  return whole(std::move(document), r);
}
std::string to_json(const MeshRunResult& r) { return json_text(document_of(r)); }

std::string to_text(const MeshRunResult& r) {
  std::string text =
      fmt::format("{}: {} vertices, {} triangles\n{}\n", r.mesh, r.vertices, r.triangles, outcome(r.summary));
  if (r.repaired)
    text += fmt::format(
        "repaired: {} vertices welded, {} copied, {} unused; {} triangles dropped, {} turned\n",
        r.repaired->welded, r.repaired->copied, r.repaired->unused, r.repaired->dropped, r.repaired->turned);
  if (r.flat)
    text += fmt::format("symmetric Dirichlet energy {:.6f} (4: isometric), largest stretch {:.4f}\n",
                        r.flat->symmetric_dirichlet, r.flat->largest_stretch);
  if (r.developability_before)
    text += fmt::format("developability {:.6g} to {:.6g}; hinges {} to {} of {} vertices\n",
                        *r.developability_before, *r.developability_after, r.curvature_before->hinges,
                        r.curvature_after->hinges, r.vertices);
  for (const auto& [what, file] : r.files)
    if (what != "plot") text += fmt::format("{}: {}\n", what == "out" ? "mesh" : what, file);
  return text;
}

}  // namespace lockstep::solve
