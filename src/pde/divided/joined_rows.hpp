// Rows of numbers whose parts the ranks have.
#pragma once

#include <vector>

#include "lockstep/parallel.hpp"

namespace lockstep::pde {

/// The whole rows from what each rank has, (rows, its parts), in the order of the ranks.
std::vector<double> joined_rows(const std::vector<parallel::Bytes>& of_ranks, size_t rows);

}  // namespace lockstep::pde
