// Results of flow as JSON trees of the nlohmann library, if a program has it. to_json() returns the same as text.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace lockstep::flow {

struct CodecRunResult;
struct Comparison2d;
struct LearnRunResult;
struct PipelineResult;
struct RolloutRunResult;
struct RunResult;
struct SweepResult;

nlohmann::ordered_json document_of(const CodecRunResult& result);
nlohmann::ordered_json document_of(const std::vector<PipelineResult>& results);
nlohmann::ordered_json document_of(const SweepResult& result);
nlohmann::ordered_json document_of(const LearnRunResult& result);
nlohmann::ordered_json document_of(const RolloutRunResult& result);
nlohmann::ordered_json document_of(const RunResult& result);
nlohmann::ordered_json document_of(const Comparison2d& result);

}  // namespace lockstep::flow

#endif
