// Where a device overtakes the CPU, as measured on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/variants/table.hpp"
#include "device/variants/variants.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// One size of the measurement: value and gradient of springs and dihedrals of an icosphere.
struct CrossoverPoint {
  int64_t vertices = 0, residuals = 0;
  double cpu_seconds = 0, device_seconds = 0;
};

/// Fewest residuals from which the device is the faster one, for every larger size measured too. INT64_MAX
/// where the largest size is still faster on the CPU.
int64_t crossover(const std::vector<CrossoverPoint>& points);

/// Times both; `subdivisions` of the icosphere go from 0 to `largest`. `progress` is called after each size.
std::vector<CrossoverPoint> measure_crossover(const Device& device, const Device& cpu, int largest,
                                              const std::function<void(const CrossoverPoint&)>& progress);

/// CPU or device by the number of residuals.
const variants::Computation& placement_computation();
/// A device's row, to be put into a table of variants: the device from so many residuals on.
variants::TableRow placement_row(const DeviceInfo& device, int64_t residuals);

/// Whether a minimisation runs on the CPU from the start by Options::backend and Options::threshold, else by the table of
/// variants.
bool prefers_cpu(const Problem& problem, const Device& device, const Options& options);

}  // namespace lockstep::solve
