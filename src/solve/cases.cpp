// Cases of evaluation and of the linear solvers on the device.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "optimize/lbfgs/memory.hpp"
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/kind_cases.hpp"
#include "solve/linear/fronts/front_cases.hpp"
#include "solve/linear/linear_solver.hpp"
#include "solve/minimize/methods/evaluator_objective.hpp"
#include "solve/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

using namespace solve;

enum class Work : uint8_t {
  gradient,   // cost and gradient
  recorded,   // the same as a recorded graph
  product,    // J^T J p
  linearize,  // cost, gradient and diagonal of J^T J
  pcg,        // a damped step by 8 iterations
  schur,      // the same by the implicit Schur complement
  lbfgs,      // an iteration of L-BFGS with ten pairs: direction, trial, what the host reads of it
};

struct CaseForm {
  std::string name;
  Work work = Work::gradient;
  Precision precision = Precision::f32;
  std::function<Problem(const std::vector<int64_t>& size, uint64_t seed)> make;
  std::vector<std::string> small, full, bench;
  Bound webgpu = Bound::relative(1e-5);
  double reference = 1e-5;  // relative
};

/// A tangent vector that is 0 at fixed blocks.
std::vector<double> direction(const Problem& problem, uint64_t seed) {
  const Problem::State& state = problem.state();
  std::vector<double> p = cases::uniform<double>(state.tangent, seed + 77);
  for (const SetState& s : state.sets)
    for (int64_t b = 0; b < s.count; ++b)
      if (state.fixed[size_t(s.first_block + b)])
        std::fill_n(p.begin() + s.first_tangent + b * s.tangent(), s.tangent(), 0.0);
  return p;
}

/// Bytes that any method must move, each datum once: state and tangent vectors, indices and data.
double least_bytes(const Problem& problem, const CaseForm& form) {
  const double real = form.precision == Precision::f64 ? 8 : 4,
               state = form.precision == Precision::f32 ? 4 : 8;
  const Problem::State& s = problem.state();
  double bytes = double(s.ambient) * state + double(s.tangent) * real * (form.work <= Work::recorded ? 1 : 2);
  // Ten pairs read, one written; the step, the gradient before it and the accepted point.
  if (form.work == Work::lbfgs) bytes += double(s.tangent) * real * (20 + 2 + 2) + double(s.ambient) * state;
  for (const Batch& b : s.batches)
    bytes += double(b.instances) * (4.0 * double(b.expression->slots.size()) + state * b.expression->data);
  return bytes;
}

constexpr int kHistory = 10;

/// An iteration from a point with a full history, which it leaves as it is: the accepted step goes to buffers
/// of its own.
CaseRun bind_lbfgs(const std::shared_ptr<Evaluator>& evaluator) {
  const Device device = evaluator->device();
  const Evaluator::State& s = evaluator->internals();
  struct Held {
    EvaluatorObjective objective;
    optimize::LbfgsMemory memory;
    explicit Held(Evaluator& e) : objective(e), memory(objective, kHistory, false) {}
  };
  const auto held = std::make_shared<Held>(*evaluator);
  const std::shared_ptr<optimize::LbfgsMemory> memory(held, &held->memory);
  double cost = evaluator->value_and_gradient();
  memory->begin();
  for (int k = 0; k <= kHistory; ++k) {
    optimize::LbfgsTrial trial = memory->advance();
    for (double t = 0.5; !(trial.value < cost) && t > 1e-4; t *= 0.5) trial = memory->trial(t);
    cost = trial.value;
    memory->accept();
  }
  const auto copy_of = [&](const Buffer& from) {
    const Buffer to = device.allocate(from.storage(), from.shape());
    device.copy(from, to);
    return to;
  };
  const Buffer numbers = copy_of(memory->numbers()), products = copy_of(memory->products()),
               x = copy_of(s.candidate), gradient = copy_of(s.gradient);
  return {[=] {
            const Evaluator::State& state = evaluator->internals();
            device.copy(state.candidate, x);
            device.copy(state.gradient, gradient);
            device.copy(numbers, memory->numbers());
            device.copy(products, memory->products());
            memory->advance();
          },
          [=] {
            std::vector<double> older = download_numbers(device, memory->numbers());
            older.resize(
                optimize::kLbfgsOlder);  // the rest depends on the device's types; it makes the next step
            return std::vector<Array>{device.download(memory->step()), Array::of(older)};
          }};
}

