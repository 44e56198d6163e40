// Cases of the transport loss: boundaries, orders, terms, storage, paths.
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "lockstep/verify.hpp"
#include "pde/fused/fused.hpp"
#include "pde/fused/levels.hpp"
#include "pde/halves/half_sweep.hpp"
#include "pde/kernels/kernels.hpp"
#include "pde/kernels/value.hpp"
#include "pde/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

using namespace pde;

struct CaseForm {
  std::string name;
  std::string boundary = "periodic";
  int order = 2;
  Path path = Path::two_kernel;
  Gradients gradients = Gradients::all;
  TransportOptions terms;
  bool mask = false, reference = true, f64 = false, f64_sums = false;
  int levels = 0;        // of a trajectory; 0: three levels, one loss
  int sweep_levels = 0;  // residual levels that one sweep of it takes
  std::vector<std::string> small{"5x4x6", "33x7x12", "9x8x65"}, bench;  // z x y x x
  FusedShape shape{16, 8, 1, 8, 1, 4};  // of the kernel to show: one that every device holds
  HalfShape half{16, 4, 1, 8, 1, 1};
};

Mesh case_mesh(const CaseForm& form, const std::string& size) {
  const Shape shape = parse_shape(size, 3);
  Mesh mesh;
  mesh.cells = {shape[2], shape[1], shape[0]};
  mesh.spacing = {0.1, 0.1, 0.1};
  mesh.dt = 0.05;
  mesh.order = form.order;
  mesh.boundary = pde::BoundaryConditions::parse(form.boundary);
  return mesh;
}

std::vector<std::string> all_fields(const CaseForm& form) {
  std::vector<std::string> names{"sigma", "u"};
  if (form.terms.pressure) names.push_back("p");
  if (form.terms.forcing) names.push_back("force");
  return names;
}
bool is_vector(const std::string& name) { return name == "u" || name == "force"; }

template <class T>
Array random_field(const Mesh& mesh, const std::string& name, uint64_t seed) {
  const Shape shape{mesh.cells[2], mesh.cells[1], mesh.cells[0]},
      vectors{3, mesh.cells[2], mesh.cells[1], mesh.cells[0]};
  return Array::of(cases::uniform<T>(mesh.count() * (is_vector(name) ? 3 : 1), seed),
                   is_vector(name) ? vectors : shape);
}

template <class T>
reference::State<T> reference_state(const Mesh& mesh, uint64_t seed) {
  reference::State<T> s;
  const size_t n = size_t(mesh.count());
  for (size_t l = 0; l < 3; ++l) {
    s.sigma[l] = cases::uniform<T>(int64_t(n), seed * 100 + l);
    const auto u = cases::uniform<T>(int64_t(3 * n), seed * 100 + 10 + l);
    for (size_t c = 0; c < 3; ++c)
      s.u[l][c].assign(u.begin() + int64_t(c * n), u.begin() + int64_t((c + 1) * n));
  }
  return s;
}

std::vector<float> case_mask(const Mesh& mesh, uint64_t seed) {
  std::vector<float> mask = cases::uniform<float>(mesh.count(), seed * 100 + 50);
  for (float& m : mask) m = m > -0.5f ? 1.0f : 0.0f;
  return mask;
}

