// Derivatives of a system against complex steps of its residuals in plain C++.
#include "lockstep/pde/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "lockstep/error.hpp"
#include "pde/host_residuals.hpp"
#include "pde/kernels/boundary_gradient.hpp"

namespace lockstep::pde {

namespace {

using Doubles = std::vector<double>;
constexpr double kStep = 1e-60;

double greatest(const Doubles& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

/// The larger of two errors; no finite number is the largest.
double worse(double a, double b) {
  return b <= a ? a : std::isfinite(b) ? b : std::numeric_limits<double>::infinity();
}

/// An array that the residuals depend on: a field at a level, a parameter, or a profile.
struct CheckedPart {
  std::string what;
  std::string name;
  int field = -1, level = 0;  // of a field
  bool profile = false;
  HostData::Numbers* values;  // among the problem's data
  size_t first = 0, count = 0;
  Doubles direction;
};

/// The problem as the check computes it, on the device and on the host.
struct Problem {
  const Device& device;
  Loss loss;
  std::shared_ptr<const Plan> plan;
  HostResiduals residuals;
  Storage storage;
  Inputs inputs;
  HostData data;
  Doubles mask;
  std::vector<CheckedPart> parts;

  Problem(const System& system, const Mesh& mesh, const Device& on, const Inputs& given)
      : device(on),
        loss(system, mesh),
        plan(system.plan()),
        residuals(plan, mesh),
        storage(on.info().limits.f64 ? Storage::f64 : Storage::f32) {
    if (given.members != 1 || given.rows[0] || given.rows[1] || given.rows[2])
      throw InputError("rows or several members", "pde check", "fields of one grid");
    loss.residuals(device, given);  // checks the inputs
    inputs.parameters = given.parameters;
    data.parameters = {0.5 / mesh.dt, 1 / mesh.dt, 1 / (mesh.dt * mesh.dt)};
    for (size_t k = kTimeParameters; k < plan->parameters.size(); ++k)
      data.parameters.push_back(given.parameters.at(plan->parameters[k]));
    for (const std::string& name : plan->profiles) {
      const Doubles values = take(given.profiles.at(name), inputs.profiles[name]);
      data.profiles.emplace_back(values.begin(), values.end());
    }
    if (given.mask) mask = take(given.mask, inputs.mask);
    for (size_t f = 0; f < plan->fields.size(); ++f) {
      const FieldInfo& field = plan->fields[f];
      for (int level = -1; level <= 1; ++level) {
        if (!field.used[level + 1]) continue;
        Buffer& to = inputs.fields[field.name][size_t(level + 1)];
        const Doubles values = take(given.fields.at(field.name)[size_t(level + 1)], to);
        data.fields[{int(f), level}].assign(values.begin(), values.end());
      }
    }
    list_parts();
  }

  /// An array in the check's storage, and its numbers.
  Doubles take(const Buffer& given, Buffer& to) const {
    const Array array = device.download(given).to(storage).packed();
    to = device.upload(array);
    const Array wide = array.to(Storage::f64);
    const auto values = wide.as<double>();
    return {values.begin(), values.end()};
  }
  void list_parts() {
    for (auto& [key, values] : data.fields) {
      const std::string& name = plan->fields[size_t(key.first)].name;
      parts.push_back({fmt::format("{} at level {:+}", name, key.second),
                       name,
                       key.first,
                       key.second,
                       false,
                       &values,
                       0,
                       values.size(),
                       {}});
    }
    for (size_t k = kTimeParameters; k < plan->parameters.size(); ++k)
      parts.push_back({"parameter " + plan->parameters[k],
                       plan->parameters[k],
                       -1,
                       0,
                       false,
                       &data.parameters,
                       k,
                       1,
                       {}});
    for (size_t k = 0; k < plan->profiles.size(); ++k)
      parts.push_back({"profile " + plan->profiles[k],
                       plan->profiles[k],
                       -1,
                       0,
                       true,
                       &data.profiles[k],
                       0,
                       data.profiles[k].size(),
                       {}});
  }
  void choose_directions(std::mt19937& random) {
    for (CheckedPart& part : parts) {
      double squares = 0;
      for (size_t i = 0; i < part.count; ++i) squares += std::norm((*part.values)[part.first + i]);
      const double size = squares > 0 ? std::sqrt(squares / double(part.count)) : 1;
      part.direction.resize(part.count);
      for (double& x : part.direction) x = size * unit(random);
    }
  }
  static double unit(std::mt19937& random) { return double(random()) / 2147483648.0 - 1; }
  /// Numbers as the device takes them, so that both sides see the same.
  Doubles rounded(Doubles values) const {
    if (storage == Storage::f32)
      for (double& x : values) x = double(float(x));
    return values;
  }
  Buffer upload(const Doubles& values, const Shape& shape) const {
    Sizes sizes;
    for (int a = 0; a < shape.rank(); ++a) sizes.push_back(shape[a]);
    return device.upload(Array::of(Doubles(values), sizes).to(storage));
  }

  /// The residuals' derivative along one part's direction.
  Doubles slope_by(const CheckedPart& part) {
    const HostData::Numbers before = *part.values;
    for (size_t i = 0; i < part.count; ++i)
      (*part.values)[part.first + i] += std::complex<double>(0, kStep * part.direction[i]);
    Doubles slope;
    for (const std::complex<double>& r : residuals(data)) slope.push_back(r.imag() / kStep);
    *part.values = before;
    return slope;
  }
};

/// The comparisons, row by row; of several directions the worst.
class Rows {
 public:
  explicit Rows(double bound) : bound_(bound) {}
  void add(const std::string& what, double difference, double scale) {
    const double error = difference == 0 ? 0 : std::abs(difference) / scale;
    const double counted = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
    for (CheckRow& row : rows_)
      if (row.what == what) {
        row.error = std::max(row.error, counted);
        return;
      }
    rows_.push_back({what, counted, bound_});
  }
  std::vector<CheckRow> take() { return std::move(rows_); }

 private:
  double bound_;
  std::vector<CheckRow> rows_;
};

/// The derivatives of one function by a part, as numbers.
Doubles of_part(const Problem& p, const CheckedPart& part, const Buffer& by_field,
                const Loss::Numbers& by_number) {
  if (part.field >= 0) return numbers_of(p.device, by_field);
  return part.profile ? by_number.profiles.at(part.name) : Doubles{by_number.parameters.at(part.name)};
}

struct Sum {
  double value = 0, size = 0;  // size: of the terms
  void add(double term) { value += term, size += std::abs(term); }
};
Sum dot(const Doubles& a, const Doubles& b) {
  Sum sum;
  for (size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
  return sum;
}

/// Everything along one random direction.
struct Direction {
  std::vector<Doubles> by_part;  // the residuals' slope along each part
  Doubles all;                   // and along all of them
};

Direction choose_direction(Problem& p, std::mt19937& random) {
  p.choose_directions(random);
  Direction d;
  for (CheckedPart& part : p.parts) {
    part.direction = p.rounded(std::move(part.direction));
    d.by_part.push_back(p.slope_by(part));
    if (d.all.empty()) d.all.assign(d.by_part.back().size(), 0.0);
    for (size_t i = 0; i < d.all.size(); ++i) d.all[i] += d.by_part.back()[i];
  }
  return d;
}

void check_products(Problem& p, const Direction& d, std::mt19937& random, Rows& rows) {
  std::map<std::string, std::array<Buffer, 3>> tangents;
  Loss::Numbers along;
  for (const CheckedPart& part : p.parts)
    if (part.field >= 0)
      tangents[part.name][size_t(part.level + 1)] =
          p.upload(part.direction, p.inputs.fields.at(part.name)[size_t(part.level + 1)].shape());
    else if (part.profile)
      along.profiles[part.name] = part.direction;
    else
      along.parameters[part.name] = part.direction[0];
  const Buffer forward = p.loss.jvp(p.device, p.inputs, tangents, along);
  const Doubles slope = numbers_of(p.device, forward);
  double worst = 0;
  for (size_t i = 0; i < slope.size(); ++i) { worst = worse(worst, std::abs(slope[i] - d.all[i])); }
  rows.add("J v", worst, greatest(d.all));
  Doubles w(slope.size());
  for (double& x : w) x = Problem::unit(random);
  w = p.rounded(std::move(w));
  const Buffer cotangents = p.upload(w, forward.shape());
  const auto back = p.loss.vjp(p.device, p.inputs, cotangents);
  const Loss::Numbers numbers = p.loss.number_vjp(p.device, p.inputs, cotangents);
  const Sum ahead = dot(slope, w);
  Sum behind;
  for (const CheckedPart& part : p.parts) {
    const Buffer by_field = part.field < 0 ? Buffer() : back.at(part.name)[size_t(part.level + 1)];
    const Sum one = dot(of_part(p, part, by_field, numbers), part.direction);
    behind.value += one.value, behind.size += one.size;
  }
  rows.add("<J v, w> and <v, J^T w>", ahead.value - behind.value, ahead.size + behind.size);
}

/// The residuals that the loss is made of, and for each the size of the terms that may cancel in it.
struct Terms {
  Doubles residuals, sizes;
  double weight(const Problem& p, size_t i, size_t cells) const {
    const double mask = p.mask.empty() ? 1 : p.mask[i % cells];
    return p.plan->weights[i / cells] * mask / double(cells);
  }
};

void check_gradients(const Problem& p, const Direction& d, const Terms& t, const BoundLoss& bound,
                     const Loss::Numbers& numbers, Rows& rows) {
  const size_t cells = size_t(p.loss.mesh().count());
  for (size_t k = 0; k < p.parts.size(); ++k) {
    const CheckedPart& part = p.parts[k];
    Sum wanted;
    double scale = 0;
    for (size_t i = 0; i < t.residuals.size(); ++i) {
      const double weight = 2 * t.weight(p, i, cells), slope = d.by_part[k][i];
      wanted.add(weight * slope * t.residuals[i]);
      scale += weight * t.sizes[i] * (std::abs(slope) + std::abs(t.residuals[i]));
    }
    const Buffer by_field = part.field < 0 ? Buffer() : bound.gradient(part.name, part.level);
    const Sum got = dot(of_part(p, part, by_field, numbers), part.direction);
    rows.add("gradient by " + part.what, got.value - wanted.value, got.size + wanted.size + scale);
  }
}

}  // namespace

bool CheckResult::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed(); });
}

