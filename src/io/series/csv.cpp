#include "io/series/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "io/text/parse_file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr size_t kMostFields = 10'000;

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

constexpr char kOneColumn = '\0';

char csv_separator(std::string_view line) {
  constexpr std::string_view kSeparators = "\t;,";  // by rank
  size_t plain = kSeparators.size(), any = plain;   // the first of them outside of quotes, anywhere
  bool quoted = false, blank = false;
  line = trimmed(line);
  for (const char c : line) {
    quoted ^= c == '"';
    const size_t rank = std::min(kSeparators.find(c), kSeparators.size());
    any = std::min(any, rank);
    if (!quoted) plain = std::min(plain, rank);
    blank |= !quoted && c == ' ';
  }
  const size_t rank = plain < kSeparators.size() ? plain : any;  // of one quoted name, any
  return rank < kSeparators.size() ? kSeparators[rank] : blank ? ' ' : kOneColumn;
}

/// Whether a spreadsheet interprets the text as a formula, regardless of leading apostrophes.
bool is_formula(std::string_view text) {
  double number = 0;
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  return !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos &&
         !parse_double(text, number);
}

/// A field as it was before csv_field() wrote it.
std::string without_mark(std::string text) {
  if (text.starts_with('\'') && is_formula(text)) text.erase(0, 1);
  return text;
}

std::vector<std::string> csv_fields(std::string_view line, char separator, const TextScanner& scan) {
  std::vector<std::string> fields;
  if (separator == ' ') {
    TextScanner words(line, "");
    while (!words.at_line_end() && fields.size() <= kMostFields) fields.emplace_back(words.field());
    return fields;
  }
  for (size_t at = 0;;) {
    while (at < line.size() && line[at] == ' ') ++at;
    if (at < line.size() && line[at] == '"') {
      std::string text;
      for (++at;; ++at) {
        if (at == line.size()) scan.fail("a quote is not closed", "a closing quote on the same line");
        if (line[at] != '"') {
          text += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          text += line[at++];
        } else {
          break;
        }
      }
      ++at;
      while (at < line.size() && line[at] == ' ') ++at;
      if (at < line.size() && line[at] != separator)
        scan.fail("text after a closing quote", "a separator or the end of the line");
      fields.push_back(without_mark(std::move(text)));
    } else {
      const size_t end = std::min(line.find(separator, at), line.size());
      fields.push_back(without_mark(std::string(trimmed(line.substr(at, end - at)))));
      at = end;
    }
    if (at == line.size() || fields.size() > kMostFields) return fields;
    ++at;
  }
}

}  // namespace

void for_each_csv_row(std::string_view text, std::string_view where, const CsvRow& row) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  TextScanner scan(text, std::string(where));
  std::optional<char> separator;
  while (scan.next_line()) {
    const std::string_view line = scan.rest_of_line();
    const bool first = !separator;
    if (first) separator = csv_separator(line);
    const std::vector<std::string> fields = csv_fields(line, *separator, scan);
    if (fields.size() > kMostFields) scan.fail("too many columns", fmt::format("at most {}", kMostFields));
    row(fields, first, scan);
  }
}

std::string csv_field(std::string_view text) {
  std::string field = is_formula(text) ? "'" : "";
  bool quoted = text.starts_with('#');
  for (const char c : text) {
    const bool end = static_cast<unsigned char>(c) < ' ' && c != '\t';  // also of a text, as NUL is
    quoted |= end || c == '"' || c == ',' || c == ';' || c == '\t' || c == ' ';
    field += end ? " " : c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted ? '"' + field + '"' : field;
}

size_t CsvTable::column(const std::string& name, std::string_view where) const {
  const auto numeric = [&](size_t column) {
    if (const auto fault = faults.find(column); fault != faults.end())
      throw InputError(fault->second.what, fault->second.where, "a finite number");
    return column;
  };
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return numeric(size_t(found - names.begin()));
  double number = 0;
  if (parse_double(name, number) && number == std::floor(number) && number >= 1 &&
      number <= double(columns.size()))
    return numeric(size_t(number) - 1);
  throw InputError(fmt::format("no column '{}'", name), where,
                   names.empty() ? fmt::format("a number from 1 to {}", columns.size())
                                 : fmt::format("one of {}", fmt::join(names, ", ")));
}

CsvTable parse_csv(std::string_view text, std::string_view where) {
  CsvTable table;
  std::set<std::string> names;
  size_t bytes = 0;
  for_each_csv_row(
      text, where, [&](const std::vector<std::string>& fields, bool first, const TextScanner& scan) {
        if (first) {
          table.columns.resize(fields.size());
          double ignored = 0;
          if (!std::all_of(fields.begin(), fields.end(),
                           [&](const std::string& f) { return parse_double(f, ignored); })) {
            for (const std::string& name : fields) {
              if (name.empty()) scan.fail("a column without a name", "a name for each column");
              if (!names.insert(name).second)
                scan.fail(fmt::format("column '{}' is repeated", shown(name)), "each name once");
              table.names.push_back(name);
            }
            return;
          }
        }
        if (fields.size() != table.columns.size())
          scan.fail(fmt::format("{} fields", fields.size()),
                    fmt::format("{} as above", table.columns.size()));
        bytes += fields.size() * sizeof(double);
        table.claim.reach(bytes, "its numbers", where);
        for (size_t c = 0; c < fields.size(); ++c) {
          double value = 0;
          if (!parse_double(fields[c], value) || !std::isfinite(value)) {
            const std::string name = table.names.empty() ? std::to_string(c + 1) : table.names[c];
            const std::string what = fields[c].empty()
                                         ? fmt::format("column {} is empty", name)
                                         : fmt::format("column {} is '{}'", name, shown(fields[c]));
            if (table.names.empty()) scan.fail(what, "a finite number");
            table.faults.emplace(c, CsvTable::Fault{what, scan.where()});
            value = std::numeric_limits<double>::quiet_NaN();
          }
          table.columns[c].push_back(value);
        }
      });
  if (table.rows() == 0) throw InputError("no rows of numbers", where, "a table of numbers (CSV)");
  table.claim.settle(2 * bytes);
  return table;
}

CsvTable read_csv(const std::filesystem::path& path) {
  return parse_text_file(path, "a table of numbers (CSV)", &parse_csv);
}

}  // namespace lockstep::io
