// fuzz_kernels --device cpu --against interp --count 1000 --seed 1
//
// Runs random kernels on two devices and compares every bit that they write. On a difference it prints the
// seed, the kernel made smaller, and what differs. Exit code 1 on a difference, 2 on bad usage, 77
// where a device is not there.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "compile/clike/cuda/cuda_points.hpp"
#include "compile/lower.hpp"
#include "compile/passes/forms/columns.hpp"
#include "lockstep/error.hpp"
#include "minimise.hpp"
#include "runner.hpp"

using namespace lockstep;
using namespace lockstep::fuzz;

namespace {

struct Options {
  std::string device = "cpu", against = "interp";
  int64_t count = 1000;
  uint64_t seed = 1;
  Recipe recipe;
  int most_failures = 1, tries = 3000;
  int jobs = 1;
  double seconds = 1e9;  // no kernel begins after that
  bool print = false, quiet = false, flaws = false;
};

[[noreturn]] void usage(const std::string& problem) {
  fmt::print(stderr,
             "{}\nusage: fuzz_kernels [--device NAME] [--against NAME] [--count N] [--seed S] [--bodies N] "
             "[--statements N]\n"
             "                    [--profile full|webgpu] [--math] [--failures N] [--tries N] [--jobs N] "
             "[--print] [--quiet] [--flaws]\n"
             "NAME: a device, interp+passes or cuda+points. Seeds S, S+1, … S+N-1 are run. With --flaws "
             "every kernel has one, "
             "which the interpreter must find.\n",
             problem);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int k = 1; k < argc; ++k) {
    const std::string flag = argv[k];
    const auto value = [&]() -> std::string {
      if (++k >= argc) usage(flag + " needs a value");
      return argv[k];
    };
    if (flag == "--device")
      o.device = value();
    else if (flag == "--against")
      o.against = value();
    else if (flag == "--count")
      o.count = std::atoll(value().c_str());
    else if (flag == "--seed")
      o.seed = std::strtoull(value().c_str(), nullptr, 10);
    else if (flag == "--bodies")
      o.recipe.bodies = std::atoi(value().c_str());
    else if (flag == "--statements")
      o.recipe.statements = std::atoi(value().c_str());
    else if (flag == "--failures")
      o.most_failures = std::atoi(value().c_str());
    else if (flag == "--tries")
      o.tries = std::atoi(value().c_str());
    else if (flag == "--seconds")
      o.seconds = std::atof(value().c_str());
    else if (flag == "--jobs")
      o.jobs = std::atoi(value().c_str());
    else if (flag == "--math")
      o.recipe.math = true;
    else if (flag == "--flaws")
      o.flaws = true;
    else if (flag == "--print")
      o.print = true;
    else if (flag == "--quiet")
      o.quiet = true;
    else if (flag == "--profile") {
      const std::string name = value();
      if (name != "full" && name != "webgpu") usage("unknown profile " + name);
      o.recipe.profile = name == "full" ? Profile::full : Profile::webgpu;
    } else
      usage("unknown flag " + flag);
  }
  if (o.count < 1 || o.recipe.bodies < 1 || o.recipe.statements < 1) usage("counts must be positive");
  return o;
}

constexpr unsigned kSeconds = 60;  // for one kernel

/// Ends the process where a kernel, or a smaller form of one that differed, does not end by itself.
void watch(uint64_t seed) {
  static volatile sig_atomic_t high, low;
  high = sig_atomic_t(seed / 1000000000);
  low = sig_atomic_t(seed % 1000000000);
  std::signal(SIGALRM, [](int) {
    char text[] = "seed 0000000000000000000: no end\n";
    uint64_t n = uint64_t(high) * 1000000000 + uint64_t(low);
    for (char* digit = text + 23; digit > text + 4; --digit, n /= 10) *digit = char('0' + n % 10);
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(1);
  });
}

/// Empty where both agree.
std::string compare(Runner& a, Runner& b, const Program& p) {
  alarm(kSeconds);
  Contents expected = b.run(p);  // first: the interpreter finds what is wrong with the kernel itself
  try {
    return difference(p, expected, a.run(p));
  } catch (const std::exception& e) { return fmt::format("{} threw: {}", a.name(), e.what()); }
}

/// How many kernels are stencils, how many of those have a form of columns, and how many CUDA takes it for.
struct Forms {
  int64_t stencils = 0, columns = 0, chosen = 0;
  void count(const Program& p) {
    if (!p.stencil) return;
    ++stencils;
    const ir::Function lowered = compile::lower(p.function, {compile::Target::cuda, Numerics::exact});
    const auto form = compile::columns_form(lowered);
    columns += form.has_value();
    chosen += form && clike::choose_columns(lowered, *form);
  }
};

