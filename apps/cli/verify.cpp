// `lockstep verify`: runs cases on a device and compares them with another device or the plain reference.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "registry.hpp"
#include "session.hpp"
#include "verify_gradients.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct VerifyOptions {
  std::vector<std::string> cases;
  std::string against, sizes = "small";
  int64_t seed = 1;
  bool gradients = false;
};

void describe(Schema<VerifyOptions>& s) {
  using O = VerifyOptions;
  s.of("cli::VerifyOptions");
  s.option("case", &O::cases, "cases or prefixes of them, such as engine or urban.svf; all if none is given")
      .flag("CASE")
      .positional();
  s.option("against", &O::against, "what to compare with",
           {{"cpu", "cpu"}, {"interp", "interp"}, {"reference", "reference"}})
      .or_else("cpu; for the CPU itself: interp");
  s.option("sizes", &O::sizes, "small: odd and tiny ones; full: larger ones too",
           {{"small", "small"}, {"full", "full"}});
  s.option("seed", &O::seed, "fixes random inputs").at_least(0);
  s.option(
      "gradients", &O::gradients,
      "differentiate each kernel that the cases launch: forward against reverse mode, and the bits of the "
      "gradient on both devices");
}

ordered_json to_json(const VerifyRow& row) {
  const Comparison& c = row.comparison;
  ordered_json relative_max = ordered_json::array();
  for (const double error : c.relative_max) relative_max.push_back(json_number(error));
  return {{"case", row.name},
          {"size", row.size},
          {"dtype", row.dtype},
          {"elements", c.elements},
          {"differing_bits", c.differing_bits},
          {"differing_elements", c.differing_elements},
          {"max_abs", json_number(c.max_abs)},
          {"mean_abs", json_number(c.mean_abs)},
          {"rel_l2", json_number(c.rel_l2)},
          {"max_ulp", json_number(c.max_ulp)},
          {"finite_equal", json_number(c.finite_equal)},
          {"relative_max", relative_max},
          {"bound", row.bound},
          {"pass", row.pass}};
}

std::string to_text(const VerifyRow& row) {
  const Comparison& c = row.comparison;
  return fmt::format(
      "{:<4}  {:<34} {:>14} {:>5} {:>11} {:>10} {:>10} {:>9.3g} {:>9.3g} {:>9.3g} {:>8.3g} {:>7.5g} {}\n",
      row.pass ? "ok" : "FAIL", row.name, row.size, row.dtype, c.elements, c.differing_bits,
      c.differing_elements, c.max_abs, c.mean_abs, c.rel_l2, c.max_ulp, c.finite_equal, row.bound);
}

// The device to compare with where none is named: for GPUs the CPU, for the CPU the interpreter, for that the
// CPU.
std::string default_against(const Device& device) {
  return device.info().kind == DeviceKind::cpu ? "interp" : "cpu";
}

struct Problems {
  std::vector<const Case*> cases;
  bool full = false;

  std::vector<std::string> sizes(const Case& c) const {
    std::vector<std::string> all = c.small;
    if (full) all.insert(all.end(), c.full.begin(), c.full.end());
    return all;
  }
  int64_t count() const {
    int64_t total = 0;
    for (const Case* c : cases) total += static_cast<int64_t>(sizes(*c).size());
    return total;
  }
};

Against against_of(const std::string& name) {
  return name == "reference" ? Against::reference : name == "interp" ? Against::interp : Against::cpu;
}

/// None to be compared with the reference.
Device open_other(const std::string& name, int64_t threads) {
  if (against_of(name) == Against::reference) return {};
  DeviceOptions exact;
  exact.threads = static_cast<int>(threads);
  try {
    return Device::open(name, exact);
  } catch (const UnsupportedError& e) { throw DeviceUnavailable(e); }
}

struct Outcome {
  ordered_json rows = ordered_json::array(), skipped = ordered_json::array();
  std::string table =
      fmt::format("{:<4}  {:<34} {:>14} {:>5} {:>11} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>7} {}\n", "",
                  "case", "size", "dtype", "elements", "diff.bits", "diff.elem", "max abs", "mean abs",
                  "rel L2", "max ULP", "% equal", "bound");
  int64_t passed = 0, failed = 0;

