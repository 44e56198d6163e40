// Rollouts and sequences for `lockstep tune`.
#include "forecast/gru/rows.hpp"
#include "forecast/rollout/kernels.hpp"
#include "verify/inputs.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;
using variants::VariantMemory;

std::shared_ptr<forecast::Rollout> tuned_rollout(const Device& device, int64_t starts, int64_t n,
                                                 std::string_view variant) {
  const bool host = capabilities_of(device).host_memory;
  const int64_t members = host || starts > 1 ? std::min<int64_t>(n, 2) : n;
  const int64_t batch = starts == 1 ? 1 : host ? starts : std::max<int64_t>(n / members, 2);
  const auto model = forecast::random_rollout_model(
      {.hidden = host ? n : 256, .members = members, .features = 8, .batch = batch});
  constexpr forecast::RolloutPath kPaths[] = {forecast::RolloutPath::one_launch,
                                              forecast::RolloutPath::by_steps, forecast::RolloutPath::by_rows,
                                              forecast::RolloutPath::cluster, forecast::RolloutPath::batch};
  forecast::RolloutOptions options{.steps = host ? 10 : 50};
  options.path = kPaths[forecast::rollout_computation().number(variant)];
  return std::make_shared<forecast::Rollout>(device, model, options);
}

/// On GPUs the number of groups decides, on the CPU the size of a member.
Subject rollout_subject(const char* of, int64_t starts) {
  Subject s;
  s.computation = &forecast::rollout_computation();
  s.of = of;
  s.host = {"member_bytes", {128, 256, 384, 448, 512, 768}};
  s.gpu = {"groups", {1, 2, 5, 8, 12, 16, 18, 24, 32, 64}};
  s.small = {3};
  s.position = [](const Device& device, int64_t n) {
    return capabilities_of(device).host_memory ? double(12 * n * n) : double(n);
  };
  s.bind = [=](const Device& device, int64_t n, std::string_view variant) {
    const auto rollout = tuned_rollout(device, starts, n, variant);
    return CaseRun{[rollout] { rollout->launch(); }, [rollout] { return rollout->raw(); }};
  };
  s.memory = [=](const Device& device, int64_t n, std::string_view variant) {
    const forecast::RolloutMemory m = tuned_rollout(device, starts, n, variant)->memory();
    return VariantMemory{m.outputs, m.weights + m.state};
  };
  return s;
}

/// Sequences of the subject: few steps, inputs and units.
forecast::GruShape tuned_sequence(const Device& device, int64_t n, std::string_view variant) {
  return {.steps = 10,
          .batch = n,
          .inputs = 8,
          .hidden = capabilities_of(device).host_memory ? 64 : 256,
          .backward = false,
          .variant = std::string(variant)};
}

Subject sequence_subject() {
  Subject s;
  s.computation = &forecast::gru_computation();
  s.host = s.gpu = {"sequences", {1, 2, 3, 4, 5, 6, 8, 12, 16}};
  s.small = {1, 6};
  s.tolerance = 1e-6;
  s.position = [](const Device&, int64_t n) { return double(n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    const forecast::GruShape shape = tuned_sequence(device, n, variant);
    const int64_t d = shape.hidden, in = shape.inputs, steps = shape.steps;
    const auto random = [](int64_t rows, int64_t columns, uint64_t seed) {
      std::vector<float> v = cases::uniform<float>(rows * columns, seed);
      for (float& x : v) x *= 0.1f;
      return Array::of(v, {rows, columns});
    };
    const auto gru = std::make_shared<forecast::GruSequence>(device, shape);
    gru->set_weights({random(in, 3 * d, 1), random(d, 3 * d, 2), random(1, 3 * d, 3).reshape({3 * d}), {}});
    const Buffer x = device.upload(random(steps * n, in, 4)).reshape({steps, n, in}),
                 h0 = device.upload(random(n, d, 5));
    return CaseRun{[=] { gru->forward(x, h0); },
                   [=] { return std::vector<Array>{device.download(gru->states())}; }};
  };
  s.memory = [](const Device& device, int64_t n, std::string_view variant) {
    const forecast::GruShape shape = tuned_sequence(device, n, variant);
    const int64_t states = 4 * (shape.steps + 1) * n * shape.hidden,
                  inputs = 4 * n * (shape.steps * shape.inputs + shape.hidden);
    return VariantMemory{inputs + states, forecast::GruSequence(device, shape).memory().total() - states};
  };
  return s;
}

Subject clusters_subject() {
  Subject s;
  s.numbers = "forecast.batch.clusters_at_once";
  s.host.none = "no clusters of groups";
  s.gpu.none = "counted for the kernel of an H200, and used in proportion to a device's multiprocessors";
  return s;
}

}  // namespace

void add_forecast_variants(std::vector<Subject>& subjects) {
  subjects.push_back(rollout_subject("one start", 1));
  subjects.push_back(rollout_subject("many starts", 4));
  subjects.push_back(sequence_subject());
  subjects.push_back(clusters_subject());
}

}  // namespace lockstep
