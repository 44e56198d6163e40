// Results of `lockstep bench`, their files, and the comparison of two of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lockstep/verify.hpp"

namespace lockstep::cli {

struct BenchResults {
  std::string device, numerics;
  double copy_gbps = 0;
  std::vector<BenchRow> rows;
};

nlohmann::ordered_json to_json(const BenchResults& results);
std::string to_csv(const BenchResults& results);
std::string to_text(const BenchResults& results);

/// Reads what `--out` or `--json` wrote. Throws InputError naming `where`.
BenchResults parse_bench(const std::string& text, const std::string& where);

/// One case and size in both results.
struct BenchChange {
  std::string name, size, dtype;
  double old_ms = 0, new_ms = 0;
  /// New over old: above 1 is slower.
  double ratio = 1;
  bool regression = false;
};
/// A comparison of two results. Measured rows of the newer one that the older one lacks are `unmatched`.
struct BenchComparison {
  std::vector<BenchChange> changes;
  std::vector<std::string> unmatched;  // "engine.copy 512x512 f32"
  bool passed() const;
};
/// A regression is slower by more than `tolerance` (0.05 = 5 %). Throws InputError for results of different
/// devices or numerics; the message names `where`, the location of the older ones.
BenchComparison compare_bench(const BenchResults& older, const BenchResults& newer, double tolerance,
                              const std::string& where);
std::string to_text(const BenchComparison& comparison, const std::string& against, double tolerance);
/// The rows of the comparison.
nlohmann::ordered_json to_json(const BenchComparison& comparison);

/// Seconds until the first kernel's result is there, with an empty and with a filled kernel cache, for each
/// back end. Files may be empty.
int run_bench_startup(const struct CommonOptions& common, const std::string& out, const std::string& csv);

/// From how many residuals on the device overtakes the CPU in `solve`; kept for later runs. Files may be
/// empty.
int run_bench_crossover(const CommonOptions& common, const std::string& out, const std::string& csv,
                        const std::string& picture);

}  // namespace lockstep::cli
