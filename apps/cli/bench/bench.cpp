// `lockstep bench`: device times of whole operations on resident data, compared with the copy bandwidth of
// the same run.
#include "bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/dynamic_library.hpp"
#include "core/files/atomic_file.hpp"
#include "core/numbers/statistics.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "io/text/file.hpp"
#include "registry.hpp"
#include "session.hpp"
#include "subprocess.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct BenchCommandOptions {
  std::vector<std::string> cases, sizes, types;
  std::string out, csv, against, plot;
  int64_t iterations = 0, warmup = 0, rounds = 5;
  double tolerance = 5;
  bool whole_names = false, no_reference = false;
};

/// The name of a mode, which no case has; or empty.
std::string mode_of(const BenchCommandOptions& o) {
  const std::string only = o.cases.size() == 1 ? o.cases.front() : "";
  return only == "startup" || only == "solve.crossover" ? only : "";
}

bool is_program(const std::string& file);

void describe(Schema<BenchCommandOptions>& s) {
  using O = BenchCommandOptions;
  using Use = Option::Use;
  s.of("cli::BenchCommandOptions");
  s.option("case", &O::cases, "cases or prefixes of them (default: all cases), startup, or solve.crossover")
      .flag("CASE")
      .positional();
  s.option("sizes", &O::sizes, "sizes instead of each case's own, such as 512x512,1024x1024").shown("S,S");
  s.option("types", &O::types, "element types, such as f32,bf16").flag("dtype").shown("T,T");
  s.option("whole_names", &O::whole_names, "CASE are whole names, not prefixes");
  s.option("no_reference", &O::no_reference, "do not time the plain C++ reference on the CPU");
  s.option("iterations", &O::iterations, "timed runs")
      .at_least(1)
      .at_most(1'000'000)
      .off(0)
      .or_else("enough for a steady median");
  s.option("warmup", &O::warmup, "runs before them")
      .at_least(1)
      .at_most(1'000'000)
      .off(0)
      .or_else("at least two and 0.1 s");
  s.option("out", &O::out, "also write the JSON to this file")
      .file(Use::output_file, {".json"})
      .shown("FILE");
  s.option("csv", &O::csv, "write one row per result to this file")
      .file(Use::output_file, {".csv", ".txt"})
      .shown("FILE");
  s.option("plot", &O::plot, "PNG of solve.crossover").file(Use::output_file, {".png"}).shown("FILE");
  s.option("against", &O::against,
           "another lockstep program, run alternately with this one, or an earlier JSON")
      .file(Use::input)
      .shown("FILE");
  s.option("tolerance", &O::tolerance, "exit code 1 where slower by more than this")
      .at_least(0)
      .at_most(1e6)
      .shown("PERCENT");
  s.option("rounds", &O::rounds, "runs of each program with --against PROGRAM").at_least(1).at_most(1000);
  for (const char* option : {"tolerance", "rounds"})
    s.useless(
        option, [](const O& o) { return o.against.empty() && mode_of(o).empty(); },
        "an option without effect", "{against} too");
  s.useless(
      "rounds", [](const O& o) { return !o.against.empty() && !is_program(o.against); },
      "an earlier JSON is not a program to run", "{against} PROGRAM");
}

/// The cases that the words select, restricted to the requested element types.
std::vector<const Case*> wanted_cases(const BenchCommandOptions& options) {
  std::vector<const Case*> cases = select_cases(options.cases);
  if (options.whole_names)
    std::erase_if(cases, [&](const Case* c) {
      return std::find(options.cases.begin(), options.cases.end(), c->name) == options.cases.end();
    });
  const std::vector<std::string>& types = options.types;
  std::set<std::string> known;
  for (const Case* c : cases) known.insert(c->dtype);
  for (const std::string& type : types)
    if (!known.contains(type))
      throw InputError("element type " + type, "--dtype",
                       fmt::format("one of these cases': {}", fmt::join(known, ", ")));
  if (!types.empty())
    std::erase_if(
        cases, [&](const Case* c) { return std::find(types.begin(), types.end(), c->dtype) == types.end(); });
  if (cases.empty())
    throw InputError(fmt::format("case {}", fmt::join(options.cases, ", ")), "--whole-names",
                     "names that `lockstep bench` prints");
  return cases;
}

