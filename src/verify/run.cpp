// Runs cases: parity rows for `verify`, timing rows for `bench`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>

#include "core/numbers/statistics.hpp"
#include "verify/case_results.hpp"
#include "verify/digest.hpp"
#include "verify/measured.hpp"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string case_unsupported(const Case& c, const Device& device) {
  if (c.needs_f64 && !device.info().limits.f64) return fmt::format("{} has no f64", device.info().name);
  for (const Kernel& kernel : c.kernels ? c.kernels() : std::vector<Kernel>{})
    if (const Support support = device.supports(kernel); !support.ok)
      return fmt::format("kernel {}: {}", kernel.name(), support.reason);
  return "";
}

Device case_device(const Case& c, const Device& device) {
  if (!c.lower_limits) return device;
  DeviceOptions options;
  options.numerics = device.numerics();
  options.lower_limits = c.lower_limits;
  return Device::open(device.info().name, options);
}

namespace {

/// Throws InputError where the host cannot hold the inputs.
CaseProblem make_problem(const Case& c, const std::string& size, uint64_t seed) {
  const auto refuse = [&]() -> InputError {
    return InputError(fmt::format("size {}", size), fmt::format("case {}", c.name),
                      "one whose inputs fit in this machine's memory");
  };
  try {
    return c.make(size, seed);
  } catch (const std::bad_alloc&) { throw refuse(); } catch (const std::length_error&) {
    throw refuse();
  }
}

std::vector<Array> run_on(const Case& c, const CaseProblem& problem, const Device& opened) {
  const Device device = case_device(c, opened);
  CaseRun run = problem.bind(device);
  run.run();
  return run.outputs();
}

struct Samples {
  double median, p95, mean, min;
};
Samples summarise(const std::vector<double>& times) {
  double sum = 0;
  for (double t : times) sum += t;
  return {lockstep::median(times), percentile(times, 0.95), sum / double(times.size()),
          *std::min_element(times.begin(), times.end())};
}

/// How far a WebGPU device may lie from the reference: as far as from the CPU, and the CPU from the
/// reference.
Bound webgpu_bound(const Case& c, Against against) {
  Bound bound = c.webgpu;
  if (against != Against::reference || c.reference.bits) return bound;
  const auto add = [](std::optional<double>& to, const std::optional<double>& more) {
    if (to && more) *to += *more;
  };
  add(bound.max_ulp, c.reference.max_ulp);
  add(bound.rel_l2, c.reference.rel_l2);
  add(bound.max_abs, c.reference.max_abs);
  return bound;
}

}  // namespace

CaseResults::CaseResults(const Case& c, std::string size, uint64_t seed)
    : case_(c), size_(std::move(size)), seed_(seed) {}

const CaseProblem& CaseResults::problem() {
  if (!problem_) problem_ = make_problem(case_, size_, seed_);
  return *problem_;
}

const std::vector<Array>& CaseResults::of(const Device& device) {
  const auto [found, fresh] = devices_.try_emplace({device.info().name, device.numerics()});
  if (fresh) found->second = run_on(case_, problem(), device);
  return found->second;
}

std::string CaseResults::digest(const Device& device) {
  return case_unsupported(case_, device).empty() ? lockstep::digest(of(device)) : "";
}

VerifyRow CaseResults::verify(const Device& device, Against against, const Device& other) {
  VerifyRow row{case_.name, size_, case_.dtype, {}, "", false, ""};
  row.skipped = case_unsupported(case_, device);
  if (!row.skipped.empty()) return row;
  Bound bound = against == Against::reference ? case_.reference : Bound::exact();
  if (device.info().kind == DeviceKind::webgpu && !case_.webgpu.bits) bound = webgpu_bound(case_, against);
  if (device.numerics() == Numerics::fast) bound = case_.fast;
  row.bound = bound.text();
  if (against == Against::reference) {
    if (!problem().reference) {
      row.skipped = "no plain reference";
      return row;
    }
    if (!reference_) reference_ = problem().reference();
  }
  row.comparison = compare(of(device), against == Against::reference ? *reference_ : of(other));
  row.pass = row.comparison.within(bound);
  const bool measured = !bound.bits && device.numerics() == Numerics::exact &&
                        std::ranges::find(case_.small, size_) != case_.small.end();
  const bool webgpu = device.info().kind == DeviceKind::webgpu && !case_.webgpu.bits;
  const bool reference = against == Against::reference && !case_.reference.bits;
  if (!measured) return row;
  if (const auto beyond = beyond_measured(case_, row.comparison, {webgpu, reference})) {
    row.pass = false;
    row.bound += " " + *beyond;
  }
  return row;
}

