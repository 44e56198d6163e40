#pragma once

#include <string>

#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

/// One object: `latents`, `fields`, `horizon`.
std::string scores_json(const SurrogateScores& latents, const FieldScores& fields);

}  // namespace lockstep::flow
