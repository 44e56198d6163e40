// Device-wide operations on buffers: fill, copy, vector updates, transpose, matrix products, reductions, scans,
// gather over CSR rows, histograms, sorts. Written in the kernel language: bit-identical on the CPU, the interpreter
// and CUDA, for every thread count.
//
// Unless stated otherwise, buffers are f32, f64, i32 or u32, contiguous and of any shape. Operations access their
// elements in row-major order and accept any count, including 0 and more than 2^31. They throw InputError for a wrong
// storage, a wrong count and overlapping buffers. Operations are queued on `stream` (default: the default stream) and
// return before completion. Only functions that return a number wait.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::primitives {

// ── elements ──

/// x = value. The storage must be able to represent the value.
void fill(const Device& device, const Buffer& x, double value, const Stream& stream = {});
/// to = from. Same storage and shape, rank 1 to 3; either may be a window.
void copy(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// x = a x. f32 or f64.
void scale(const Device& device, double a, const Buffer& x, const Stream& stream = {});
/// y = a x + y with one rounding (fma). f32 or f64.
void axpy(const Device& device, double a, const Buffer& x, const Buffer& y, const Stream& stream = {});
/// y = a x + b y: b y is rounded first, then a x is added by fma. f32 or f64.
void axpby(const Device& device, double a, const Buffer& x, double b, const Buffer& y,
           const Stream& stream = {});
/// r[i] = x[i] y[i].
void multiply(const Device& device, const Buffer& x, const Buffer& y, const Buffer& r,
              const Stream& stream = {});
/// A function in the kernel language. It receives one value per buffer, which is f32 for f16 and bf16, and u32 for u8.
using ElementFunction = std::function<AnyVal(std::span<const AnyVal> x)>;
/// to[i] = f(from[0][i], from[1][i], …), with buffers of any storage. The result is rounded if `to` is f16 or bf16. `to`
/// must not overlap another buffer. Every call traces `f`, which takes microseconds; in a hot loop, launch a kernel of
/// your own instead. Throws InputError if `f` returns another type than that of `to`.
void map(const Device& device, const ElementFunction& f, std::span<const Buffer> from, const Buffer& to,
         const Stream& stream = {});
inline void map(const Device& device, const ElementFunction& f, std::initializer_list<Buffer> from,
                const Buffer& to, const Stream& stream = {}) {
  map(device, f, std::span<const Buffer>(from.begin(), from.size()), to, stream);
}
/// to[j, i] = from[i, j]; rank 2.
void transpose(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});

// ── matrices ──

/// Options of products in fast numerics on CUDA. They have no effect in exact numerics and on other devices.
struct ProductOptions {
  /// Use cuBLAS if it is found and faster. It sums in its own order, at least in f32. A log line and the telemetry report
  /// its use once. If it is not found, the kernels are used, and a line that no log level hides reports this. false:
  /// use the kernels only.
  bool library = true;
  /// Let cuBLAS round f32 to ten bits of mantissa (tf32) before the product.
  bool tf32 = false;
};

/// c = a b: c[i, j] is the sum of a[i, k] b[k, j] over k = 0, 1 … in this order, with one rounding per term (fma), on
/// every device. Shapes (m, k), (k, n) and (m, n), or with a leading batch axis; windows are allowed. All are f32 or all
/// f64. Or a and b are f16 or bf16 with sums in f32, and c has their storage, with one more rounding, or is f32. `c` must
/// not overlap a or b.
void matmul(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
            const Stream& stream = {}, const ProductOptions& options = {});

/// The method that `matmul` uses for these buffers, without running it.
struct ProductPath {
  std::string
      kernel;  // its name in Device::kernels, with suffix .cublas or .cublas_tf32; empty: an empty product
  std::string reason;  // why cuBLAS is not used; empty if it is
};
ProductPath matmul_path(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
                        const ProductOptions& options = {});

// ── reductions ──
//
// All devices use the same tree, which depends on the count only. The elements form chunks of 8192. Each of 256 lanes
// has four accumulators: accumulator j of lane l takes the elements 1024 r + 4 l + j of its chunk for r = 0 … 7, in this
// order. The value of a lane is (a0 + a1) + (a2 + a3). A tree over the lanes gives the value of the chunk: for s = 128,
// 64 … 1: v[l] += v[l + s]. The values of the chunks are reduced in the same way until one is left. Elements past the
// end have the neutral value: -0 for sums, the largest value for minima, the smallest for maxima.

/// Elements of a chunk.
inline constexpr int64_t kReduceChunk = 8192;

enum class Reduce : uint8_t { sum, min, max };
/// result[0] = sum, minimum or maximum of the elements. Integers wrap. A NaN among the elements gives NaN. Without
/// elements, the sum is 0, the minimum the largest value of the type (infinity for floats), and the maximum the
/// smallest. `result` has one element of the storage of x.
void reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& result,
            const Stream& stream = {});
/// result[0] = sum of x[i] y[i], with fma in each accumulator. f32 or f64.
void dot(const Device& device, const Buffer& x, const Buffer& y, const Buffer& result,
         const Stream& stream = {});
/// result[0] = square root of dot(x, x). Squares beyond the range of the type overflow. f32 or f64.
void norm(const Device& device, const Buffer& x, const Buffer& result, const Stream& stream = {});

/// The same, returned as a number on the host. T is the element type: f32, f64, i32 or u32.
template <class T>
T sum(const Device& device, const Buffer& x);
template <class T>
T min(const Device& device, const Buffer& x);
template <class T>
T max(const Device& device, const Buffer& x);
template <class T>
T dot(const Device& device, const Buffer& x, const Buffer& y);
template <class T>
T norm(const Device& device, const Buffer& x);

