// A model's arrays by the names of MODEL.npz.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

/// Throws InputError, naming `where`, for a name that no model has. check() says whether the arrays fit together.
RolloutModel model_of(const std::map<std::string, Array>& arrays, std::string_view where);
/// Those that are there.
std::vector<std::pair<std::string, Array>> arrays_of(const RolloutModel& model);

}  // namespace lockstep::forecast
