#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "lockstep/pde/run.hpp"
#include "pde/reference.hpp"

namespace lockstep::pde {
namespace {

/// The arrays of a run, checked one by one; the first one fixes element type and cells.
class CheckedArrays {
 public:
  CheckedArrays(const NamedArrays& arrays, const std::string& where) : arrays_(arrays), where_(where) {}

  /// A field of shape (leading …, nz, ny, nx).
  const Array& field(const std::string& name, const Sizes& leading) {
    const Array& a = find(name);
    if (a.storage() != Storage::f32 && a.storage() != Storage::f64)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage())), where_,
                       "f32 or f64");
    expect_shape(a, name, leading);
    if (first_.empty()) {
      first_ = name;
      storage_ = a.storage();
      const size_t r = a.shape().size();
      cells_ = {a.shape()[r - 1], a.shape()[r - 2], a.shape()[r - 3]};
    }
    expect_cells(a, name);
    if (a.storage() != storage_)
      throw InputError(fmt::format("array {} of type {}", name, lockstep::name(a.storage())), where_,
                       fmt::format("{} as {}", lockstep::name(storage_), first_));
    if (const auto at = first_not_finite(a.packed()))
      throw InputError(fmt::format("array {} is not finite at {}", name, index_text(a.shape(), *at)), where_,
                       "finite numbers (a mask leaves cells out, but their values still enter differences)");
    return a;
  }
  /// The mask as numbers of the fields' type, or nothing.
  Array mask() {
    if (!arrays_.count("mask")) return {};
    const Array& a = find("mask");
    expect_shape(a, "mask", {});
    expect_cells(a, "mask");
    const Array numbers = a.to(Storage::f64).packed();
    const auto values = numbers.as<double>();
    for (size_t k = 0; k < values.size(); ++k)
      if (!(values[k] >= 0) || std::isinf(values[k]))
        throw InputError(fmt::format("array mask is {} at {}", values[k], index_text(a.shape(), int64_t(k))),
                         where_, "finite weights of 0 or more");
    return a.to(storage_);
  }
  const std::array<int64_t, 3>& cells() const { return cells_; }
  Storage storage() const { return storage_; }

 private:
  const Array& find(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found != arrays_.end()) return found->second;
    std::vector<std::string> present;
    for (const auto& [other, array] : arrays_) present.push_back(other);
    throw InputError(fmt::format("no array {} among {}", name, fmt::join(present, ", ")), where_, name);
  }
  void expect_shape(const Array& a, const std::string& name, const Sizes& leading) const {
    bool fits = a.shape().size() == leading.size() + 3;
    for (size_t k = 0; fits && k < a.shape().size(); ++k)
      fits = a.shape()[k] > 0 && (k >= leading.size() || a.shape()[k] == leading[k]);
    std::string expected = "(";
    for (int64_t n : leading) expected += fmt::format("{}, ", n);
    if (!fits)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(a.shape())), where_,
                       expected + "nz, ny, nx)");
  }
  void expect_cells(const Array& a, const std::string& name) const {
    const size_t r = a.shape().size();
    if (std::array{a.shape()[r - 1], a.shape()[r - 2], a.shape()[r - 3]} != cells_)
      throw InputError(fmt::format("array {} of shape {}", name, to_string(a.shape())), where_,
                       fmt::format("the cells of {}, {} x {} x {}", first_, cells_[2], cells_[1], cells_[0]));
  }

  const NamedArrays& arrays_;
  const std::string& where_;
  std::string first_;
  Storage storage_ = Storage::f32;
  std::array<int64_t, 3> cells_{};
};

Mesh mesh_of(const RunOptions& o, const std::array<int64_t, 3>& cells) {
  return {.cells = cells, .spacing = o.spacing, .dt = o.dt, .boundary = o.boundary, .order = o.order};
}

/// Binds with the wanted path. Where that cannot do the problem, two kernels take it and the result says so.
template <class Bind>
BoundLoss bind_path(LossOptions& wanted, const RunOptions& options, RunResult& result, Bind bind) {
  try {
    return bind(wanted);
  } catch (const UnsupportedError& e) {
    if (!options.any_path || (wanted.path != Path::fused && wanted.path != Path::two_sweep)) throw;
    result.path_refused = e.what();
    wanted.path = Path::two_kernel;
    return bind(wanted);
  }
}

void take_terms(RunResult& result, const BoundLoss& bound) {
  const std::vector<double> values = bound.terms();
  for (size_t k = 0; k < values.size(); ++k) result.terms.push_back({bound.term_names()[k], values[k]});
  result.kernel = std::string(name(bound.path()));
}

