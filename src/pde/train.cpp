// Examples solved by the gradients of their trajectory loss: L-BFGS over windows of levels.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/pde/examples.hpp"
#include "pde/steady.hpp"

namespace lockstep::pde {

namespace {

using Vector = std::vector<double>;

/// next = a now + b before + c rate.
struct Recurrence {
  double a, b, c;
};
Recurrence recurrence(Advance advance, double dt) {
  if (advance == Advance::forward) return {1, 0, dt};
  if (advance == Advance::central) return {0, 1, 2 * dt};
  return {2, -1, dt * dt};
}

const Kernel& combine_kernel() {
  static const Kernel combine =
      kernel("pde.combine", [](At<1> at, Grid<f64, 1> x, Grid<f64, 1> y, Grid<f64, 1> z, Out<f64, 1> sum,
                               Param<f64> a, Param<f64> b, Param<f64> c) {
        sum[at] = fma(Val<f64>(a), Val<f64>(x[at]), fma(Val<f64>(b), Val<f64>(y[at]), Val<f64>(c) * z[at]));
      });
  return combine;
}

/// Diagnostic fields in the units of the search: of 0.03 to 1 the value with the fewest iterations.
constexpr double kDiagnosticScale = 0.3;

/// sum = a x + b y + c z, all one-dimensional.
void combine(const Device& device, const Buffer& x, const Buffer& y, const Buffer& z, const Buffer& sum,
             double a, double b, double c) {
  device.launch(combine_kernel(), {sum.elements()}, x, y, z, sum, a, b, c);
}
void scale(const Device& device, const Buffer& x, const Buffer& scaled, double factor) {
  combine(device, x, x, x, scaled, factor, 0, 0);
}

Buffer flat(const Buffer& whole) { return whole.reshape({whole.elements()}); }

/// One field of a window: its buffers of all levels and the position of its unknowns in the point.
struct Unknown {
  Advance advance;
  std::vector<Buffer> levels, gradients;  // one-dimensional
  int64_t first = 0;                      // of its unknowns
  int64_t cells() const { return levels[0].elements(); }
  /// Rates lead to levels 2 and on. A diagnostic field is determined at level 1 and on, by what it does to the next
  /// level's residuals: not at the last two levels, which have none.
  int count() const { return int(levels.size()) - (advance == Advance::diagnostic ? 3 : 2); }
};

/// A window's loss over the rates of its fields, so that each residual depends on its own unknown directly and
/// on the others weakly: what an explicit step would set is one step of the search away.
class WindowLoss final : public optimize::VectorObjective {
 public:
  WindowLoss(const Device& device, const Buffer& start, const BoundLoss& loss,
             const std::vector<Unknown>& unknowns, double dt)
      : VectorObjective(device, start), loss_(loss), unknowns_(unknowns), dt_(dt) {}

  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    set_levels(x);
    loss_.run();
    for (const Unknown& u : unknowns_) pull_back(u, gradient);
    const double loss = loss_.loss();
    device().write(value, &loss, sizeof(loss));
  }
  /// The levels of the point, not of the last trial.
  void take() { set_levels(point()); }
  bool recordable() const override { return false; }  // the loss's terms are weighted on the host

 private:
  Buffer part(const Buffer& whole, const Unknown& u, int k) const {
    return whole.rows(u.first + k * u.cells(), u.cells());
  }
  void set_levels(const Buffer& x) const {
    for (const Unknown& u : unknowns_)
      for (int k = 0; k < u.count(); ++k) {
        if (u.advance == Advance::diagnostic) {
          scale(device(), part(x, u, k), u.levels[size_t(k + 1)], kDiagnosticScale);
          continue;
        }
        const auto [a, b, c] = recurrence(u.advance, dt_);
        combine(device(), u.levels[size_t(k + 1)], u.levels[size_t(k)], part(x, u, k),
                u.levels[size_t(k + 2)], a, b, c);
      }
  }
  /// The transposed recurrence, from the last level back.
  void pull_back(const Unknown& u, const Buffer& gradient) const {
    for (int k = u.count(); k-- > 0;) {
      if (u.advance == Advance::diagnostic) {
        scale(device(), u.gradients[size_t(k + 1)], part(gradient, u, k), kDiagnosticScale);
        continue;
      }
      const auto [a, b, c] = recurrence(u.advance, dt_);
      const Buffer& own = u.gradients[size_t(k + 2)];
      const bool one = k + 1 < u.count(), two = k + 2 < u.count();
      combine(device(), one ? part(gradient, u, k + 1) : own, two ? part(gradient, u, k + 2) : own, own,
              part(gradient, u, k), one ? a : 0, two ? b : 0, c);
    }
  }

