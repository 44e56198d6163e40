// Options of every command.
#include <CLI/CLI.hpp>

#include "bound_options.hpp"
#include "core/schema/bytes.hpp"

namespace lockstep::cli {

void describe(Schema<CommonOptions>& s) {
  using O = CommonOptions;
  using Use = Option::Use;
  s.of("cli::CommonOptions");
  s.heading("Common options");
  s.option("device", &O::device,
           "auto, cpu, cuda[:N], webgpu[:N], interp, or several separated by commas; auto: the first of "
           "CUDA, WebGPU on hardware and the CPU that works")
      .shown("NAME")
      .effect(Effect::speed);
  s.option("threads", &O::threads, "CPU threads; 0: all").at_least(0).at_most(65536).effect(Effect::speed);
  s.option("no_fallback", &O::no_fallback,
           "a failure of the device is an error (exit code 3), without a fallback to the CPU")
      .effect(Effect::display);
  s.option("numerics", &O::numerics, "exact: bit-identical on the CPU and CUDA; fast: hardware functions",
           {{"exact", "exact"}, {"fast", "fast"}});
  s.option("json", &O::json, "print one JSON document on stdout and nothing else").effect(Effect::display);
  s.option("quiet", &O::quiet, "print no progress; results, warnings, errors and fallbacks remain")
      .effect(Effect::display);
  s.option("check", &O::check,
           "also run every N-th launch (without N: every launch) on the interpreter, with checks; exit code "
           "1 if one fails")
      .at_least(1)
      .at_most(INT32_MAX)
      .off(0)
      .effect(Effect::display);
  s.option("config", &O::config, "read options from a TOML file; the command line takes precedence")
      .file(Use::input)
      .shown("FILE")
      .effect(Effect::display);
  s.text("input_memory", &O::input_memory, "limit of the memory for inputs, such as 8G", kBytesForm,
         &print_bytes, &read_bytes)
      .shown("SIZE")
      .or_else("three quarters of the free memory")
      .effect(Effect::speed);
  s.option("telemetry", &O::telemetry, "write JSON lines, one object per stage")
      .file(Use::output_file, {".jsonl", ".json", ".ndjson", ".log", ".txt"})
      .shown("FILE")
      .effect(Effect::display);
  s.option("trace", &O::trace, "write a Chrome trace of the run, for Perfetto")
      .file(Use::output_file, {".json"})
      .shown("FILE")
      .effect(Effect::display);
  s.option("no_record", &O::no_record, "do not write FILE.run.json next to the results")
      .effect(Effect::display);
  s.option("ranks", &O::ranks,
           "ranks of this process, one thread and one device each; --device cuda:all: one rank per GPU")
      .at_least(1)
      .at_most(1024)
      .off(0)
      .effect(Effect::speed);
  s.option("share_devices", &O::share_devices, "several ranks of a host may share a device")
      .effect(Effect::speed);
  s.option("wait_limit", &O::wait_limit_s, "time after which a rank that does not respond is considered lost")
      .member("wait_limit_s")
      .unit("s")
      .above(0)
      .effect(Effect::display);
}

void add_common(Command& command, const std::string& example) {
  const auto bound = std::make_shared<BoundOptions>();
  bound->list = &schema_of<CommonOptions>();
  bound->options = &command.common;
  command.bound_common = bound;
  std::set<std::string> without;
  if (!keeps_file_record(*command.app)) without.insert("no_record");
  if (!command.over_ranks) without.insert({"ranks", "share_devices", "wait_limit"});
  cli::bind(command, *bound, without);  // not std::bind, which a std::set finds
  command.app->footer("Example:\n  " + example);
}

}  // namespace lockstep::cli
