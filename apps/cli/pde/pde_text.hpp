// Results of pde's commands as people read them.
#pragma once

#include <string>

#include "lockstep/pde/commands.hpp"

namespace lockstep::cli {

std::string text_of(const pde::FileRun& run);
std::string text_of(const pde::CheckResult& result);
std::string text_of(const pde::StudyResult& result);
std::string text_of(const pde::ExampleResult& result);
std::string text_of(const pde::ConvergenceResult& result);

}  // namespace lockstep::cli
