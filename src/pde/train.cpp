// Examples solved by the gradients of their trajectory loss: L-BFGS over windows of levels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "lockstep/error.hpp"
#include "lockstep/pde/examples.hpp"

namespace lockstep::pde {

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Limited-memory BFGS with backtracking; keeps the last ten pairs.
class Minimiser {
 public:
  using Evaluate = std::function<double(const Vector& x, Vector& gradient)>;

  /// Returns the steps taken; `loss` receives the final value.
  static int run(const Evaluate& evaluate, Vector& x, int iterations, double tolerance, double& first,
                 double& loss) {
    Vector g(x.size()), next_g(x.size()), next(x.size());
    first = loss = evaluate(x, g);
    std::deque<std::pair<Vector, Vector>> pairs;
    int step = 0;
    for (; step < iterations && loss > tolerance * first; ++step) {
      Vector direction = two_loops(pairs, g);
      double slope = dot(direction, g);
      if (!(slope < 0)) {  // not a descent: start again from the gradient
        pairs.clear();
        for (size_t i = 0; i < x.size(); ++i) direction[i] = -g[i];
        slope = -dot(g, g);
        if (slope == 0) break;
      }
      // The first direction has no scale: one that would remove the loss if it fell linearly.
      double length = pairs.empty() ? loss / -slope : 1;
      double value = 0;
      int trial = 0;
      for (; trial < 20; ++trial, length *= 0.4) {
        for (size_t i = 0; i < x.size(); ++i) next[i] = x[i] + length * direction[i];
        value = evaluate(next, next_g);
        if (value <= loss + 1e-4 * length * slope) break;
      }
      if (trial == 20) break;
      Vector s(x.size()), y(x.size());
      for (size_t i = 0; i < x.size(); ++i) s[i] = next[i] - x[i], y[i] = next_g[i] - g[i];
      if (dot(s, y) > 1e-14 * dot(y, y)) pairs.emplace_back(std::move(s), std::move(y));
      if (pairs.size() > 10) pairs.pop_front();
      x.swap(next);
      g.swap(next_g);
      loss = value;
    }
    return step;
  }

 private:
  static Vector two_loops(const std::deque<std::pair<Vector, Vector>>& pairs, const Vector& g) {
    Vector q = g;
    std::vector<double> alpha(pairs.size());
    for (size_t k = pairs.size(); k-- > 0;) {
      const auto& [s, y] = pairs[k];
      alpha[k] = dot(s, q) / dot(s, y);
      for (size_t i = 0; i < q.size(); ++i) q[i] -= alpha[k] * y[i];
    }
    if (!pairs.empty()) {
      const auto& [s, y] = pairs.back();
      const double scale = dot(s, y) / dot(y, y);
      for (double& v : q) v *= scale;
    }
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto& [s, y] = pairs[k];
      const double beta = dot(y, q) / dot(s, y);
      for (size_t i = 0; i < q.size(); ++i) q[i] += (alpha[k] - beta) * s[i];
    }
    for (double& v : q) v = -v;
    return q;
  }
};

}  // namespace

TrainResult train(const Device& device, const Example& example, const TrainOptions& options,
                  const std::function<void()>& progress) {
  if (options.levels < 3 || options.windows < 1 || options.iterations < 1)
    throw InputError(fmt::format("{} levels, {} windows, {} iterations", options.levels, options.windows,
                                 options.iterations),
                     "pde train", "3 levels, 1 window, 1 iteration or more");
  const Mesh& mesh = example.mesh;
  const size_t count = size_t(mesh.count());
  const Loss loss(example.system, mesh);
  const auto is_constant = [&](const std::string& name) {
    return std::find(example.constant.begin(), example.constant.end(), name) != example.constant.end();
  };
  std::map<std::string, int> components;
  for (const std::string& name : example.fields) components[name] = example.system.components(name);

  std::map<std::string, std::vector<Vector>> data;  // by field and level
  for (const std::string& name : example.fields) {
    Vector start;
    for (int c = 0; c < components[name]; ++c)
      for (int64_t z = 0; z < mesh.cells[2]; ++z)
        for (int64_t y = 0; y < mesh.cells[1]; ++y)
          for (int64_t x = 0; x < mesh.cells[0]; ++x)
            start.push_back(example.start(name, c, (double(x) + 0.5) / double(mesh.cells[0]),
                                          (double(y) + 0.5) / double(mesh.cells[1]),
                                          (double(z) + 0.5) / double(mesh.cells[2])));
    data[name].assign(size_t(options.levels), start);
  }
  TrajectoryInputs inputs;
  inputs.parameters = example.parameters;
  for (const std::string& name : example.fields)
    for (int n = 0; n < options.levels; ++n) {
      const int c = components[name];
      Shape shape;
      if (c > 1) shape.push_back(c);
      for (int a = example.system.dimensions() - 1; a >= 0; --a) shape.push_back(mesh.cells[size_t(a)]);
      inputs.fields[name].push_back(device.allocate<double>(shape));
    }
  LossOptions loss_options;
  for (const std::string& name : example.fields)
    if (!is_constant(name)) loss_options.wanted.push_back(name);
  const BoundLoss bound = loss.bind_trajectory(device, inputs, loss_options);

  const auto each_unknown = [&](const std::function<void(const std::string&, int, size_t)>& f) {
    size_t at = 0;
    for (const std::string& name : loss_options.wanted)
      for (int n = 2; n < options.levels; ++n) {
        f(name, n, at);
        at += count * size_t(components[name]);
      }
    return at;
  };
  const size_t unknowns = each_unknown([](const std::string&, int, size_t) {});
  const auto upload = [&](const std::string& name, int n) {
    const Vector& v = data[name][size_t(n)];
    device.write(inputs.fields[name][size_t(n)], v.data(), int64_t(v.size() * sizeof(double)));
  };
  const auto evaluate = [&](const Vector& x, Vector& gradient) {
    each_unknown([&](const std::string& name, int n, size_t at) {
      Vector& v = data[name][size_t(n)];
      std::copy(x.begin() + std::ptrdiff_t(at), x.begin() + std::ptrdiff_t(at + v.size()), v.begin());
      upload(name, n);
    });
    bound.run();
    each_unknown([&](const std::string& name, int n, size_t at) {
      const Vector g = device.download<double>(bound.gradient(name, n));
      std::copy(g.begin(), g.end(), gradient.begin() + std::ptrdiff_t(at));
    });
    return bound.loss();
  };

  TrainResult result;
  Vector x(unknowns);
  for (int window = 0; window < options.windows; ++window) {
    for (const std::string& name : example.fields)
      for (int n = 0; n < 2; ++n) upload(name, n);
    if (window == 0)
      for (const std::string& name : example.constant)
        for (int n = 2; n < options.levels; ++n) upload(name, n);
    each_unknown([&](const std::string& name, int, size_t at) {
      const Vector& known = data[name][1];
      std::copy(known.begin(), known.end(), x.begin() + std::ptrdiff_t(at));
    });
    double first = 0, last = 0;
    result.iterations += Minimiser::run(evaluate, x, options.iterations, options.tolerance, first, last);
    result.losses_first.push_back(first);
    result.losses_last.push_back(last);
    Vector unused(unknowns);
    evaluate(x, unused);  // the levels of the best point, not of the last trial
    for (const std::string& name : loss_options.wanted) {
      auto& levels = data[name];
      levels[0] = levels[size_t(options.levels - 2)];
      levels[1] = levels[size_t(options.levels - 1)];
    }
    if (progress) progress();
  }
  for (const std::string& name : example.fields) result.fields[name] = data[name][1];
  return result;
}

}  // namespace lockstep::pde
