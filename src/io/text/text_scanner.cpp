#include "io/text/text_scanner.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/platform/from_chars.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool is_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace

std::string shown(std::string_view field) {
  std::string text(field.substr(0, 40));
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return field.size() > 40 ? text + "…" : text;
}

bool parse_double(std::string_view field, double& value) {
  const char *begin = field.data(), *end = begin + field.size();
  if (field.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [at, error] = platform::from_chars(begin, end, value);
  if (at != end || begin == end) return false;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not distinguish overflow from underflow.
    value = std::strtod(std::string(begin, end).c_str(), nullptr);
    return true;
  }
  return error == std::errc();
}

TextScanner::TextScanner(std::string_view text, std::string where, TextStyle style)
    : at_(text.data()), end_(text.data() + text.size()), where_(std::move(where)), style_(style) {
  if (text.starts_with("\xef\xbb\xbf")) at_ += 3;
}

std::string TextScanner::where() const { return fmt::format("{}:{}", where_, std::max<int64_t>(line_, 1)); }

void TextScanner::fail(std::string_view what, std::string_view expected) const {
  throw InputError(what, where(), expected);
}

void TextScanner::skip_break() {
  if (*at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n') ++at_;
  ++at_;
}

bool TextScanner::at_continuation() const {
  return style_.continued_lines && *at_ == '\\' && at_ + 1 != end_ && is_break(at_[1]);
}

bool TextScanner::skip_continuation() {
  if (!at_continuation()) return false;
  ++at_;
  skip_break();
  ++line_;
  return true;
}

void TextScanner::skip_blanks() {
  while (at_ != end_) {
    if (is_blank(*at_))
      ++at_;
    else if (!skip_continuation())
      break;
  }
  if (style_.trailing_comments && at_ != end_ && *at_ == '#')
    while (at_ != end_ && !is_break(*at_)) ++at_;
}

bool TextScanner::next_line(char comment) {
  while (true) {
    if (in_line_) {
      while (at_ != end_ && !is_break(*at_))
        if (!skip_continuation()) ++at_;
      if (at_ == end_) return in_line_ = false;
      skip_break();
    }
    if (at_ == end_) return in_line_ = false;
    in_line_ = true;
    ++line_;
    skip_blanks();
    if (at_ != end_ && !is_break(*at_) && *at_ != comment) return true;
  }
}

std::string_view TextScanner::field() {
  skip_blanks();
  const char* begin = at_;
  while (at_ != end_ && !is_blank(*at_) && !is_break(*at_) && !at_continuation()) ++at_;
  return {begin, size_t(at_ - begin)};
}

std::string_view TextScanner::rest_of_line() {
  skip_blanks();
  const char* begin = at_;
  while (at_ != end_ && !is_break(*at_)) ++at_;
  const char* last = at_;
  while (last != begin && is_blank(last[-1])) --last;
  return {begin, size_t(last - begin)};
}

bool TextScanner::at_line_end() {
  skip_blanks();
  return at_ == end_ || is_break(*at_);
}

double TextScanner::to_number(std::string_view field, const char* what) const {
  double value = 0;
  if (field.empty()) fail(fmt::format("{} is missing", what), "a number");
  if (!parse_double(field, value)) fail(fmt::format("{} is '{}'", what, shown(field)), "a number");
  if (!std::isfinite(value)) fail(fmt::format("{} is '{}'", what, shown(field)), "a finite number");
  return value;
}

int64_t TextScanner::to_integer(std::string_view field, const char* what, int64_t low, int64_t high) const {
  int64_t value = 0;
  const char *begin = field.data(), *end = begin + field.size();
  if (field.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [at, error] = std::from_chars(begin, end, value);
  if (at != end || begin == end || error != std::errc() || value < low || value > high) {
    const bool any = low == std::numeric_limits<int64_t>::min();
    fail(field.empty() ? fmt::format("{} is missing", what) : fmt::format("{} is '{}'", what, shown(field)),
         any ? std::string("a whole number")
         : high == std::numeric_limits<int64_t>::max()
             ? fmt::format("a whole number of at least {}", low)
             : fmt::format("a whole number from {} to {}", low, high));
  }
  return value;
}

double TextScanner::number(const char* what) { return to_number(field(), what); }
int64_t TextScanner::integer(const char* what, int64_t low, int64_t high) {
  return to_integer(field(), what, low, high);
}

void TextScanner::end_line(const char* expected) {
  if (const std::string_view more = field(); !more.empty())
    fail(fmt::format("'{}' follows", shown(more)), expected);
}

bool TextScanner::at_file_end() {
  if (!in_line_) {
    in_line_ = true;
    ++line_;
  }
  while (true) {
    skip_blanks();
    if (at_ == end_) return true;
    if (!is_break(*at_)) return false;
    skip_break();
    ++line_;
  }
}
double TextScanner::number_anywhere(const char* what) {
  if (at_file_end()) fail(fmt::format("the file ends before {}", what), "a number");
  return to_number(field(), what);
}
int64_t TextScanner::integer_anywhere(const char* what, int64_t low, int64_t high) {
  if (at_file_end()) fail(fmt::format("the file ends before {}", what), "a whole number");
  return to_integer(field(), what, low, high);
}

}  // namespace lockstep::io
