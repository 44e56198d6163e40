// `lockstep pde`: loss and trajectory. The study has a file of its own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/log.hpp"
#include "lockstep/error.hpp"
#include "pde/reference.hpp"
#include "pde_options.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using io::NpyArray;
using nlohmann::ordered_json;

/// What a run leaves: terms by name and gradient arrays by their name in OUT.
struct PdeResult {
  std::vector<std::pair<std::string, double>> terms;
  io::NpzArrays gradients;
  std::string kernel;
};

Buffer upload(const Device& device, const NpyArray& a, size_t offset = 0, std::vector<int64_t> shape = {}) {
  Shape s;
  for (int64_t n : shape.empty() ? a.shape : shape) s.push_back(n);
  const Storage storage = a.type == io::NpyType::f8 ? Storage::f64 : Storage::f32;
  const Buffer b = device.allocate(storage, s);
  device.write(b, a.data.data() + offset, b.bytes());
  return b;
}

NpyArray download(const Device& device, const Buffer& b, std::vector<int64_t> shape) {
  NpyArray a;
  a.type = b.storage() == Storage::f64 ? io::NpyType::f8 : io::NpyType::f4;
  a.shape = std::move(shape);
  a.data.resize(size_t(b.bytes()));
  device.read(b, a.data.data(), b.bytes());
  return a;
}

/// Binds with the wanted path; where sweeps cannot do the problem, says so and takes two kernels.
template <class Bind>
pde::BoundLoss bind_path(pde::LossOptions& options, Bind bind) {
  try {
    return bind(options);
  } catch (const UnsupportedError& e) {
    if (options.path != pde::Path::fused && options.path != pde::Path::two_sweep) throw;
    logging::warning("{}; two-kernel is used", e.what());
    options.path = pde::Path::two_kernel;
    return bind(options);
  }
}

void take_terms(PdeResult& result, const pde::BoundLoss& bound) {
  const std::vector<double> values = bound.terms();
  for (size_t k = 0; k < values.size(); ++k) result.terms.push_back({bound.term_names()[k], values[k]});
}

template <class T>
PdeResult run_reference(const PdeOptions& options, const pde::Mesh& mesh,
                        const std::map<std::string, const NpyArray*>& in) {
  if (options.terms != "all")
    throw InputError(fmt::format("terms '{}' with the reference", options.terms), "--terms",
                     "all, or another --kernel");
  pde::reference::State<T> s;
  const size_t n = size_t(mesh.count());
  for (size_t l = 0; l < 3; ++l) {
    const auto sigma = in.at(fmt::format("sigma{}", l))->as<T>(), u = in.at(fmt::format("u{}", l))->as<T>();
    s.sigma[l].assign(sigma.begin(), sigma.end());
    for (size_t c = 0; c < 3; ++c)
      s.u[l][c].assign(u.begin() + std::ptrdiff_t(c * n), u.begin() + std::ptrdiff_t((c + 1) * n));
  }
  std::vector<T> mask;
  if (const auto found = in.find("mask"); found != in.end())
    mask.assign(found->second->as<T>().begin(), found->second->as<T>().end());
  // Checks what the kernels would check: sizes against stencils and rules.
  const pde::Loss check(pde::transport(3), mesh);
  const std::vector<double> weights = parse_numbers(options.weights, "--weights", 2);
  const auto r = pde::reference::evaluate<T>(mesh, s, mask, weights[0], weights[1]);
  PdeResult result;
  result.kernel = "reference";
  result.terms = {{"sigma", double(r.loss_sigma)}, {"u", double(r.loss_u)}};
  for (size_t l = 0; l < 3; ++l) {
    const bool wanted = options.gradients == "all" || (l == 1 && options.gradients != "none") ||
                        (l == 2 && options.gradients == "t1t2");
    if (!wanted) continue;
    result.gradients.push_back({fmt::format("d_sigma{}", l),
                                NpyArray(in.at("sigma1")->shape, std::span<const T>(r.gradient.sigma[l]))});
    std::vector<T> u;
    for (const auto& c : r.gradient.u[l]) u.insert(u.end(), c.begin(), c.end());
    result.gradients.push_back(
        {fmt::format("d_u{}", l), NpyArray(in.at("u1")->shape, std::span<const T>(u))});
  }
  return result;
}

