// Declarative cases: one per kernel (or per operation of a few kernels). They feed `lockstep verify`,
// `lockstep bench`, the tests and the support matrix.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep {

/// Allowed difference between two results. All limits that are set must hold.
struct Bound {
  bool bits = true;  // bit-identical; the other limits are ignored
  std::optional<double> max_ulp, rel_l2, max_abs;
  double differing_share = 1;  // share of elements that may differ
  static Bound exact() { return {}; }
  static Bound ulp(double n) { return {false, n, {}, {}, 1}; }
  static Bound relative(double e) { return {false, {}, e, {}, 1}; }
  static Bound absolute(double e) { return {false, {}, {}, e, 1}; }
  /// Share of integer or state results that may differ, because a rounding difference can change them.
  static Bound flips(double share) { return {false, {}, {}, {}, share}; }
  std::string text() const;  // "bits", "ulp<=4", "rel_l2<=1e-6"
};

/// A case bound to a device: resident buffers, repeatable work.
struct CaseRun {
  std::function<void()> run;                    // the whole operation; preserves its inputs
  std::function<std::vector<Array>()> outputs;  // of the last run
};

/// One problem of a case, with fixed inputs of one size.
struct CaseProblem {
  std::function<CaseRun(const Device&)> bind;
  /// Result of the plain C++ reference, or empty if the case has none.
  std::function<std::vector<Array>()> reference;
  double bytes = 0;  // bytes of one run, each datum counted once
  double flops = 0;  // of one run
  /// Operations per run, such as launches of an empty kernel; `bench` reports the time of one.
  double operations = 1;
};

struct Case {
  std::string name;  // "engine.copy", "urban.svf.states"
  std::string dtype = "f32";
  std::vector<std::string>
      small;                      // sizes of `verify` and CI, including odd sizes, single rows and empty ones
  std::vector<std::string> full;  // more for `verify --sizes full`
  std::vector<std::string> bench;  // sizes of `bench`
  /// Size text such as "512x512" or "1048576"; the seed fixes random inputs.
  std::function<CaseProblem(const std::string& size, uint64_t seed)> make;
  std::function<std::vector<Kernel>()> kernels;  // for `emit` and the support matrix
  Bound webgpu = Bound::exact();                 // against cpu, default numerics
  Bound reference = Bound::exact();              // against the plain reference
  Bound fast = Bound::relative(1e-4);            // fast numerics against exact
  bool needs_f64 = false;
  std::function<void(Limits&)> lower_limits;  // the case runs on a device opened with these limits
};

class CaseRegistry {
 public:
  void add(Case c);
  const std::vector<Case>& all() const { return cases_; }
  /// Cases whose name equals or begins with `prefix`. Throws InputError if there is none.
  std::vector<const Case*> match(const std::string& prefix) const;

 private:
  std::vector<Case> cases_;
};
/// The table of docs/support.md as Markdown: the back ends that support each case.
std::string support_matrix(const CaseRegistry& registry);
/// Integers of "512x512", slowest axis first. Throws InputError for other text.
std::vector<int64_t> parse_size(const std::string& text);
/// The same as a shape. Throws InputError if it does not have `rank` axes.
Shape parse_shape(const std::string& text, int rank);

/// Differences between two results. Two NaN are equal, regardless of their bits.
struct Comparison {
  int64_t elements = 0, differing_bits = 0, differing_elements = 0;
  double max_abs = 0, mean_abs = 0, rel_l2 = 0, max_ulp = 0;
  /// Percentage of elements that are finite in both results, or the same NaN or infinity in both.
  double finite_equal = 100;
  std::vector<double> relative_max;  // per output: max |got − expected| / max |expected|; NaN for integers
  bool within(const Bound& bound) const;
};
/// Throws InputError if number, storage or shape of the arrays differ.
Comparison compare(const std::vector<Array>& got, const std::vector<Array>& expected);

enum class Against { cpu, interp, reference };

/// One row of `lockstep verify`.
struct VerifyRow {
  std::string name, size, dtype;
  Comparison comparison;
  std::string bound;  // of the case, and of the output that exceeds its own bound, if any
  bool pass = false;
  std::string skipped;  // the reason, else empty
};
/// Runs a case of one size on `device` and compares it with `other`, or with the plain reference, for which `other` is
/// not used.
VerifyRow verify_case(const Case& c, const std::string& size, const Device& device, Against against,
                      const Device& other, uint64_t seed = 1);

struct BenchOptions {
  int iterations = 0;     // 0: as many as take one second, 5 to 200
  int warmup = 0;         // 0: at least two runs and 0.1 s
  bool reference = true;  // also time the plain C++ reference (CPU devices)
};
/// One row of `lockstep bench`. Times are milliseconds per operation; gbps and gflops are 10^9 per second.
struct BenchRow {
  std::string name, size, dtype;
  double median_ms = 0, p95_ms = 0, mean_ms = 0, min_ms = 0, bytes = 0, gbps = 0, share_of_copy = 0,
         gflops = 0;
  double reference_ms = 0;  // plain C++ on one thread, 0 where not timed
  int iterations = 0;
  std::string skipped;
};
BenchRow bench_case(const Case& c, const std::string& size, const Device& device, double copy_gbps,
                    const BenchOptions& options = {});
/// Bytes read and written per second, in GB/s, by the faster of the device's copy and the copy kernel.
double measure_copy_gbps(const Device& device);

// Each folder registers its own.
void add_engine_cases(CaseRegistry& registry);     // src/verify
void add_math_cases(CaseRegistry& registry);       // src/math
void add_primitive_cases(CaseRegistry& registry);  // src/primitives

}  // namespace lockstep
