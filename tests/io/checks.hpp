// Tools of several tests of files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The text of the InputError that `work` throws.
template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const InputError& e) { return e.what(); }
  return "no InputError";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lockstep::test
