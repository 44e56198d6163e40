#include "solve/minimize/crossover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>

#include "core/files/atomic_file.hpp"
#include "core/files/disk_cache.hpp"
#include "core/numbers/statistics.hpp"
#include "solve/case_problems.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

bool is_gpu(const Device& device) {
  return device.info().kind == DeviceKind::cuda || device.info().kind == DeviceKind::webgpu;
}

/// Seconds of one value and gradient with its answer on the host: the median of enough runs.
double time_gradient(const Problem& problem, const Device& device) {
  using Clock = std::chrono::steady_clock;
  Evaluator evaluator(problem, device, device.info().limits.f64 ? Precision::f64 : Precision::f32);
  const auto& values = problem.state().values;
  evaluator.set_state(values);
  for (int warm = 0; warm < 3; ++warm) evaluator.value_and_gradient();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || (times.size() < 200 && Clock::now() - begin < std::chrono::milliseconds(100))) {
    const auto start = Clock::now();
    evaluator.value_and_gradient();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return median(std::move(times));
}

constexpr uintmax_t kLargestFile = 1 << 16;

std::vector<std::pair<std::string, int64_t>> read_lines(const std::filesystem::path& file) {
  std::vector<std::pair<std::string, int64_t>> lines;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) ||
      std::filesystem::file_size(file, error) > kLargestFile)
    return lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) continue;
    char* end = nullptr;
    const long long residuals = std::strtoll(line.c_str() + tab + 1, &end, 10);
    if (end != line.c_str() + line.size() || residuals < 0) continue;
    lines.emplace_back(line.substr(0, tab), residuals);
  }
  return lines;
}

}  // namespace

int64_t crossover(const std::vector<CrossoverPoint>& points) {
  int64_t from = std::numeric_limits<int64_t>::max();
  for (auto p = points.rbegin(); p != points.rend() && p->device_seconds < p->cpu_seconds; ++p)
    from = p->residuals;
  return from;
}

std::vector<CrossoverPoint> measure_crossover(const Device& device, const Device& cpu, int largest,
                                              const std::function<void(const CrossoverPoint&)>& progress) {
  std::vector<CrossoverPoint> points;
  for (int level = 0; level <= largest; ++level) {
    const Problem problem = mesh_problem(level, false, 1);
    CrossoverPoint point;
    point.vertices = 10 * (int64_t(1) << (2 * level)) + 2;
    point.residuals = problem.residual_count();
    point.cpu_seconds = time_gradient(problem, cpu);
    point.device_seconds = time_gradient(problem, device);
    points.push_back(point);
    if (progress) progress(point);
  }
  return points;
}

std::filesystem::path crossover_file() {
  const DiskCache& cache = DiskCache::global();
  return cache.can_read() ? cache.directory() / "solve_crossover.txt" : std::filesystem::path();
}

void write_threshold(const std::filesystem::path& file, const std::string& device, int64_t residuals) {
  std::vector<std::pair<std::string, int64_t>> lines = read_lines(file);
  std::erase_if(lines, [&](const auto& line) { return line.first == device; });
  lines.emplace_back(device, residuals);
  std::string text;
  for (const auto& [name, count] : lines) text += fmt::format("{}\t{}\n", name, count);
  write_file(file, std::string_view(text));
}

int64_t read_threshold(const std::filesystem::path& file, const std::string& device) {
  for (const auto& [name, residuals] : read_lines(file))
    if (name == device) return residuals;
  return kDefaultThreshold;
}

bool prefers_cpu(const Problem& problem, const Device& device, const Options& options) {
  if (options.backend == Placement::cpu) return true;
  if (options.backend == Placement::gpu || !is_gpu(device)) return false;
  const int64_t threshold = options.threshold >= 0
                                ? options.threshold
                                : read_threshold(crossover_file(), device.info().description);
  return problem.residual_count() < threshold;
}

}  // namespace lockstep::solve
