// Rollouts against loops over numbers.
#include "flow/surrogate/cases.hpp"

#include <cmath>
#include <random>

#include "flow/surrogate/kernels.hpp"
#include "lockstep/flow/surrogate.hpp"

namespace lockstep::flow {

namespace {

struct RolloutCase {
  const char* name;
  int64_t members;
  bool jump;
  RolloutMode mode;
  int64_t beyond = 2;  // numbers of a latent beyond those of the state
};

std::vector<double> normal_numbers(std::mt19937_64& engine, int64_t count, double size) {
  std::normal_distribution<double> normal(0, size);
  std::vector<double> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(normal(engine));
  return values;
}

/// A surrogate of `state` numbers, spectral radius about 0.95.
Surrogate random_surrogate(int64_t state, int64_t latent, uint64_t seed) {
  std::mt19937_64 engine(seed);
  Surrogate m;
  m.rank = state;
  m.latent_size = latent;
  const double size = 1 / std::sqrt(double(state));
  m.step = Array::of(normal_numbers(engine, state * state, 0.95 * size), {state, state});
  m.basis = Array::of(normal_numbers(engine, state * latent, 1 / std::sqrt(double(latent))), {state, latent});
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
    const auto model = std::make_shared<const Surrogate>(random_surrogate(n[0], n[0] + r.beyond, seed));
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
  c.kernels = [=] { return surrogate_kernels(storage); };
  return c;
}

/// Two turns of the plane and a hundredth of noise: (frames, latent).
Array turning_latents(int64_t frames, int64_t latent, uint64_t seed) {
  std::mt19937_64 engine(seed);
  const std::vector<double> directions = normal_numbers(engine, 4 * latent, 1);
  std::vector<double> values = normal_numbers(engine, frames * latent, 0.01);
  for (int64_t t = 0; t < frames; ++t) {
    const double coordinates[] = {std::cos(0.3 * double(t)), std::sin(0.3 * double(t)),
                                  0.5 * std::cos(1.1 * double(t)), 0.5 * std::sin(1.1 * double(t))};
    for (int64_t k = 0; k < latent; ++k)
      for (int64_t c = 0; c < 4; ++c)
        values[size_t(t * latent + k)] += coordinates[c] * directions[size_t(c * latent + k)];
  }
  return Array::of(std::move(values), {frames, latent});
}

/// Each frame's successor by the model, (frames, latent), and the errors of a rollout through the held-out frames; by
/// plain products, so that signs and turns of the basis do not matter.
std::vector<Array> predictions(const Surrogate& m, const Array& latents) {
  const Array z = latents.to(Storage::f64), columns = m.basis.transposed().packed();
  const auto next = [&](const Array& from) {
    return plain_product(
        plain_product(plain_product({from.as<double>().begin(), from.as<double>().end()}, columns), m.step),
        m.basis);
  };
  const int64_t held = z.size(0) - m.train_frames;
  Array at = z.slice(0, m.train_frames - 1, 1).packed();
  std::vector<double> rolled;
  for (int64_t t = 0; t < held; ++t) {
    at = Array::of(next(at), {1, m.latent_size});
    rolled.insert(rolled.end(), at.as<double>().begin(), at.as<double>().end());
  }
  const RolloutScore s = score_rollout(
      Array::of(std::move(rolled), {held, m.latent_size}), z.slice(0, m.train_frames, held).packed(),
      z.slice(0, m.train_frames - 1, 1).packed().reshape({m.latent_size}), m.climatology);
  return {Array::of(next(z), z.shape()), Array::of(s.surrogate), Array::of(s.climatology)};
}

/// Learning and scores where the latents are, against learning on the host by singular values. Sizes are frames by numbers.
Case learning_case(Storage storage) {
  Case c;
  c.name = std::string("flow.surrogate.learn") + (storage == Storage::f64 ? ".f64" : "");
  c.dtype = storage == Storage::f64 ? "f64" : "f32";
  c.needs_f64 = true;
  c.small = {"12x5", "40x1100"};
  c.full = {"90x4000"};
  c.bench = {"200x100000"};
  c.reference = Bound::relative(1e-9);
  c.fast = Bound::relative(1e-9);
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape n = parse_shape(size, 2);
    const Array latents = turning_latents(n[0], n[1], seed).to(storage);
    const SurrogateOptions options{.rank = 4, .lambda = 1e-6};
    CaseProblem p;
    p.operations = 1;
    p.flops = 4.0 * double(n[0]) * double(n[0]) * double(n[1]);
    p.bytes = double(n[0] * n[1]) * (storage == Storage::f64 ? 8 : 4);
    p.reference = [=] { return predictions(learn(latents, options), latents); };
    p.bind = [=](const Device& device) {
      const Buffer on_device = device.upload(latents);
      const auto learnt = std::make_shared<LearntOnDevice>();
      return CaseRun{[=] { *learnt = learn(device, on_device, options); },
                     [=] {
                       const Surrogate model = to_host(device, *learnt, on_device);
                       Rollout rollout(device, *learnt, Storage::f64);
                       const SurrogateScores s =
                           score(rollout, learnt->model, converted(device, on_device, Storage::f64),
                                 converted(device, learnt->climatology, Storage::f64));
                       std::vector<Array> all = predictions(model, latents);
                       all[1] = Array::of(s.held_out.surrogate), all[2] = Array::of(s.held_out.climatology);
                       return all;
                     }};
    };
    return p;
  };
  c.kernels = [] {
    std::vector<Kernel> all = learning_kernels();
    for (const Kernel& k : scoring_kernels()) all.push_back(k);
    return all;
  };
  return c;
}

}  // namespace

void add_surrogate_cases(CaseRegistry& registry) {
  for (const RolloutCase& r : {RolloutCase{"steps", 1, false, RolloutMode::steps},
                               {"ensemble", 9, false, RolloutMode::steps},
                               {"doubling", 1, false, RolloutMode::doubling},
                               {"jump", 3, true, RolloutMode::steps},
                               {"long_latents", 3, false, RolloutMode::steps, 2500}})
    for (const Storage storage : {Storage::f32, Storage::f64}) registry.add(rollout_case(r, storage));
  for (const Storage storage : {Storage::f32, Storage::f64}) registry.add(learning_case(storage));
}

}  // namespace lockstep::flow
