// Options of surrogates that several commands have.
#pragma once

#include <string>

#include "lockstep/flow/pipeline.hpp"
#include "options.hpp"

namespace lockstep::cli {

struct SurrogateArguments {
  std::string method = "ridge", rollout = "doubling";
  double train_share = 0.5, vectors = 1, lambda = 1e-3;
  int64_t delays = 1, rank = 0;
};

void add_surrogate_options(CLI::App& app, SurrogateArguments& arguments);
/// Refuses options that nothing would use.
void check_surrogate_options(const CLI::App& app, const SurrogateArguments& arguments);
flow::SurrogateOptions surrogate_options(const SurrogateArguments& arguments);
flow::RolloutMode rollout_mode(const SurrogateArguments& arguments);
/// A line or two: errors beside what costs nothing, and the horizon.
std::string scores_summary(const flow::SurrogateScores& latents, const flow::FieldScores& fields);

}  // namespace lockstep::cli
