// Regression, common to learning on the host and on a device: small matrices in f64.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "lockstep/flow/surrogate.hpp"

namespace lockstep::flow {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Columns = Eigen::MatrixXd;

Matrix matrix_of(const Array& array);
Array array_of(const Matrix& m);

/// Below this share of the largest one a singular value of a rows x columns matrix is rounding.
inline double rounding_of(int64_t rows, int64_t columns) { return 1e-15 * double(std::max(rows, columns)); }
/// Right singular vectors of the rows that the options keep, as rows of the result.
Matrix singular_basis(const Matrix& rows, double rounding, const SurrogateOptions& options);
/// Of a Gram matrix: the largest eigenvalue, and the eigenvectors of those above `least` of it (or of a number) over
/// the root of the eigenvalue, as columns.
struct GramVectors {
  double largest = 0;
  Matrix scaled;
};
GramVectors gram_vectors(const Matrix& gram, double least_share, double least);
/// L^-T of gram = L L^T.
Matrix cholesky_inverse(const Matrix& gram);
Matrix product(const Matrix& a, const Matrix& b);

/// A model with options, size and training frames. Throws InputError for bad options and too few frames.
Surrogate begun(int64_t frames, int64_t latent_size, const SurrogateOptions& options);
/// Rank and step of the model by regression on the coordinates (train_frames, r).
void fit(Surrogate& model, const Matrix& coordinates);

}  // namespace lockstep::flow
