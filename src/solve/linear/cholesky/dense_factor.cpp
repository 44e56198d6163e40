#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "solve/linear/cholesky/dense_kernels.hpp"

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

/// Memory of packed strips. Fronts that spread over threads have their own: a thread that waits for the others may
/// begin another front.
class Packed {
 public:
  Packed(size_t numbers, bool shared) {
    thread_local std::vector<double> kept;
    if (shared) {
      own_.reset(new double[numbers]);
    } else if (kept.size() < numbers) {
      kept.resize(numbers);
    }
    numbers_ = shared ? own_.get() : kept.data();
  }
  double* get() const { return numbers_; }

 private:
  std::unique_ptr<double[]> own_;
  double* numbers_;
};

}  // namespace

int64_t partial_cholesky(double* a, int64_t n, int64_t pivots, bool parallel) {
  return partial_cholesky(a, n, pivots, a + pivots * n + pivots, n, parallel);
}

int64_t partial_cholesky(double* panel, int64_t n, int64_t pivots, double* trailing, int64_t ld,
                         bool parallel) {
  const dense::Kernels& use = kernels();
  const int64_t most = (n + 7) / 8 + 1;
  const Packed memory(size_t(most * 8 * std::min(kPanel, pivots)), parallel);
  double* const packed = memory.get();
  for (int64_t first = 0; first < pivots; first += kPanel) {
    const int64_t width = std::min(kPanel, pivots - first);
    double* const block = panel + first * n + first;
    const int64_t done = use.factor_block(block, n, width);
    if (done < width) return first + done;
    // Strips of eight rows below the block; those of pivots and of the trailing triangle begin again.
    const int64_t start = first + width, own = (pivots - start + 7) / 8, strips = own + (n - pivots + 7) / 8;
    if (start == n) continue;
    const auto row_of = [&](int64_t s) { return s < own ? start + 8 * s : pivots + 8 * (s - own); };
    const auto rows_of = [&](int64_t s) { return std::min<int64_t>(8, (s < own ? pivots : n) - row_of(s)); };
    const auto solve = [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t rows = rows_of(s);
        double* strip = packed + s * 8 * width;
        double* part = panel + first * n + row_of(s);
        for (int64_t k = 0; k < width; ++k) {
          for (int64_t i = 0; i < rows; ++i) strip[k * 8 + i] = part[k * n + i];
          for (int64_t i = rows; i < 8; ++i) strip[k * 8 + i] = 0;
        }
        use.solve_strips(block, n, width, strip, 1);
        for (int64_t k = 0; k < width; ++k)
          for (int64_t i = 0; i < rows; ++i) part[k * n + i] = strip[k * 8 + i];
      }
    };
    const auto update = [&](int64_t begin, int64_t end) {
      for (int64_t column = begin; column < end; ++column) {
        const int64_t at = row_of(column), columns = rows_of(column);
        for (int64_t s = column; s < strips; ++s) {
          double* to =
              column < own ? panel + at * n + row_of(s) : trailing + (at - pivots) * ld + row_of(s) - pivots;
          use.subtract_product(packed + s * 8 * width, packed + column * 8 * width, width, to,
                               column < own ? n : ld, rows_of(s), columns);
        }
      }
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

void gram(const double* a, int64_t m, int64_t n, double* out) {
  const int64_t strips = (n + 7) / 8;
  std::vector<double> packed(size_t(strips * 8 * m), 0.0);  // strips of eight columns, row after row
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) packed[size_t((j / 8 * m + i) * 8 + j % 8)] = a[j * m + i];
  std::fill_n(out, n * n, 0.0);
  for (int64_t c = 0; c < strips; ++c)
    for (int64_t r = c; r < strips; ++r)
      kernels().subtract_product(packed.data() + r * 8 * m, packed.data() + c * 8 * m, m,
                                 out + c * 8 * n + r * 8, n, std::min<int64_t>(8, n - r * 8),
                                 std::min<int64_t>(8, n - c * 8));
  for (int64_t k = 0; k < n * n; ++k) out[k] = -out[k];
}

void forward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  kernels().forward_substitute(l, rows, columns, x);
}
void backward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  kernels().backward_substitute(l, rows, columns, x);
}

}  // namespace lockstep::solve
