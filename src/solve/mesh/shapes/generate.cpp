#include "solve/mesh/shapes/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "lockstep/error.hpp"
#include "solve/mesh/shapes/icosphere.hpp"

namespace lockstep::solve::mesh {
namespace {

constexpr int kLargestLevel = 8, kLargestSide = 4096;

void add_vertex(TriangleMesh& mesh, double x, double y, double z) {
  mesh.vertices.insert(mesh.vertices.end(), {x, y, z});
}
void add_triangle(TriangleMesh& mesh, int32_t a, int32_t b, int32_t c) {
  mesh.faces.insert(mesh.faces.end(), {a, b, c});
}

void check(std::string_view name, int value, int low, int high) {
  if (value < low || value > high)
    throw InputError(fmt::format("size {}", value), name, fmt::format("{} to {}", low, high));
}

}  // namespace

TriangleMesh icosphere(int level) {
  check("icosphere", level, 0, kLargestLevel);
  Icosphere sphere = solve::icosphere(level);
  TriangleMesh mesh;
  mesh.vertices = std::move(sphere.vertices);
  for (const auto& [a, b, c] : sphere.faces) add_triangle(mesh, a, b, c);
  return mesh;
}

TriangleMesh grid(int rows, int cols) {
  check("grid", rows, 2, kLargestSide);
  check("grid", cols, 2, kLargestSide);
  const double cell = 1.0 / (std::max(rows, cols) - 1);
  TriangleMesh mesh;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c)
      add_vertex(mesh, (c - 0.5 * (cols - 1)) * cell, (r - 0.5 * (rows - 1)) * cell, 0);
  for (int r = 0; r + 1 < rows; ++r) {
    for (int c = 0; c + 1 < cols; ++c) {
      const int32_t a = r * cols + c, b = a + 1, d = a + cols, e = d + 1;
      if ((r + c) % 2 == 0) {
        add_triangle(mesh, a, b, e);
        add_triangle(mesh, a, e, d);
      } else {
        add_triangle(mesh, a, b, d);
        add_triangle(mesh, b, e, d);
      }
    }
  }
  return mesh;
}

TriangleMesh cylinder(int around, int along) {
  check("cylinder", around, 3, kLargestSide);
  check("cylinder", along, 1, kLargestSide);
  TriangleMesh mesh;
  for (int r = 0; r <= along; ++r) {
    for (int c = 0; c < around; ++c) {
      const double angle = 2 * std::numbers::pi * c / around;
      add_vertex(mesh, std::cos(angle), std::sin(angle), 2.0 * r / along - 1);
    }
  }
  for (int r = 0; r < along; ++r) {
    for (int c = 0; c < around; ++c) {
      const int32_t a = r * around + c, b = r * around + (c + 1) % around;
      add_triangle(mesh, a, b, b + around);
      add_triangle(mesh, a, b + around, a + around);
    }
  }
  return mesh;
}

TriangleMesh bar(int side, int length) {
  check("bar", side, 1, 256);
  check("bar", length, 1, kLargestSide);
  TriangleMesh mesh;
  std::map<std::array<int, 3>, int32_t> number;
  const auto vertex = [&](const std::array<int, 3>& at) {
    const auto [it, added] = number.try_emplace(at, int32_t(mesh.vertex_count()));
    if (added) {
      const double cell = 1.0 / side;
      add_vertex(mesh, at[0] * cell - 0.5, at[1] * cell - 0.5, at[2] * cell);
    }
    return it->second;
  };
  const std::array<int, 3> extent{side, side, length};
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
    for (const bool high : {false, true}) {
      for (int i = 0; i < extent[u]; ++i) {
        for (int j = 0; j < extent[v]; ++j) {
          const auto corner = [&](int di, int dj) {
            std::array<int, 3> at{};
            at[axis] = high ? extent[axis] : 0;
            at[u] = i + di;
            at[v] = j + dj;
            return vertex(at);
          };
          const int32_t a = corner(0, 0), b = corner(1, 0), c = corner(1, 1), d = corner(0, 1);
          if (high) {
            add_triangle(mesh, a, b, c);
            add_triangle(mesh, a, c, d);
          } else {
            add_triangle(mesh, a, c, b);
            add_triangle(mesh, a, d, c);
          }
        }
      }
    }
  }
  return mesh;
}

TriangleMesh dome(int level) {
  const TriangleMesh sphere = icosphere(level);
  TriangleMesh mesh;
  std::vector<int32_t> number(size_t(sphere.vertex_count()), -1);
  for (int64_t t = 0; t < sphere.face_count(); ++t) {
    const auto corners = triangle(sphere, t);
    double height = 0;
    for (const int32_t v : corners) height += point(sphere, v)[2];
    if (height <= 0) continue;
    for (const int32_t v : corners) {
      int32_t& n = number[size_t(v)];
      if (n < 0) {
        n = int32_t(mesh.vertex_count());
        const Point p = point(sphere, v);
        add_vertex(mesh, p[0], p[1], p[2]);
      }
      mesh.faces.push_back(n);
    }
  }
  return mesh;
}

std::optional<TriangleMesh> generate(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string name(text.substr(0, colon));
  const std::map<std::string, int> numbers_of{
      {"icosphere", 1}, {"grid", 2}, {"cylinder", 2}, {"bar", 2}, {"dome", 1}};
  const auto kind = numbers_of.find(name);
  if (kind == numbers_of.end()) return std::nullopt;
  std::vector<int> numbers;
  const char *at = text.data() + colon + 1, *const end = text.data() + text.size();
  for (bool more = true; more;) {
    int value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (stop != end && *stop != 'x')) {
      numbers.clear();
      break;
    }
    numbers.push_back(value);
    more = stop != end;
    at = stop + 1;
  }
  if (int(numbers.size()) != kind->second) {
    throw InputError(fmt::format("'{}'", text), "generated mesh",
                     kind->second == 1 ? name + ":LEVEL" : name + ":AxB with whole numbers");
  }
  if (name == "icosphere") return icosphere(numbers[0]);
  if (name == "dome") return dome(numbers[0]);
  if (name == "grid") return grid(numbers[0], numbers[1]);
  if (name == "cylinder") return cylinder(numbers[0], numbers[1]);
  return bar(numbers[0], numbers[1]);
}

}  // namespace lockstep::solve::mesh
