#include "forecast/rollout/native.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device/capabilities.hpp"
#include "forecast/rollout/kernels.hpp"
#include "lockstep/native.hpp"

namespace lockstep::forecast {

std::string no_native_model(const RolloutModel& model, const RolloutOptions& options) {
  if (model.storage() != Storage::f32) return "weights in f64";
  if (options.weights != WeightType::f32) return fmt::format("weights in {}", name(options.weights));
  if (options.heads != Heads::classic) return fmt::format("{} heads", name(options.heads));
  return "";
}

std::string no_native_device(const Device& device) {
  const DeviceInfo& info = device.info();
  if (capabilities_of(info).compute_capability == 90) return "";
  return fmt::format("{} has no clusters of sm_90", info.name);
}

bool all_within(const Array& values, float limit) {
  return values.empty() ||
         std::ranges::all_of(values.packed().as<float>(), [&](float v) { return std::abs(v) <= limit; });
}

std::string native_definitions(int64_t hidden, int64_t states, GruForm form,
                               std::span<const SourceDefinition> more) {
  std::string source;
  const auto define = [&](const SourceDefinition& d) {
    source += fmt::format("#define {} {}\n", d.name, d.value);
  };
  define({"HIDDEN", hidden});
  define({"STATES", states});
  define({"RESET_AFTER", form == GruForm::reset_after});
  std::ranges::for_each(more, define);
  return source;
}

Kernel native_clusters(const Kernel& portable, std::string source, const char* entry,
                       const NativeShape& shape) {
  return native_kernel(portable, {.cuda = {std::move(source), entry},
                                  .block = {int32_t(shape.threads), 1, 1},
                                  .dynamic_shared_bytes = shape.shared_bytes,
                                  .cluster = int32_t(shape.blocks),
                                  .own_architecture = true});
}

Kernel native_rollout(const RolloutModel& model, GruForm form, std::string source, const char* entry,
                      const NativeShape& shape) {
  const int hidden = int(model.hidden());
  return native_clusters(one_launch_kernel<f32>(form, {}, hidden, hidden), std::move(source), entry, shape);
}

}  // namespace lockstep::forecast
