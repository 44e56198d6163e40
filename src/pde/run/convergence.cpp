// How fast residuals of exact solutions vanish with the cell size, as a table and a plot.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/pde/documents.hpp"

namespace lockstep::pde {
namespace {

constexpr std::array kOrders{2, 4, 6, 8};

Buffer sample(const Device& device, int64_t n, int components,
              const std::function<double(int, double, double, double)>& f) {
  const double h = 2 * std::numbers::pi / double(n);
  std::vector<double> values;
  values.reserve(size_t(components * n * n * n));
  for (int c = 0; c < components; ++c)
    for (int64_t z = 0; z < n; ++z)
      for (int64_t y = 0; y < n; ++y)
        for (int64_t x = 0; x < n; ++x) values.push_back(f(c, h * double(x), h * double(y), h * double(z)));
  const Shape shape = components > 1 ? Shape{components, n, n, n} : Shape{n, n, n};
  return device.upload(std::span<const double>(values), shape);
}

Mesh cube(int64_t n, int order, double dt) {
  Mesh mesh;
  const double h = 2 * std::numbers::pi / double(n);
  mesh.cells = {n, n, n};
  mesh.spacing = {h, h, h};
  mesh.dt = dt;
  mesh.order = order;
  return mesh;
}

double rms(const Device& device, const System& system, const Mesh& mesh, const Inputs& inputs) {
  LossOptions options;
  options.gradients = Gradients::none;
  const BoundLoss bound = Loss(system, mesh).bind(device, inputs, options);
  bound.run();
  return std::sqrt(bound.loss());
}

/// sigma = sin(x + y + z) carried by u = (1, 1, 1), as its tangent in time: linear, so that only space errs.
double wave(const Device& device, int64_t n, int order) {
  constexpr double kStep = 0.5;
  Inputs in;
  for (size_t l = 0; l < 3; ++l) {
    const double t = (double(l) - 1) * kStep;
    in.fields["sigma"][l] = sample(device, n, 1, [&](int, double x, double y, double z) {
      return std::sin(x + y + z) - 3 * t * std::cos(x + y + z);
    });
    in.fields["u"][l] = sample(device, n, 3, [](int, double, double, double) { return 1.0; });
  }
  return rms(device, transport(3), cube(n, order, kStep), in);
}

/// The steady vortices of Taylor and Green with the pressure that keeps them.
double vortices(const Device& device, int64_t n, int order) {
  TransportOptions terms;
  terms.sigma_transport = terms.sigma_divergence = false;
  terms.pressure = true;
  Inputs in;
  const Buffer u = sample(device, n, 3, [](int c, double x, double y, double) {
    return c == 0 ? std::sin(x) * std::cos(y) : c == 1 ? -std::cos(x) * std::sin(y) : 0.0;
  });
  in.fields["u"] = {u, u, u};
  in.fields["p"][1] = sample(device, n, 1, [](int, double x, double y, double) {
    return 0.25 * (std::cos(2 * x) + std::cos(2 * y));
  });
  return rms(device, transport(3, terms), cube(n, order, 1), in);
}

/// Slope of the last two sizes in a doubly logarithmic plot.
double slope(const std::vector<ConvergencePoint>& points, const std::string& field, int order) {
  const ConvergencePoint *before = nullptr, *last = nullptr;
  for (const ConvergencePoint& p : points)
    if (p.field == field && p.order == order) before = last, last = &p;
  if (!before) return 0;
  return std::log(before->residual / last->residual) / std::log(double(last->cells) / double(before->cells));
}

io::Drawing plot(const std::vector<ConvergencePoint>& points) {
  std::vector<io::PlotSeries> series;
  for (const char* field : {"wave", "vortices"})
    for (int order : kOrders) {
      io::PlotSeries& line = series.emplace_back();
      line.dashed = std::string(field) == "vortices";
      line.name = fmt::format("order {}: {:.2f}{}", order, slope(points, field, order),
                              line.dashed ? " (vortices)" : "");
      line.ink = io::series_ink(size_t(order / 2 - 1));
      for (const ConvergencePoint& p : points) {
        if (p.field != field || p.order != order) continue;
        line.x.push_back(double(p.cells));
        line.y.push_back(p.residual);
      }
    }
  io::PlotOptions options;
  options.title = "Residuals of exact solutions, f64";
  options.x_label = "cells along each axis";
  options.y_label = "root mean square of the residual";
  options.log_x = options.log_y = true;
  options.x_ticks = series.front().x;
  options.width = 820;
  options.height = 560;
  return io::draw_plot(series, options);
}

}  // namespace

ConvergenceResult run_convergence(Context& context, const ConvergenceOptions& options) {
  schema_of<ConvergenceOptions>().check(&options);
  ConvergenceResult result;
  result.csv = options.csv;
  result.plot = options.plot;
  result.points = context.stage("pde.convergence", [&](const Device& device) {
    if (!device.info().limits.f64)
      throw UnsupportedError("f64 on " + device.info().name, "pde convergence", "f64");
    std::vector<ConvergencePoint> list;
    for (int order : kOrders)
      for (int64_t n : options.sizes) {
        list.push_back({"wave", order, n, wave(device, n, order)});
        list.push_back({"vortices", order, n, vortices(device, n, order)});
      }
    return list;
  });
  for (const char* field : {"wave", "vortices"})
    for (int order : kOrders) result.slopes.push_back({field, order, slope(result.points, field, order)});
  if (!options.csv.empty()) {
    std::string csv = "field,order,cells,residual\n";
    for (const ConvergencePoint& p : result.points)
      csv += fmt::format("{},{},{},{:.9g}\n", p.field, p.order, p.cells, p.residual);
    write_file(options.csv, csv);
  }
  if (!options.plot.empty()) io::write_drawing(options.plot, plot(result.points));
  return result;
}

nlohmann::ordered_json document_of(const ConvergenceResult& result) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array(), slopes = points;
  for (const ConvergencePoint& p : result.points)
    points.push_back({{"field", p.field}, {"order", p.order}, {"cells", p.cells}, {"residual", p.residual}});
  for (const ConvergenceSlope& s : result.slopes)
    slopes.push_back({{"field", s.field}, {"order", s.order}, {"observed", s.observed}});
  return nlohmann::ordered_json{
      {"results", points}, {"observed", slopes}, {"csv", result.csv.string()}, {"out", result.plot.string()}};
}
std::string to_json(const ConvergenceResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::pde
