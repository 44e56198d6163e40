// Results of solve as trees of JSON, for programs with nlohmann's library; to_json() gives their texts.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>

namespace lockstep::solve {

struct BundleResult;
struct FitRunResult;
struct MeshRunResult;
struct NistRunResult;
struct PoseGraphResult;
struct SketchRunResult;
struct Summary;

nlohmann::ordered_json document_of(const Summary& result);
nlohmann::ordered_json document_of(const FitRunResult& result);
nlohmann::ordered_json document_of(const SketchRunResult& result);
nlohmann::ordered_json document_of(const NistRunResult& result);
nlohmann::ordered_json document_of(const PoseGraphResult& result);
nlohmann::ordered_json document_of(const MeshRunResult& result);
nlohmann::ordered_json document_of(const BundleResult& result);

}  // namespace lockstep::solve

#endif
