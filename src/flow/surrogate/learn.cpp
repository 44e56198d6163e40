// Regression of latents on the host, in f64.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "flow/surrogate/regression.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

void check_latents(const Array& latents) {
  const char* where = "flow surrogate";
  if (latents.rank() != 2 || (latents.storage() != Storage::f32 && latents.storage() != Storage::f64))
    throw InputError(fmt::format("latents of {} {}", name(latents.storage()), to_string(latents.shape())),
                     where, "f32 or f64 (frames, numbers)");
  if (latents.size(1) < 1 || latents.size(1) > kMaxLatent)
    throw InputError(fmt::format("{} numbers a frame", latents.size(1)), where,
                     fmt::format("1 to {}", kMaxLatent));
  if (const auto at = first_not_finite(latents.packed()))
    throw InputError(fmt::format("a latent is not finite at {}", index_text(latents.shape(), *at)), where,
                     "finite numbers");
}

/// How many of the singular values, largest first, the options keep: 1 or more.
Eigen::Index kept_rank(const Eigen::VectorXd& s, double rounding, const SurrogateOptions& o) {
  Eigen::Index above = 0;
  while (above < s.size() && s(above) > rounding * s(0)) ++above;
  Eigen::Index rank = std::max<Eigen::Index>(above, 1);
  if (o.rank > 0) return std::min<Eigen::Index>(rank, o.rank);
  if (o.share == 1) return rank;
  double sum = 0;
  for (Eigen::Index k = 0; k < rank; ++k) {
    sum += s(k) * s(k);
    if (sum >= o.share * s.squaredNorm()) return k + 1;
  }
  return rank;
}

/// W of least |X W - Y|^2 + lambda |W|^2; the shortest one where lambda is 0.
Matrix regression(const Matrix& x, const Matrix& y, double lambda) {
  if (lambda > 0 && x.rows() >= x.cols()) {
    Columns gram = x.transpose() * x;
    gram.diagonal().array() += lambda;
    return gram.llt().solve(Columns(x.transpose() * y));
  }
  if (lambda > 0) {
    Columns gram = x * x.transpose();
    gram.diagonal().array() += lambda;
    return x.transpose() * gram.llt().solve(Columns(y));
  }
  const Eigen::BDCSVD<Columns> svd(x, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd& s = svd.singularValues();
  const double rounding = 1e-15 * double(std::max(x.rows(), x.cols())) * s(0);
  Eigen::VectorXd inverse = s;
  for (Eigen::Index k = 0; k < s.size(); ++k) inverse(k) = s(k) > rounding ? 1 / s(k) : 0;
  return svd.matrixV() * (inverse.asDiagonal() * (svd.matrixU().transpose() * y));
}

}  // namespace

Matrix matrix_of(const Array& array) {
  const Array packed = array.to(Storage::f64).packed();
  return Eigen::Map<const Matrix>(packed.as<double>().data(), packed.size(0), packed.size(1));
}
Array array_of(const Matrix& m) {
  return Array::of(std::vector<double>(m.data(), m.data() + m.size()), {m.rows(), m.cols()});
}

Matrix singular_basis(const Matrix& rows, double rounding, const SurrogateOptions& o) {
  const Eigen::BDCSVD<Columns> svd(rows.transpose(), Eigen::ComputeThinU);
  return svd.matrixU().leftCols(kept_rank(svd.singularValues(), rounding, o)).transpose();
}

GramVectors gram_vectors(const Matrix& gram, double least_share, double least) {
  const Eigen::SelfAdjointEigenSolver<Columns> eigen{Columns(gram)};
  const Eigen::VectorXd& values = eigen.eigenvalues();  // ascending
  GramVectors g;
  g.largest = values(values.size() - 1);
  least = std::max(least, least_share * g.largest);
  Eigen::Index kept = 0;
  while (kept < values.size() && values(values.size() - 1 - kept) > least) ++kept;
  g.scaled = eigen.eigenvectors().rightCols(kept);
  for (Eigen::Index k = 0; k < kept; ++k) g.scaled.col(k) /= std::sqrt(values(values.size() - kept + k));
  return g;
}

Matrix cholesky_inverse(const Matrix& gram) {
  const Eigen::LLT<Columns> factor{Columns(gram)};
  // gram^-1 = L^-T L^-1, and L^-T = gram^-1 L.
  return factor.solve(Columns(factor.matrixL()));
}

Matrix product(const Matrix& a, const Matrix& b) { return a * b; }

Surrogate begun(int64_t frames, int64_t latent_size, const SurrogateOptions& options) {
  schema_of<SurrogateOptions>().check(&options);
  Surrogate model;
  model.options = options;
  model.latent_size = latent_size;
  model.train_frames = int64_t(std::floor(options.train_share * double(frames) + 1e-9));
  if (model.train_frames < options.delays + 1 || model.train_frames >= frames)
    throw InputError(fmt::format("{} of {} frames to learn from", model.train_frames, frames),
                     "flow surrogate", fmt::format("{} or more, and one held out", options.delays + 1));
  return model;
}

void fit(Surrogate& model, const Matrix& coordinates) {
  const int64_t delays = model.options.delays, r = model.rank = coordinates.cols(), size = model.state_size(),
                pairs = model.train_frames - delays;
  if (size > kMaxState)
    throw InputError(fmt::format("a state of {} delays of {} numbers", delays, r), "flow surrogate",
                     fmt::format("at most {} numbers; a smaller rank or share", kMaxState));
  Matrix x(pairs, size);
  for (int64_t d = 0; d < delays; ++d) x.middleCols(d * r, r) = coordinates.middleRows(d, pairs);
  const bool dmd = model.options.method == SurrogateMethod::dmd;
  const Matrix weights = regression(x, coordinates.bottomRows(pairs), dmd ? 0 : model.options.lambda);
  Matrix step = Matrix::Zero(size, size);
  // All frames but the oldest move one place; the newest comes from the weights.
  for (int64_t k = 0; k + r < size; ++k) step(k + r, k) = 1;
  step.rightCols(r) = weights;
  model.step = array_of(step);
}

Surrogate learn(const Array& latents, const SurrogateOptions& options) {
  schema_of<SurrogateOptions>().check(&options);
  check_latents(latents);
  Surrogate model = begun(latents.size(0), latents.size(1), options);
  const Matrix train = matrix_of(latents.slice(0, 0, model.train_frames));
  const bool dmd = options.method == SurrogateMethod::dmd;
  const Matrix basis = singular_basis(dmd ? Matrix(train.topRows(train.rows() - 1)) : train,
                                      rounding_of(train.rows() - int64_t(dmd), train.cols()), options);
  fit(model, product(train, basis.transpose()));
  model.basis = array_of(basis);
  model.climatology = array_of(train.colwise().mean()).reshape({model.latent_size});
  model.last = array_of(train.bottomRows(options.delays));
  return model;
}

std::vector<std::complex<double>> eigenvalues(const Surrogate& model) {
  const Eigen::EigenSolver<Columns> solver(matrix_of(model.step), false);
  if (solver.info() != Eigen::Success)
    throw InputError("eigenvalues that do not converge", "flow surrogate", "a finite operator");
  const auto& found = solver.eigenvalues();
  std::vector<std::complex<double>> values(found.data(), found.data() + found.size());
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
    return std::pair(std::abs(a), a.imag()) > std::pair(std::abs(b), b.imag());
  });
  return values;
}

}  // namespace lockstep::flow
