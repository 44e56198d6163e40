// `lockstep pde convergence`: how fast residuals of exact solutions vanish with the cell size, as a table and
// a plot.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct ConvergenceCommand {
  std::string sizes = "12,16,24,32,48,64", csv, out;
};

struct Point {
  std::string field;
  int order;
  int64_t cells;
  double residual;  // root of the mean square
};

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

pde::Mesh cube(int64_t n, int order, double dt) {
  pde::Mesh mesh;
  const double h = 2 * std::numbers::pi / double(n);
  mesh.cells = {n, n, n};
  mesh.spacing = {h, h, h};
  mesh.dt = dt;
  mesh.order = order;
  return mesh;
}

double rms(const Device& device, const pde::System& system, const pde::Mesh& mesh,
           const pde::Inputs& inputs) {
  pde::LossOptions options;
  options.gradients = pde::Gradients::none;
  const pde::BoundLoss bound = pde::Loss(system, mesh).bind(device, inputs, options);
  bound.run();
  return std::sqrt(bound.loss());
}

/// sigma = sin(x + y + z) carried by u = (1, 1, 1), as its tangent in time: linear, so that only space errs.
double wave(const Device& device, int64_t n, int order) {
  constexpr double kStep = 0.5;
  pde::Inputs in;
  for (size_t l = 0; l < 3; ++l) {
    const double t = (double(l) - 1) * kStep;
    in.fields["sigma"][l] = sample(device, n, 1, [&](int, double x, double y, double z) {
      return std::sin(x + y + z) - 3 * t * std::cos(x + y + z);
    });
    in.fields["u"][l] = sample(device, n, 3, [](int, double, double, double) { return 1.0; });
  }
  return rms(device, pde::transport(3), cube(n, order, kStep), in);
}

/// The steady vortices of Taylor and Green with the pressure that keeps them.
double vortices(const Device& device, int64_t n, int order) {
  pde::TransportOptions terms;
  terms.sigma_transport = terms.sigma_divergence = false;
  terms.pressure = true;
  pde::Inputs in;
  const Buffer u = sample(device, n, 3, [](int c, double x, double y, double) {
    return c == 0 ? std::sin(x) * std::cos(y) : c == 1 ? -std::cos(x) * std::sin(y) : 0.0;
  });
  in.fields["u"] = {u, u, u};
  in.fields["p"][1] = sample(device, n, 1, [](int, double x, double y, double) {
    return 0.25 * (std::cos(2 * x) + std::cos(2 * y));
  });
  return rms(device, pde::transport(3, terms), cube(n, order, 1), in);
}

/// Slope of the last two sizes in a doubly logarithmic plot.
double slope(const std::vector<Point>& points, const std::string& field, int order) {
  const Point *before = nullptr, *last = nullptr;
  for (const Point& p : points)
    if (p.field == field && p.order == order) before = last, last = &p;
  if (!before) return 0;
  return std::log(before->residual / last->residual) / std::log(double(last->cells) / double(before->cells));
}

io::Drawing plot(const std::vector<Point>& points) {
  std::vector<io::PlotSeries> series;
  for (const char* field : {"wave", "vortices"})
    for (int order : {2, 4, 6, 8}) {
      io::PlotSeries& line = series.emplace_back();
      line.dashed = std::string(field) == "vortices";
      line.name = fmt::format("order {}: {:.2f}{}", order, slope(points, field, order),
                              line.dashed ? " (vortices)" : "");
      line.ink = io::series_ink(size_t(order / 2 - 1));
      for (const Point& p : points) {
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

int run(const CommonOptions& common, const ConvergenceCommand& options) {
  Session session(common);
  std::vector<int64_t> sizes;
  for (const std::string& s : split_list(options.sizes, "--sizes")) {
    const auto number = parse_number(s);
    if (!number || *number != std::floor(*number) || *number < 10 || *number > 512)
      throw InputError(fmt::format("size '{}'", s), "--sizes", "cells along each axis, 10 to 512");
    sizes.push_back(int64_t(*number));
  }
  const std::vector<Point> points = session.context().stage("pde.convergence", [&](const Device& device) {
    if (!device.info().limits.f64)
      throw UnsupportedError("f64 on " + device.info().name, "pde convergence", "f64");
    std::vector<Point> list;
    for (int order : {2, 4, 6, 8})
      for (int64_t n : sizes) {
        list.push_back({"wave", order, n, wave(device, n, order)});
        list.push_back({"vortices", order, n, vortices(device, n, order)});
      }
    return list;
  });
  std::string csv = "field,order,cells,residual\n", text;
  ordered_json list = ordered_json::array(), slopes = ordered_json::array();
  for (const Point& p : points) {
    csv += fmt::format("{},{},{},{:.9g}\n", p.field, p.order, p.cells, p.residual);
    list.push_back({{"field", p.field}, {"order", p.order}, {"cells", p.cells}, {"residual", p.residual}});
  }
  for (const char* field : {"wave", "vortices"})
    for (int order : {2, 4, 6, 8}) {
      slopes.push_back({{"field", field}, {"order", order}, {"observed", slope(points, field, order)}});
      text += fmt::format("{:<9} order {}: observed {:.3f}\n", field, order, slope(points, field, order));
    }
  if (!options.csv.empty()) write_file(options.csv, csv);
  if (!options.out.empty()) io::write_drawing(options.out, plot(points));
  session.finish({{"results", list}, {"observed", slopes}, {"csv", options.csv}, {"out", options.out}}, text);
  return 0;
}

}  // namespace

void add_pde_convergence(CommandList& commands, CLI::App& pde) {
  Command& command =
      add_command(commands, pde, "convergence", "residuals of exact solutions over the cell size");
  auto options = std::make_shared<ConvergenceCommand>();
  add_text(*command.app, "--sizes", options->sizes, "cells along each axis (default 12,16,24,32,48,64)",
           "N,N…");
  add_file(*command.app, "--out", options->out, "where the plot goes (.svg, .png)");
  add_file(*command.app, "--csv", options->csv, "the table as CSV");
  add_common(command, "lockstep pde convergence --out convergence.svg");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
