#include "lockstep/pde/examples.hpp"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::pde {

namespace {

constexpr double kPi = 3.14159265358979323846;

double bump(double x, double y, double cx, double cy, double width) {
  const double r2 = (x - cx) * (x - cx) + (y - cy) * (y - cy);
  return std::exp(-r2 / (2 * width * width));
}

Mesh square_mesh(int64_t cells, double dt, const char* boundary) {
  Mesh m;
  m.cells = {cells, cells, 1};
  m.spacing = {1.0 / double(cells), 1.0 / double(cells), 1.0};
  m.dt = dt;
  m.boundary = BoundaryConditions::parse(boundary);
  return m;
}

Example heat(int64_t n) {
  System s(2);
  const Field t = s.field("t");
  s.residual("heat", s.dt_forward(t) - s.parameter("nu") * s.laplacian(t));
  return {"heat",
          "heat conduction with insulated walls",
          s,
          square_mesh(n, 0.2 / double(n * n), "clamp"),
          {{"nu", 1.0}},
          {{"t", Advance::forward}},
          "t",
          12,
          [](const std::string&, int, double x, double y, double) {
            return bump(x, y, 0.3, 0.4, 0.08) + 0.7 * bump(x, y, 0.7, 0.6, 0.05);
          }};
}

Example advection_diffusion(int64_t n) {
  System s(2);
  const Field c = s.field("c"), u = s.vector("u");
  s.residual("transport", s.dt_forward(c) + s.advect(u, c, 0, true) - s.parameter("nu") * s.laplacian(c));
  return {"advection_diffusion",
          "a dye carried by a vortex",
          s,
          square_mesh(n, 0.25 / double(n), "free_slip"),
          {{"nu", 1e-4}},
          {{"c", Advance::forward}, {"u", Advance::constant}},
          "c",
          12,
          [](const std::string& f, int k, double x, double y, double) {
            if (f == "c") return bump(x, y, 0.5, 0.3, 0.08);
            return k == 0 ? std::sin(kPi * x) * std::cos(kPi * y) : -std::cos(kPi * x) * std::sin(kPi * y);
          }};
}

Example burgers(int64_t n) {
  System s(2);
  const Field u = s.vector("u");
  const Value nu = s.parameter("nu");
  for (int c = 0; c < 2; ++c)
    s.residual("burgers", s.dt_forward(u, c) + s.advect(u, u, c, true) - nu * s.laplacian(u, c));
  return {"burgers",
          "viscous Burgers equation: fronts steepen",
          s,
          square_mesh(n, 0.15 / double(n), "periodic"),
          {{"nu", 1e-3}},
          {{"u", Advance::forward}},
          "u",
          12,
          [](const std::string&, int k, double x, double y, double) {
            return k == 0 ? std::sin(2 * kPi * x) * std::cos(2 * kPi * y) : 0.5 * std::sin(2 * kPi * y);
          }};
}

Example wave(int64_t n) {
  System s(2);
  const Field w = s.field("w");
  s.residual("wave", s.dtt(w) - square(s.parameter("speed")) * s.laplacian(w));
  return {"wave",
          "waves between fixed walls",
          s,
          square_mesh(n, 0.5 / double(n), "dirichlet_face:0"),
          {{"speed", 1.0}},
          {{"w", Advance::second}},
          "w",
          12,
          [](const std::string&, int, double x, double y, double) { return bump(x, y, 0.35, 0.4, 0.05); }};
}

Example navier_stokes(int64_t n) {
  System s(2);
  const Field u = s.vector("u"), p = s.field("p");
  const Value nu = s.parameter("nu");
  for (int c = 0; c < 2; ++c)
    s.residual("momentum", s.dt_forward(u, c) + s.advect(u, u, c) + s.d(p, c) - nu * s.laplacian(u, c));
  s.residual("divergence", s.div(u));
  // Taylor-Green vortices: u = sin x cos y, v = -cos x sin y, p = (cos 2x + cos 2y) / 4.
  return {"navier_stokes",
          "incompressible flow: decaying Taylor-Green vortices",
          s,
          square_mesh(n, 0.1 / double(n), "periodic"),
          {{"nu", 0.005}},
          {{"u", Advance::forward}, {"p", Advance::diagnostic}},
          "u",
          14,
          [](const std::string& f, int k, double x, double y, double) {
            const double a = 2 * kPi * x, b = 2 * kPi * y;
            if (f == "p") return 0.25 * (std::cos(2 * a) + std::cos(2 * b));
            return k == 0 ? std::sin(a) * std::cos(b) : -std::cos(a) * std::sin(b);
          }};
}

Example maxwell(int64_t n) {
  System s(2);
  const Field e = s.field("e"), h = s.vector("h");  // E_z and (H_x, H_y)
  s.residual("faraday", s.dt(h, 0) + s.dy(e));
  s.residual("faraday", s.dt(h, 1) - s.dx(e));
  s.residual("ampere", s.dt(e) - (s.dx(h, 1) - s.dy(h, 0)));
  return {"maxwell",
          "electromagnetic pulse in two dimensions (TM)",
          s,
          square_mesh(n, 0.4 / double(n), "periodic"),
          {},
          {{"e", Advance::central}, {"h", Advance::central}},
          "e",
          12,
          [](const std::string& f, int, double x, double y, double) {
            return f == "e" ? bump(x, y, 0.5, 0.5, 0.04) : 0.0;
          }};
}

Example gray_scott(int64_t n) {
  System s(2);
  const Field a = s.field("a"), b = s.field("b");
  const Value feed = s.parameter("feed"), kill = s.parameter("kill"), da = s.parameter("da"),
              db = s.parameter("db");
  const Value reaction = s.at(a) * square(s.at(b));
  s.residual("a", s.dt_forward(a) - da * s.laplacian(a) + reaction - feed * (1 - s.at(a)));
  s.residual("b", s.dt_forward(b) - db * s.laplacian(b) - reaction + (feed + kill) * s.at(b));
  Mesh m = square_mesh(n, 1.0, "periodic");
  m.spacing = {1, 1, 1};
  return {"gray_scott",
          "reaction and diffusion: spots that divide",
          s,
          m,
          {{"feed", 0.0367}, {"kill", 0.0649}, {"da", 0.16}, {"db", 0.08}},
          {{"a", Advance::forward}, {"b", Advance::forward}},
          "b",
          300,
          [](const std::string& f, int, double x, double y, double) {
            const double seed = bump(x, y, 0.5, 0.5, 0.05) + bump(x, y, 0.3, 0.62, 0.04);
            return f == "a" ? 1 - 0.5 * seed : 0.25 * seed;
          }};
}

Example shallow_water(int64_t n) {
  System s(2);
  const Field h = s.field("h"), u = s.vector("u");
  const Value g = s.parameter("g");
  s.residual("mass", s.dt(h) + s.advect(u, h) + s.at(h) * s.div(u));
  for (int c = 0; c < 2; ++c) s.residual("momentum", s.dt(u, c) + s.advect(u, u, c) + g * s.d(h, c));
  return {"shallow_water",
          "a drop into a basin with slippery walls",
          s,
          square_mesh(n, 0.2 / double(n), "free_slip"),
          {{"g", 1.0}},
          {{"h", Advance::central}, {"u", Advance::central}},
          "h",
          12,
          [](const std::string& f, int, double x, double y, double) {
            return f == "h" ? 1 + 0.15 * bump(x, y, 0.4, 0.55, 0.07) : 0.0;
          }};
}

/// Steady incompressible flow by u and p; everything begins at rest.
Example steady_flow(const char* name, const char* description, System s, Field u, Field p, const Mesh& mesh,
                    std::map<std::string, double> parameters, double weight_divergence, double unit_p) {
  const Value nu = s.parameter("nu");
  for (int c = 0; c < 2; ++c) s.residual("momentum", s.advect(u, u, c) + s.d(p, c) - nu * s.laplacian(u, c));
  s.residual("divergence", s.div(u), weight_divergence);
  return {name,
          description,
          s,
          mesh,
          std::move(parameters),
          {{"u", Advance::steady}, {"p", Advance::steady}},
          "u",
          4,
          [](const std::string&, int, double, double, double) { return 0.0; },
          1e-8,
          5000,
          {{"p", unit_p}}};
}

Example cavity(int64_t n) {
  System s(2);
  const Field u = s.field(
                  "u",
                  {BoundaryConditions::parse("x=reflect_odd,y-=reflect_odd,y+=dirichlet_face:@lid,z=clamp"),
                   BoundaryConditions::parse("x=reflect_odd,y=reflect_odd,z=clamp")}),
              p = s.field("p");
  s.parameter("lid");
  return steady_flow("cavity", "flow in a box whose lid moves, Re 100", s, u, p, square_mesh(n, 1, "clamp"),
                     {{"nu", 0.01}, {"lid", 1}}, 1, 3);
}

Example channel(int64_t n) {
  System s(2);
  const char* open = ",x+=clamp,y=reflect_odd,z=clamp";
  const Field u = s.field("u", {BoundaryConditions::parse(std::string("x-=dirichlet_face:@inflow") + open),
                                BoundaryConditions::parse(std::string("x-=reflect_odd") + open)}),
              p = s.field("p", 1, BoundaryConditions::parse("x-=clamp,x+=dirichlet_face:0,y=clamp,z=clamp"));
  s.parameter("inflow");
  Mesh mesh = square_mesh(n, 1, "clamp");
  mesh.spacing[0] = 4.0 / double(n);
  return steady_flow("channel", "flow that enters a channel evenly and becomes a parabola, Re 20", s, u, p,
                     mesh, {{"nu", 0.05}, {"inflow", 1}}, 100, 12);
}

struct Entry {
  const char* name;
  Example (*make)(int64_t);
  int64_t cells;
};
constexpr Entry kExamples[] = {{"heat", heat, 96},
                               {"advection_diffusion", advection_diffusion, 96},
                               {"burgers", burgers, 96},
                               {"wave", wave, 96},
                               {"navier_stokes", navier_stokes, 64},
                               {"maxwell", maxwell, 96},
                               {"gray_scott", gray_scott, 64},
                               {"shallow_water", shallow_water, 96},
                               {"cavity", cavity, 64},
                               {"channel", channel, 64}};

}  // namespace

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const Entry& e : kExamples) names.push_back(e.name);
  return names;
}

Example make_example(std::string_view name, int64_t cells) {
  std::string known;
  for (const Entry& e : kExamples) {
    if (e.name == name) {
      if (cells != 0 && (cells < 8 || cells > 4096))
        throw InputError(fmt::format("{} cells", cells), "pde example", "8 to 4096");
      return e.make(cells ? cells : e.cells);
    }
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  throw InputError(fmt::format("unknown example '{}'", name), "pde example", known);
}

}  // namespace lockstep::pde
