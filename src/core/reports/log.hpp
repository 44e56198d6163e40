// Log lines, bare lines and the progress line, all on stderr through one writer so that they never
// interleave.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace lockstep::logging {

enum class Level { debug, info, warning, error, off };

/// Lines below this level are dropped (default: info). `--quiet` sets `error`.
void set_level(Level level);
Level level();

/// One log line, `[lockstep] <text>`, warnings and errors marked. Never throws.
void message(Level level, std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::debug) message(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::info) message(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::warning) message(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::error) message(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

/// The text with control characters, which could steer a terminal, as '?'; line ends and tabs stay.
std::string printable(std::string_view text);

/// One line on stderr, without prefix or colour, at any log level; printable() as all lines are.
void line(std::string_view text);

/// `[GPU] <stage> failed: <reason>. CPU fallback.`: line breaks in the reason become spaces, its final stop
/// goes.
std::string fallback_line(std::string_view stage, std::string_view reason);
/// Prints that line, also under `--quiet`.
void fallback(std::string_view stage, std::string_view reason);

/// The line that stays below the log while work continues; empty removes it. Nothing unless stderr is a
/// terminal.
void set_status(std::string_view text);
/// True if stderr is a terminal that can redraw a line.
bool is_terminal();
/// Columns of that terminal, 80 if unknown.
int terminal_columns();

}  // namespace lockstep::logging
