// Dense kernels of the direct solvers, built once for each vector width of x86-64 and chosen at run time.
// Every element is computed by the same operations in the same order for any width and any number of
// threads, so the results have the same bits on every machine.
#pragma once

#include <cstdint>

namespace lockstep::solve {

/// Cholesky of the first `pivots` columns of the symmetric matrix `a` (n, n; lower triangle, column-major
/// with leading dimension n): those columns become L, the trailing triangle its Schur complement. Gives the
/// number of columns done: fewer than `pivots` where a pivot is not a positive finite number. `parallel`
/// spreads large updates over threads.
int64_t partial_cholesky(double* a, int64_t n, int64_t pivots, bool parallel);
/// The same of a matrix in two parts: its first `pivots` columns (n, pivots), and the trailing triangle with a
/// leading dimension of its own.
int64_t partial_cholesky(double* panel, int64_t n, int64_t pivots, double* trailing, int64_t ld,
                         bool parallel);

/// L x = b in place, for the panel L (rows, columns), column-major with leading dimension `rows`: solves the
/// first `columns` entries and subtracts L's lower part from the others.
void forward_substitute(const double* l, int64_t rows, int64_t columns, double* x);
/// L^T x = b in place, for the same panel: the entries after `columns` are known.
void backward_substitute(const double* l, int64_t rows, int64_t columns, double* x);

/// c (h, w; column-major with leading dimension ld) += or -= the sum over k < depth, in order, of the outer
/// products of a[k a_step …] and b[k b_step …].
void add_products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth, int64_t h,
                  int64_t w, double* c, int64_t ld);
void subtract_products(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth,
                       int64_t h, int64_t w, double* c, int64_t ld);

/// Lower triangle of A^T A (n, n; column-major) for A (m, n; column-major): each element is one sum over the rows
/// in their order.
void gram(const double* a, int64_t m, int64_t n, double* out);

namespace dense {

/// Kernels for one vector width. Strips are 8 rows, `width` columns, column after column.
struct Kernels {
  /// Solves strip * L^T = strip in place for `strips` strips; L (width, width) with leading dimension ld.
  void (*solve_strips)(const double* l, int64_t ld, int64_t width, double* strips, int64_t count);
  /// c (8, 8; leading dimension ld) -= a b^T of two strips; `rows`, `columns`: the part of c that exists.
  void (*subtract_product)(const double* a, const double* b, int64_t width, double* c, int64_t ld,
                           int64_t rows, int64_t columns);
  void (*add_products)(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth,
                       int64_t h, int64_t w, double* c, int64_t ld);
  void (*subtract_products)(const double* a, int64_t a_step, const double* b, int64_t b_step, int64_t depth,
                            int64_t h, int64_t w, double* c, int64_t ld);
  /// Unblocked Cholesky of a lower triangle; gives the columns done.
  int64_t (*factor_block)(double* a, int64_t ld, int64_t size);
  void (*forward_substitute)(const double* l, int64_t rows, int64_t columns, double* x);
  void (*backward_substitute)(const double* l, int64_t rows, int64_t columns, double* x);
};
extern const Kernels kBaseline;
#ifdef LOCKSTEP_X86_KERNELS
extern const Kernels kAvx2;
extern const Kernels kAvx512;
#endif

}  // namespace dense
}  // namespace lockstep::solve
