// Rollouts and sequences for `lockstep tune`.
#include "forecast/gru/rows.hpp"
#include "forecast/rollout/kernels.hpp"
#include "verify/inputs.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;

CaseRun tuned_rollout(const Device& device, const forecast::RolloutModel& model, std::string_view variant,
                      int64_t steps) {
  constexpr forecast::RolloutPath kPaths[] = {forecast::RolloutPath::one_launch,
                                              forecast::RolloutPath::by_steps, forecast::RolloutPath::by_rows,
                                              forecast::RolloutPath::cluster, forecast::RolloutPath::batch};
  forecast::RolloutOptions options{.steps = steps};
  options.path = kPaths[forecast::rollout_computation().number(variant)];
  const auto rollout = std::make_shared<forecast::Rollout>(device, model, options);
  return {[rollout] { rollout->launch(); }, [rollout] { return rollout->raw(); }};
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
    const bool host = capabilities_of(device).host_memory;
    const int64_t members = host || starts > 1 ? std::min<int64_t>(n, 2) : n;
    const int64_t batch = starts == 1 ? 1 : host ? starts : std::max<int64_t>(n / members, 2);
    const auto model = forecast::random_rollout_model(
        {.hidden = host ? n : 256, .members = members, .features = 8, .batch = batch});
    return tuned_rollout(device, model, variant, host ? 10 : 50);
  };
  return s;
}

Subject sequence_subject() {
  Subject s;
  s.computation = &forecast::gru_computation();
  s.host = s.gpu = {"sequences", {1, 2, 3, 4, 5, 6, 8, 12, 16}};
  s.small = {1, 6};
  s.tolerance = 1e-6;
  s.position = [](const Device&, int64_t n) { return double(n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    constexpr int64_t kSteps = 10, kInputs = 8;
    const int64_t d = capabilities_of(device).host_memory ? 64 : 256;
    const auto random = [](int64_t rows, int64_t columns, uint64_t seed) {
      std::vector<float> v = cases::uniform<float>(rows * columns, seed);
      for (float& x : v) x *= 0.1f;
      return Array::of(v, {rows, columns});
    };
    const auto gru =
        std::make_shared<forecast::GruSequence>(device, forecast::GruShape{.steps = kSteps,
                                                                           .batch = n,
                                                                           .inputs = kInputs,
                                                                           .hidden = d,
                                                                           .backward = false,
                                                                           .variant = std::string(variant)});
    gru->set_weights(
        {random(kInputs, 3 * d, 1), random(d, 3 * d, 2), random(1, 3 * d, 3).reshape({3 * d}), {}});
    const Buffer x = device.upload(random(kSteps * n, kInputs, 4)).reshape({kSteps, n, kInputs}),
                 h0 = device.upload(random(n, d, 5));
    return CaseRun{[=] { gru->forward(x, h0); },
                   [=] { return std::vector<Array>{device.download(gru->states())}; }};
  };
  return s;
}

}  // namespace

void add_forecast_variants(std::vector<Subject>& subjects) {
  subjects.push_back(rollout_subject("one start", 1));
  subjects.push_back(rollout_subject("many starts", 4));
  subjects.push_back(sequence_subject());
}

}  // namespace lockstep
