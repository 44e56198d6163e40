// Trace events in the Chrome JSON format, which Perfetto and chrome://tracing show, for `--trace FILE.json`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/reports/fields.hpp"

namespace lockstep {

/// Collects events of all threads. Does nothing until a file is opened.
class Trace {
 public:
  Trace();
  ~Trace();

  /// The process's own.
  static Trace& global();

  /// Throws InputError if the file cannot be made.
  void open(const std::filesystem::path& path);
  bool enabled() const;
  /// Microseconds since the process's first use of the clock.
  static double now_us();

  /// A finished span. An empty track is the calling thread's; a named one ("cuda:0") gets a row of its own.
  void span(std::string_view name, std::string_view category, double start_us, double duration_us,
            std::string_view track = {}, const Fields& fields = {});
  /// A value over time, drawn as a graph.
  void counter(std::string_view name, double value);

  /// Completes the JSON and puts the file in place; the destructor does the same and never throws.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Called for every scope as well, on the scope's own thread: a profiler's ranges.
struct ScopeListener {
  void (*begin)(const char* name);
  void (*end)();
};

/// Traces the scope it lives in, in the global trace.
class TimedScope {
 public:
  explicit TimedScope(std::string name, std::string category = "host", Fields fields = {});
  ~TimedScope();
  /// From now on, for the rest of the process; null for none.
  static void listen(const ScopeListener* listener);
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

 private:
  const std::string name_, category_;
  const Fields fields_;
  const double start_us_;
  const ScopeListener* const listener_;
};

}  // namespace lockstep