int finish(Session& session, const PdeOptions& options, const PdeResult& result, const pde::Mesh& mesh,
           ordered_json document) {
  double loss = 0;
  for (const auto& [name, value] : result.terms) loss += value;
  document["loss"] = loss;
  document["loss_sigma"] = 0.0;
  document["loss_u"] = 0.0;
  for (const auto& [name, value] : result.terms) document["loss_" + name] = value;
  document["kernel"] = result.kernel;
  document["cells"] = {mesh.cells[2], mesh.cells[1], mesh.cells[0]};
  document["boundary"] = mesh.boundary.text();
  document["order"] = mesh.order;
  if (!options.out.empty()) {
    session.host_stage("write", [&] { io::write_npz(options.out, result.gradients); });
    document["out"] = options.out;
  }
  std::string text = fmt::format("loss {:.9g}\n", loss);
  for (const auto& [name, value] : result.terms) text += fmt::format("  {} {:.9g}\n", name, value);
  if (!options.out.empty()) text += fmt::format("gradients: {}\n", options.out);
  session.finish(std::move(document), text);
  return 0;
}

/// Arrays of the optional fields and the mask, checked against `first`.
void read_extras(const io::NpzArrays& file, const pde::TransportOptions& terms, const NpyArray& first,
                 const std::string& first_name, const std::string& where,
                 std::map<std::string, const NpyArray*>& in) {
  const auto take = [&](const std::string& name, const std::vector<int64_t>& leading) {
    const NpyArray& a = field_array(file, name, leading, where);
    expect_like(a, name, first, first_name, where);
    in[name] = &a;
  };
  if (terms.pressure) take("p", {});
  if (terms.forcing) take("force", {3});
  for (const auto& [name, array] : file)
    if (name == "mask") take("mask", {});
  for (const auto& [name, reason] : file.left_out)
    if (name == "mask") throw InputError(fmt::format("array mask: {}", reason), where, "f4 or f8");
}

int run_loss(const CommonOptions& common, const PdeOptions& options) {
  Session session(common);
  const pde::TransportOptions terms = parse_terms(options);
  pde::Mesh mesh = parse_mesh(options);
  const io::NpzArrays file = session.host_stage("read", [&] { return io::read_npz(options.input); });
  std::map<std::string, const NpyArray*> in;
  const NpyArray& first = field_array(file, "sigma1", {}, options.input);
  for (int l = 0; l < 3; ++l)
    for (const char* field : {"sigma", "u"}) {
      const std::string name = fmt::format("{}{}", field, l);
      const NpyArray& a = field_array(
          file, name, *field == 'u' ? std::vector<int64_t>{3} : std::vector<int64_t>{}, options.input);
      expect_like(a, name, first, "sigma1", options.input);
      in[name] = &a;
    }
  read_extras(file, terms, first, "sigma1", options.input, in);
  mesh.cells = cells_of(first);

  PdeResult result;
  if (options.kernel == "reference") {
    result = session.host_stage("pde.reference", [&] {
      return first.type == io::NpyType::f8 ? run_reference<double>(options, mesh, in)
                                           : run_reference<float>(options, mesh, in);
    });
  } else {
    const pde::Loss loss(pde::transport(3, terms), mesh);
    result = session.context().stage("pde.loss", [&](const Device& device) {
      pde::Inputs inputs;
      for (size_t l = 0; l < 3; ++l)
        for (const char* field : {"sigma", "u"})
          inputs.fields[field][l] = upload(device, *in.at(fmt::format("{}{}", field, l)));
      if (terms.pressure) inputs.fields["p"][1] = upload(device, *in.at("p"));
      if (terms.forcing) inputs.fields["force"][1] = upload(device, *in.at("force"));
      if (in.count("mask")) inputs.mask = upload(device, *in.at("mask"));
      // Fields that no term mentions need no array.
      if (!terms.sigma_transport) inputs.fields.erase("sigma");
      pde::LossOptions o;
      o.gradients = parse_gradients(options.gradients);
      o.path = parse_path(options.kernel);
      const pde::BoundLoss bound =
          bind_path(o, [&](const pde::LossOptions& with) { return loss.bind(device, inputs, with); });
      bound.run();
      PdeResult r;
      take_terms(r, bound);
      r.kernel = std::string(name(bound.path()));
      for (int l = 0; l < 3; ++l)
        for (const char* field : {"sigma", "u", "p", "force"})
          if (const Buffer g = bound.gradient(field, l - 1)) {
            const std::string source = *field == 'p' || *field == 'f' ? field : fmt::format("{}{}", field, l);
            r.gradients.push_back({"d_" + source, download(device, g, in.at(source)->shape)});
          }
      return r;
    });
  }
  return finish(session, options, result, mesh, {});
}

