// Fields of a text file, line by line, with errors that name file and line.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep::io {

/// The syntax of a format besides fields and line ends.
struct TextStyle {
  bool trailing_comments = false;  ///< from a '#' before a field to the end of the line
  bool continued_lines = false;    ///< a '\\' at the end of a line joins the next one to it
};

/// Traverses a text that outlives it. Fields are separated by spaces and tabs; lines end in \n, \r\n or \r. A
/// byte order mark at the start is skipped.
class TextScanner {
 public:
  /// `where` is the name of the file in errors.
  TextScanner(std::string_view text, std::string where, TextStyle style = {});

  /// Moves to the next line that has a field and does not start with `comment`; false at the end of the file.
  bool next_line(char comment = '#');
  /// The next field of the line; empty at its end.
  std::string_view field();
  /// The rest of the line without the spaces around it.
  std::string_view rest_of_line();
  /// True where the line has no further field.
  bool at_line_end();

  /// The next field of the line as a finite number. `what` names it in errors ("the x coordinate").
  double number(const char* what);
  int64_t integer(const char* what, int64_t low = std::numeric_limits<int64_t>::min(),
                  int64_t high = std::numeric_limits<int64_t>::max());
  /// Refuses further fields.
  void end_line(const char* expected);

  /// The same over line ends, for formats where they mean nothing.
  double number_anywhere(const char* what);
  int64_t integer_anywhere(const char* what, int64_t low, int64_t high);
  /// Skips blanks and line ends; true where nothing follows.
  bool at_file_end();

  /// Number of the current line, from 1.
  int64_t line() const { return line_; }
  std::string where() const;
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;

 private:
  void skip_blanks();
  void skip_break();
  bool at_continuation() const;
  /// Passes over a '\\' and the line end behind it.
  bool skip_continuation();
  double to_number(std::string_view field, const char* what) const;
  int64_t to_integer(std::string_view field, const char* what, int64_t low, int64_t high) const;

  const char* at_;
  const char* const end_;
  int64_t line_ = 0;
  bool in_line_ = false;
  const std::string where_;
  const TextStyle style_;
};

/// A field as an error shows it: at most 40 characters, those that cannot be printed as '?'.
std::string shown(std::string_view field);

/// A whole field as a number; false where it is none. Infinities and NaN are read; magnitudes below the
/// smallest double are 0.
bool parse_double(std::string_view field, double& value);

}  // namespace lockstep::io
