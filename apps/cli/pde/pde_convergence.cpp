// `lockstep pde convergence`: how fast residuals of exact solutions vanish with the cell size, as a table and
// a plot.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "commands.hpp"
#include "core/atomic_file.hpp"
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

std::string plot(const std::vector<Point>& points) {
  constexpr double kWidth = 640, kHeight = 460, kLeft = 70, kRight = 150, kTop = 30, kBottom = 50;
  double n_low = 1e9, n_high = 1, r_low = 1e300, r_high = 1e-300;
  for (const Point& p : points) {
    n_low = std::min(n_low, double(p.cells)), n_high = std::max(n_high, double(p.cells));
    r_low = std::min(r_low, p.residual), r_high = std::max(r_high, p.residual);
  }
  const double low = std::floor(std::log10(r_low)), high = std::ceil(std::log10(r_high));
  const auto x = [&](double n) {
    return kLeft + (kWidth - kLeft - kRight) * std::log(n / n_low) / std::max(std::log(n_high / n_low), 1e-9);
  };
  const auto y = [&](double r) {
    return kTop + (kHeight - kTop - kBottom) * (high - std::log10(r)) / std::max(high - low, 1.0);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  for (double power = low; power <= high; ++power)
    svg += fmt::format(
        "<path d=\"M{} {:.1f}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">1e{:.0f}</text>\n",
        kLeft, y(std::pow(10, power)), kWidth - kRight, kLeft - 6, y(std::pow(10, power)) + 4, power);
  std::vector<int64_t> shown;
  for (const Point& p : points) {
    if (std::find(shown.begin(), shown.end(), p.cells) != shown.end()) continue;
    shown.push_back(p.cells);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(double(p.cells)),
                       kHeight - kBottom + 18, p.cells);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">cells along each axis</text>\n"
      "<text x=\"{}\" y=\"18\">root mean square of the residual of an exact solution, f64</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 12, kLeft);
  static constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94"};
  for (const char* field : {"wave", "vortices"})
    for (int order : {2, 4, 6, 8}) {
      std::string path;
      double last_x = 0, last_y = 0;
      for (const Point& p : points) {
        if (p.field != field || p.order != order) continue;
        last_x = x(double(p.cells)), last_y = y(p.residual);
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", last_x, last_y);
      }
      const bool dashed = std::string(field) == "vortices";
      svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", path,
                         kColours[order / 2 - 1], dashed ? " stroke-dasharray=\"5 4\"" : "");
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">order {}: {:.2f}{}</text>\n",
                         last_x + 8, last_y + (dashed ? 12 : -2), kColours[order / 2 - 1], order,
                         slope(points, field, order), dashed ? " (vortices)" : "");
    }
  return svg + "</svg>\n";
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
  if (!options.out.empty()) write_file(options.out, plot(points));
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
  add_file(*command.app, "--out", options->out, "where the plot goes (.svg)");
  add_file(*command.app, "--csv", options->csv, "the table as CSV");
  add_common(command, "lockstep pde convergence --out convergence.svg");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