CaseRun bind(const CaseForm& form, const std::shared_ptr<const Problem>& problem, uint64_t seed,
             const Device& device) {
  const auto evaluator = std::make_shared<Evaluator>(*problem, device, form.precision);
  const Storage real = evaluator->real();
  const int64_t n = evaluator->tangent_size();
  const auto download = [](const Evaluator& e, std::initializer_list<Buffer> buffers) {
    std::vector<Array> all;
    for (const Buffer& b : buffers) all.push_back(e.device().download(b));
    return all;
  };
  const auto with_cost = [download](const Evaluator& e, std::initializer_list<Buffer> buffers) {
    std::vector<Array> all = download(e, buffers);  // the cost is f32 where the device has no f64
    all.insert(all.begin() + 1, Array::of(download_numbers(e.device(), e.internals().cost)));
    return all;
  };
  switch (form.work) {
    case Work::gradient:
      evaluator->launch_value_and_gradient();
      return {[evaluator] { evaluator->launch_value_and_gradient(); },
              [=] { return with_cost(*evaluator, {evaluator->gradient()}); }};
    case Work::recorded: {
      evaluator->launch_value_and_gradient();
      const Graph graph = device.record([&] { evaluator->launch_value_and_gradient(); });
      return {[=] { evaluator->device().replay(graph); },
              [=] { return with_cost(*evaluator, {evaluator->gradient()}); }};
    }
    case Work::linearize:
      return {[evaluator] { evaluator->linearize(); },
              [=] { return with_cost(*evaluator, {evaluator->gradient(), evaluator->diagonal()}); }};
    case Work::product: {
      evaluator->linearize();
      const Buffer p = upload_numbers(device, real, direction(*problem, seed), {n}),
                   q = device.allocate(real, {n});
      return {[=] { evaluator->multiply(p, q); }, [=] { return download(*evaluator, {q}); }};
    }
    case Work::lbfgs: return bind_lbfgs(evaluator);
    case Work::pcg:
    case Work::schur: {
      constexpr int kIterations = 8;
      evaluator->linearize();
      const Buffer step = device.allocate(real, {n});
      const std::shared_ptr<LinearSolver> solver =
          form.work == Work::pcg ? make_pcg_solver(kIterations) : make_schur_solver(kIterations);
      return {[=] {
                solver->prepare(*evaluator);
                solver->solve(*evaluator, 0.1, 0, step);
              },
              [=] { return download(*evaluator, {step}); }};
    }
  }
  return {};
}

CaseProblem problem_of(const CaseForm& form, const std::string& size, uint64_t seed) {
  const std::vector<int64_t> numbers = parse_size(size);
  if (const size_t wanted = parse_size(form.small[0]).size(); numbers.size() != wanted)
    throw InputError(
        fmt::format("size \"{}\" of solve.{}", size, form.name), "--sizes",
        fmt::format("{}, such as {}", wanted == 1 ? "one number" : "numbers joined by x", form.small[0]));
  const auto problem = std::make_shared<const Problem>(form.make(numbers, seed));
  CaseProblem p;
  p.bytes = least_bytes(*problem, form);
  p.bind = [=](const Device& device) { return bind(form, problem, seed, device); };
  if (form.work >= Work::pcg || problem->residual_count() > 20000) return p;
  p.reference = [=] {
    const reference::Linearized r =
        reference::linearize(*problem, problem->state().values, direction(*problem, seed));
    const auto reals = [&](const std::vector<double>& v) {
      return form.precision == Precision::f64 ? Array::of(v)
                                              : Array::of(std::vector<float>(v.begin(), v.end()));
    };
    const Array cost = Array::of(std::vector<double>{r.cost});
    if (form.work == Work::product) return std::vector<Array>{reals(r.product)};
    if (form.work <= Work::recorded) return std::vector<Array>{reals(r.gradient), cost};
    return std::vector<Array>{reals(r.gradient), cost, reals(r.diagonal)};
  };
  return p;
}