  const BoundLoss& loss_;
  const std::vector<Unknown>& unknowns_;
  double dt_;
};

/// Start values of a field, component by component.
Vector start_of(const Example& example, const std::string& name) {
  const Mesh& mesh = example.mesh;
  Vector start;
  for (int c = 0; c < example.system.components(name); ++c)
    for (int64_t z = 0; z < mesh.cells[2]; ++z)
      for (int64_t y = 0; y < mesh.cells[1]; ++y)
        for (int64_t x = 0; x < mesh.cells[0]; ++x)
          start.push_back(example.start(name, c, (double(x) + 0.5) / double(mesh.cells[0]),
                                        (double(y) + 0.5) / double(mesh.cells[1]),
                                        (double(z) + 0.5) / double(mesh.cells[2])));
  return start;
}

/// Buffers of all fields and levels, every level as the example starts.
TrajectoryInputs make_inputs(const Device& device, const Example& example, int levels) {
  TrajectoryInputs inputs;
  inputs.parameters = example.parameters;
  for (const auto& [name, advance] : example.fields) {
    const Vector start = start_of(example, name);
    Shape shape;
    if (const int c = example.system.components(name); c > 1) shape.push_back(c);
    for (int a = example.system.dimensions() - 1; a >= 0; --a) shape.push_back(example.mesh.cells[size_t(a)]);
    for (int n = 0; n < levels; ++n)
      inputs.fields[name].push_back(device.upload(std::span<const double>(start), shape));
  }
  return inputs;
}

std::vector<Unknown> make_unknowns(const Example& example, const TrajectoryInputs& inputs,
                                   const BoundLoss& bound) {
  std::vector<Unknown> unknowns;
  int64_t first = 0;
  for (const auto& [name, advance] : example.fields) {
    if (advance == Advance::constant) continue;
    Unknown& u = unknowns.emplace_back();
    u.advance = advance;
    u.first = first;
    for (const Buffer& level : inputs.fields.at(name)) {
      u.gradients.push_back(flat(bound.gradient(name, int(u.levels.size()))));
      u.levels.push_back(flat(level));
    }
    first += u.count() * u.cells();
  }
  return unknowns;
}

/// Levels `end` - 1 and `end` become the first two of the next window, of a diagnostic field the last that is
/// determined.
void move_on(const Device& device, const Unknown& u, size_t end) {
  if (u.advance == Advance::diagnostic) device.copy(u.levels[end - 1], u.levels[end]);
  device.copy(u.levels[end - 1], u.levels[0]);
  device.copy(u.levels[end], u.levels[1]);
}

double value_at(WindowLoss&& loss) {
  loss.launch_at(loss.point(), loss.gradient(), loss.value());
  return loss.device().download<double>(loss.value())[0];
}

/// All rates start as the last ones that the window before kept.
void carry_rates(const Device& device, const std::vector<Unknown>& unknowns, const Buffer& last, int end,
                 const Buffer& start) {
  for (const Unknown& u : unknowns)
    if (u.advance != Advance::diagnostic)
      for (int k = 0; k < u.count(); ++k)
        device.copy(last.rows(u.first + (end - 2) * u.cells(), u.cells()),
                    start.rows(u.first + k * u.cells(), u.cells()));
}

}  // namespace

TrainResult train(const Device& device, const Example& example, const TrainOptions& given,
                  const std::function<void()>& progress) {
  TrainOptions options = given;
  if (example.steady() && options.levels != 0)
    throw InputError(fmt::format("{} time levels", options.levels),
                     fmt::format("pde example {}", example.name), "none: this example has no time");
  if (options.levels == 0) options.levels = 8;
  if (options.iterations == 0) options.iterations = example.iterations;
  if (options.tolerance == 0) options.tolerance = example.tolerance;
  if (options.levels < 4 || options.windows < 0 || options.iterations < 1)
    throw InputError(fmt::format("{} levels, {} windows, {} iterations", options.levels, options.windows,
                                 options.iterations),
                     "pde train", "4 levels, 1 window, 1 iteration or more");
  if (example.steady()) return train_steady(device, example, options, progress);
  const Loss loss(example.system, example.mesh);
  const TrajectoryInputs inputs = make_inputs(device, example, options.levels);
  LossOptions loss_options;
  for (const auto& [name, advance] : example.fields)
    if (advance != Advance::constant) loss_options.wanted.push_back(name);
  const BoundLoss bound = loss.bind_trajectory(device, inputs, loss_options);
  const std::vector<Unknown> unknowns = make_unknowns(example, inputs, bound);
  int64_t count = 0;
  for (const Unknown& u : unknowns) count += u.count() * u.cells();
  // No residual sees a diagnostic field of the last level but one: the last level is not kept.
  const bool diagnostic = std::any_of(unknowns.begin(), unknowns.end(),
                                      [](const Unknown& u) { return u.advance == Advance::diagnostic; });
  const int end = options.levels - (diagnostic ? 2 : 1);

  TrainResult result;
  result.windows = options.windows ? options.windows : example.windows;
  const Vector zeros(size_t(count), 0.0);
  Buffer last;  // the point of the window before
  for (int window = 0; window < result.windows; ++window) {
    const Buffer start = device.upload(zeros);
    for (const Unknown& u : unknowns)
      if (u.advance == Advance::diagnostic)
        for (int k = 0; k < u.count(); ++k)
          scale(device, u.levels[1], start.rows(u.first + k * u.cells(), u.cells()), 1 / kDiagnosticScale);
    const double at_rest = value_at(WindowLoss(device, start, bound, unknowns, example.mesh.dt));
    if (last) carry_rates(device, unknowns, last, end, start);
    WindowLoss objective(device, start, bound, unknowns, example.mesh.dt);
    optimize::Options search;
    search.max_iterations = options.iterations;
    search.value_tolerance = search.gradient_tolerance = search.step_tolerance = 0;
    search.callback = [&](const optimize::Iteration& row) { return row.value > options.tolerance * at_rest; };
    const optimize::Result found = optimize::minimize(objective, search);
    result.iterations += found.iterations;
    result.losses_first.push_back(at_rest);
    result.losses_last.push_back(found.value);
    result.converged += found.value <= options.tolerance * at_rest;
    last = objective.point();
    objective.take();
    for (const Unknown& u : unknowns) move_on(device, u, size_t(end));
    if (progress) progress();
  }
  for (const auto& [name, advance] : example.fields)
    result.fields[name] = device.download<double>(inputs.fields.at(name)[1]);
  return result;
}

}  // namespace lockstep::pde
