// Cases of the online ensemble: sizes are members x hidden x inputs x window; two observations more than the window, plain
// gradient descent. Against complex steps where these take no minutes; the weights after the last observation.
#include "forecast/observe/cases.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/numbers/random.hpp"
#include "forecast/observe/reference.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kMostParameters = 1000;

struct ObserveCase {
  GruForm form = GruForm::reset_before;
  Heads heads = Heads::classic;
  Objective objective = Objective::logarithmic;
  Storage storage = Storage::f32;
  bool posterior = false;
};

struct Sample {
  std::vector<double> features;
  double loss;
};
std::vector<Sample> samples(int64_t count, int64_t inputs, uint64_t seed) {
  std::vector<Sample> all;
  for (int64_t t = 0; t < count; ++t) {
    Sample s;
    for (int64_t i = 0; i < inputs; ++i)
      s.features.push_back(float(2 * random_unit(uint32_t(i), uint32_t(100 + t), random_key(seed)) - 1));
    s.loss = float(1 + random_unit(0, uint32_t(50 + t), random_key(seed)));
    all.push_back(std::move(s));
  }
  return all;
}

Case observe_case(const ObserveCase& o) {
  const bool f64 = o.storage == Storage::f64;
  Case c;
  c.name = fmt::format("forecast.observe{}{}{}{}{}", o.heads == Heads::two_hot ? ".two_hot" : "",
                       o.posterior ? ".posterior" : "", o.form == GruForm::reset_after ? ".reset_after" : "",
                       o.objective == Objective::squared ? ".squared" : "", f64 ? ".f64" : "");
  c.dtype = f64 ? "f64" : "f32";
  c.needs_f64 = f64;
  c.small = {"1x1x1x1", "2x3x2x3", "3x5x4x2"};
  c.full = {"5x64x64x3"};
  c.bench = {"5x128x64x3", "5x256x64x8"};
  c.reference = Bound::relative(f64 ? 1e-12 : 1e-5);
  c.webgpu = Bound::relative(1e-5);
  c.fast = Bound::relative(f64 ? 1e-10 : 1e-3);
  c.make = [=](const std::string& size, uint64_t seed) {
    const std::vector<int64_t> n = parse_size(size);
    // Weights that f32 holds, for every storage.
    const RolloutModel model = random_rollout_model({.hidden = n[1],
                                                     .members = n[0],
                                                     .features = n[2],
                                                     .states = 4,
                                                     .seed = seed,
                                                     .storage = o.storage,
                                                     .categoricals = 3,
                                                     .classes = 4,
                                                     .bins = 41});
    ObserveOptions options{
        .form = o.form, .heads = o.heads, .objective = o.objective, .window = n[3], .decay = 0.7};
    options.posterior = {.on = o.posterior, .free_nats = 0};
    options.optimizer = {.method = optimize::Method::sgd, .schedule = {.rate = 0.1}};
    const std::vector<Sample> run = samples(n[3] + 2, n[2], seed);
    const GruShape shape{o.form, 1, 1, n[2], n[1], o.storage};
    const double parameters = double(n[0] * GruSequence::parameter_count(shape));
    CaseProblem p;
    p.flops = 6 * parameters * double(n[3]) * double(run.size());
    p.bytes = 4 * parameters * double(size_of(o.storage)) * double(run.size());
    if (parameters <= kMostParameters)
      p.reference = [=] {
        RolloutModel wide = model;
        for (auto* gates : {&wide.w, &wide.u, &wide.b})
          for (Array& a : *gates) a = a.to(Storage::f64);
        for (Array* a : {&wide.head, &wide.features, &wide.projection, &wide.projection_bias, &wide.bins,
                         &wide.bins_bias})
          *a = a->to(Storage::f64);
        reference::OnlineProblem problem = reference::online_problem(wide, options);
        for (const Sample& s : run) problem.observe(s.features, s.loss);
        std::vector<double> all;
        for (const auto& member : problem.members)
          all.insert(all.end(), member.weights.begin(), member.weights.end());
        all.insert(all.end(), problem.head.begin(), problem.head.end());
        return std::vector{Array::of(std::move(all)).to(o.storage)};
      };
    p.bind = [=](const Device& device) {
      // Each run starts again: an ensemble remembers.
      const auto ensemble = std::make_shared<std::unique_ptr<OnlineEnsemble>>();
      return CaseRun{[=] {
                       *ensemble = std::make_unique<OnlineEnsemble>(device, model, options);
                       for (const Sample& s : run) (*ensemble)->observe(s.features, s.loss);
                     },
                     [=] { return std::vector{device.download((*ensemble)->parameters())}; }};
    };
    return p;
  };
  c.kernels = [=] {
    const RolloutModel model =
        random_rollout_model({.hidden = 4, .members = 1, .features = 2, .states = 2, .storage = o.storage});
    return OnlineEnsemble(
               Device::open("interp"), model,
               {.form = o.form, .heads = o.heads, .objective = o.objective, .posterior = {.on = o.posterior}})
        .kernels();
  };
  return c;
}

}  // namespace

void add_observe_cases(CaseRegistry& registry) {
  for (const Storage storage : {Storage::f32, Storage::f64}) {
    registry.add(observe_case({.storage = storage}));
    registry.add(observe_case({.form = GruForm::reset_after, .storage = storage}));
  }
  for (const Storage storage : {Storage::f32, Storage::f64})
    for (const bool posterior : {false, true})
      registry.add(observe_case({.heads = Heads::two_hot, .storage = storage, .posterior = posterior}));
  registry.add(observe_case({.objective = Objective::squared, .storage = Storage::f64}));
}

}  // namespace lockstep::forecast