template <class T>
CaseProblem problem(const CaseForm& form, const std::string& size, uint64_t seed) {
  const Mesh mesh = case_mesh(form, size);
  const auto loss = std::make_shared<Loss>(transport(3, form.terms), mesh);
  CaseProblem p;
  const int reads = 12 + (form.terms.pressure ? 1 : 0) + (form.terms.forcing ? 3 : 0) + (form.mask ? 1 : 0);
  const int writes = form.gradients == Gradients::none   ? 0
                     : form.gradients == Gradients::t1   ? 4
                     : form.gradients == Gradients::t1t2 ? 8
                                                         : 12;
  p.bytes = double(sizeof(T)) * double(mesh.count()) * (reads + writes);
  p.flops = 190.0 * double(mesh.count());
  const auto levels = [=] {
    return form.gradients == Gradients::t1    ? std::vector<int>{0}
           : form.gradients == Gradients::all ? std::vector<int>{-1, 0, 1}
                                              : std::vector<int>{};
  }();
  p.bind = [=](const Device& device) {
    Inputs in;
    for (const std::string& name : all_fields(form))
      for (size_t l = 0; l < 3; ++l) {
        const uint64_t number = seed * 100 +
                                (name == "sigma" ? 0
                                 : name == "u"   ? 10
                                 : name == "p"   ? 20
                                                 : 30) +
                                l;
        const Array a = random_field<T>(mesh, name, number);
        in.fields[name][l] = device.upload(a);
      }
    if (form.mask) {
      const std::vector<float> mask = case_mask(mesh, seed);
      const std::vector<T> typed(mask.begin(), mask.end());
      in.mask = device.upload(std::span<const T>(typed), {mesh.cells[2], mesh.cells[1], mesh.cells[0]});
    }
    LossOptions options;
    options.path = form.path;
    options.gradients = form.gradients;
    options.wanted = {"sigma", "u"};
    const BoundLoss bound = loss->bind(device, in, options);
    return CaseRun{[bound, loss] { bound.run(); },
                   [=] {
                     std::vector<Array> all;
                     for (int level : levels)
                       for (const char* field : {"sigma", "u"})
                         all.push_back(device.download(bound.gradient(field, level)));
                     if (all.empty()) {
                       const double value = bound.loss();
                       all.push_back(Array::of(std::vector<T>{T(value)}));
                       const Buffer kept = device.allocate<T>({1});
                       bound.loss_into(kept);
                       all.push_back(device.download(kept));
                     }
                     return all;
                   }};
  };
  if (form.reference) {
    p.reference = [=] {
      std::vector<T> mask;
      if (form.mask) {
        const std::vector<float> m = case_mask(mesh, seed);
        mask.assign(m.begin(), m.end());
      }
      const auto result = reference::evaluate<T>(mesh, reference_state<T>(mesh, seed), mask);
      const Shape shape{mesh.cells[2], mesh.cells[1], mesh.cells[0]},
          vectors{3, mesh.cells[2], mesh.cells[1], mesh.cells[0]};
      std::vector<Array> all;
      for (int level : levels) {
        const size_t l = size_t(level + 1);
        all.push_back(Array::of(result.gradient.sigma[l], shape));
        std::vector<T> u;
        for (const auto& c : result.gradient.u[l]) u.insert(u.end(), c.begin(), c.end());
        all.push_back(Array::of(u, vectors));
      }
      if (all.empty()) all.assign(2, Array::of(std::vector<T>{result.loss_sigma + result.loss_u}));
      return all;
    };
  }
  return p;
}

CaseProblem trajectory_problem(const CaseForm& form, const std::string& size, uint64_t seed) {
  const Mesh mesh = case_mesh(form, size);
  const auto loss = std::make_shared<Loss>(transport(3, form.terms), mesh);
  CaseProblem p;
  p.bytes = 32.0 * double(mesh.count()) * form.levels;
  p.operations = form.levels;  // the time of a level
  p.flops = 190.0 * double(mesh.count()) * form.levels;
  p.bind = [=](const Device& device) {
    TrajectoryInputs in;
    for (const char* name : {"sigma", "u"})
      for (int n = 0; n < form.levels; ++n) {
        const Array a =
            random_field<float>(mesh, name, seed * 1000 + (is_vector(name) ? 500 : 0) + uint64_t(n));
        in.fields[name].push_back(device.upload(a));
      }
    LossOptions options;
    if (form.path == Path::fused) {
      options.path = form.path;
      options.levels = form.sweep_levels;
      options.tile_x = form.shape.x, options.tile_y = form.shape.y, options.tile_rows = form.shape.rows;
      options.groups = form.shape.blocks;
    }
    const BoundLoss bound = loss->bind_trajectory(device, in, options);
    return CaseRun{[bound, loss] { bound.run(); },
                   [=] {
                     std::vector<Array> all;
                     for (int n = 0; n < form.levels; ++n)
                       for (const char* field : {"sigma", "u"})
                         all.push_back(device.download(bound.gradient(field, n)));
                     return all;
                   }};
  };
  return p;
}

