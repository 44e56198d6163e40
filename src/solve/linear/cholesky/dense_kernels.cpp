// The kernels for one vector width; CMakeLists.txt compiles this file for each. It contains only arithmetic,
// so that no function of another file is compiled for instructions that the machine may lack.
#include "solve/linear/cholesky/dense_kernels.hpp"

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

/// As products() with h rows, all of them in registers: blocks narrower than a vector.
template <bool Add, int H>
void narrow_products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth,
                     int64_t w, double* c, int64_t ld) {
  for (int64_t j = 0; j < w; ++j, ++b, c += ld) {
    double sum[H];
    for (int i = 0; i < H; ++i) sum[i] = c[i];
    for (int64_t k = 0; k < depth; ++k)
      for (int i = 0; i < H; ++i) {
        const double product = a[k * a_step + i] * b[k * b_step];
        sum[i] = Add ? sum[i] + product : sum[i] - product;
      }
    for (int i = 0; i < H; ++i) c[i] = sum[i];
  }
}

template <bool Add>
void products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth, int64_t h,
              int64_t w, double* c, int64_t ld) {
  if (h == 3) return narrow_products<Add, 3>(a, a_step, b, b_step, depth, w, c, ld);
  if (h == 6) return narrow_products<Add, 6>(a, a_step, b, b_step, depth, w, c, ld);
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

/// Rows [i, i + parts * kLanes) of column k: minus the columns before it times their numbers in row k.
template <int Parts>
inline void update_rows(double* a, int64_t ld, int64_t k, int64_t i) {
  Vector sum[Parts];
  for (int p = 0; p < Parts; ++p) sum[p] = load(a + k * ld + i + p * kLanes);
  for (int64_t j = 0; j < k; ++j) {
    const double factor = a[j * ld + k];
    for (int p = 0; p < Parts; ++p) sum[p] -= load(a + j * ld + i + p * kLanes) * factor;
  }
  for (int p = 0; p < Parts; ++p) store(a + k * ld + i + p * kLanes, sum[p]);
}

int64_t factor_block(double* a, int64_t ld, int64_t size) {
  for (int64_t k = 0; k < size; ++k) {
    int64_t i = k;
    for (; i + 2 * kLanes <= size; i += 2 * kLanes) update_rows<2>(a, ld, k, i);
    for (; i + kLanes <= size; i += kLanes) update_rows<1>(a, ld, k, i);
    for (; i < size; ++i) {
      double sum = a[k * ld + i];
      for (int64_t j = 0; j < k; ++j) sum -= a[j * ld + i] * a[j * ld + k];
      a[k * ld + i] = sum;
    }
    double* const column = a + k * ld;
    if (!(column[k] > 0) || !(column[k] <= __DBL_MAX__)) return k;
    const double pivot = __builtin_sqrt(column[k]);
    column[k] = pivot;
    for (i = k + 1; i < size; ++i) column[i] /= pivot;
  }
  return size;
}

void forward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  for (int64_t k = 0; k < columns; ++k) {
    const double* column = l + k * rows;
    x[k] /= column[k];
    const double value = x[k];
    int64_t i = k + 1;
    for (; i + kLanes <= rows; i += kLanes) store(x + i, load(x + i) - load(column + i) * value);
    for (; i < rows; ++i) x[i] -= column[i] * value;
  }
}

typedef double Four __attribute__((vector_size(4 * sizeof(double)), aligned(8), may_alias));

void backward_substitute(const double* l, int64_t rows, int64_t columns, double* x) {
  for (int64_t k = columns; k-- > 0;) {
    const double* column = l + k * rows;
    Four sums = {0, 0, 0, 0};
    int64_t i = k + 1;
    for (; i + 4 <= rows; i += 4)
      sums += *reinterpret_cast<const Four*>(column + i) * *reinterpret_cast<const Four*>(x + i);
    double first = sums[0];
    for (; i < rows; ++i) first += column[i] * x[i];
    x[k] = (x[k] - ((first + sums[1]) + (sums[2] + sums[3]))) / column[k];
  }
}

}  // namespace

extern const Kernels LOCKSTEP_KERNELS;
const Kernels LOCKSTEP_KERNELS{solve_strips, subtract_product,   products<true>,     products<false>,
                               factor_block, forward_substitute, backward_substitute};

}  // namespace lockstep::solve::dense
