// Examples solved by the gradients of their trajectory loss: L-BFGS over windows of levels.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/optimize.hpp"
#include "lockstep/pde/examples.hpp"

namespace lockstep::pde {

namespace {

using Vector = std::vector<double>;

/// A window's loss over its unknown levels, which lie one after the other in the point.
class WindowLoss final : public optimize::VectorObjective {
 public:
  struct Part {
    Buffer field, gradient;  // of a level
  };
  WindowLoss(const Device& device, const Buffer& start, const BoundLoss& loss, const std::vector<Part>& parts)
      : VectorObjective(device, start), loss_(loss), parts_(parts) {}

  void launch_at(const Buffer& x, const Buffer& gradient, const Buffer& value) override {
    each_part(x, [&](const Buffer& numbers, const Part& part) { device().copy(numbers, part.field); });
    loss_.run();
    each_part(gradient,
              [&](const Buffer& numbers, const Part& part) { device().copy(part.gradient, numbers); });
    const double loss = loss_.loss();
    device().write(value, &loss, sizeof(loss));
  }
  /// The levels of the point, not of the last trial.
  void take() {
    each_part(point(), [&](const Buffer& numbers, const Part& part) { device().copy(numbers, part.field); });
  }
  bool recordable() const override { return false; }  // the loss's terms are weighted on the host

 private:
  template <class F>
  void each_part(const Buffer& whole, F work) const {
    int64_t at = 0;
    for (const Part& part : parts_) {
      work(whole.rows(at, part.field.elements()).reshape(part.field.shape()), part);
      at += part.field.elements();
    }
  }

  const BoundLoss& loss_;
  const std::vector<Part>& parts_;
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
  for (const std::string& name : example.fields) {
    const Vector start = start_of(example, name);
    Shape shape;
    if (const int c = example.system.components(name); c > 1) shape.push_back(c);
    for (int a = example.system.dimensions() - 1; a >= 0; --a) shape.push_back(example.mesh.cells[size_t(a)]);
    for (int n = 0; n < levels; ++n)
      inputs.fields[name].push_back(device.upload(std::span<const double>(start), shape));
  }
  return inputs;
}

}  // namespace

TrainResult train(const Device& device, const Example& example, const TrainOptions& options,
                  const std::function<void()>& progress) {
  if (options.levels < 3 || options.windows < 1 || options.iterations < 1)
    throw InputError(fmt::format("{} levels, {} windows, {} iterations", options.levels, options.windows,
                                 options.iterations),
                     "pde train", "3 levels, 1 window, 1 iteration or more");
  const Loss loss(example.system, example.mesh);
  const TrajectoryInputs inputs = make_inputs(device, example, options.levels);
  LossOptions loss_options;
  for (const std::string& name : example.fields)
    if (std::find(example.constant.begin(), example.constant.end(), name) == example.constant.end())
      loss_options.wanted.push_back(name);
  const BoundLoss bound = loss.bind_trajectory(device, inputs, loss_options);
  std::vector<WindowLoss::Part> parts;
  int64_t unknowns = 0;
  for (const std::string& name : loss_options.wanted)
    for (int n = 2; n < options.levels; ++n) {
      parts.push_back({inputs.fields.at(name)[size_t(n)], bound.gradient(name, n)});
      unknowns += parts.back().field.elements();
    }

  TrainResult result;
  const Buffer start = device.allocate<double>({unknowns});
  for (int window = 0; window < options.windows; ++window) {
    int64_t at = 0;  // every unknown level starts as the last known one
    for (const std::string& name : loss_options.wanted)
      for (int n = 2; n < options.levels; ++n) {
        const Buffer& known = inputs.fields.at(name)[1];
        device.copy(known, start.rows(at, known.elements()).reshape(known.shape()));
        at += known.elements();
      }
    WindowLoss objective(device, start, bound, parts);
    double first = 0;
    optimize::Options search;
    search.max_iterations = options.iterations;
    search.value_tolerance = search.gradient_tolerance = search.step_tolerance = 0;
    search.callback = [&](const optimize::Iteration& row) {
      if (row.iteration == 1) first = row.value + row.value_change;
      return row.value > options.tolerance * first;
    };
    const optimize::Result found = optimize::minimize(objective, search);
    result.iterations += found.iterations;
    result.losses_first.push_back(found.first_value);
    result.losses_last.push_back(found.value);
    objective.take();
    for (const std::string& name : loss_options.wanted) {
      const std::vector<Buffer>& levels = inputs.fields.at(name);
      device.copy(levels[size_t(options.levels - 2)], levels[0]);
      device.copy(levels[size_t(options.levels - 1)], levels[1]);
    }
    if (progress) progress();
  }
  for (const std::string& name : example.fields)
    result.fields[name] = device.download<double>(inputs.fields.at(name)[1]);
  return result;
}

}  // namespace lockstep::pde
