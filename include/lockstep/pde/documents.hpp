// Results of pde as JSON trees of the nlohmann library, if a program has it. to_json() returns the same as text.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>

namespace lockstep::pde {

struct CheckResult;
struct ConvergenceResult;
struct ExampleResult;
struct FileRun;
struct RunResult;
struct StudyResult;

nlohmann::ordered_json document_of(const RunResult& result);
nlohmann::ordered_json document_of(const FileRun& result);
nlohmann::ordered_json document_of(const StudyResult& result);
nlohmann::ordered_json document_of(const ConvergenceResult& result);
nlohmann::ordered_json document_of(const CheckResult& result);
nlohmann::ordered_json document_of(const ExampleResult& result);

}  // namespace lockstep::pde

#endif
