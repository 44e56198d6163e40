#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "solve/linear/dense_kernels.hpp"

namespace lockstep::solve {
namespace {

constexpr int64_t kPanel = 48;           // columns that are factored before the rest is updated
constexpr int64_t kParallelStrips = 24;  // strips of 8 rows from which threads pay

const dense::Kernels& kernels() {
  static const dense::Kernels* const chosen = [] {
#ifdef LOCKSTEP_X86_KERNELS
    if (__builtin_cpu_supports("avx512f")) return &dense::kAvx512;
    if (__builtin_cpu_supports("avx2")) return &dense::kAvx2;
#endif
    return &dense::kBaseline;
  }();
  return *chosen;
}

/// Unblocked Cholesky of the leading block; gives the columns done.
int64_t factor_block(double* a, int64_t ld, int64_t size) {
  for (int64_t k = 0; k < size; ++k) {
    double pivot = a[k * ld + k];
    for (int64_t j = 0; j < k; ++j) pivot -= a[j * ld + k] * a[j * ld + k];
    if (!(pivot > 0) || !std::isfinite(pivot)) return k;
    pivot = std::sqrt(pivot);
    a[k * ld + k] = pivot;
    for (int64_t j = 0; j < k; ++j) {
      const double factor = a[j * ld + k];
      const double* from = a + j * ld;
      double* to = a + k * ld;
      for (int64_t i = k + 1; i < size; ++i) to[i] -= from[i] * factor;
    }
    for (int64_t i = k + 1; i < size; ++i) a[k * ld + i] /= pivot;
  }
  return size;
}

}  // namespace

int64_t partial_cholesky(double* a, int64_t n, int64_t pivots, bool parallel) {
  const dense::Kernels& use = kernels();
  const int64_t most = (n - std::min(n, kPanel) + 7) / 8 + (pivots < kPanel ? kPanel / 8 + 1 : 0);
  const std::unique_ptr<double[]> store(new double[size_t(most * 8 * std::min(kPanel, pivots))]);
  double* const packed = store.get();
  for (int64_t first = 0; first < pivots; first += kPanel) {
    const int64_t width = std::min(kPanel, pivots - first);
    double* block = a + first * n + first;
    const int64_t done = factor_block(block, n, width);
    if (done < width) return first + done;
    const int64_t start = first + width, rest = n - start, strips = (rest + 7) / 8;
    if (rest == 0) continue;
    const auto solve = [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t rows = std::min<int64_t>(8, rest - s * 8);
        double* strip = packed + s * 8 * width;
        double* panel = a + first * n + start + s * 8;
        for (int64_t k = 0; k < width; ++k) {
          for (int64_t i = 0; i < rows; ++i) strip[k * 8 + i] = panel[k * n + i];
          for (int64_t i = rows; i < 8; ++i) strip[k * 8 + i] = 0;
        }
        use.solve_strips(block, n, width, strip, 1);
        for (int64_t k = 0; k < width; ++k)
          for (int64_t i = 0; i < rows; ++i) panel[k * n + i] = strip[k * 8 + i];
      }
    };
    const auto update = [&](int64_t begin, int64_t end) {
      for (int64_t column = begin; column < end; ++column)
        for (int64_t row = column; row < strips; ++row)
          use.subtract_product(packed + row * 8 * width, packed + column * 8 * width, width,
                               a + (start + column * 8) * n + start + row * 8, n,
                               std::min<int64_t>(8, rest - row * 8), std::min<int64_t>(8, rest - column * 8));
    };
    if (parallel && strips >= kParallelStrips) {
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, strips, 8),
                        [&](const auto& range) { solve(range.begin(), range.end()); });
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, strips, 2),
                        [&](const auto& range) { update(range.begin(), range.end()); });
    } else {
      solve(0, strips);
      update(0, strips);
    }
  }
  return pivots;
}

void add_products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth, int64_t h,
                  int64_t w, double* c, int64_t ld) {
  kernels().add_products(a, a_step, b, b_step, depth, h, w, c, ld);
}
void subtract_products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth,
                       int64_t h, int64_t w, double* c, int64_t ld) {
  kernels().subtract_products(a, a_step, b, b_step, depth, h, w, c, ld);
}

void forward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  for (int64_t k = 0; k < columns; ++k) {
    const double* column = l + k * rows;
    x[k] /= column[k];
    const double value = x[k];
    for (int64_t i = k + 1; i < rows; ++i) x[i] -= column[i] * value;
  }
}

void backward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  for (int64_t k = columns; k-- > 0;) {
    const double* column = l + k * rows;
    double sum[4] = {0, 0, 0, 0};
    int64_t i = k + 1;
    for (; i + 4 <= rows; i += 4)
      for (int64_t j = 0; j < 4; ++j) sum[j] += column[i + j] * x[i + j];
    for (; i < rows; ++i) sum[0] += column[i] * x[i];
    x[k] = (x[k] - ((sum[0] + sum[1]) + (sum[2] + sum[3]))) / column[k];
  }
}

}  // namespace lockstep::solve
