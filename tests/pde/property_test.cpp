// Derivatives of random systems: every rule, order, axis and size down to one cell, nonlinear in first and second
// differences. What is expected comes from complex steps of residuals in plain C++ (pde::check).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "device/devices.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/check.hpp"

namespace lockstep::pde {
namespace {

constexpr const char* kRules[] = {"periodic",          "clamp",      "reflect_even",      "reflect_odd",
                                  "free_slip",         "no_slip",    "dirichlet_face:.7", "dirichlet_face:@b",
                                  "dirichlet_face:@p", "ghost:-.4",  "ghost:@b",          "ghost:@p",
                                  "node_mirror",       "one_sided1", "one_sided2"};
constexpr int kRuleCount = int(std::size(kRules));

/// The least cells along an axis of a rule.
int least_cells(const std::string& rule) {
  return rule == "node_mirror" || rule == "one_sided1" ? 2 : rule == "one_sided2" ? 3 : 1;
}

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  int below(int n) { return int(random_() % uint32_t(n)); }
  double unit() { return double(random_()) / 2147483648.0 - 1; }
  std::vector<double> numbers(size_t n, double least = -1, double most = 1) {
    std::vector<double> v(n);
    for (double& x : v) x = least + (most - least) * 0.5 * (unit() + 1);
    return v;
  }

 private:
  std::mt19937 random_;
};

struct Case {
  int rule, order, axis, cells;
  std::string text() const {
    return std::string(kRules[rule]) + " order " + std::to_string(order) + " axis " + std::to_string(axis) +
           " cells " + std::to_string(cells);
  }
};

/// Every rule, order and axis with 1 to 2 reach + 2 cells.
std::vector<Case> all_cases() {
  std::vector<Case> list;
  for (int rule = 0; rule < kRuleCount; ++rule)
    for (int order = 2; order <= 8; order += 2)
      for (int axis = 0; axis < 3; ++axis)
        for (int cells = least_cells(kRules[rule]); cells <= order + 2; ++cells)
          list.push_back({rule, order, axis, cells});
  return list;
}

/// A random system on a small mesh with its data.
struct Trial {
  System system;
  Mesh mesh;
  Inputs inputs;

