// One vector width of the kernels; CMakeLists.txt compiles this file for each. Only arithmetic stands here,
// so that no function of another file is compiled for a machine that may not be there.
#include "solve/linear/dense_kernels.hpp"

#ifndef LOCKSTEP_KERNELS
#define LOCKSTEP_KERNELS kBaseline
#define LOCKSTEP_LANES 2
#endif

namespace lockstep::solve::dense {
namespace {

constexpr int kLanes = LOCKSTEP_LANES;
constexpr int kParts = 8 / kLanes;  // vectors of a strip's column
typedef double Vector __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));

inline Vector load(const double* p) { return *reinterpret_cast<const Vector*>(p); }
inline void store(double* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }

void solve_strips(const double* l, int64_t ld, int64_t width, double* strips, int64_t count) {
  for (int64_t s = 0; s < count; ++s) {
    double* x = strips + s * 8 * width;
    for (int64_t k = 0; k < width; ++k) {
      Vector sum[kParts];
      for (int p = 0; p < kParts; ++p) sum[p] = load(x + k * 8 + p * kLanes);
      for (int64_t j = 0; j < k; ++j) {
        const double factor = l[j * ld + k];
        for (int p = 0; p < kParts; ++p) sum[p] -= load(x + j * 8 + p * kLanes) * factor;
      }
      const double pivot = l[k * ld + k];
      for (int p = 0; p < kParts; ++p) store(x + k * 8 + p * kLanes, sum[p] / pivot);
    }
  }
}

/// Columns `first` … first + 3 of the product of two strips.
inline void half_product(const double* a, const double* b, int64_t width, int first, double out[4][8]) {
  Vector sum[4][kParts] = {};
  for (int64_t k = 0; k < width; ++k) {
    const double* row = b + k * 8 + first;
    for (int p = 0; p < kParts; ++p) {
      const Vector v = load(a + k * 8 + p * kLanes);
      for (int c = 0; c < 4; ++c) sum[c][p] += v * row[c];
    }
  }
  for (int c = 0; c < 4; ++c)
    for (int p = 0; p < kParts; ++p) store(&out[c][p * kLanes], sum[c][p]);
}

void subtract_product(const double* a, const double* b, int64_t width, double* c, int64_t ld, int64_t rows,
                      int64_t columns) {
  double product[4][8];
  for (int first = 0; first < columns; first += 4) {
    half_product(a, b, width, first, product);
    const int64_t count = columns - first < 4 ? columns - first : 4;
    for (int64_t j = 0; j < count; ++j) {
      double* column = c + (first + j) * ld;
      if (rows == 8)
        for (int p = 0; p < kParts; ++p)
          store(column + p * kLanes, load(column + p * kLanes) - load(&product[j][p * kLanes]));
      else
        for (int64_t i = 0; i < rows; ++i) column[i] -= product[j][i];
    }
  }
}

template <bool Add>
void products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth, int64_t h,
              int64_t w, double* c, int64_t ld) {
  for (int64_t j = 0; j < w; ++j, ++b, c += ld) {
    int64_t i = 0;
    for (; i + kLanes <= h; i += kLanes) {
      Vector sum = load(c + i);
      for (int64_t k = 0; k < depth; ++k) {
        const Vector product = load(a + k * a_step + i) * b[k * b_step];
        sum = Add ? sum + product : sum - product;
      }
      store(c + i, sum);
    }
    for (; i < h; ++i) {
      double sum = c[i];
      for (int64_t k = 0; k < depth; ++k) {
        const double product = a[k * a_step + i] * b[k * b_step];
        sum = Add ? sum + product : sum - product;
      }
      c[i] = sum;
    }
  }
}

}  // namespace

extern const Kernels LOCKSTEP_KERNELS;
const Kernels LOCKSTEP_KERNELS{solve_strips, subtract_product, products<true>, products<false>};

}  // namespace lockstep::solve::dense
