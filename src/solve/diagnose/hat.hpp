// The orthogonal projection on the columns of J, by instance: what leverages are taken from.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "solve/diagnose/held_normal.hpp"
#include "solve/diagnose/structure.hpp"

namespace lockstep::solve {

/// Rows [first, first + count) of J.
struct InstanceRows {
  int64_t first = 0, count = 0;
};

/// H = J (J^T J)^+ J^T.
struct Hat {
  int64_t rank = 0;
  std::vector<double> fitted;  // H r
  std::vector<int64_t> begin;  // by instance, of its block in `blocks`
  std::vector<double> blocks;  // H between the rows of each instance, symmetric

  Eigen::Map<const Eigen::MatrixXd> block(size_t instance, int64_t rows) const {
    return {blocks.data() + begin[instance], Eigen::Index(rows), Eigen::Index(rows)};
  }
};

/// By QR of each piece; empty where a piece is too large for that.
Hat dense_hat(const Evaluation& at, std::span<const InstanceRows> instances, const Pieces& pieces,
              const Columns& columns);
/// From the entries of the inverse at the places of the factor's. Throws InputError where the factorisation is too large.
Hat sparse_hat(const Evaluation& at, std::span<const InstanceRows> instances, const Columns& columns,
               HeldNormal& normal);

}  // namespace lockstep::solve
