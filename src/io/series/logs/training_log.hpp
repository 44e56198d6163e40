// Logs of a training run: losses and other numbers by their steps, from CSV, JSON lines or TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/input_memory.hpp"

namespace lockstep::io {

/// One quantity at the steps at which it was written.
struct LogColumn {
  std::string name;
  std::vector<double> steps, values;  // as many of both; steps rise
  /// Why the column cannot be used: the first value that is no finite number, or step that does not rise.
  struct Flaw {
    std::string what, where, expected;
  };
  std::optional<Flaw> flaw;
  bool diverged = false;  // the flaw is a value that is no finite number
};

/// Columns in the order of their first appearance, those of one line of JSON in the order of their names. A flaw of one leaves the others usable: a log may hold texts,
/// times of day, or a quantity that became NaN.
struct TrainingLog {
  std::string where;      // the file, for errors
  std::string step_name;  // of the steps in the file
  std::vector<LogColumn> columns;
  InputClaim claim = {};

  /// Null where there is none.
  const LogColumn* find(std::string_view name) const;
  /// Throws InputError: none of that name, with those that there are, or the column's flaw.
  const LogColumn& column(std::string_view name) const;
  /// The column of the training loss: the first of the usual names that exists, else the only one without flaw.
  const LogColumn& loss() const;
};

/// Rows of a header and numbers; without a header the first column is the step and the others are named "2", "3" ….
/// Empty fields are values that the row does not have. The step is the first of `step`, `global_step`, `iteration`,
/// `iter`, `epoch`. All of these throw InputError, with file and line or record, for files that hold no log.
TrainingLog parse_csv_log(std::string_view text, std::string_view where);
/// One JSON object a line; members of objects inside are named "outer.inner". Null is a value that the row does not
/// have.
TrainingLog parse_json_lines_log(std::string_view text, std::string_view where);
/// Scalars of TensorBoard's event files, by their tags: simple values and tensors of one element. Both checksums of
/// every record are compared.
TrainingLog parse_tfevents_log(std::span<const std::byte> bytes, std::string_view where);

/// Chooses by the name: .csv .tsv .txt, .jsonl .ndjson .json, or one with "tfevents".
TrainingLog read_training_log(const std::filesystem::path& path);
/// The same of the content of such a file.
TrainingLog parse_training_log(std::string_view content, const std::filesystem::path& path);

/// CRC-32C (Castagnoli, RFC 3720), as TensorFlow's records mask it: rotated right by 15 bits, plus 0xa282ead8.
uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace lockstep::io