// ── scans ──
//
// The order of additions depends on the count only. The elements form chunks of 4096. In round r = 0 … 3, lane l of 256
// adds the elements 1024 r + 4 l + 0 … 3 of its chunk in order. The sums of the lanes are scanned by Hillis and Steele
// (for d = 1, 2 … 128: v[l] = v[l - d] + v[l]). Then the sums of earlier rounds and of earlier chunks are added; the
// sums of the chunks are scanned in the same way.

/// to[i] = from[0] + … + from[i].
void inclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// to[i] = from[0] + … + from[i - 1]; to[0] = 0.
void exclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// Inclusive scan that restarts where heads[i] (u32) is not 0.
void segmented_scan(const Device& device, const Buffer& from, const Buffer& heads, const Buffer& to,
                    const Stream& stream = {});

// ── segments ──

/// result[r] = sum, minimum or maximum of the elements first[r] … first[r + 1] - 1 of x, bit-identical to `reduce` of
/// these elements alone, also for empty segments. `first` is i32 and has one element more than the result. Its numbers
/// are between 0 and x.elements() and do not decrease; otherwise results are wrong, but no access is outside x. x has
/// fewer than 2^31 - 2^16 elements, and there are at most as many segments. One lane computes a segment of up to 32
/// elements, one group a segment of up to 8192, and several groups a longer one.
void segmented_reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& first,
                      const Buffer& result, const Stream& stream = {});

// ── gather over rows ──

/// A sparse matrix in compressed rows (CSR): row r has the entries first[r] … first[r + 1] - 1. Fewer than 2^31 - 2048
/// entries.
struct Rows {
  Buffer first;    // i32, rows + 1
  Buffer columns;  // i32, one per entry
  Buffer weights;  // one per entry, of the storage of x; empty: all weights are 1
};
/// y[r] = sum over the entries e of row r, in stored order, of weights[e] x[columns[e]], with one rounding per term
/// (fma). x and y have rank 1, or rank 2 with the same number of columns. This is the gather form of a scatter-add: it
/// uses no atomics, so the result does not depend on the order of lanes.
void gather_rows(const Device& device, const Rows& rows, const Buffer& x, const Buffer& y,
                 const Stream& stream = {});

// ── histograms ──

/// counts[k] = number of keys equal to k. `keys` is i32 or u32, `counts` u32. Keys outside 0 … counts.elements() - 1 are
/// not counted.
void histogram(const Device& device, const Buffer& keys, const Buffer& counts, const Stream& stream = {});
/// Equal bins over [low, high]: bin floor((x - low) * (bins / (high - low))), computed in the type of x. `high` is in the
/// last bin; NaN and values outside are not counted. If high - low is infinite or bins / (high - low) is not a normal
/// number of that type, x, low and high are first multiplied by a power of two. x is f32 or f64, counts u32; low and
/// high are finite.
void histogram(const Device& device, const Buffer& x, double low, double high, const Buffer& counts,
               const Stream& stream = {});

// ── sorting ──
//
// Sorts are stable: elements of equal keys keep their order, so the result is the same on every device. Keys are u32,
// i32 or f32, fewer than 2^31 - 2^16. f32 uses the total order of IEEE 754: -NaN, -infinity … -0, 0 … infinity, NaN.
// NaNs of one sign are ordered by their bits.

/// Writes the keys in ascending order, and the values in the order of their keys. `values` and `sorted_values` are u32,
/// i32 or f32. If `values` is an empty handle, `sorted_values` (u32 or i32) receives the position of each key in `keys`.
/// If both are empty, only the keys are sorted. The sorted buffers must not overlap any other.
///
/// The keys are ordered by their lowest `bits` bits, 1 to 32 (32 for f32). Fewer bits need fewer passes and suffice if
/// no key is negative or has higher bits.
///
/// The method is an LSD radix sort with digits of up to 8 bits, in ceil(bits / 8) passes. A pass counts the digits of
/// each chunk, scans the counts, and moves each element to its position. It reads the keys twice and the values once,
/// and writes both once.
void sort_by_key(const Device& device, const Buffer& keys, const Buffer& values, const Buffer& sorted_keys,
                 const Buffer& sorted_values, int bits = 32, const Stream& stream = {});
/// Bytes of device memory that sort_by_key needs while it runs; `payload`: it also sorts values or positions.
int64_t sort_bytes(const Device& device, int64_t count, bool payload, int bits = 32);

/// Runs of equal keys: run k has the key keys[k] and the positions first[k] … first[k + 1] - 1.
struct Unique {
  Buffer keys;       // of the storage of the sorted keys
  Buffer first;      // i32, one more than the keys
  Buffer count;      // u32, one element: the number of runs
  int64_t size = 0;  // the same on the host
};
/// The runs of sorted keys (u32, i32 or f32); the keys of a run have the same bits. Waits for the number of runs and
/// then allocates the results.
Unique unique(const Device& device, const Buffer& sorted, const Stream& stream = {});

/// For each element of an extent, the positions of an index buffer that refer to it: those of element k are
/// entries[first[k]] … entries[first[k + 1] - 1].
struct IndexTable {
  Buffer first;    // i32, extent + 1
  Buffer entries;  // i32, as many as the index has elements
};
/// The table of `index` (i32 or u32), with the positions of each element in increasing order. The positions of indices
/// outside 0 … extent - 1 follow in `entries` from first[extent] on, in increasing order, and belong to no element.
IndexTable transposed_table(const Device& device, const Buffer& index, int64_t extent,
                            const Stream& stream = {});
/// Bytes of device memory that transposed_table needs while it runs, in addition to the table.
int64_t transposed_table_bytes(const Device& device, int64_t count, int64_t extent);

}  // namespace lockstep::primitives