std::vector<Kernel> kernels_of(const CaseForm& form) {
  const Problem problem = form.make(parse_size(form.small[0]), 1);
  const Type compute = form.precision == Precision::f32 ? Type::f32 : Type::f64;
  const Storage real = form.precision == Precision::f64 ? Storage::f64 : Storage::f32;
  const ElementTypes values{compute, storage_of(compute), real, storage_of(compute)};
  std::vector<Kernel> kernels;
  if (form.work == Work::lbfgs) {
    using namespace optimize;
    // f32 as devices without f64 have it; by products: mixed
    const LbfgsLayout layout{kHistory, false, real, storage_of(compute), values.state, 0, 0};
    kernels = {lbfgs_products(layout, LbfgsPass::trial), lbfgs_accept(layout), lbfgs_squares(layout, false),
               lbfgs_totals(layout)};
    if (layout.by_products()) {
      kernels.insert(kernels.end(), {lbfgs_coefficients(layout), lbfgs_direction(layout)});
    } else {
      kernels.push_back(lbfgs_take(layout));
      for (const LbfgsLoop loop :
           {LbfgsLoop::first, LbfgsLoop::down, LbfgsLoop::turn, LbfgsLoop::up, LbfgsLoop::last})
        kernels.push_back(lbfgs_loop(layout, loop));
    }
    return kernels;
  }
  for (const Batch& batch : problem.state().batches) {
    const auto term = derivatives_of(batch);
    switch (form.work) {
      case Work::gradient:
      case Work::recorded: kernels.push_back(instance_kernel(term, values, kCost | kGradient)); break;
      case Work::linearize:
        if (form.precision == Precision::mixed) {
          ElementTypes narrow = values;
          narrow.compute = Type::f32;
          kernels.push_back(instance_kernel(term, values, kCost | kGradient));
          kernels.push_back(instance_kernel(term, narrow, kJacobian | kDiagonal));
        } else {
          kernels.push_back(instance_kernel(term, values, kCost | kGradient | kJacobian | kDiagonal));
        }
        break;
      case Work::product:
      case Work::pcg:
      case Work::schur: kernels.push_back(product_kernel(term, real, {})); break;
      case Work::lbfgs: break;
    }
  }
  return kernels;
}

Case make_case(const CaseForm& form) {
  Case c;
  c.name = "solve." + form.name;
  c.dtype = form.precision == Precision::f64 ? "f64" : form.precision == Precision::f32 ? "f32" : "mixed";
  c.small = form.small, c.full = form.full, c.bench = form.bench;
  c.make = [form](const std::string& size, uint64_t seed) { return problem_of(form, size, seed); };
  c.kernels = [form] { return kernels_of(form); };
  c.webgpu = form.webgpu;
  c.reference = Bound::relative(form.reference);
  c.needs_f64 = form.precision != Precision::f32;
  if (form.precision == Precision::f64 && form.work < Work::pcg) c.fast = Bound::relative(1e-10);
  return c;
}

Problem one_term(const TermType& type, int subdivisions, uint64_t seed) {
  Problem problem;
  const Icosphere sphere = icosphere(subdivisions);
  std::vector<double> moved = sphere.vertices;
  const std::vector<double> scales = cases::uniform<double>(int64_t(moved.size() / 3), seed, 0.9, 1.1);
  for (size_t k = 0; k < moved.size(); ++k) moved[k] *= scales[k / 3];
  const BlockSet x = problem.add_blocks("vertices", euclidean(3), moved);
  std::vector<int32_t> indices;
  for (const auto& h : sphere.hinges)
    indices.insert(indices.end(), h.begin(), h.begin() + int64_t(type.slots.size()));
  const std::vector<BlockSet> sets(type.slots.size(), x);
  problem.add_terms(type, sets, indices,
                    cases::uniform<double>(int64_t(sphere.hinges.size()) * type.data, seed + 1, 0.1, 0.9));
  return problem;
}

/// Problems and sizes that several cases share.
struct Family {
  std::function<Problem(const std::vector<int64_t>& size, uint64_t seed)> make;
  std::vector<std::string> small, full, bench;
  CaseForm of(std::string name, Work work, Precision precision, Bound webgpu = Bound::relative(1e-5),
              double reference = 1e-5) const {
    return {std::move(name), work, precision, make, small, full, bench, webgpu, reference};
  }
};

// WebGPU bounds: residuals such as |a - b| - L lose the digits that both share, and an adapter may round
// square roots and quotients otherwise and contract products; a few units in the last place of the lengths
// become some 1e-6 of the gradient. Conjugate gradients amplify that by the condition of the system.
Bound loose() { return Bound::relative(1e-3); }
Bound bundled() { return Bound::relative(1e-4); }
Bound none() { return Bound::exact(); }

