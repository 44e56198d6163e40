// Measured crossovers as data: for a computation, a device and a class of problems, the variants by speed from a size on.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::variants {

/// From `from` on the axis on, up to the next step, variants rank in this order; those left out follow.
struct TableStep {
  double from = 0;
  std::vector<std::string> ranking;
};

struct TableRow {
  std::string computation;
  std::string device;            // how the device's model begins, "NVIDIA H200"; or a kind, "cuda"; or "any"
  std::string of;                // the class of problems; empty: all
  std::string axis;              // empty: one step for all sizes
  std::string numerics;          // "exact" or "fast"; empty: both
  std::vector<TableStep> steps;  // ascending, the first from 0
  std::vector<double> values;  // instead of steps: measured positive numbers, whose meaning their user states
};

class Table {
 public:
  /// Throws InputError, naming `where`, for a text that is no table.
  static Table parse(std::string_view text, std::string_view where);
  /// Compiled in: crossovers.inc.
  static const Table& shipped();
  /// user_file(), read at first use. Empty where there is none; where it cannot be trusted or read, a line says so.
  static const Table& user();

  std::string text() const;
  const std::vector<TableRow>& rows() const { return rows_; }
  /// Adds a row, or replaces that of the same computation, device, class and numerics.
  void put(TableRow row);

 private:
  std::vector<TableRow> rows_;
};

/// $LOCKSTEP_VARIANTS, else $XDG_CONFIG_HOME/lockstep/variants.json, else ~/.config/lockstep/variants.json. Empty without a
/// home.
std::filesystem::path user_file();
/// The table of a file. Throws InputError where others could have written it, and for what is no table; empty where there is no
/// file.
Table read_table(const std::filesystem::path& file);
/// For this user alone; missing folders are made. Throws InputError.
void write_table(const std::filesystem::path& file, const Table& table);

}  // namespace lockstep::variants