VerifyRow verify_case(const Case& c, const std::string& size, const Device& device, Against against,
                      const Device& other, uint64_t seed) {
  return CaseResults(c, size, seed).verify(device, against, other);
}

BenchRow bench_case(const Case& c, const std::string& size, const Device& opened, double copy_gbps,
                    const BenchOptions& options) {
  BenchRow row;
  row.name = c.name;
  row.size = size;
  row.dtype = c.dtype;
  const Device device = case_device(c, opened);
  row.skipped = case_unsupported(c, device);
  if (!row.skipped.empty()) return row;
  const CaseProblem problem = make_problem(c, size, 1);
  CaseRun bound = problem.bind(device);
  const auto start = Clock::now();
  double last = 0;
  for (int n = 0; options.warmup ? n < options.warmup : n < 2 || seconds_since(start) < 0.1; ++n)
    last = device.seconds(bound.run);
  int iterations = options.iterations;
  if (iterations <= 0) iterations = int(std::clamp(1.0 / std::max(last, 1e-7), 5.0, 200.0));
  std::vector<double> times;
  for (int n = 0; n < iterations; ++n) times.push_back(device.seconds(bound.run));
  const Samples s = summarise(times);
  const double per_ms = 1e3 / problem.operations;
  row.median_ms = s.median * per_ms;
  row.p95_ms = s.p95 * per_ms;
  row.mean_ms = s.mean * per_ms;
  row.min_ms = s.min * per_ms;
  row.bytes = problem.bytes / problem.operations;
  row.gbps = problem.bytes / s.median / 1e9;
  row.share_of_copy = copy_gbps > 0 ? row.gbps / copy_gbps : 0;
  row.gflops = problem.flops / s.median / 1e9;
  row.iterations = iterations;
  if (options.reference && problem.reference && device.info().kind == DeviceKind::cpu) {
    times.clear();
    const auto begin = Clock::now();
    do {
      const auto one = Clock::now();
      problem.reference();
      times.push_back(seconds_since(one));
    } while (seconds_since(begin) < 0.5 && times.size() < 20);
    row.reference_ms = summarise(times).min * per_ms;
  }
  return row;
}

double measure_copy_gbps(const Device& device) {
  // Far beyond the caches, yet a small part of the memory.
  const int64_t wanted = device.info().kind == DeviceKind::cuda ? int64_t(1) << 30 : int64_t(1) << 27;
  const int64_t bytes =
      std::min({wanted, device.info().limits.buffer_bytes, device.info().limits.binding_bytes});
  const int64_t columns = 1 << 16, rows = std::max<int64_t>(bytes / 4 / columns, 1);
  const Buffer from = device.allocate<f32>({rows, columns}), to = device.allocate<f32>({rows, columns});
  device.clear(from);
  const Kernel copy =
      kernel("engine.copy_probe", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a[at]; });
  double best = 0;
  for (int way = 0; way < 2; ++way) {
    std::vector<double> times;
    const auto start = Clock::now();
    for (int n = 0; n < 30 && (n < 5 || seconds_since(start) < 0.5); ++n)
      times.push_back(device.seconds(
          [&] { way ? device.copy(from, to) : device.launch(copy, {rows, columns}, from, to); }));
    times.erase(times.begin(), times.begin() + 2);
    best = std::max(best, 2.0 * double(from.bytes()) / summarise(times).median / 1e9);
  }
  return best;
}

}  // namespace lockstep