int run_trajectory(const CommonOptions& common, const PdeOptions& options) {
  Session session(common);
  const pde::TransportOptions terms = parse_terms(options);
  if (terms.pressure || terms.forcing)
    throw InputError("pressure or forcing in a trajectory", "--terms", "terms of sigma and u");
  if (options.kernel == "reference" || options.kernel == "two-sweep")
    throw InputError(fmt::format("kernel {}", options.kernel), "--kernel", "auto, fused or two-kernel");
  pde::Mesh mesh = parse_mesh(options);
  const io::NpzArrays file = session.host_stage("read", [&] { return io::read_npz(options.input); });
  const NpyArray& any = io::find_array(file, "sigma", options.input);
  const int64_t levels = any.shape.empty() ? 0 : any.shape[0];
  if (levels < 3) throw InputError(fmt::format("{} levels", levels), options.input, "3 or more");
  const NpyArray& sigma = field_array(file, "sigma", {levels}, options.input);
  const NpyArray& u = field_array(file, "u", {levels, 3}, options.input);
  expect_like(u, "u", sigma, "sigma", options.input);
  std::map<std::string, const NpyArray*> in;
  read_extras(file, terms, sigma, "sigma", options.input, in);
  mesh.cells = cells_of(sigma);
  const pde::Loss loss(pde::transport(3, terms), mesh);
  const PdeResult result = session.context().stage("pde.trajectory", [&](const Device& device) {
    pde::TrajectoryInputs inputs;
    const std::vector<int64_t> scalar{mesh.cells[2], mesh.cells[1], mesh.cells[0]},
        vectors{3, mesh.cells[2], mesh.cells[1], mesh.cells[0]};
    const size_t step = sigma.data.size() / size_t(levels);
    for (int64_t n = 0; n < levels; ++n) {
      if (terms.sigma_transport)
        inputs.fields["sigma"].push_back(upload(device, sigma, size_t(n) * step, scalar));
      inputs.fields["u"].push_back(upload(device, u, size_t(n) * step * 3, vectors));
    }
    if (in.count("mask")) inputs.mask = upload(device, *in.at("mask"));
    pde::LossOptions o;
    o.gradients = options.gradients == "none" ? pde::Gradients::none : pde::Gradients::all;
    o.path = parse_path(options.kernel);
    const pde::BoundLoss bound = bind_path(
        o, [&](const pde::LossOptions& with) { return loss.bind_trajectory(device, inputs, with); });
    bound.run();
    PdeResult r;
    take_terms(r, bound);
    r.kernel = std::string(name(bound.path()));
    for (const char* field : {"sigma", "u"}) {
      NpyArray all;
      all.type = sigma.type;
      all.shape = *field == 'u' ? u.shape : sigma.shape;
      for (int64_t n = 0; n < levels; ++n)
        if (const Buffer g = bound.gradient(field, int(n))) {
          const NpyArray one = download(device, g, {});
          all.data.insert(all.data.end(), one.data.begin(), one.data.end());
        }
      if (!all.data.empty()) r.gradients.push_back({fmt::format("d_{}", field), std::move(all)});
    }
    return r;
  });
  return finish(session, options, result, mesh, {{"levels", levels}});
}

void add_loss_command(CommandList& commands, CLI::App& parent, const std::string& name,
                      const std::string& help, int (*run)(const CommonOptions&, const PdeOptions&),
                      const std::string& example) {
  Command& command = add_command(commands, parent, name, help);
  auto options = std::make_shared<PdeOptions>();
  add_pde_options(*command.app, *options);
  add_common(command, example);
  command.run = [&command, options, run] { return run(command.common, *options); };
}

}  // namespace

void add_pde(CommandList& commands, CLI::App& root) {
  Command& pde = add_command(commands, root, "pde",
                             "losses from residuals of differential equations, with exact gradients");
  set_footer(*pde.app,
             "Input of loss: sigma0 sigma1 sigma2 (nz,ny,nx), u0 u1 u2 (3,nz,ny,nx; component 0 = x), f4 or "
             "f8, optional mask (nz,ny,nx);\n"
             "of trajectory: sigma (T,nz,ny,nx), u (T,3,nz,ny,nx).\n"
             "Boundaries: periodic, clamp, reflect_even, reflect_odd, free_slip, no_slip, dirichlet_face:b, "
             "ghost_zero, ghost:c,\n"
             "node_mirror, one_sided1, one_sided2; for all, by axis (x=…) or by side (x-=…, x+=…).\n"
             "Example:\n  lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz");
  add_loss_command(commands, *pde.app, "loss", "loss and gradients of three time levels", run_loss,
                   "lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --boundary "
                   "x=no_slip,z=clamp --out gradients.npz");
  add_loss_command(commands, *pde.app, "trajectory", "loss and gradients of T time levels in one go",
                   run_trajectory,
                   "lockstep pde trajectory run.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz");
  add_pde_study(commands, *pde.app);
  add_pde_example(commands, *pde.app);
  add_pde_convergence(commands, *pde.app);
}

}  // namespace lockstep::cli
