// Results of flow's commands as people read them.
#pragma once

#include <string>

#include "lockstep/flow/pipeline.hpp"

namespace lockstep::cli {

std::string text_of(const flow::RunResult& result);
std::string text_of(const flow::Moment& moment, int64_t steps, double speed);
std::string text_of(const flow::Comparison2d& comparison);
std::string text_of(const flow::CodecRunResult& result);
std::string text_of(const flow::LearnRunResult& result);
std::string text_of(const flow::RolloutRunResult& result);
std::string text_of(const flow::SweepResult& result);

}  // namespace lockstep::cli
