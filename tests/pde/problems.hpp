// Random problems of the transport loss, and their way to a device.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"
#include "pde/reference.hpp"

namespace lockstep::pde::testing {

/// The interpreter and, where there is one, the CPU.
inline std::vector<Device> devices() {
  std::vector<Device> list{Device::open("interp")};
  try {
    list.push_back(Device::open("cpu"));
  } catch (const UnsupportedError&) {}
  return list;
}

/// Boundaries of docs/pde.md, alone and mixed.
inline std::vector<std::string> boundaries() {
  return {"periodic",
          "clamp",
          "reflect_even",
          "reflect_odd",
          "free_slip",
          "no_slip",
          "dirichlet_face:0.7",
          "ghost_zero",
          "ghost:-0.4",
          "node_mirror",
          "one_sided1",
          "one_sided2",
          "x=free_slip,y=periodic,z-=one_sided2,z+=dirichlet_face:-1.5",
          "x-=ghost:2,x+=no_slip,y-=node_mirror,y+=clamp,z=one_sided1",
          "x=one_sided2,y=reflect_odd,z=periodic",
          "z=free_slip,y-=one_sided2,y+=clamp"};
}

template <class T>
std::vector<T> random_array(std::mt19937& random, size_t n) {
  std::uniform_real_distribution<double> range(-1, 1);
  std::vector<T> v(n);
  for (T& x : v) x = T(range(random));
  return v;
}

template <class T>
reference::State<T> random_state(const Mesh& mesh, uint32_t seed) {
  std::mt19937 random(seed);
  reference::State<T> s;
  for (auto& level : s.sigma) level = random_array<T>(random, size_t(mesh.count()));
  for (auto& level : s.u)
    for (auto& component : level) component = random_array<T>(random, size_t(mesh.count()));
  return s;
}

template <class To, class T>
reference::State<To> convert(const reference::State<T>& s) {
  reference::State<To> r;
  for (size_t l = 0; l < 3; ++l) {
    r.sigma[l].assign(s.sigma[l].begin(), s.sigma[l].end());
    for (size_t c = 0; c < 3; ++c) r.u[l][c].assign(s.u[l][c].begin(), s.u[l][c].end());
  }
  return r;
}

/// The arrays in one list: sigma of levels 0 1 2, then u by level and component.
template <class T>
std::vector<std::vector<T>*> arrays(reference::State<T>& s) {
  std::vector<std::vector<T>*> list;
  for (auto& level : s.sigma) list.push_back(&level);
  for (auto& level : s.u)
    for (auto& component : level) list.push_back(&component);
  return list;
}

template <class T>
std::vector<T> joined(const std::array<std::vector<T>, 3>& u) {
  std::vector<T> all;
  for (const auto& c : u) all.insert(all.end(), c.begin(), c.end());
  return all;
}

template <class T>
Inputs upload(const Device& device, const Mesh& mesh, const reference::State<T>& s,
              const std::vector<T>& mask = {}) {
  const Shape shape{mesh.cells[2], mesh.cells[1], mesh.cells[0]},
      vectors{3, mesh.cells[2], mesh.cells[1], mesh.cells[0]};
  Inputs in;
  for (size_t l = 0; l < 3; ++l) {
    in.fields["sigma"][l] = device.upload(std::span<const T>(s.sigma[l]), shape);
    const auto u = joined(s.u[l]);
    in.fields["u"][l] = device.upload(std::span<const T>(u), vectors);
  }
  if (!mask.empty()) in.mask = device.upload(std::span<const T>(mask), shape);
  return in;
}

inline Mesh mesh_of(std::array<int64_t, 3> cells, const std::string& boundary, int order = 2) {
  Mesh m;
  m.cells = cells;
  m.spacing = {0.11, 0.17, 0.23};
  m.dt = 0.05;
  m.boundary = BoundaryConditions::parse(boundary);
  m.order = order;
  return m;
}

}  // namespace lockstep::pde::testing
