#include "solve/linear/fronts/front_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/evaluate/evaluator_state.hpp"
#include "solve/linear/fronts/front_cholesky.hpp"
#include "verify/inputs.hpp"

namespace lockstep::solve {

std::vector<double> BlockMatrix::dense() const {
  const int64_t n = pattern.unknowns();
  std::vector<double> a(size_t(n * n), 0);
  const double* from = values.data();
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t row = pattern.first[size_t(pattern.rows[e])],
                  column = pattern.first[size_t(pattern.columns[e])];
    for (int64_t j = 0; j < pattern.width(pattern.columns[e]); ++j)
      for (int64_t i = 0; i < pattern.width(pattern.rows[e]); ++i)
        a[size_t((row + i) * n + column + j)] = a[size_t((column + j) * n + row + i)] = *from++;
  }
  for (int64_t k = 0; k < n; ++k) a[size_t(k * n + k)] += added[size_t(k)];
  return a;
}

BlockMatrix random_matrix(const std::vector<int>& widths,
                          const std::vector<std::pair<int32_t, int32_t>>& pairs, uint64_t seed) {
  cases::Random random(seed);
  BlockMatrix m;
  m.pattern.first = {0};
  for (const int width : widths) m.pattern.first.push_back(m.pattern.first.back() + width);
  const size_t n = size_t(m.pattern.unknowns());
  std::vector<double> sums(n, 0);  // of the off-diagonal magnitudes
  const auto entry = [&](int32_t row, int32_t column) {
    m.pattern.rows.push_back(row), m.pattern.columns.push_back(column);
  };
  for (const auto& [row, column] : pairs) {
    entry(row, column);
    for (int64_t j = 0; j < m.pattern.width(column); ++j)
      for (int64_t i = 0; i < m.pattern.width(row); ++i) {
        m.values.push_back(random.uniform(-1, 1));
        sums[size_t(m.pattern.first[size_t(row)] + i)] += std::abs(m.values.back());
        sums[size_t(m.pattern.first[size_t(column)] + j)] += std::abs(m.values.back());
      }
  }
  for (int32_t b = 0; b < int32_t(widths.size()); ++b) {
    entry(b, b);
    const int64_t width = m.pattern.width(b);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < width; ++i)
        m.values.push_back(i == j ? sums[size_t(m.pattern.first[size_t(b)] + i)] + 0.5 : 0.1);
  }
  for (size_t k = 0; k < n; ++k)
    m.added.push_back(random.uniform(0, 0.1)), m.right.push_back(random.uniform(-1, 1));
  return m;
}

std::vector<std::pair<int32_t, int32_t>> grid_pairs(int64_t rows, int64_t columns) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const auto join = [&](int64_t r, int64_t c, int64_t down, int64_t right) {
    if (r + down < rows && c + right < columns)
      pairs.emplace_back(int32_t((r + down) * columns + c + right), int32_t(r * columns + c));
  };
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) join(r, c, 0, 1), join(r, c, 1, 0), join(r, c, 1, 1);
  return pairs;
}

std::vector<double> dense_solution(const BlockMatrix& matrix) {
  const int64_t n = matrix.pattern.unknowns();
  const std::vector<double> a = matrix.dense();
  std::vector<long double> l(a.begin(), a.end()), x(matrix.right.begin(), matrix.right.end());
  const auto at = [&](int64_t i, int64_t j) -> long double& { return l[size_t(i * n + j)]; };
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      long double sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
      at(i, j) = i == j ? std::sqrt(sum) : sum / at(j, j);
    }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) x[size_t(i)] -= at(i, k) * x[size_t(k)];
    x[size_t(i)] /= at(i, i);
  }
  for (int64_t i = n; i-- > 0;) {
    for (int64_t k = i + 1; k < n; ++k) x[size_t(i)] -= at(k, i) * x[size_t(k)];
    x[size_t(i)] /= at(i, i);
  }
  return {x.begin(), x.end()};
}

namespace {

/// Sizes: rows x columns of a triangulated grid, blocks of 1 to 3 numbers.
CaseProblem grid_problem(const std::string& size, uint64_t seed, Storage real) {
  const std::vector<int64_t> sides = parse_size(size);
  if (sides.size() != 2)
    throw InputError(fmt::format("size \"{}\"", size), "--sizes", "two numbers, as 11x12");
  std::vector<int> widths;
  for (int64_t k = 0; k < sides[0] * sides[1]; ++k) widths.push_back(int(1 + k % 3));
  const auto matrix =
      std::make_shared<const BlockMatrix>(random_matrix(widths, grid_pairs(sides[0], sides[1]), seed));
  CaseProblem problem;
  problem.bind = [=](const Device& device) -> CaseRun {
    const auto cholesky = std::make_shared<FrontCholesky>(device, real, matrix->pattern);
    const auto fill = [=](const std::vector<double>& from, const Buffer& to) {
      device.copy(upload_numbers(device, real, from, {int64_t(from.size())}), to);
    };
    fill(matrix->values, cholesky->values());
    fill(matrix->added, cholesky->added());
    const Buffer right = upload_numbers(device, real, matrix->right, {int64_t(matrix->right.size())});
    return {[=] {
              device.copy(right, cholesky->x());
              cholesky->run();
            },
            [=] { return std::vector<Array>{device.download(cholesky->x())}; }};
  };
  if (matrix->pattern.unknowns() <= 1000)
    problem.reference = [=] {
      const std::vector<double> x = dense_solution(*matrix);
      return std::vector<Array>{real == Storage::f64 ? Array::of(x)
                                                     : Array::of(std::vector<float>(x.begin(), x.end()))};
    };
  problem.bytes = double(size_of(real)) * double(matrix->values.size() + 2 * matrix->right.size());
  return problem;
}

}  // namespace

void add_front_cases(CaseRegistry& registry) {
  for (const Storage real : {Storage::f32, Storage::f64}) {
    const bool wide = real == Storage::f64;
    Case c;
    c.name = wide ? "solve.cholesky.fronts.f64" : "solve.cholesky.fronts";
    c.dtype = wide ? "f64" : "f32";
    c.small = {"1x1", "1x9", "5x7", "17x19"};
    c.full = {"40x31"};
    c.bench = {"200x205"};
    c.make = [real](const std::string& size, uint64_t seed) { return grid_problem(size, seed, real); };
    c.kernels = [real] {
      std::vector<Kernel> kernels;
      for (int k = 0; k < kFrontSteps; ++k) kernels.push_back(front_kernel(FrontStep(k), real));
      return kernels;
    };
    c.webgpu = Bound::relative(1e-4);
    c.reference = Bound::relative(wide ? 1e-13 : 1e-5);
    if (wide) c.fast = Bound::relative(1e-12);
    c.needs_f64 = wide;
    registry.add(std::move(c));
  }
}

}  // namespace lockstep::solve
