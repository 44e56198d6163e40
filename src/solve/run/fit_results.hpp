// Picture and page of a fit; its text and JSON are those of run.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/pictures/drawing.hpp"
#include "io/series/csv.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

/// Data, model and bands over the column `x` in its order; over the rows where it is empty.
io::Drawing draw_fit(const FitRunResult& fit, std::span<const io::CsvTable> tables, const std::string& x,
                     const std::string& y);
/// Parameters, statistics, correlations, intervals and the picture, as HTML.
std::string fit_page(const FitRunResult& fit, const io::Drawing& picture);

}  // namespace lockstep::solve
