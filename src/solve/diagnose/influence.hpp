// The influence of each instance on the estimate, and how far the others contradict it.
#pragma once

#include <optional>

#include "lockstep/solve/doctor.hpp"
#include "solve/diagnose/held_normal.hpp"
#include "solve/diagnose/structure.hpp"

namespace lockstep::solve {

/// influence_by_instance() from an evaluation with residuals and J. `normal` is made where dense algebra does not suffice and it is not there.
/// Throws InputError with the reason where nothing can be said.
Influence influence_at(const Problem& problem, Context& context, const Evaluation& at, const Columns& columns,
                       const Pieces& pieces, std::optional<HeldNormal>& normal);

/// diagnose(), which also gives the influence of all instances that its lists come from; none where
/// ProblemReport::influence_note says why.
ProblemReport diagnose(const Problem& problem, Context& context, int named,
                       std::optional<Influence>& influence);

}  // namespace lockstep::solve
