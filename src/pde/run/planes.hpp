// Planes of all ranks, joined on rank 0; ranks that run the same.
#pragma once

#include "pde/run/fields.hpp"

namespace lockstep::pde {

/// Joins the own planes of all ranks, arrays (…, own planes, ny, nx), on rank 0; empty elsewhere. Collective.
Array on_lead(const DividedLoss& loss, const parallel::Group& group, const Array& own);
void on_lead(const DividedLoss& loss, const parallel::Group& group,
             std::vector<std::pair<std::string, Array>>& own);

/// Throws GroupError, on every rank, where options or arrays differ between ranks.
void expect_same_run(const parallel::Group& group, const Fields& fields, const RunOptions& options);

}  // namespace lockstep::pde
