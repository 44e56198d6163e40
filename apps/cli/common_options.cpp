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
           "auto, cpu, cuda[:N], webgpu[:N], interp, or a list of them; auto is the first of cuda, a "
           "hardware webgpu adapter and cpu")
      .shown("NAME")
      .effect(Effect::speed);
  s.option("threads", &O::threads, "CPU threads; 0 = all").at_least(0).at_most(65536).effect(Effect::speed);
  s.option("no_fallback", &O::no_fallback, "a stage that fails on the device is an error (exit code 3)")
      .effect(Effect::display);
  s.option("numerics", &O::numerics, "exact: the same bits on every device; fast: hardware functions",
           {{"exact", "exact"}, {"fast", "fast"}});
  s.option("json", &O::json, "one JSON document on stdout and nothing else").effect(Effect::display);
  s.option("quiet", &O::quiet, "errors and fallbacks only on stderr").effect(Effect::display);
  s.option("check", &O::check,
           "every N-th launch (--check alone: each) also runs on the interpreter, with checks; exit code 1 "
           "where it finds something")
      .at_least(1)
      .at_most(INT32_MAX)
      .off(0)
      .effect(Effect::display);
  s.option("config", &O::config, "options from a TOML file; those of the command line win")
      .file(Use::input)
      .shown("FILE")
      .effect(Effect::display);
  s.text("input_memory", &O::input_memory, "memory for all inputs, such as 8G", kBytesForm, &print_bytes,
         &read_bytes)
      .shown("SIZE")
      .or_else("three quarters of what is free")
      .effect(Effect::speed);
  s.option("telemetry", &O::telemetry, "JSON lines, one object per stage")
      .file(Use::output_file, {".jsonl", ".json", ".ndjson", ".log", ".txt"})
      .shown("FILE")
      .effect(Effect::display);
  s.option("trace", &O::trace, "Chrome trace of the run, for Perfetto")
      .file(Use::output_file, {".json"})
      .shown("FILE")
      .effect(Effect::display);
  s.option("no_record", &O::no_record, "no FILE.run.json next to the results").effect(Effect::display);
  s.option("ranks", &O::ranks,
           "ranks of this process, a thread and a device each; --device cuda:all has one per GPU")
      .at_least(1)
      .at_most(1024)
      .off(0)
      .effect(Effect::speed);
  s.option("share_devices", &O::share_devices, "several ranks of a host may have one device")
      .effect(Effect::speed);
  s.option("wait_limit", &O::wait_limit_s, "how long a rank waits for a sign of life of another")
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
