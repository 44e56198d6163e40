// A model with its columns and parameters, checked, and as a graph: what fits and the search for starts share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/series/csv.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/datasets/fit.hpp"

namespace lockstep::solve {

/// The model with its parameters told apart from the columns. Throws InputError as fit() does.
struct FitSetup {
  Expression model;
  std::vector<std::string> parameters;
  std::vector<const std::vector<double>*> x;
  const std::vector<double>* y = nullptr;
  const std::vector<double>* sigma = nullptr;

  FitSetup(const io::CsvTable& table, const FitOptions& options);
  double weight(size_t row) const { return sigma ? 1 / (*sigma)[row] : 1; }
};

/// The model over leaves: parameters first, then the columns of x.
struct FitLeaves {
  autodiff::Tape graph;
  autodiff::Value value;

  FitLeaves(const FitSetup& setup, const FitOptions& options);
};

}  // namespace lockstep::solve