/// Throws InputError for a size with more or fewer numbers than the case's own sizes have.
void check_size_of(const Case& c, const std::string& size) {
  std::set<size_t> counts;
  for (const auto* own : {&c.small, &c.full, &c.bench})
    for (const std::string& one : *own) counts.insert(size_t(std::ranges::count(one, 'x')));
  if (!counts.empty() && !counts.contains(size_t(std::ranges::count(size, 'x'))))
    throw InputError(fmt::format("size \"{}\"", size), fmt::format("--sizes, {}", c.name),
                     fmt::format("a size such as {}", c.bench.empty() ? c.small.front() : c.bench.front()));
}

BenchResults measure(Session& session, const BenchCommandOptions& options) {
  const std::vector<const Case*> cases = wanted_cases(options);
  const std::vector<std::string>& wanted = options.sizes;
  for (const std::string& size : wanted) {
    const size_t colon = size.find(':');  // "goteborg:512x512" names an input
    const std::vector<int64_t> numbers =
        parse_size(colon == std::string::npos ? size : size.substr(colon + 1));
    if (std::ranges::find(numbers, 0) != numbers.end())
      throw InputError(fmt::format("size \"{}\"", size), "--sizes", "numbers above 0");
  }
  const Device device = session.open_device();
  BenchResults results;
  results.device = device.info().name;
  results.numerics = device.numerics() == Numerics::fast ? "fast" : "exact";
  results.copy_gbps = measure_copy_gbps(device);
  int64_t total = 0;
  for (const Case* c : cases) total += static_cast<int64_t>(wanted.empty() ? c->bench.size() : wanted.size());
  Progress progress("bench", total, "problems");
  BenchOptions bench;
  bench.iterations = static_cast<int>(options.iterations);
  bench.warmup = static_cast<int>(options.warmup);
  bench.reference = !options.no_reference;
  const auto start = std::chrono::steady_clock::now();
  // A size that some case does not take skips that case; one that none takes is an error.
  std::exception_ptr refused;
  bool measured = false;
  const auto skip = [&](const Case& c, const std::string& size, const Error& e) {
    if (wanted.empty()) throw;
    BenchRow row{c.name, size, c.dtype};
    row.skipped = e.what();
    results.rows.push_back(row);
    if (!refused) refused = std::current_exception();
  };
  for (const Case* c : cases) {
    for (const std::string& size : wanted.empty() ? c->bench : wanted) {
      try {
        check_size_of(*c, size);
        results.rows.push_back(bench_case(*c, size, device, results.copy_gbps, bench));
        measured = true;
      } catch (const InputError& e) { skip(*c, size, e); } catch (const UnsupportedError& e) {
        skip(*c, size, e);
      }
      progress.add();
    }
  }
  if (refused && !measured) std::rethrow_exception(refused);
  const DeviceCounters counters = device.counters();
  session.note({"bench", device.info().name,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                counters.bytes_to_device, counters.bytes_from_device, counters.launches, 0});
  session.note_device(device.info().name, counters.peak_bytes);
  return results;
}

// The same measurement by another program (or by this one, in a process of its own).
BenchResults measure_with(std::vector<std::string> words, const CommonOptions& common,
                          const BenchCommandOptions& options) {
  const std::string program = words.front();
  words.insert(words.end(),
               {"bench", "--json", "--quiet", "--device", common.device, "--numerics", common.numerics});
  if (common.threads) words.insert(words.end(), {"--threads", std::to_string(common.threads)});
  for (const auto& [flag, list] : {std::pair{"--sizes", &options.sizes}, {"--dtype", &options.types}})
    if (!list->empty()) words.insert(words.end(), {flag, fmt::format("{}", fmt::join(*list, ","))});
  if (options.whole_names) words.emplace_back("--whole-names");
  if (options.no_reference) words.emplace_back("--no-reference");
  if (options.iterations) words.insert(words.end(), {"--iterations", std::to_string(options.iterations)});
  if (options.warmup) words.insert(words.end(), {"--warmup", std::to_string(options.warmup)});
  words.insert(words.end(), options.cases.begin(), options.cases.end());
  const ProgramResult result = run_program(words);
  if (result.exit_code != 0) {
    throw InputError(fmt::format("`bench` ended with exit code {}", result.exit_code), program,
                     "a `lockstep` program with these cases");
  }
  BenchResults results = parse_bench(result.output, program);
  results.numerics = common.numerics;
  return results;
}

// Each row's median over the rounds.
BenchResults median_of(const std::vector<BenchResults>& rounds) {
  BenchResults result = rounds.front();
  for (BenchRow& row : result.rows) {
    std::vector<double> times;
    for (const BenchResults& round : rounds) {
      for (const BenchRow& r : round.rows) {
        if (r.name == row.name && r.size == row.size && r.dtype == row.dtype) times.push_back(r.median_ms);
      }
    }
    row.median_ms = median(times);
  }
  return result;
}

