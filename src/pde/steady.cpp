// Steady examples solved by the gradients of their loss: L-BFGS over the fields, from coarse grids to the asked one.
#include "pde/steady.hpp"

#include <cmath>

#include "lockstep/optimize.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::pde {

namespace {

using Vector = std::vector<double>;

/// The loss of fields that are stored one after the other in the point.
class SteadyLoss final : public optimize::VectorObjective {
 public:
  struct Part {
    Buffer field, gradient;  // flat
    int64_t first;
    double unit;
  };
  SteadyLoss(const Device& device, const Buffer& start, const BoundLoss& loss, const std::vector<Part>& parts)
      : VectorObjective(device, start), loss_(loss), parts_(parts) {}

  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    for (const Part& p : parts_) {
      device().copy(x.rows(p.first, p.field.elements()), p.field);
      primitives::scale(device(), p.unit, p.field);
    }
    loss_.run();
    for (const Part& p : parts_) {
      const Buffer part = gradient.rows(p.first, p.field.elements());
      device().copy(p.gradient, part);
      primitives::scale(device(), p.unit, part);
    }
    const double loss = loss_.loss();
    device().write(value, &loss, sizeof(loss));
  }
  bool recordable() const override { return false; }  // the loss's terms are weighted on the host

 private:
  const BoundLoss& loss_;
  const std::vector<Part>& parts_;
};

/// Cell values of a square grid between those of a coarser one, linear along both axes and level beyond its centres.
Vector refined(const Vector& coarse, int64_t from, int64_t to) {
  const int64_t components = int64_t(coarse.size()) / (from * from);
  Vector fine;
  fine.reserve(size_t(components * to * to));
  const auto place = [&](int64_t i) {
    const double x = (double(i) + 0.5) * double(from) / double(to) - 0.5;
    return std::min(std::max(x, 0.0), double(from - 1));
  };
  for (int64_t c = 0; c < components; ++c)
    for (int64_t j = 0; j < to; ++j)
      for (int64_t i = 0; i < to; ++i) {
        const double y = place(j), x = place(i);
        const int64_t y0 = int64_t(y), x0 = int64_t(x), y1 = std::min(y0 + 1, from - 1),
                      x1 = std::min(x0 + 1, from - 1);
        const double v = y - double(y0), u = x - double(x0);
        const auto at = [&](int64_t row, int64_t column) {
          return coarse[size_t((c * from + row) * from + column)];
        };
        fine.push_back((1 - v) * ((1 - u) * at(y0, x0) + u * at(y0, x1)) +
                       v * ((1 - u) * at(y1, x0) + u * at(y1, x1)));
      }
  return fine;
}

double unit_of(const Example& example, const std::string& field) {
  const auto found = example.units.find(field);
  return found == example.units.end() ? 1 : found->second;
}

/// Solves for the fields on one grid, starting from their current values.
void solve_on(const Device& device, const Example& example, const TrainOptions& options,
              TrainResult& result) {
  const int64_t n = example.mesh.cells[0];
  Inputs inputs;
  inputs.parameters = example.parameters;
  Vector start;
  for (const auto& [name, advance] : example.fields) {
    const Vector& values = result.fields.at(name);
    const int c = example.system.components(name);
    inputs.fields[name][1] =
        device.upload(std::span<const double>(values), c > 1 ? Shape{c, n, n} : Shape{n, n});
    for (const double v : values) start.push_back(v / unit_of(example, name));
  }
  const Loss loss(example.system, example.mesh);
  const BoundLoss bound = loss.bind(device, inputs);
  std::vector<SteadyLoss::Part> parts;
  int64_t first = 0;
  for (const auto& [name, advance] : example.fields) {
    const Buffer &field = inputs.fields.at(name)[1], gradient = bound.gradient(name, 0);
    parts.push_back({field.reshape({field.elements()}), gradient.reshape({field.elements()}), first,
                     unit_of(example, name)});
    first += field.elements();
  }
  SteadyLoss objective(device, device.upload(start), bound, parts);
  const Vector zeros(start.size(), 0.0);
  SteadyLoss rest(device, device.upload(zeros), bound, parts);
  rest.launch_at(rest.point(), rest.gradient(), rest.value());
  const double at_rest = device.download<double>(rest.value())[0];
  optimize::Options search;
  search.max_iterations = options.iterations;
  search.value_tolerance = search.gradient_tolerance = search.step_tolerance = 0;
  search.history = 20;
  search.callback = [&](const optimize::Iteration& row) { return row.value > options.tolerance * at_rest; };
  const optimize::Result found = optimize::minimize(objective, search);
  result.iterations += found.iterations;
  result.losses_first = {at_rest};
  result.losses_last = {found.value};
  result.converged = found.value <= options.tolerance * at_rest;
  const Vector point = device.download<double>(objective.point());
  auto at = point.begin();
  for (const auto& [name, advance] : example.fields) {
    Vector& values = result.fields.at(name);
    for (double& v : values) v = *at++ * unit_of(example, name);
  }
}

}  // namespace

std::vector<int64_t> grids_of(const Example& example) {
  std::vector<int64_t> grids{example.mesh.cells[0]};
  while (grids.back() >= 16 && int(grids.size()) < example.windows) grids.push_back(grids.back() / 2);
  return grids;
}

TrainResult train_steady(const Device& device, const Example& example, const TrainOptions& options,
                         const std::function<void()>& progress) {
  TrainResult result;
  Example asked = example;
  if (options.windows) asked.windows = options.windows;
  const std::vector<int64_t> grids = grids_of(asked);
  result.windows = 1;  // coarser grids give the start, whether they converge or not
  int64_t before = 0;
  for (auto n = grids.rbegin(); n != grids.rend(); ++n) {
    Example on_grid = make_example(example.name, *n);
    on_grid.parameters = example.parameters;
    for (const auto& [name, advance] : example.fields) {
      Vector& values = result.fields[name];
      if (before == 0)
        values.assign(size_t(*n * *n * example.system.components(name)), 0.0);
      else
        values = refined(values, before, *n);
    }
    solve_on(device, on_grid, options, result);
    before = *n;
    if (progress) progress();
  }
  return result;
}

}  // namespace lockstep::pde
