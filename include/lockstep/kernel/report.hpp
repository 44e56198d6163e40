// Reports of lanes while a kernel runs: checks, and values to inspect. They work on every device. The engine keeps
// reports in a buffer that a launch reads after it has completed, so a launch of such a kernel waits. The first 64
// reports that reach the buffer are shown, and all are counted.
#pragma once

#include <source_location>
#include <string>

#include "lockstep/kernel/control.hpp"

namespace lockstep {

namespace detail {
/// Appends a report of the lanes in which `when` is true. `value` may be kNone.
void report(ir::Id when, std::string text, bool failure, ir::Id value, const std::source_location& where);
}  // namespace detail

/// The launch throws InputError if the condition is false in a lane, with the text, the kernel, the source line and
/// the lane. The lane continues: put code that must then not run into an if_.
inline void check(const Val<bool>& condition, std::string text,
                  std::source_location where = std::source_location::current()) {
  detail::report((!condition).id(), std::move(text), true, ir::kNone, where);
}
/// The same, with a value of the first such lane.
template <detail::HasValue A>
void check(const Val<bool>& condition, std::string text, const A& value,
           std::source_location where = std::source_location::current()) {
  detail::report((!condition).id(), std::move(text), true, detail::id_of<detail::expr_t<A>>(value), where);
}

/// One line on stderr for each lane where the condition is true: source line, kernel, lane, text.
inline void print_if(const Val<bool>& condition, std::string text,
                     std::source_location where = std::source_location::current()) {
  detail::report(condition.id(), std::move(text), false, ir::kNone, where);
}
/// The same with a value after the text.
template <detail::HasValue A>
void print_if(const Val<bool>& condition, std::string text, const A& value,
              std::source_location where = std::source_location::current()) {
  detail::report(condition.id(), std::move(text), false, detail::id_of<detail::expr_t<A>>(value), where);
}

}  // namespace lockstep