  Trial(const Case& c, Random& random, const Device& device, bool pointwise = false)
      : system(c.axis + 1 + random.below(3 - c.axis)) {
    choose_mesh(c, random);
    const Field f = system.field("f"), v = system.vector("v");
    const Value a = system.parameter("a");
    system.parameter("b");
    system.profile("p");
    const auto leaf = [&](int axis) {
      const Field& from = random.below(2) ? f : v;
      const int component = random.below(from.components), level = random.below(4) ? 0 : random.below(3) - 1;
      switch (random.below(5)) {
        case 0: return system.at(from, component, level);
        case 1: return system.forward(from, axis, component, level);
        case 2: return system.backward(from, axis, component, level);
        case 3: return system.d2(from, axis, component, level);
        default: return system.d(from, axis, component, level);
      }
    };
    const auto any_axis = [&] { return random.below(system.dimensions()); };
    // The tested axis' difference times one of the same axis and something of any.
    const Value d = random.below(2) ? system.d(f, c.axis) : system.d2(f, c.axis),
                beside = pointwise ? system.at(v, 0) : leaf(c.axis);
    system.residual("first", curve(d, pointwise ? 0 : random.below(5)) * (beside + a) + system.dt(f));
    Value other = pointwise ? system.at(f) * leaf(any_axis())
                            : curve(leaf(any_axis()), random.below(5)) * leaf(any_axis());
    if (random.below(2)) other = other + a * a * system.at(v, 0, 1);
    system.residual("second", other, 0.3);
    give(c, random, device);
  }
  static Value curve(const Value& x, int which) {
    switch (which) {
      case 0: return x;
      case 1: return square(x);
      case 2: return sin(x);
      case 3: return sqrt(square(x) + 0.5);
      default: return 1 / (square(x) + 2);
    }
  }
  void choose_mesh(const Case& c, Random& random) {
    std::string text;
    for (int axis = 0; axis < system.dimensions(); ++axis) {
      const std::string name(1, char('x' + axis));
      std::string rule = axis == c.axis ? kRules[c.rule] : kRules[random.below(6)];
      const int64_t cells = axis == c.axis ? c.cells : 1 + random.below(4);
      mesh.cells[size_t(axis)] = cells;
      mesh.spacing[size_t(axis)] = 0.4 + 0.1 * axis;
      if (!text.empty()) text += ",";
      // Another rule at the other end, half of the time.
      std::string high = rule;
      if (rule != "periodic" && random.below(2)) high = kRules[1 + random.below(kRuleCount - 1)];
      if (cells < least_cells(high)) high = rule;
      if (axis != c.axis && (rule.ends_with("@p") || high.ends_with("@p"))) high = rule;
      text += rule == high ? name + "=" + rule : name + "-=" + rule + "," + name + "+=" + high;
    }
    mesh.boundary = BoundaryConditions::parse(text);
    mesh.order = c.order;
    mesh.dt = 0.3;
  }
  void give(const Case& c, Random& random, const Device& device) {
    inputs = {};
    const int64_t count = mesh.count();
    for (size_t level = 0; level < 3; ++level) {
      const auto f = random.numbers(size_t(count)), v = random.numbers(size_t(count * system.dimensions()));
      inputs.fields["f"][level] =
          device.upload(std::span<const double>(f), {mesh.cells[2], mesh.cells[1], mesh.cells[0]});
      inputs.fields["v"][level] = device.upload(
          std::span<const double>(v), {system.dimensions(), mesh.cells[2], mesh.cells[1], mesh.cells[0]});
    }
    inputs.parameters = {{"a", random.unit()}, {"b", random.unit()}};
    // A profile that no side names lies along x.
    const int axis = mesh.boundary.text().find("@p") == std::string::npos ? 0 : c.axis;
    const int64_t slow = mesh.cells[axis == 2 ? 1 : 2], fast = mesh.cells[axis == 0 ? 1 : 0];
    const auto p = random.numbers(size_t(slow * fast));
    inputs.profiles["p"] = device.upload(std::span<const double>(p), {slow, fast});
    if (random.below(2) == 0) return;
    const auto mask = random.numbers(size_t(count), 0, 2);
    inputs.mask = device.upload(std::span<const double>(mask), {mesh.cells[2], mesh.cells[1], mesh.cells[0]});
  }
};

void expect_passes(const CheckResult& found, const std::string& what) {
  for (const CheckRow& row : found.rows) EXPECT_LE(row.error, 1e-12) << what << ": " << row.what;
}

// LOCKSTEP_PDE_SWEEP=1 takes all of them instead of one in a few.
TEST(Property, DerivativesOfRandomSystemsAreExact) {
  const std::vector<Case> cases = all_cases();
  const char* sweep = std::getenv("LOCKSTEP_PDE_SWEEP");
  const size_t step = sweep ? 1 : 5;
  const Device device = Device::open("interp");
  for (size_t k = 0; k < cases.size(); k += step) {
    Random random(uint32_t(k) + 1);
    const Trial trial(cases[k], random, device);
    SCOPED_TRACE(trial.mesh.boundary.text());
    ASSERT_NO_FATAL_FAILURE(expect_passes(
        check(trial.system, trial.mesh, device, trial.inputs, {.seed = uint32_t(k), .directions = 1}),
        cases[k].text()));
    if (::testing::Test::HasFailure() && !sweep) return;
  }
}

// Of residuals linear in differences: the sweeps along z, whose edges are apart.
TEST(Property, SweepsOfRandomSystemsAreExact) {
  const Device device = Device::open("interp");
  int taken = 0;
  for (uint32_t k = 0; k < 10; ++k)
    for (const Path path : {Path::fused, Path::two_sweep}) {
      Random random(k + 50);
      Case c{random.below(kRuleCount), path == Path::fused ? 2 : 2 + 2 * random.below(4), 2, 0};
      c.cells = 2 * c.order + 2;
      Trial trial(c, random, device, true);
      for (int axis = 0; axis < 2; ++axis) trial.mesh.cells[size_t(axis)] = 6;
      trial.give(c, random, device);
      try {
        expect_passes(
            check(trial.system, trial.mesh, device, trial.inputs, {.seed = k, .directions = 1, .path = path}),
            c.text());
        ++taken;
      } catch (const UnsupportedError&) {}
    }
  EXPECT_GE(taken, 10);
}

/// All gradients of a bound loss, one after the other.
std::vector<double> gradients(const Device& device, const BoundLoss& bound, int first, int last) {
  bound.run();
  std::vector<double> all;
  for (const char* field : {"f", "v"})
    for (int level = first; level <= last; ++level)
      if (const Buffer g = bound.gradient(field, level))
        for (const double x : device.download<double>(g)) all.push_back(x);
  return all;
}

// Slabs of planes, and devices, have the bits of the whole grid on the interpreter.
TEST(Property, SlabsAndDevicesHaveTheSameBits) {
  for (uint32_t k = 0; k < 6; ++k) {
    std::vector<double> whole;
    for (const std::string& name : host_devices()) {
      if (name != "interp" && k > 1) continue;  // compiled code is the slow part
      const Device device = Device::open(name);
      for (const int64_t slab : {0, 1, 2}) {
        Random random(k + 7);
        const Case c{int(k) * 5 % kRuleCount, k % 2 ? 4 : 2, 2, 7};
        const Trial trial(c, random, device);
        LossOptions options;
        options.slab = slab;
        const auto got =
            gradients(device, Loss(trial.system, trial.mesh).bind(device, trial.inputs, options), -1, 1);
        if (whole.empty()) whole = got;
        EXPECT_EQ(got, whole) << name << " slab " << slab << " " << c.text();
      }
    }
  }
}

// The loss of a trajectory is that of its windows of three levels.
TEST(Property, TrajectoriesOfNonlinearDifferences) {
  for (const std::string& name : host_devices()) {
    const Device device = Device::open(name);
    for (const char* rule : {"clamp", "reflect_odd", "periodic", "one_sided2"}) {
      if (name != "interp" && rule != std::string("clamp")) continue;  // compiled code is the slow part
      System s(3);
      const Field f = s.field("f");
      s.residual("r", s.dt(f) + square(s.dz(f)) + s.dy(f) * s.d2(f, 1) + sin(s.dx(f)));
      Mesh mesh;
      mesh.cells = {3, 4, 5};
      mesh.boundary = BoundaryConditions::parse(rule);
      const Loss loss(s, mesh);
      Random random(3);
      TrajectoryInputs all;
      for (int n = 0; n < 5; ++n) {
        const auto values = random.numbers(60);
        all.fields["f"].push_back(device.upload(std::span<const double>(values), {5, 4, 3}));
      }
      std::vector<double> wanted(5 * 60, 0.0);
      for (size_t n = 1; n < 4; ++n) {
        Inputs one;
        for (size_t l = 0; l < 3; ++l) one.fields["f"][l] = all.fields["f"][n - 1 + l];
        const auto g = gradients(device, loss.bind(device, one), -1, 1);
        for (size_t i = 0; i < g.size(); ++i) wanted[(n - 1) * 60 + i] += g[i];
      }
      LossOptions slabs;
      slabs.slab = 2;
      const auto got = gradients(device, loss.bind_trajectory(device, all, slabs), 0, 4);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], wanted[i], 1e-12) << name << " " << rule << " " << i;
    }
  }
}