/// Sizes: subdivisions of the icosphere; 0 has 30 edges, 3 is assembled in groups, 8 has 655,362 vertices.
std::vector<CaseForm> sphere_cases() {
  const auto term = [](TermType type) {
    return [type](const std::vector<int64_t>& size, uint64_t seed) {
      return one_term(type, int(size.at(0)), seed);
    };
  };
  const auto mesh_of = [](bool joined) {
    return [joined](const std::vector<int64_t>& size, uint64_t seed) {
      return mesh_problem(int(size.at(0)), joined, seed);
    };
  };
  const auto spheres = [](auto make) { return Family{make, {"0", "1", "3"}, {"4", "6"}, {"5", "8"}}; };
  const Family springs = spheres(term(spring_term())), dihedrals = spheres(term(dihedral_term())),
               mesh = spheres(mesh_of(true)), terms = spheres(mesh_of(false));
  Family moving = mesh;  // not at their minimum after a dozen iterations
  moving.small = {"1", "2", "3"};
  return {springs.of("springs.gradient", Work::gradient, Precision::f32),
          dihedrals.of("dihedrals.gradient", Work::gradient, Precision::f32),
          mesh.of("mesh.value_gradient", Work::gradient, Precision::f32),
          mesh.of("mesh.value_gradient.recorded", Work::recorded, Precision::f32),
          terms.of("mesh.value_gradient.terms", Work::gradient, Precision::f32),
          mesh.of("mesh.value_gradient.f64", Work::gradient, Precision::f64, none(), 1e-12),
          mesh.of("mesh.jtj_product", Work::product, Precision::f32),
          mesh.of("mesh.linearize", Work::linearize, Precision::f32),
          mesh.of("mesh.linearize.f64", Work::linearize, Precision::f64, none(), 1e-12),
          mesh.of("mesh.linearize.mixed", Work::linearize, Precision::mixed),
          mesh.of("mesh.pcg_step", Work::pcg, Precision::f32, loose()),
          moving.of("lbfgs.iteration", Work::lbfgs, Precision::f32, loose()),
          moving.of("lbfgs.iteration.mixed", Work::lbfgs, Precision::mixed),
          moving.of("lbfgs.iteration.f64", Work::lbfgs, Precision::f64, none())};
}

/// Sizes: cameras x points x views.
std::vector<CaseForm> bundle_cases() {
  const Family bundle{[](const std::vector<int64_t>& size, uint64_t seed) {
                        return bundle_problem(int(size.at(0)), int(size.at(1)), int(size.at(2)), seed);
                      },
                      {"2x1x1", "5x37x3", "7x401x4"},
                      {},
                      {"49x7776x4", "1000x200000x5"}};
  return {bundle.of("bal.linearize", Work::linearize, Precision::f32, bundled(), 1e-4),
          bundle.of("bal.linearize.f64", Work::linearize, Precision::f64, none(), 1e-11),
          bundle.of("bal.linearize.mixed", Work::linearize, Precision::mixed),
          bundle.of("bal.jtj_product", Work::product, Precision::f32, bundled(), 1e-4),
          bundle.of("bal.schur_step", Work::schur, Precision::f32, loose()),
          bundle.of("bal.schur_step.f64", Work::schur, Precision::f64, none()),
          bundle.of("bal.pcg_step", Work::pcg, Precision::f32, loose())};
}

/// Sizes: blocks x terms; width x instances.
std::vector<CaseForm> graph_cases() {
  const Family random{[](const std::vector<int64_t>& size, uint64_t seed) {
                        return random_problem(int(size.at(0)), int(size.at(1)), seed);
                      },
                      {"1x1", "3x2", "37x211", "700x1500"},
                      {"20x4000", "9001x20011"},
                      {}};
  const Family wide{[](const std::vector<int64_t>& size, uint64_t seed) {
                      return wide_problem(int(size.at(0)), int(size.at(1)), seed);
                    },
                    {"13x3", "20x600"},
                    {"60x1200"},
                    {}};
  return {random.of("random.gradient", Work::gradient, Precision::f32),
          random.of("random.linearize.f64", Work::linearize, Precision::f64, none(), 1e-12),
          random.of("random.linearize.mixed", Work::linearize, Precision::mixed),
          random.of("random.jtj_product", Work::product, Precision::f32),
          random.of("random.pcg_step", Work::pcg, Precision::f32, loose()),
          wide.of("wide.linearize.f64", Work::linearize, Precision::f64, none(), 1e-12),
          wide.of("wide.jtj_product", Work::product, Precision::f32, bundled(), 1e-4)};
}

}  // namespace

void add_solve_cases(CaseRegistry& registry) {
  for (const auto& forms : {sphere_cases(), bundle_cases(), graph_cases()})
    for (const CaseForm& form : forms) registry.add(make_case(form));
  solve::add_front_cases(registry);
  solve::add_kind_cases(registry);
}

}  // namespace lockstep
