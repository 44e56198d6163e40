// Reports of lanes while a kernel runs: failed checks, and values to inspect. They work on every device. The engine
// stores reports in a buffer and reads it after the launch, so launches of such kernels wait for completion. The first
// 64 reports of a launch are shown, and all are counted.
#pragma once

#include <source_location>
#include <string>

#include "lockstep/kernel/control.hpp"

namespace lockstep {

namespace detail {
/// Appends a report of the lanes in which `when` is true. `value` may be kNone.
void report(ir::Id when, std::string text, bool failure, ir::Id value, const std::source_location& where);
}  // namespace detail

/// The launch throws InputError if the condition is false in a lane. The message contains the text, the kernel, the
/// source line and the lane. The lane continues; put code that must not run in this case into an if_.
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

/// Prints a line to stderr for each lane in which the condition is true: source line, kernel, lane, text.
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