// A loss that is finite in every cell has a finite gradient, though its derivative has none beyond the edge.
TEST(Property, NothingIsTakenFromBeyondTheGrid) {
  for (const std::string& name : host_devices()) {
    const Device device = Device::open(name);
    for (const char* rule : {"clamp", "reflect_odd", "one_sided1", "ghost:-3"})
      for (int axis = 0; axis < 3; ++axis)
        for (int which = 0; which < 3; ++which) {
          if (name != "interp" && (axis < 2 || which > 0)) continue;  // compiled code is the slow part
          System s(3);
          const Field f = s.field("f");
          const Value d = s.d(f, axis);
          s.residual("r", which == 0 ? log(d) : which == 1 ? sqrt(d) : 1 / d);
          Mesh mesh;
          mesh.cells = {3, 4, 3};
          mesh.boundary = BoundaryConditions::parse(
              std::string(rule) == "reflect_odd" || std::string(rule) == "ghost:-3"
                  ? std::string(1, char('x' + axis)) + "-=" + rule + "," + char('x' + axis) + "+=clamp"
                  : std::string(1, char('x' + axis)) + "=" + rule);
          Random random(11);
          std::vector<double> values;
          for (int z = 0; z < 3; ++z)
            for (int y = 0; y < 4; ++y)
              for (int x = 0; x < 3; ++x)
                values.push_back(1 + (axis == 0 ? x : axis == 1 ? y : z) + 0.2 * random.unit());
          Inputs inputs;
          inputs.fields["f"][1] = device.upload(std::span<const double>(values), {3, 4, 3});
          expect_passes(check(s, mesh, device, inputs, {.directions = 1}),
                        name + " " + rule + " axis " + std::to_string(axis));
        }
  }
}

/// Everything that a loss depends on, or derivatives by it, as one list of numbers.
struct Everything {
  FieldBuffers fields;
  Loss::Numbers numbers;

