// The check that values which are used together are of one graph.
#pragma once

#include <span>
#include <string>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// A value of `graph` that the others are compared with, and what it is called: "output", "input" …
struct Owner {
  const Value& value;
  std::string_view what;
};
/// Throws InputError where one of `values` is empty or of another graph than `owner`, naming both.
void expect_one_tape(const Owner& owner, std::span<const Value> values, std::string_view what,
                     std::string_view where);

}  // namespace lockstep::autodiff
