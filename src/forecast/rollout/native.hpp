// Common to the native kernels of rollouts: whom they refuse, how a source becomes a kernel.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "forecast/rollout/weights/packing.hpp"

namespace lockstep::forecast {

/// Why neither takes such a model with such options; empty: they may.
std::string no_native_model(const RolloutModel& model, const RolloutOptions& options);

/// Why neither runs on the device; empty: they may.
std::string no_native_device(const Device& device);

bool all_within(const Array& values, float limit);

struct SourceDefinition {
  std::string_view name;
  int64_t value;
};
/// Behind HIDDEN, STATES and RESET_AFTER.
std::string native_definitions(int64_t hidden, int64_t states, GruForm form,
                               std::span<const SourceDefinition> more);

struct NativeShape {
  int64_t threads, shared_bytes, blocks;  // of a block, of a block, of a cluster
};
/// `entry` of the source, as an alternative to `portable`.
Kernel native_clusters(const Kernel& portable, std::string source, const char* entry,
                       const NativeShape& shape);
/// The same of a rollout, whose portable kernel is that of one launch.
Kernel native_rollout(const RolloutModel& model, GruForm form, std::string source, const char* entry,
                      const NativeShape& shape);

}  // namespace lockstep::forecast
