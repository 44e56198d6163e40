// Rollouts against loops over numbers.
#include "flow/surrogate/cases.hpp"

#include <cmath>
#include <random>

#include "lockstep/flow/surrogate.hpp"

namespace lockstep::flow {

namespace {

struct RolloutCase {
  const char* name;
  int64_t members;
  bool jump;
  RolloutMode mode;
};

std::vector<double> normal_numbers(std::mt19937_64& engine, int64_t count, double size) {
  std::normal_distribution<double> normal(0, size);
  std::vector<double> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(normal(engine));
  return values;
}

/// Of `state` numbers, spectral radius about 0.95, two more numbers to a latent.
Surrogate random_surrogate(int64_t state, uint64_t seed) {
  std::mt19937_64 engine(seed);
  Surrogate m;
  m.rank = state;
  m.latent_size = state + 2;
  const double size = 1 / std::sqrt(double(state));
  m.step = Array::of(normal_numbers(engine, state * state, 0.95 * size), {state, state});
  m.basis = Array::of(normal_numbers(engine, state * m.latent_size, size), {state, m.latent_size});
  return m;
}

/// rows x columns by a plain triple loop.
std::vector<double> plain_product(const std::vector<double>& a, const Array& b) {
  const int64_t depth = b.size(0), columns = b.size(1), rows = int64_t(a.size()) / depth;
  std::vector<double> c(size_t(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < columns; ++j)
        c[size_t(i * columns + j)] += a[size_t(i * depth + k)] * b.at<double>(k, j);
  return c;
}

Array reference_rollout(const RolloutCase& r, const Surrogate& m, const Array& start, int64_t steps,
                        Storage storage) {
  const Array from = start.to(Storage::f64);
  std::vector<double> state =
      plain_product({from.as<double>().begin(), from.as<double>().end()}, m.basis.transposed().packed());
  std::vector<double> all;
  for (int64_t s = 0; s < steps; ++s) {
    state = plain_product(state, m.step);
    if (r.jump && s + 1 < steps) continue;
    const std::vector<double> latents = plain_product(state, m.basis);
    all.insert(all.end(), latents.begin(), latents.end());
  }
  const int64_t rows = int64_t(all.size()) / m.latent_size;
  return Array::of(std::move(all), {rows, m.latent_size}).to(storage);
}

/// Sizes are numbers of a state by steps.
Case rollout_case(const RolloutCase& r, Storage storage) {
  const bool wide = storage == Storage::f64;
  Case c;
  c.name = std::string("flow.surrogate.") + r.name + (wide ? ".f64" : "");
  c.dtype = wide ? "f64" : "f32";
  c.needs_f64 = wide;
  c.small = {"1x1", "7x5", "67x13"};
  c.full = {"130x70"};
  c.bench = {"654x256"};
  c.reference = Bound::relative(wide ? 1e-13 : 5e-6);
  c.webgpu = Bound::relative(1e-5);
  c.fast = Bound::relative(wide ? 1e-12 : 1e-5);
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape n = parse_shape(size, 2);
    const int64_t steps = n[1];
    const auto model = std::make_shared<const Surrogate>(random_surrogate(n[0], seed));
    std::mt19937_64 engine(seed + 1);
    const Array start =
        Array::of(normal_numbers(engine, r.members * model->latent_size, 1), {r.members, model->latent_size})
            .to(storage);
    CaseProblem p;
    const double state = double(n[0]), numbers = double(model->latent_size), members = double(r.members);
    const double frames = members * (r.jump ? 1 : double(steps));
    p.operations = double(steps);
    p.flops = 2 * frames * state * (state + numbers);
    p.bytes = (state * (state + numbers) + frames * numbers) * (wide ? 8 : 4);
    p.reference = [=] { return std::vector{reference_rollout(r, *model, start, steps, storage)}; };
    p.bind = [=](const Device& device) {
      const auto rollout = std::make_shared<Rollout>(device, *model, storage);
      rollout->start(device.upload(start));
      const Buffer out =
          device.allocate(storage, {r.jump ? r.members : steps * r.members, model->latent_size});
      return CaseRun{[=] { r.jump ? rollout->jump(steps, out) : rollout->run(out, r.mode); },
                     [=] { return std::vector{device.download(out)}; }};
    };
    return p;
  };
  c.kernels = [=] { return std::vector{surrogate_kernels()[wide ? 1 : 0]}; };
  return c;
}

}  // namespace

void add_surrogate_cases(CaseRegistry& registry) {
  for (const RolloutCase& r : {RolloutCase{"steps", 1, false, RolloutMode::steps},
                               {"ensemble", 9, false, RolloutMode::steps},
                               {"doubling", 1, false, RolloutMode::doubling},
                               {"jump", 3, true, RolloutMode::steps}})
    for (const Storage storage : {Storage::f32, Storage::f64}) registry.add(rollout_case(r, storage));
}

}  // namespace lockstep::flow
