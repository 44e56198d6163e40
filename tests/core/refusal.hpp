// Refusals, for tests of their texts.
#pragma once

#include <string>

#include "lockstep/error.hpp"

namespace lockstep::test {

/// The text of the InputError that `work` throws; empty where it throws none.
template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const InputError& error) { return error.what(); }
  return "";
}

}  // namespace lockstep::test
