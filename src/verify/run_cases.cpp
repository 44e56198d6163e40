// The program around an author's own cases.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "lockstep/emit.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {

namespace {

struct Usage {
  std::string command = "verify";
  std::vector<std::string> words;
  std::map<std::string, std::string> options;

  std::string option(const std::string& name, const std::string& otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
  std::string prefix() const { return words.empty() ? "" : words[0]; }
};

Usage parse(int argc, const char* const* argv) {
  static const std::map<std::string, std::vector<std::string>> kOptions{{"verify", {"--device", "--against"}},
                                                                        {"bench", {"--device", "--size"}},
                                                                        {"emit", {"--target", "--arch"}},
                                                                        {"list", {}}};
  Usage usage;
  int next = 1;
  if (argc > 1 && kOptions.contains(argv[1])) usage.command = argv[next++];
  const std::vector<std::string>& known = kOptions.at(usage.command);
  for (; next < argc; ++next) {
    const std::string word = argv[next];
    if (!word.starts_with("--")) {
      usage.words.push_back(word);
      continue;
    }
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw InputError(fmt::format("option {}", word), usage.command,
                       known.empty() ? "no option" : fmt::format("{}", fmt::join(known, " or ")));
    if (next + 1 == argc) throw InputError(fmt::format("{} without a value", word), usage.command, "one");
    usage.options[word] = argv[++next];
  }
  const size_t most = usage.command == "list" ? 0 : 1;
  if (usage.words.size() > most)
    throw InputError(fmt::format("'{}'", usage.words[most]), usage.command,
                     "verify [PREFIX], bench [PREFIX], emit KERNEL or list");
  return usage;
}

std::vector<const Case*> chosen(const CaseRegistry& cases, const Usage& usage) {
  if (!usage.words.empty()) return cases.match(usage.prefix());
  std::vector<const Case*> all;
  for (const Case& c : cases.all()) all.push_back(&c);
  return all;
}

int verify_on(const Device& device, const CaseRegistry& cases, const Usage& usage) {
  const std::string against = usage.option("--against", "reference");
  if (against != "reference" && against != "cpu" && against != "interp")
    throw InputError(fmt::format("--against {}", against), "verify", "cpu, interp or reference");
  const Device other = against == "reference" ? device : Device::open(against);
  const Against how = against == "cpu"      ? Against::cpu
                      : against == "interp" ? Against::interp
                                            : Against::reference;
  int64_t passed = 0, failed = 0;
  for (const Case* c : chosen(cases, usage))
    for (const std::string& size : c->small) {
      const VerifyRow row = verify_case(*c, size, device, how, other);
      if (!row.skipped.empty()) {
        fmt::print("skip  {:<32} {:>12}  {}\n", row.name, size, row.skipped);
        continue;
      }
      ++(row.pass ? passed : failed);
      fmt::print("{:<4}  {:<32} {:>12} {:>5}  {} of {} elements differ, max abs {:.3g}, bound {}\n",
                 row.pass ? "ok" : "FAIL", row.name, size, row.dtype, row.comparison.differing_elements,
                 row.comparison.elements, row.comparison.max_abs, row.bound);
    }
  fmt::print("{} on {} against {}: {} passed, {} failed\n",
             failed   ? "FAILED"
             : passed ? "verified"
                      : "FAILED: nothing was verified",
             device.info().name, against, passed, failed);
  return failed || !passed ? 1 : 0;
}

int run_verify(const CaseRegistry& cases, const Usage& usage) {
  if (usage.options.contains("--device"))
    return verify_on(Device::open(usage.option("--device", "")), cases, usage);
  int worst = 0;
  for (const DeviceStatus& status : Device::list())
    if (status.available) worst = std::max(worst, verify_on(Device::open(status.info.name), cases, usage));
  return worst;
}

int run_bench(const CaseRegistry& cases, const Usage& usage) {
  const Device device = Device::open(usage.option("--device", "auto"));
  const double copy = measure_copy_gbps(device);
  fmt::print("{}: copy {:.1f} GB/s\n{:<32} {:>14} {:>11} {:>11} {:>9} {:>9} {:>7} {:>11}\n",
             device.info().description, copy, "case", "size", "median ms", "least ms", "GB/s", "GFLOP/s",
             "% copy", "plain C++");
  for (const Case* c : chosen(cases, usage)) {
    const std::string size = usage.option("--size", "");
    for (const std::string& one : size.empty() ? c->bench : std::vector{size}) {
      const BenchRow row = bench_case(*c, one, device, copy);
      if (!row.skipped.empty())
        fmt::print("skip  {:<26} {:>14}  {}\n", row.name, one, row.skipped);
      else
        fmt::print("{:<32} {:>14} {:>11.4f} {:>11.4f} {:>9.1f} {:>9.1f} {:>7.1f} {:>11.4f}\n", row.name, one,
                   row.median_ms, row.min_ms, row.gbps, row.gflops, 100 * row.share_of_copy,
                   row.reference_ms);
    }
  }
  return 0;
}

int run_emit(const CaseRegistry& cases, const Usage& usage) {
  if (usage.words.empty()) throw InputError("no kernel", "emit", "a name that `list` prints");
  for (const Case& c : cases.all())
    for (const Kernel& kernel : c.kernels ? c.kernels() : std::vector<Kernel>{})
      if (kernel.name() == usage.words[0]) {
        const std::string text =
            emit(kernel, usage.option("--target", "ir"), Numerics::exact, usage.option("--arch", ""));
        std::fwrite(text.data(), 1, text.size(), stdout);
        return 0;
      }
  throw InputError(fmt::format("unknown kernel '{}'", usage.words[0]), "emit", "a name that `list` prints");
}

int run_list(const CaseRegistry& cases) {
  for (const Case& c : cases.all()) {
    fmt::print("case {}\n", c.name);
    for (const Kernel& kernel : c.kernels ? c.kernels() : std::vector<Kernel>{})
      fmt::print("  kernel {}\n", kernel.name());
  }
  return 0;
}

}  // namespace

int run_cases(int argc, const char* const* argv, const CaseRegistry& cases) try {
  const Usage usage = parse(argc, argv);
  if (usage.command == "bench") return run_bench(cases, usage);
  if (usage.command == "emit") return run_emit(cases, usage);
  if (usage.command == "list") return run_list(cases);
  return run_verify(cases, usage);
} catch (const DeviceError& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 3;
} catch (const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}

}  // namespace lockstep
