// Pose graphs of worlds.hpp as one problem that is minimised at once.
#pragma once

#include <Eigen/Sparse>
#include <span>
#include <vector>

#include "lockstep/solve/evaluation.hpp"
#include "worlds.hpp"

namespace lockstep::solve::test {

/// The edges as one problem, minimised from these values.
struct Batch {
  Problem problem;
  BlockSet poses;
  double cost = 0;
  Batch(Context& context, std::span<const Edge2> edges, const std::vector<double>& values,
        const RobustLoss& loss = {}, std::span<const double> weights = {}) {
    poses = problem.add_blocks("poses", se2(), values);
    problem.fix(poses, 0);
    std::vector<int32_t> indices;
    std::vector<double> data;
    for (const Edge2& e : edges) {
      indices.insert(indices.end(), {e.from, e.to});
      const std::vector<double> row = row2(e.z);
      data.insert(data.end(), row.begin(), row.end());
    }
    const TermSet terms = problem.add_terms(se2_between_log(loss), {poses, poses}, indices, data);
    if (!weights.empty()) problem.weigh(terms, weights);
    Options options;
    options.method = Method::gn, options.function_tolerance = 0, options.parameter_tolerance = 1e-15;
    cost = minimize(problem, context, options).final_cost;
    // Under a loss steps shrink by a factor only.
    for (int k = 0; k < 2 || (k < 500 && last_step > 1e-12); ++k) polish(context);
    if (loss.kind != RobustLoss::Kind::none) cost = evaluate(problem, context).cost;
  }
  double last_step = 0;
  /// A step whether the cost still falls or not: minimize() ends where it no longer does, which is at its rounding.
  void polish(Context& context) {
    const Evaluation e = evaluate(problem, context);
    std::vector<Eigen::Triplet<double>> entries;
    for (int64_t r = 0; r < e.jacobian.rows; ++r)
      for (int64_t k = e.jacobian.first[size_t(r)]; k < e.jacobian.first[size_t(r) + 1]; ++k)
        entries.emplace_back(int(r), e.jacobian.column[size_t(k)], e.jacobian.values[size_t(k)]);
    Eigen::SparseMatrix<double> j(e.jacobian.rows, e.jacobian.columns);
    j.setFromTriplets(entries.begin(), entries.end());
    const Eigen::VectorXd step =
        Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>>(j.transpose() * j)
            .solve(j.transpose() * Eigen::Map<const Eigen::VectorXd>(e.residuals.data(), j.rows()));
    last_step = step.size() > 0 ? step.cwiseAbs().maxCoeff() : 0;
    for (Eigen::Index k = 0; k < step.size(); ++k) problem.values(poses)[size_t(k) + 3] -= step(k);
  }
};

}  // namespace lockstep::solve::test