  void take(const VerifyRow& row) {
    ++(row.pass ? passed : failed);
    rows.push_back(to_json(row));
    table += to_text(row);
  }
  void skip(const std::string& name, const std::string& reason) {
    skipped.push_back({{"case", name}, {"reason", reason}});
    table += fmt::format("skip  {:<34} {}\n", name, reason);
  }
  std::string_view verdict() const {
    return failed ? "FAILED" : passed ? "verified" : "FAILED: nothing was verified";
  }
};

Outcome verify_all(const Problems& problems, const Device& device, Against against, const Device& other,
                   int64_t seed) {
  Progress progress("verify", problems.count(), "problems");
  Outcome all;
  for (const Case* c : problems.cases) {
    std::string reason;
    for (const std::string& size : problems.sizes(*c)) {
      const VerifyRow row = verify_case(*c, size, device, against, other, static_cast<uint64_t>(seed));
      progress.add();
      if (row.skipped.empty())
        all.take(row);
      else
        reason = row.skipped;
    }
    if (!reason.empty()) all.skip(c->name, reason);
  }
  return all;
}

using Clock = std::chrono::steady_clock;

/// The work of the device since `start`.
void note_work(Session& session, const Device& device, Clock::time_point start) {
  const DeviceCounters counters = device.counters();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  session.note({"verify", device.info().name, seconds, counters.bytes_to_device, counters.bytes_from_device,
                counters.launches, 0});
  session.note_device(device.info().name, counters.peak_bytes);
}

int finish_gradients(Session& session, const Problems& problems, const Device& device, const Device& other,
                     int64_t seed) {
  if (!other.valid()) throw InputError("--gradients --against reference", "verify", "cpu or interp");
  const auto start = Clock::now();
  Progress progress("verify", problems.count(), "problems");
  GradientOutcome all;
  for (const Case* c : problems.cases)
    for (const std::string& size : problems.sizes(*c)) {
      for (const GradientRow& row : verify_gradients(*c, size, device, other, static_cast<uint64_t>(seed)))
        all.take(row);
      progress.add();
    }
  note_work(session, device, start);
  const std::string_view verdict = all.failed ? "FAILED" : all.passed ? "verified" : "FAILED: no gradient";
  ordered_json json = all.json();
  json.update({{"device", device.info().name},
               {"against", other.info().name},
               {"passed", all.passed},
               {"failed", all.failed}});
  session.finish(
      json,
      all.table() +
          fmt::format(
              "{} on {} against {}: gradients of {} kernels agree, {} differ, {} have none, {} left out",
              verdict, device.info().name, other.info().name, all.passed, all.failed, all.rejected(),
              all.left_out()));
  return all.failed || !all.passed ? 1 : 0;
}

int run(const CommonOptions& common, VerifyOptions options) {
  const Problems problems{select_cases(options.cases), options.sizes == "full"};
  Session session(common);
  const Device device = session.open_device();
  if (options.against.empty()) options.against = default_against(device);
  const Device other = open_other(options.against, common.threads);
  if (!options.gradients && other.valid() && other.info().name == device.info().name &&
      device.numerics() == Numerics::exact)
    throw InputError(fmt::format("{}, the device itself", options.against), "--against",
                     "another device or reference");
  if (options.gradients) return finish_gradients(session, problems, device, other, options.seed);

  const auto start = Clock::now();
  Outcome all = verify_all(problems, device, against_of(options.against), other, options.seed);
  note_work(session, device, start);
  all.table += fmt::format("{} on {} against {}: {} passed, {} failed, {} skipped", all.verdict(),
                           device.info().name, options.against, all.passed, all.failed, all.skipped.size());
  session.finish({{"device", device.info().name},
                  {"against", options.against},
                  {"cases", all.rows},
                  {"passed", all.passed},
                  {"failed", all.failed},
                  {"skipped", all.skipped}},
                 all.table);
  return all.failed || !all.passed ? 1 : 0;
}

}  // namespace

void add_verify(CommandList& commands, CLI::App& root) {
  Command& command =
      add_command(commands, root, "verify",
                  "compare the results of a device with those of another one or of the plain reference");
  const VerifyOptions& options = add_options<VerifyOptions>(command);
  add_common(command, "lockstep verify engine --device cuda --against cpu");
  command.run = [&command, &options] { return run(command.common, options); };
}

}  // namespace lockstep::cli
