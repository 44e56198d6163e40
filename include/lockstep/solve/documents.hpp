// Results of solve as JSON trees of the nlohmann library, if a program has it. to_json() returns the same as text.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>

namespace lockstep::solve {

struct BundleResult;
struct DoctorResult;
struct FitRunResult;
struct MeshRunResult;
struct NistRunResult;
struct PoseGraphResult;
struct ProblemReport;
struct SketchRunResult;
struct Summary;

nlohmann::ordered_json document_of(const Summary& result);
nlohmann::ordered_json document_of(const FitRunResult& result);
nlohmann::ordered_json document_of(const SketchRunResult& result);
nlohmann::ordered_json document_of(const NistRunResult& result);
nlohmann::ordered_json document_of(const PoseGraphResult& result);
nlohmann::ordered_json document_of(const MeshRunResult& result);
nlohmann::ordered_json document_of(const BundleResult& result);
nlohmann::ordered_json document_of(const ProblemReport& result);
nlohmann::ordered_json document_of(const DoctorResult& result);

}  // namespace lockstep::solve

#endif