void sum_terms(RunResult& result, const RunOptions& options) {
  for (const auto& [name, value] : result.terms) result.loss += value;
  if (!std::isfinite(result.loss))
    throw InputError("the loss is not finite", options.where,
                     "fields whose squares the type holds; f64 holds more");
}

bool wanted_level(Gradients gradients, int level) {
  switch (gradients) {
    case Gradients::none: return false;
    case Gradients::t1: return level == 0;
    case Gradients::t1t2: return level >= 0;
    default: return true;
  }
}

template <class T>
RunResult evaluate_reference(const NamedArrays& arrays, const Array& mask, const RunOptions& options) {
  reference::State<T> s;
  const Array &sigma1 = arrays.at("sigma1"), &u1 = arrays.at("u1");
  const auto n = std::ptrdiff_t(sigma1.elements());
  for (size_t l = 0; l < 3; ++l) {
    const Array sigma = arrays.at(fmt::format("sigma{}", l)).packed(),
                u = arrays.at(fmt::format("u{}", l)).packed();
    s.sigma[l].assign(sigma.as<T>().begin(), sigma.as<T>().end());
    for (std::ptrdiff_t c = 0; c < 3; ++c)
      s.u[l][size_t(c)].assign(u.as<T>().begin() + c * n, u.as<T>().begin() + (c + 1) * n);
  }
  std::vector<T> weights;
  if (!mask.empty()) weights.assign(mask.as<T>().begin(), mask.as<T>().end());
  RunResult result;
  result.mesh = mesh_of(options, {sigma1.shape()[2], sigma1.shape()[1], sigma1.shape()[0]});
  const Loss check(transport(3),
                   result.mesh);  // what the kernels would check: sizes against stencils and rules
  const auto r =
      reference::evaluate<T>(result.mesh, s, weights, options.terms.weight_sigma, options.terms.weight_u);
  result.kernel = "reference";
  result.terms = {{"sigma", double(r.loss_sigma)}, {"u", double(r.loss_u)}};
  for (size_t l = 0; l < 3; ++l) {
    if (!wanted_level(options.gradients, int(l) - 1)) continue;
    result.gradients.push_back({fmt::format("d_sigma{}", l), Array::of(r.gradient.sigma[l], sigma1.shape())});
    std::vector<T> u;
    for (const auto& c : r.gradient.u[l]) u.insert(u.end(), c.begin(), c.end());
    result.gradients.push_back({fmt::format("d_u{}", l), Array::of(std::move(u), u1.shape())});
  }
  return result;
}

bool has_only_the_core_terms(const TransportOptions& t) {
  return t.sigma_transport && t.sigma_divergence && t.momentum && !t.upwind && t.viscosity == 0 &&
         !t.pressure && !t.forcing && t.weight_divergence == 0 && t.weight_speed == 0;
}

RunResult run_reference(Context& context, const NamedArrays& arrays, const Array& mask,
                        const RunOptions& options) {
  if (!has_only_the_core_terms(options.terms))
    throw InputError("these terms with the reference", options.where,
                     "transport, compression and momentum alone");
  RunResult result;
  context.run_stage_on_cpu("pde.reference", [&](const Device&) {
    result = arrays.at("sigma1").storage() == Storage::f64 ? evaluate_reference<double>(arrays, mask, options)
                                                           : evaluate_reference<float>(arrays, mask, options);
  });
  sum_terms(result, options);
  return result;
}

}  // namespace

