// The sky's launches, and the cost of a pixel, for `lockstep tune`.
#include <fmt/format.h>

#include <chrono>

#include "core/numbers/statistics.hpp"
#include "urban/city/random_city.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/radiation/cases.hpp"
#include "urban/sky/sky.hpp"
#include "verify/variant_subjects.hpp"

namespace lockstep {

namespace {

using variants::Subject;

void no_progress(int) {}

Subject sky_subject() {
  Subject s;
  s.computation = &urban::sky_computation();
  s.host = {"pixels", {64, 128, 256}};
  s.gpu = {"pixels", {128, 256, 512, 1024, 2048, 3072}};
  s.small = {24};
  s.position = [](const Device&, int64_t n) { return double(n * n); };
  s.bind = [](const Device& device, int64_t n, std::string_view variant) {
    const urban::City city = urban::prepare_city(urban::random_city(n, n, 1, {true, 1.0, 0.02}));
    const auto plan = std::make_shared<const urban::SkyPlan>(urban::plan_sky(city, {}));
    const urban::Scene scene = urban::upload_scene(device, {}, city, urban::whole_tile(city));
    urban::build_maxima(device, {}, scene);
    const urban::SkyBuffers buffers = urban::allocate_sky(device, {}, *plan, scene);
    const int step = variant == "whole" ? plan->words() : 1;
    return CaseRun{[=] { urban::cast_words(device, {}, *plan, scene, buffers, step, no_progress); },
                   [=] { return std::vector<Array>{device.download(buffers.states)}; }};
  };
  s.no_memory = "nothing: a launch takes more or fewer words of one buffer";
  return s;
}

/// Median seconds of `work`, with what it waits for.
double seconds_of(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 7;
  std::vector<double> samples;
  work();
  for (int k = 0; k < kRuns; ++k) {
    const Clock::time_point start = Clock::now();
    work();
    samples.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return median(std::move(samples));
}

/// Seconds of a pixel: a step with Tmrt, UTCI and shadow on their way to the files, and a patch of the sky; of one thread of a
/// CPU and of a whole GPU.
std::vector<double> pixel_seconds(const Device& device) {
  const bool host = capabilities_of(device).host_memory;
  const int64_t side = host ? 128 : 1024;
  const urban::SharedSite site = urban::site_of(fmt::format("{0}x{0}", side), 2, true, true);
  const urban::RadiationOptions options;
  const urban::SkyPlan plan = urban::plan_sky(site->city, options.view);
  urban::RadiationScene parts = urban::scene_of(*site);
  const urban::Scene scene = urban::upload_scene(device, {}, site->city, parts.tile);
  urban::build_maxima(device, {}, scene);
  const urban::SkyBuffers sky = urban::allocate_sky(device, {}, plan, scene);
  const double cast = seconds_of([&] {
    urban::cast_words(device, {}, plan, scene, sky, plan.words(), no_progress);
    device.synchronize();
  });
  urban::view_sky(device, {}, plan, scene, sky);
  parts.sky_grids = sky.grids, parts.sky_states = sky.states;
  urban::RadiationModel model(device, parts, options);
  const urban::UtciStep comfort(24, 45, 2);
  const Buffer utci = device.allocate<f32>(scene.core());
  std::vector<float> values(size_t(side * side));
  const urban::StepForcing forcing = urban::noon(2);
  const double step = seconds_of([&] {
    model.step(forcing);
    const Buffer tmrt = model.output(urban::RadiationOutput::tmrt);
    urban::utci_grid(device, {}, comfort, tmrt, utci);
    for (const Buffer& plane : {tmrt, utci, model.output(urban::RadiationOutput::shadow)})
      device.read(plane, values.data(), plane.bytes());
  });
  const double lanes = host ? double(std::max<int64_t>(1, device.info().multiprocessors)) : 1;
  const double pixels = double(side * side);
  return {step / pixels * lanes, cast / pixels / plan.patches() * lanes};
}

Subject pixel_subject() {
  Subject s;
  s.numbers = "urban.check.pixel";
  s.measure = pixel_seconds;
  return s;
}

}  // namespace

void add_urban_variants(std::vector<Subject>& subjects) {
  subjects.push_back(sky_subject());
  subjects.push_back(pixel_subject());
}

}  // namespace lockstep
