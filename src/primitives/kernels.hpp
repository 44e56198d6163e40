// The kernels of the primitives, for their cases and for `emit`. Each getter traces its kernel once.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

template <class T>
const Kernel& fill_kernel();
template <class T>
const Kernel& scale_kernel();
template <class T>
const Kernel& axpy_kernel();
template <class T>
const Kernel& axpby_kernel();
template <class T>
const Kernel& multiply_kernel();
template <class T>
const Kernel& transpose_kernel();

/// Forms of a product of two matrices or of a batch: one lane for kMatmulRows rows of a column; the same from
/// copies in the order of the additions (CPU; a batch); through shared memory, a tile a group (GPUs), and the same by accesses of 16 bytes
/// to rows that consist of them, in f32 also by smaller tiles; f64 by tensor cores, a tile of 64 or 128 a block; few
/// results, by small groups, also by accesses of 16 bytes.
enum class Product : uint8_t {
  columns,
  packed,
  tiles,
  wide,
  wide_64,
  tensor_64,
  tensor_128,
  slim,
  slim_wide
};
constexpr bool by_tensor_cores(Product form) {
  return form == Product::tensor_64 || form == Product::tensor_128;
}
constexpr bool is_slim(Product form) { return form == Product::slim || form == Product::slim_wide; }
inline constexpr int kMatmulRows = 8;
/// Of c, a group has so many.
struct ProductTile {
  int rows, columns;
};
ProductTile product_tile(Product form, Storage storage);
template <class T>
const Kernel& matmul_kernel(Product form, bool batch);
/// f16 or bf16 times the same, to it or to f32.
Kernel narrow_matmul_kernel(Storage narrow, Storage result, bool batch);
/// From it to f32, or back with rounding.
Kernel narrow_copy_kernel(Storage narrow, bool widen, bool batch);
/// The copies of the left and of the right matrix.
template <class T>
const Kernel& pack_kernel(bool rows);

/// Reduction of one chunk: sum, least, greatest, sum of products.
enum class Chunk : uint8_t { sum, min, max, dot };
/// Values of chunks; `wide` reads four elements at once.
template <class T>
Kernel reduce_kernel(Chunk how, bool wide);
template <class T>
const Kernel& root_kernel();

/// Sums of chunks, and the scan inside of them after the sums before are known.
template <class T>
Kernel scan_sums_kernel(bool segmented, bool wide);
template <class T>
Kernel scan_kernel(bool exclusive, bool segmented, bool wide);
/// Bytes that an inclusive or exclusive scan of so many elements allocates.
int64_t scan_bytes(Storage storage, int64_t count);

/// Segments of few elements; the list of chunks of the others, by groups of so many lanes; the chunks of the list; and
/// the segments of several chunks.
template <class T>
Kernel short_segments_kernel(Chunk how);
Kernel segment_counts_kernel(int lanes);
Kernel segment_list_kernel(int lanes);
template <class T>
Kernel segment_chunks_kernel(Chunk how);
template <class T>
Kernel long_segments_kernel(Chunk how);

/// The form for so many columns of x: how many a lane adds up side by side, or lanes along them; and its
/// kernel. `records`: for x of just so many columns, which stay side by side in shared memory (CPU).
int gather_components(int64_t width);
template <class T>
Kernel gather_rows_kernel(bool weighted, int components, bool records = false);

/// Counts of keys; the variants count in shared memory, in more of it, or in the result itself.
inline constexpr int kHistogramVariants = 3;
template <class T>
Kernel histogram_kernel(int variant);
template <class T>
Kernel bins_kernel(int variant);

}  // namespace lockstep::primitives
