// A pose graph of a g2o file, minimised from its start by three iterations: as a problem built again, as one that is unchanged
// since its last minimisation, one with an edge more between poses that had one, and one with an edge between others.
// Medians of milliseconds, of those up to the end of the first iteration, and of milliseconds of CPU time.
//   bench_solve_repeated FILE.g2o [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <lockstep/solve.hpp>
#include <lockstep/solve/factors.hpp>
#include <lockstep/solve/files.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace lockstep;

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}
double milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Times {
  const char* what;
  std::vector<double> all{}, first{}, cpu{};
};
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + int64_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// One minimisation from the start of the file.
void minimise(solve::PoseGraphFile& graph, const std::vector<double>& start, Context& context, Times& times) {
  std::ranges::copy(start, graph.problem.values(graph.poses).begin());
  solve::Options options;
  options.max_iterations = 3;
  const double from = milliseconds(), ticks = cpu_milliseconds();
  double first = 0;
  options.callback = [&](const solve::Iteration&) {
    if (first == 0) first = milliseconds() - from;
    return true;
  };
  solve::minimize(graph.problem, context, options);
  times.all.push_back(milliseconds() - from), times.cpu.push_back(cpu_milliseconds() - ticks);
  times.first.push_back(first);
}

/// An edge that hardly counts.
solve::TermSet add_edge(solve::PoseGraphFile& graph, int32_t from, int32_t to) {
  const bool space = graph.dimension == 3;
  const std::vector<double> w = solve::w_from_standard_deviations(std::vector<double>(space ? 6 : 3, 1e6));
  const std::vector<double> row =
      space ? solve::se3_between_log_data(std::vector<double>{0, 0, 0, 1, 0, 0, 0}, w)
            : solve::se2_between_data(std::vector<double>{0, 0, 0}, w);
  return graph.problem.add_terms(space ? solve::se3_between_log() : solve::se2_between_log(),
                                 {graph.poses, graph.poses}, std::vector<int32_t>{from, to}, row);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) return 2;
  const int rounds = count > 2 ? std::stoi(arguments[2]) : 5;
  ContextOptions on_cpu;
  on_cpu.device = "cpu", on_cpu.threads = 2;
  Context context(on_cpu);
  solve::PoseGraphFile kept = solve::read_pose_graph(arguments[1]);
  const std::span<const double> read = std::as_const(kept.problem).values(kept.poses);
  const std::vector<double> start(read.begin(), read.end());
  const auto last = int32_t(kept.problem.block_count(kept.poses) - 1);
  Times anew{"anew"}, same{"unchanged"}, more{"more"}, others{"others"}, warm{"warm"};
  minimise(kept, start, context, warm);
  for (int round = 0; round < rounds; ++round) {
    solve::PoseGraphFile graph = solve::read_pose_graph(arguments[1]);
    minimise(graph, start, context, anew);
    minimise(kept, start, context, same);
    const solve::TermSet again = add_edge(kept, 0, 1);
    minimise(kept, start, context, more);
    kept.problem.erase(again);
    const solve::TermSet far = add_edge(kept, 0, last);
    minimise(kept, start, context, others);
    kept.problem.erase(far);
    minimise(kept, start, context, warm);
  }
  for (const Times& t : {anew, same, more, others})
    std::printf("%-10s %9.2f ms, %9.2f to the end of the first iteration, %9.2f of CPU\n", t.what,
                median(t.all), median(t.first), median(t.cpu));
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_solve_repeated: %s\n", error.what());
  return 2;
}
