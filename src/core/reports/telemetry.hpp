// Telemetry: JSON lines, one object per stage, for `--telemetry FILE.jsonl`.
#pragma once

#include <filesystem>
#include <memory>

#include "core/reports/fields.hpp"
#include "core/reports/summary.hpp"

namespace lockstep {

/// Writes one line per record. Thread-safe. Does nothing until a file is opened.
class Telemetry {
 public:
  Telemetry();
  ~Telemetry();

  /// The process's own, which commands open and stages record to.
  static Telemetry& global();

  /// Throws InputError if the file cannot be made.
  void open(const std::filesystem::path& path);
  bool enabled() const;

  /// The stage's record, then `extra`, and `time_s`: seconds since the file was opened.
  void record(const StageRecord& stage, const Fields& extra = {});
  /// A line that is no stage, such as the run's totals: `event`, then `fields`.
  void event(std::string_view name, const Fields& fields);

  /// Puts the file in place. Records of a failed run are kept too; the destructor does the same and never
  /// throws.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
