// Tables of numbers in text: CSV with commas, semicolons, tabs or blanks between the columns.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/input_memory.hpp"
#include "io/text/text_scanner.hpp"

namespace lockstep::io {

struct CsvTable {
  struct Fault {
    std::string what, where;
  };
  std::vector<std::string> names;  // of the columns; empty without a header
  std::vector<std::vector<double>> columns;
  InputClaim claim = {};
  std::map<size_t, Fault> faults = {};  // the first field that is no finite number, by column

  size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  /// Index of a column of numbers by its name, or by its number from 1. Throws InputError that lists what there is, or
  /// that names the column's fault.
  size_t column(const std::string& name, std::string_view where) const;
};

/// The separator is the first of tab, semicolon and comma that the first line has, else blanks; with none of them there is
/// one column. A first line with a field that is no number is the header; names may be in double quotes. Lines that start with # and
/// empty lines are passed over. Below a header a column may hold texts; its values are NaN, its fault says where. Throws
/// InputError that names file, line and column: fields that are no finite number without a header, rows of another length,
/// names twice, no rows.
CsvTable parse_csv(std::string_view text, std::string_view where);
CsvTable read_csv(const std::filesystem::path& path);

/// Calls `row` with each line's texts, separated as above. `scan` is at the line and names it in errors. A field in
/// double quotes may hold the separator; "" inside is one quote. Separators within quotes do not select the separator.
using CsvRow =
    std::function<void(const std::vector<std::string>& fields, bool first, const TextScanner& scan)>;
void for_each_csv_row(std::string_view text, std::string_view where, const CsvRow& row);

/// A text as a field of a CSV file with commas, which the functions above read back. It is in double quotes where it has
/// to be; line ends become blanks. A text that a spreadsheet would compute (it begins with = + - @ and is no number) gets
/// an apostrophe in front, which readers take away.
std::string csv_field(std::string_view text);

}  // namespace lockstep::io