  std::vector<double> list(const Device& device) const {
    std::vector<double> all;
    for (const auto& [name, levels] : fields)
      for (const Buffer& level : levels)
        if (level)
          for (const double x : device.download<double>(level)) all.push_back(x);
    for (const auto& [name, value] : numbers.parameters) all.push_back(value);
    for (const auto& [name, values] : numbers.profiles) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
};

Everything gradient_at(const Trial& trial, const Device& device, const Inputs& inputs) {
  const Loss loss(trial.system, trial.mesh);
  const BoundLoss bound = loss.bind(device, inputs);
  bound.run();
  Everything g;
  for (const char* field : {"f", "v"})
    for (int level = -1; level <= 1; ++level)
      g.fields[field][size_t(level + 1)] = bound.gradient(field, level);
  g.numbers = loss.number_gradients(device, inputs);
  return g;
}

/// A direction for all inputs, and the inputs moved along it.
struct Motion {
  Everything by;
  Motion(const Trial& trial, const Device& device, Random& random) {
    for (const auto& [name, levels] : trial.inputs.fields)
      for (size_t l = 0; l < 3; ++l) {
        const auto step = random.numbers(size_t(levels[l].elements()));
        by.fields[name][l] = device.upload(std::span<const double>(step), levels[l].shape());
      }
    for (const auto& [name, value] : trial.inputs.parameters) by.numbers.parameters[name] = random.unit();
    by.numbers.profiles["p"] = random.numbers(size_t(trial.inputs.profiles.at("p").elements()));
  }
  Inputs moved(const Trial& trial, const Device& device, double h) const {
    Inputs to = trial.inputs;
    const auto add = [&](Buffer& at, const std::vector<double>& step) {
      std::vector<double> values = device.download<double>(at);
      for (size_t i = 0; i < values.size(); ++i) values[i] += h * step[i];
      at = device.upload(std::span<const double>(values), at.shape());
    };
    for (auto& [name, levels] : to.fields)
      for (size_t l = 0; l < 3; ++l) add(levels[l], device.download<double>(by.fields.at(name)[l]));
    for (auto& [name, value] : to.parameters) value += h * by.numbers.parameters.at(name);
    add(to.profiles.at("p"), by.numbers.profiles.at("p"));
    return to;
  }
};

// H v is what a step along v adds to the gradient; H is symmetric.
TEST(Property, ProductsWithTheHessian) {
  const Device device = Device::open("interp");
  const std::vector<Case> cases = all_cases();
  for (size_t k = 0; k < cases.size(); k += 61) {
    if (cases[k].order > 4) continue;  // differences of the gradient lose more digits there
    Random random(uint32_t(k) + 1);
    const Trial trial(cases[k], random, device);
    SCOPED_TRACE(cases[k].text() + ": " + trial.mesh.boundary.text());
    const Loss loss(trial.system, trial.mesh);
    const Motion v(trial, device, random), u(trial, device, random);
    const auto product = [&](const Motion& along) {
      const Loss::Product p = loss.hessian_product(device, trial.inputs, along.by.fields, along.by.numbers);
      Everything all{p.fields, p.numbers};
      for (auto& [name, levels] : all.fields)  // levels that no residual mentions have no gradient
        for (size_t l = 0; l < 3; ++l) levels[l] = levels[l] ? levels[l] : Buffer();
      return all;
    };
    const Everything hv = product(v), hu = product(u);
    constexpr double h = 2e-3;
    const auto at = [&](double step) {
      return gradient_at(trial, device, v.moved(trial, device, step)).list(device);
    };
    const auto a = at(h), b = at(-h), c = at(2 * h), d = at(-2 * h), e = at(3 * h), f = at(-3 * h),
               got = hv.list(device);
    ASSERT_EQ(got.size(), a.size());
    double most = 0;
    for (const double x : got) most = std::max(most, std::abs(x));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], (45 * (a[i] - b[i]) - 9 * (c[i] - d[i]) + (e[i] - f[i])) / (60 * h), 1e-7 * most)
          << i;
    const auto dot = [&](const Motion& x, const Everything& y) {
      Everything part = x.by;
      for (auto& [name, levels] : part.fields)
        for (size_t l = 0; l < 3; ++l)
          if (!y.fields.contains(name) || !y.fields.at(name)[l]) levels[l] = Buffer();
      const auto left = part.list(device), right = y.list(device);
      EXPECT_EQ(left.size(), right.size());
      double sum = 0;
      for (size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
      return sum;
    };
    EXPECT_NEAR(dot(u, hv), dot(v, hu), 1e-12 * most * double(got.size()));
  }
}

}  // namespace
}  // namespace lockstep::pde