RunResult run_loss(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  const TransportOptions& terms = options.terms;
  CheckedArrays checked(arrays, options.where);
  for (const char* level : {"1", "0", "2"}) {
    checked.field(fmt::format("sigma{}", level), {});
    checked.field(fmt::format("u{}", level), {3});
  }
  if (terms.pressure) checked.field("p", {});
  if (terms.forcing) checked.field("force", {3});
  const Array mask = checked.mask();
  if (options.reference) return run_reference(context, arrays, mask, options);

  const Mesh mesh = mesh_of(options, checked.cells());
  const Loss loss(transport(3, terms), mesh);
  RunResult result = context.stage("pde.loss", [&](const Device& device) {
    RunResult r;
    Inputs inputs;
    for (size_t l = 0; l < 3; ++l) {
      // Fields that no term mentions need no buffer.
      if (terms.sigma_transport)
        inputs.fields["sigma"][l] = device.upload(arrays.at(fmt::format("sigma{}", l)));
      inputs.fields["u"][l] = device.upload(arrays.at(fmt::format("u{}", l)));
    }
    if (terms.pressure) inputs.fields["p"][1] = device.upload(arrays.at("p"));
    if (terms.forcing) inputs.fields["force"][1] = device.upload(arrays.at("force"));
    if (!mask.empty()) inputs.mask = device.upload(mask);
    LossOptions wanted;
    wanted.gradients = options.gradients;
    wanted.path = options.path;
    const BoundLoss bound = bind_path(
        wanted, options, r, [&](const LossOptions& with) { return loss.bind(device, inputs, with); });
    bound.run();
    take_terms(r, bound);
    for (int l = 0; l < 3; ++l)
      for (const char* field : {"sigma", "u", "p", "force"}) {
        const bool leveled = field == std::string_view("sigma") || field == std::string_view("u");
        const std::string source = leveled ? fmt::format("{}{}", field, l) : field;
        if (const Buffer g = bound.gradient(field, l - 1))
          r.gradients.push_back({"d_" + source, device.download(g)});
        else if (leveled && wanted_level(options.gradients, l - 1))  // no term mentions it
          r.gradients.push_back({"d_" + source, Array(checked.storage(), arrays.at(source).shape())});
      }
    return r;
  });
  result.mesh = mesh;
  sum_terms(result, options);
  return result;
}

RunResult run_trajectory(Context& context, const NamedArrays& arrays, const RunOptions& options) {
  const TransportOptions& terms = options.terms;
  if (terms.pressure || terms.forcing)
    throw InputError("pressure or forcing in a trajectory", options.where, "terms of sigma and u");
  if (options.gradients != Gradients::all && options.gradients != Gradients::none)
    throw InputError("gradients of some levels of a trajectory", options.where, "all or none");
  if (options.reference || options.path == Path::two_sweep)
    throw InputError("this kernel for a trajectory", options.where, "auto, fused or two-kernel");
  const auto found = arrays.find("sigma");
  const int64_t levels = found == arrays.end() || found->second.shape().empty() ? 3 : found->second.size(0);
  if (levels < 3) throw InputError(fmt::format("{} levels", levels), options.where, "3 or more");
  CheckedArrays checked(arrays, options.where);
  const Array& sigma = checked.field("sigma", {levels});
  const Array& u = checked.field("u", {levels, 3});
  const Array mask = checked.mask();
  const Mesh mesh = mesh_of(options, checked.cells());
  const Loss loss(transport(3, terms), mesh);
  RunResult result = context.stage("pde.trajectory", [&](const Device& device) {
    RunResult r;
    TrajectoryInputs inputs;
    for (int64_t n = 0; n < levels; ++n) {
      if (terms.sigma_transport) inputs.fields["sigma"].push_back(device.upload(sigma[n]));
      inputs.fields["u"].push_back(device.upload(u[n]));
    }
    if (!mask.empty()) inputs.mask = device.upload(mask);
    LossOptions wanted;
    wanted.gradients = options.gradients;
    wanted.path = options.path;
    const BoundLoss bound = bind_path(wanted, options, r, [&](const LossOptions& with) {
      return loss.bind_trajectory(device, inputs, with);
    });
    bound.run();
    take_terms(r, bound);
    if (options.gradients == Gradients::none) return r;
    for (const auto& [field, source] : {std::pair{"sigma", &sigma}, std::pair{"u", &u}}) {
      Array all(checked.storage(), source->shape());
      const auto bytes = all.mutate_raw();
      const size_t step = bytes.size() / size_t(levels);
      for (int64_t n = 0; n < levels; ++n)
        if (const Buffer g = bound.gradient(field, int(n)))
          device.read(g, bytes.data() + size_t(n) * step, int64_t(step));
      r.gradients.push_back({fmt::format("d_{}", field), std::move(all)});
    }
    return r;
  });
  result.mesh = mesh;
  result.levels = levels;
  sum_terms(result, options);
  return result;
}

std::string to_json(const RunResult& result) {
  nlohmann::ordered_json j{{"loss", result.loss}, {"loss_sigma", 0.0}, {"loss_u", 0.0}};
  for (const auto& [name, value] : result.terms) j["loss_" + name] = value;
  j["kernel"] = result.kernel;
  if (!result.path_refused.empty()) j["path_refused"] = result.path_refused;
  j["cells"] = {result.mesh.cells[2], result.mesh.cells[1], result.mesh.cells[0]};
  j["levels"] = result.levels;
  j["boundary"] = result.mesh.boundary.text();
  j["order"] = result.mesh.order;
  return j.dump();
}

}  // namespace lockstep::pde