bool is_program(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || ::access(file.c_str(), X_OK) != 0) return false;
  const std::string head = io::read_text_file(file, "a lockstep program or an earlier JSON").substr(0, 4);
  return head ==
             "\x7f"
             "ELF" ||
         head.starts_with("#!");
}

void show(const BenchComparison& comparison, const BenchCommandOptions& options, ordered_json& document,
          std::string& text) {
  document["against"] = options.against;
  document["comparison"] = to_json(comparison);
  document["unmatched"] = comparison.unmatched;
  text += to_text(comparison, options.against, options.tolerance / 100);
}

// Both programs in turn, the order changing from round to round, so that drifts of the machine hit both
// alike.
int compare_programs(const CommonOptions& common, const BenchCommandOptions& options) {
  Session session(common);
  const std::vector<std::string> self = own_command(), other = {fs::absolute(options.against).string()};
  std::vector<BenchResults> ours, theirs;
  Progress progress("bench --against", options.rounds * 2, "runs");
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (const bool own : {round % 2 == 0, round % 2 != 0}) {
      (own ? ours : theirs).push_back(measure_with(own ? self : other, common, options));
      progress.add();
    }
  }
  const BenchResults newer = median_of(ours);
  const BenchComparison comparison =
      compare_bench(median_of(theirs), newer, options.tolerance / 100, options.against);
  ordered_json document = to_json(newer);
  std::string text;
  show(comparison, options, document, text);
  session.note_device(newer.device, 0);
  if (!options.out.empty()) write_file(options.out, std::string_view(document.dump(2)));
  if (!options.csv.empty()) write_file(options.csv, std::string_view(to_csv(newer)));
  session.finish(document, text);
  return comparison.passed() ? 0 : 1;
}

int run(const CommonOptions& common, const BenchCommandOptions& options) {
  if (!options.against.empty() && is_program(options.against)) return compare_programs(common, options);
  std::optional<BenchResults> older;
  if (!options.against.empty())
    older = parse_bench(io::read_text_file(options.against, "an earlier JSON of bench"), options.against);
  Session session(common);
  const BenchResults results = measure(session, options);
  ordered_json document = to_json(results);
  std::string text = to_text(results);
  bool passed = true;
  if (older) {
    const BenchComparison comparison =
        compare_bench(*older, results, options.tolerance / 100, options.against);
    show(comparison, options, document, text);
    passed = comparison.passed();
  }
  if (!options.out.empty()) write_file(options.out, std::string_view(document.dump(2)));
  if (!options.csv.empty()) write_file(options.csv, std::string_view(to_csv(results)));
  session.finish(document, text);
  return passed ? 0 : 1;
}

}  // namespace

/// `bench startup` and `bench solve.crossover` take few of the options: the others are refused by name.
void refuse_others(const CLI::App& app, const std::string& mode,
                   std::initializer_list<std::string_view> taken) {
  for (const char* name : {"--sizes", "--dtype", "--whole-names", "--no-reference", "--iterations",
                           "--warmup", "--out", "--csv", "--plot", "--against", "--tolerance", "--rounds"})
    if (app.count(name) && std::find(taken.begin(), taken.end(), name) == taken.end())
      throw InputError(fmt::format("{} with bench {}", name, mode), name,
                       fmt::format("one of {}", fmt::join(taken, ", ")));
}

void add_bench(CommandList& commands, CLI::App& root) {
  Command& command = add_command(commands, root, "bench",
                                 "measure cases relative to the copy bandwidth of the device; `bench "
                                 "startup` measures the first kernel");
  const BenchCommandOptions& options = add_options<BenchCommandOptions>(command);
  add_common(command, "lockstep bench engine.copy --device cpu --out today.json --against yesterday.json");
  command.run = [&command, &options] {
    const std::string mode = mode_of(options);
    if (mode == "startup") {
      refuse_others(*command.app, mode, {"--out", "--csv"});
      return run_bench_startup(command.common, options.out, options.csv);
    }
    if (mode == "solve.crossover") {
      refuse_others(*command.app, mode, {"--out", "--csv", "--plot"});
      return run_bench_crossover(command.common, options.out, options.csv, options.plot);
    }
    if (!options.plot.empty())
      throw InputError("--plot without solve.crossover", "--plot", "bench solve.crossover --plot FILE");
    return run(command.common, options);
  };
}

}  // namespace lockstep::cli