Case make_case(const CaseForm& form) {
  Case c;
  c.name = form.name;
  c.dtype = form.f64 ? "f64" : "f32";
  c.small = form.small;
  c.bench = form.bench;
  c.needs_f64 = form.f64 || form.f64_sums;
  c.make = [form](const std::string& size, uint64_t seed) {
    if (form.levels > 0) return trajectory_problem(form, size, seed);
    return form.f64 ? problem<double>(form, size, seed) : problem<float>(form, size, seed);
  };
  // Gradients are sums of a few dozen terms whose size the largest gradient bounds.
  c.reference = Bound::relative(form.f64 ? 1e-14 : 2e-6);
  c.webgpu = Bound::relative(1e-6);
  c.kernels = [form] {
    const auto d =
        std::make_shared<const Discretisation>(transport(3, form.terms).plan(), case_mesh(form, "64x64x64"));
    const KernelForm kernel{form.f64 ? Storage::f64 : Storage::f32, form.mask};
    std::vector<FieldLevel> outputs;
    for (int f = 0; f < 2; ++f)
      for (int level = -1; level <= 1; ++level)
        if (form.gradients == Gradients::all || (form.gradients == Gradients::t1 && level == 0))
          outputs.push_back({f, level});
    // WebGPU has no f64: its sums are f32. Kernels with sums in f64 are listed by cases of their own.
    std::vector<Kernel> list;
    {
      const Type sum = form.f64 || form.f64_sums ? Type::f64 : Type::f32;
      list.push_back(total_kernel(sum));
      if (form.gradients == Gradients::none) list.push_back(value_kernel(*d->plan, sum, kernel.storage));
      if (form.sweep_levels > 0) {
        const TrajectoryPart part{form.sweep_levels, false, false};
        const auto several =
            std::make_shared<const Discretisation>(part_plan(*d->plan, part, {0, 1}), d->mesh);
        list.push_back(fused_kernel(several, kernel, part_outputs(*several->plan), form.shape, sum));
      } else if (form.path == Path::fused)
        list.push_back(fused_kernel(d, kernel, outputs, form.shape, sum));
      else
        list.push_back(partial_kernel(kernel, sum));
    }
    if (form.path == Path::fused) return list;
    if (form.path == Path::two_sweep) {
      for (SweepHalf half : {SweepHalf::residual, SweepHalf::adjoint})
        list.push_back(half_kernel(d, {kernel.storage, form.mask && half == SweepHalf::residual}, half,
                                   outputs, form.half));
      return list;
    }
    list.push_back(residual_kernel(d, kernel, ResidualKind::cotangent));
    if (form.levels > 0)
      list.push_back(trajectory_kernel(d, {kernel.storage, false}, {0, 1}));
    else if (!outputs.empty())
      list.push_back(adjoint_kernel(d, {kernel.storage, false}, outputs));
    return list;
  };
  return c;
}

using Add = std::function<void(const CaseForm&)>;

const std::vector<std::string> kCubes{"64x64x64", "128x128x128", "256x256x256"};
const std::vector<std::string> kSwept{"6x7x12", "9x8x65", "13x21x33"};
const char* const kWalls = "x=free_slip,y=dirichlet_face:1,z=no_slip";

void add_two_kernel_cases(const Add& add) {
  add({.name = "pde.two_kernel.periodic", .bench = kCubes});
  add({.name = "pde.two_kernel.t1", .gradients = Gradients::t1, .bench = kCubes});
  add({.name = "pde.two_kernel.loss", .gradients = Gradients::none, .bench = kCubes});
  add({.name = "pde.two_kernel.walls", .boundary = kWalls, .bench = kCubes});
  add({.name = "pde.two_kernel.mixed",
       .boundary = "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=one_sided2",
       .mask = true,
       .bench = {"128x128x128", "256x256x256"}});
  add({.name = "pde.two_kernel.f64",
       .boundary = "x=no_slip,z=node_mirror",
       .f64 = true,
       .bench = {"128x128x128"}});
  add({.name = "pde.two_kernel.sums", .mask = true, .f64_sums = true, .small = {"9x8x65"}});
  for (int order : {4, 8})
    add({.name = fmt::format("pde.two_kernel.order{}", order),
         .boundary = "periodic",
         .order = order,
         .small = {"9x10x12", "8x9x37"},
         .bench = {"128x128x128", "256x256x256"}});
  TransportOptions flow;
  flow.viscosity = 0.05;
  flow.pressure = flow.forcing = true;
  flow.weight_divergence = 0.5;
  flow.weight_speed = 0.1;
  add({.name = "pde.two_kernel.flow",
       .boundary = "x=clamp",
       .terms = flow,
       .reference = false,
       .bench = {"128x128x128"}});
  TransportOptions upwind;
  upwind.upwind = true;
  add({.name = "pde.two_kernel.upwind", .boundary = "y=clamp", .terms = upwind, .reference = false});
}

void add_fused_cases(const Add& add) {
  add({.name = "pde.fused.periodic", .path = Path::fused, .small = kSwept, .bench = kCubes});
  add({.name = "pde.fused.large",
       .path = Path::fused,
       .f64_sums = true,
       .small = {"13x37x72"},
       .bench = {"256x256x256", "512x512x512"},
       .shape = {64, 4, 4, 128, 4, 1}});
  add({.name = "pde.fused.t1",
       .path = Path::fused,
       .gradients = Gradients::t1,
       .small = kSwept,
       .bench = kCubes});
  add({.name = "pde.fused.walls", .boundary = kWalls, .path = Path::fused, .small = kSwept, .bench = kCubes});
  add({.name = "pde.fused.mixed",
       .boundary = "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=no_slip",
       .path = Path::fused,
       .mask = true,
       .small = kSwept,
       .bench = {"128x128x128", "256x256x256"}});
  add({.name = "pde.fused.order4",
       .order = 4,
       .path = Path::fused,
       .small = {"10x11x12", "12x10x37"},
       .bench = {"128x128x128", "256x256x256"}});
}

