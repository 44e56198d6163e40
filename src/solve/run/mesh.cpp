// An energy of a triangle mesh: read or made, held, minimised, written.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/atomic_file.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/energies/mesh_problem.hpp"
#include "solve/mesh/parameterize.hpp"
#include "solve/mesh/repair.hpp"
#include "solve/mesh/shapes/generate.hpp"
#include "solve/run/common.hpp"
#include "solve/run/mesh_results.hpp"

namespace lockstep::solve {
namespace {

mesh::MeshOptions mesh_options(const MeshRun& wanted, const io::TriangleMesh& shape,
                               const mesh::Connectivity& connectivity) {
  mesh::MeshOptions options;
  options.energy = wanted.energy;
  options.attach = wanted.attach;
  options.stiffness = wanted.stiffness;
  options.bend = wanted.bend;
  options.gravity = wanted.gravity;
  options.rest_scale = wanted.rest_scale;
  options.seed = wanted.seed;
  options.loss = wanted.loss;
  if (!wanted.fix.empty()) options.fixed = mesh::select_vertices(wanted.fix, shape, connectivity, "--fix");
  for (size_t from = 0; from < wanted.handles.size();) {
    const size_t to = std::min(wanted.handles.find(';', from), wanted.handles.size());
    const auto more =
        mesh::parse_handle(wanted.handles.substr(from, to - from), shape, connectivity, "--handle");
    options.handles.insert(options.handles.end(), more.begin(), more.end());
    from = to + 1;
  }
  if (!wanted.handles_file.empty()) {
    const auto more = mesh::read_handles(wanted.handles_file, shape);
    if (more.empty()) throw InputError("no handles", wanted.handles_file, "one handle or more");
    options.handles.insert(options.handles.end(), more.begin(), more.end());
  }
  return options;
}

template <Element E>
std::vector<E> rows_of_three(const Array& array, const char* name) {
  if (array.rank() != 2 || array.size(1) != 3)
    throw InputError("shape " + to_string(array.shape()), fmt::format("mesh, {}", name), "rows of three");
  const Array packed = array.to(kStorageOf<E>).packed();
  return {packed.as<E>().begin(), packed.as<E>().end()};
}

io::TriangleMesh read_shape(const MeshRun& wanted) {
  if (wanted.given)
    return {rows_of_three<double>(wanted.given->vertices, "vertices"),
            rows_of_three<int32_t>(wanted.given->triangles, "triangles"),
            {}};
  std::optional<io::TriangleMesh> made = mesh::generate(wanted.mesh);
  return made ? std::move(*made) : io::read_mesh(wanted.mesh);
}

mesh::MeshProblem read_problem(const MeshRun& wanted, MeshRunResult& out) {
  io::TriangleMesh shape = read_shape(wanted);
  if (wanted.repair) {
    mesh::Repair repaired = mesh::repair(shape);
    out.repaired = {repaired.welded, repaired.dropped, repaired.turned, repaired.copied, repaired.unused};
    shape = std::move(repaired.mesh);
  }
  mesh::Connectivity connectivity = mesh::build_connectivity(shape, out.mesh);
  const mesh::MeshOptions options = mesh_options(wanted, shape, connectivity);
  return mesh::MeshProblem(std::move(shape), std::move(connectivity), options);
}

void write_result(const std::string& path, const mesh::MeshProblem& problem, const io::TriangleMesh& result) {
  if (!problem.uv().empty() && io::mesh_suffix(path) == ".obj") {
    write_file(path, mesh::obj_with_uv(problem.rest(), problem.uv()));
  } else {
    io::write_mesh(path, result);
  }
}

}  // namespace

MeshRunResult run(Context& context, const MeshRun& wanted) {
  check_run(wanted);
  if (!wanted.out.empty()) io::mesh_suffix(wanted.out);
  if (wanted.picture.view == std::array<double, 3>{})
    throw wrong<MeshRun>("view", "a view along nothing", "three numbers X,Y,Z, not all 0");
  MeshRunResult out;
  out.mesh = wanted.given ? "arrays" : wanted.mesh;
  mesh::MeshProblem problem = host_stage(out.host_stages, "read", [&] { return read_problem(wanted, out); });
  const mesh::EnergyDefaults defaults = mesh::energy_defaults(wanted.energy);
  Options options = observed(wanted.options);
  options.method = wanted.method.value_or(defaults.method);
  options.max_iterations = wanted.iterations.value_or(defaults.iterations);
  out.summary = mesh::minimize_mesh(problem, context, options);

  const io::TriangleMesh result = problem.result();
  const mesh::Connectivity& connectivity = problem.connectivity();
  out.energy = wanted.energy;
  out.vertices = connectivity.vertices;
  out.edges = int64_t(connectivity.edges.size());
  out.triangles = connectivity.triangles;
  out.boundary_loops = int64_t(connectivity.boundary_loops.size());
  out.euler_characteristic = connectivity.euler_characteristic();
  out.fixed = int64_t(problem.options().fixed.size());
  out.handles = int64_t(problem.options().handles.size());
  measure(problem, result, out);
  if (!wanted.out.empty()) {
    host_stage(out.host_stages, "write", [&] { write_result(wanted.out, problem, result); });
    wrote(out, "out", wanted.out);
  }
  if (!wanted.picture.file.empty()) {
    host_stage(out.host_stages, "picture", [&] { write_picture(wanted.picture, problem, result); });
    wrote(out, "picture", wanted.picture.file);
  }
  finish(out, wanted, fmt::format("{}, {}", wanted.energy, file_name(out.mesh)));
  const Sizes vertex_rows{result.vertex_count(), 3}, triangle_rows{result.face_count(), 3};
  out.found = {Array::of(result.vertices, vertex_rows), Array::of(result.faces, triangle_rows)};
  return out;
}

}  // namespace lockstep::solve
