// Tests of residuals: whether their signs follow each other by chance, whether they are normal.
#pragma once

#include <span>

#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// Of weighted residuals by data set, each in the order of its rows in `order`, with the number of free parameters.
FitResidualTests residual_tests(std::span<const double> residuals, std::span<const size_t> rows,
                                std::span<const size_t> order, size_t parameters);

}  // namespace lockstep::solve