void add_two_sweep_cases(const Add& add) {
  for (int order : {4, 6, 8})
    add({.name = fmt::format("pde.two_sweep.order{}", order),
         .order = order,
         .path = Path::two_sweep,
         .small = {"9x10x12", "17x9x37", "12x40x36"},
         .bench = {"128x128x128", "256x256x256"}});
  add({.name = "pde.two_sweep.mixed",
       .boundary = "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=one_sided2",
       .path = Path::two_sweep,
       .mask = true,
       .small = {"6x7x12", "9x8x65", "13x21x36"},
       .bench = {"128x128x128", "256x256x256"}});
  add({.name = "pde.two_sweep.large",
       .order = 8,
       .path = Path::two_sweep,
       .small = {"19x37x72"},
       .bench = {"256x256x256", "512x512x512"},
       .half = {32, 16, 1, 64, 4, 1}});
}

void add_trajectory_cases(const Add& add) {
  for (int levels : {1, 2, 3})
    add({.name = fmt::format("pde.trajectory.sweep{}", levels),
         .boundary = levels == 2 ? "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=no_slip" : "periodic",
         .path = Path::fused,
         .reference = false,
         .f64_sums = true,
         .levels = 7,
         .sweep_levels = levels,
         .small = {"13x21x33", "9x8x65"},
         .bench = {"128x128x128"},
         .shape = {8, 4, 1, 8, 1, 1}});
  add({.name = "pde.trajectory.16",
       .reference = false,
       .levels = 16,
       .small = {"7x5x9"},
       .bench = {"64x64x64", "128x128x128", "256x256x256"}});
}

/// Two gradients times a seed of 1, which leaves them, and then of 0.3 with the scale 2.
template <class T>
Case scale_case(const char* name) {
  Case c;
  c.name = name;
  c.dtype = sizeof(T) == 8 ? "f64" : "f32";
  c.small = {"1", "1000", "1200000"};
  c.bench = {"16777216"};
  c.needs_f64 = sizeof(T) == 8;
  c.make = [](const std::string& size, uint64_t seed) {
    const int64_t n = std::stoll(size);
    const auto values = [=](int k) {
      return cases::uniform<T>(k ? n : (n + 1) / 2, seed * 100 + uint64_t(k));
    };
    CaseProblem p;
    p.bytes = double(sizeof(T)) * double(n) * 3;
    p.bind = [=](const Device& device) {
      std::vector<Buffer> given, arrays;
      for (int k = 0; k < 2; ++k) {
        given.push_back(device.upload(values(k)));
        arrays.push_back(device.allocate<T>(given.back().shape()));
      }
      const Buffer one = device.upload(std::vector<T>{1}), other = device.upload(std::vector<T>{T(0.3)});
      return CaseRun{
          [=] {
            for (size_t k = 0; k < 2; ++k) device.copy(given[k], arrays[k]);
            scale_gradients(device, arrays, one);
            scale_gradients(device, arrays, other, 2);
          },
          [=] { return std::vector<Array>{device.download(arrays[0]), device.download(arrays[1])}; }};
    };
    p.reference = [=] {
      std::vector<Array> all;
      for (int k = 0; k < 2; ++k) {
        std::vector<T> v = values(k);
        for (T& x : v) x *= T(0.3) / T(2);
        all.push_back(Array::of(v));
      }
      return all;
    };
    return p;
  };
  c.kernels = [] {
    const Storage storage = sizeof(T) == 8 ? Storage::f64 : Storage::f32;
    return std::vector<Kernel>{scale_kernel(storage, storage, 2)};
  };
  return c;
}

}  // namespace

void add_pde_cases(CaseRegistry& registry) {
  const Add add = [&](const CaseForm& form) { registry.add(make_case(form)); };
  add_two_kernel_cases(add);
  add_fused_cases(add);
  add_two_sweep_cases(add);
  add_trajectory_cases(add);
  registry.add(scale_case<float>("pde.scale"));
  registry.add(scale_case<double>("pde.scale.f64"));
}

}  // namespace lockstep
