// Results of pde's commands as people read them, and as JSON where the library has none.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/pde/commands.hpp"

namespace lockstep::cli {

std::string text_of(const pde::FileRun& run);
std::string text_of(const pde::CheckResult& result);
std::string text_of(const pde::StudyResult& result);
std::string text_of(const pde::ExampleResult& result);
std::string text_of(const pde::ConvergenceResult& result);
nlohmann::ordered_json json_of(const pde::StudyResult& result, const pde::StudyOptions& options);
nlohmann::ordered_json json_of(const pde::ConvergenceResult& result, const pde::ConvergenceOptions& options);

}  // namespace lockstep::cli
