// Where a device overtakes the CPU, as measured on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

/// Times both; `subdivisions` of the icosphere go from 0 to `largest`. `progress` is told after each size.
std::vector<CrossoverPoint> measure_crossover(const Device& device, const Device& cpu, int largest,
                                              const std::function<void(const CrossoverPoint&)>& progress);

/// The file that keeps thresholds, one line "description<TAB>residuals" a device, in the cache's folder;
/// empty where there is none.
std::filesystem::path crossover_file();
/// Adds or replaces a device's line. Throws InputError where the file cannot be written.
void write_threshold(const std::filesystem::path& file, const std::string& device, int64_t residuals);
/// The measured threshold of a device, else kDefaultThreshold.
int64_t read_threshold(const std::filesystem::path& file, const std::string& device);
inline constexpr int64_t kDefaultThreshold = 20'000;

/// Whether a minimisation runs on the CPU from the outset by Options::backend and Options::threshold.
bool prefers_cpu(const Problem& problem, const Device& device, const Options& options);

}  // namespace lockstep::solve