/// Kernels with a flaw: the interpreter has to name it.
int run_flaws(const Options& o) {
  Runner interp("interp");
  int64_t missed = 0, run = 0;
  for (int64_t k = 0; k < o.count; ++k) {
    Recipe recipe = o.recipe;
    recipe.seed = o.seed + uint64_t(k);
    recipe.flaw = k % 2 ? Flaw::axis : Flaw::promise;
    const Program p = generate(recipe);
    const int64_t lanes = p.function.domain == ir::Domain::groups ? p.function.group_lanes()
                                                                  : p.extent[0] * p.extent[1] * p.extent[2];
    if (recipe.flaw == Flaw::promise && lanes == 1) continue;  // nobody to differ from
    ++run;
    std::string said;
    try {
      interp.run(p);
    } catch (const DeviceError& e) { said = e.what(); }
    const char* const expected =
        recipe.flaw == Flaw::axis ? "accesses out of bounds" : "uniform() values on which lanes differ";
    if (said.find(expected) != std::string::npos) continue;
    fmt::print("seed {}: expected \"{}\", but the interpreter said \"{}\"\n", recipe.seed, expected, said);
    ++missed;
  }
  fmt::print("{} flaws from seed {}, {} missed\n", run, o.seed, missed);
  return missed ? 1 : 0;
}

int run(const Options& o) try {
  if (o.flaws) return run_flaws(o);
  Runner device(o.device), against(o.against);
  const auto start = std::chrono::steady_clock::now();
  int failures = 0;
  int64_t done = 0;
  int64_t instructions = 0;
  Forms forms;
  for (int64_t k = 0; k < o.count && failures < o.most_failures; ++k) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > o.seconds) break;
    Recipe recipe = o.recipe;
    recipe.seed = o.seed + uint64_t(k);
    ++done;
    const Program p = generate(recipe);
    forms.count(p);
    instructions += int64_t(p.function.instructions.size());
    if (o.print) fmt::print("{}", ir::print(p.function));
    std::string difference;
    watch(recipe.seed);
    try {
      difference = compare(device, against, p);
    } catch (const std::exception& e) {
      fmt::print("seed {}: the generated kernel is not valid: {}\n{}", recipe.seed, e.what(),
                 ir::print(p.function));
      ++failures;
      continue;
    }
    if (!difference.empty()) {
      ++failures;
      fmt::print("seed {}: {} and {} differ: {}\n", recipe.seed, o.against, o.device, difference);
      std::fflush(stdout);
      const bool threw = difference.find(" threw: ") != std::string::npos;
      const Program small = minimise(
          p,
          [&](const Program& candidate) {
            const std::string d = compare(device, against, candidate);
            return !d.empty() && (d.find(" threw: ") != std::string::npos) == threw;
          },
          o.tries);
      fmt::print("{}extent {} {} {}, {}\n", ir::print(small.function), small.extent[0], small.extent[1],
                 small.extent[2], compare(device, against, small));
      std::fflush(stdout);
    }
    if (!o.quiet && (k + 1) % 1000 == 0) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      fmt::print(stderr, "{} kernels, {:.0f} instructions each, {:.1f} kernels/s\n", k + 1,
                 double(instructions) / double(k + 1), double(k + 1) / seconds);
    }
  }
  fmt::print(
      "{} against {}: {} kernels from seed {}, {} difference{}; {} stencils, {} with columns, {} so on "
      "CUDA\n",
      o.device, o.against, done, o.seed, failures, failures == 1 ? "" : "s", forms.stencils, forms.columns,
      forms.chosen);
  return failures ? 1 : 0;
} catch (const UnsupportedError& e) {
  fmt::print(stderr, "not run: {}\n", e.what());
  return 77;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}

/// Shares the seeds among processes; the exit code is that of the worst.
int run_jobs(Options o) {
  std::vector<pid_t> children;
  const int jobs = o.jobs;
  const int64_t each = (o.count + jobs - 1) / jobs;
  for (int k = 0; k < jobs; ++k) {
    Options part = o;
    part.seed = o.seed + uint64_t(k) * uint64_t(each);
    part.count = std::min(each, o.count - k * each);
    if (part.count <= 0) break;
    const pid_t child = fork();
    if (child == 0) {
      const int code = run(part);
      std::fflush(stdout);
      _exit(code);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  return o.jobs > 1 ? run_jobs(o) : run(o);
}