CheckResult check(const System& system, const Mesh& mesh, const Device& device, const Inputs& inputs,
                  const CheckOptions& options) {
  if (options.directions < 1)
    throw InputError(fmt::format("{} directions", options.directions), "pde check", "1 or more");
  Problem p(system, mesh, device, inputs);
  constexpr double kRoundings = 4096;
  Rows rows(kRoundings * (p.storage == Storage::f64 ? std::numeric_limits<double>::epsilon()
                                                    : double(std::numeric_limits<float>::epsilon())));
  const size_t cells = size_t(mesh.count());
  Terms t;
  for (const std::complex<double>& r : p.residuals(p.data)) t.residuals.push_back(r.real());
  LossOptions bind;
  bind.path = options.path;
  const BoundLoss bound = p.loss.bind(device, p.inputs, bind);
  bound.run();
  const Loss::Numbers numbers = p.loss.number_gradients(device, p.inputs);
  const Doubles got = numbers_of(device, p.loss.residuals(device, p.inputs));
  std::mt19937 random(options.seed);
  for (int k = 0; k < options.directions; ++k) {
    const Direction d = choose_direction(p, random);
    if (k == 0) {
      double worst = 0, most = 0, squares = 0, scale = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t first = i / cells * cells;
        if (i == first)
          most =
              greatest({t.residuals.begin() + int64_t(first), t.residuals.begin() + int64_t(first + cells)}) +
              greatest({d.all.begin() + int64_t(first), d.all.begin() + int64_t(first + cells)});
        t.sizes.push_back(most);
        const double error = most == 0 && got[i] == 0 ? 0 : std::abs(got[i] - t.residuals[i]) / most;
        worst = worse(worst, error);
        squares += t.weight(p, i, cells) * t.residuals[i] * t.residuals[i];
        scale += t.weight(p, i, cells) * most * most;
      }
      rows.add("residuals", worst, 1);
      rows.add("loss", bound.loss() - squares, scale);
    }
    check_products(p, d, random, rows);
    check_gradients(p, d, t, bound, numbers, rows);
  }
  return {rows.take()};
}

}  // namespace lockstep::pde
