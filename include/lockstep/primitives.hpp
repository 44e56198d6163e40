// Device-wide operations on buffers: fill, copy, vector updates, transpose, matrix products, reductions, scans,
// gather over CSR rows, histograms, sorts. Written in the kernel language: bit-identical on the CPU, the interpreter
// and CUDA, for every thread count.
//
// Unless stated otherwise, buffers are f32, f64, i32 or u32, contiguous and of any shape. Operations access their
// elements in row-major order and accept any count, including 0 and more than 2^31. Wrong storage, count or overlap
// throws InputError. Operations are queued on `stream` (default: the default stream) and return before completion;
// only those that return a number wait.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::primitives {

// ── elements ──

/// x = value. The storage must be able to represent the value.
void fill(const Device& device, const Buffer& x, double value, const Stream& stream = {});
/// to = from: same storage and shape, rank 1 to 3, windows included.
void copy(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// x = a x. Floats.
void scale(const Device& device, double a, const Buffer& x, const Stream& stream = {});
/// y = a x + y, one rounding. Floats.
void axpy(const Device& device, double a, const Buffer& x, const Buffer& y, const Stream& stream = {});
/// y = a x + b y, the product b y rounded first. Floats.
void axpby(const Device& device, double a, const Buffer& x, double b, const Buffer& y,
           const Stream& stream = {});
/// r = x y, element by element.
void multiply(const Device& device, const Buffer& x, const Buffer& y, const Buffer& r,
              const Stream& stream = {});
/// A function in the kernel language of one value per buffer: f32 for f16 and bf16, u32 for u8.
using ElementFunction = std::function<AnyVal(std::span<const AnyVal> x)>;
/// to[i] = f(from[0][i], from[1][i], …), of any storage; the result is rounded to f16 or bf16 if `to` has such
/// elements. `to` must not overlap another buffer. `f` is traced in every call, which takes microseconds; in a hot
/// loop launch your own kernel instead. Throws InputError if f returns another type than that of `to`.
void map(const Device& device, const ElementFunction& f, std::span<const Buffer> from, const Buffer& to,
         const Stream& stream = {});
inline void map(const Device& device, const ElementFunction& f, std::initializer_list<Buffer> from,
                const Buffer& to, const Stream& stream = {}) {
  map(device, f, std::span<const Buffer>(from.begin(), from.size()), to, stream);
}
/// to[j, i] = from[i, j]; rank 2.
void transpose(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});

// ── matrices ──

/// Freedoms of fast numerics on CUDA in a product. Exact numerics and other devices do not use them.
struct ProductOptions {
  /// Use cuBLAS if it is found and faster: sums in its own order, at least in f32. A log line and telemetry report
  /// this once. If it is not found, a line that no log level hides reports this, and the kernels are used. false:
  /// kernels only.
  bool library = true;
  /// The library may round f32 to ten bits of mantissa (tf32) before the product.
  bool tf32 = false;
};

/// c = a b: c[i, j] is the sum of a[i, k] b[k, j] for k = 0, 1 … in that order, one rounding each (fma), on every
/// device. Rank 2 (m x k, k x n, m x n), or rank 3 for a batch of them (a count, then these); windows are fine. f32 or
/// f64; or f16 or bf16 with sums in f32, where c is of that storage (one more rounding) or f32. `c` overlaps neither a
/// nor b.
void matmul(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
            const Stream& stream = {}, const ProductOptions& options = {});

/// How `matmul` multiplies these: the name of the kernel in Device::kernels, with the suffix .cublas or .cublas_tf32
/// for the library, and the reason why the library is not used, else empty. Nothing runs.
struct ProductPath {
  std::string kernel;  // empty where there is nothing to multiply
  std::string reason;
};
ProductPath matmul_path(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
                        const ProductOptions& options = {});

// ── reductions ──
//
// One tree for every device, which depends on the count only. The elements form chunks of 8192. Lane l of 256
// has four accumulators; accumulator j takes the elements 1024 r + 4 l + j of its chunk for r = 0 … 7 in
// order. The lane's value is (a0 + a1) + (a2 + a3), the chunk's that of a tree over the lanes: for s = 128,
// 64 … 1: v[l] += v[l + s]. The chunks' values are reduced in the same way until one is left. Elements past
// the end count -0 (the neutral of addition), the largest or the smallest value.

/// Largest of chunk, lanes and accumulators named above.
inline constexpr int64_t kReduceChunk = 8192;

enum class Reduce : uint8_t { sum, min, max };
/// result[0] = sum, least or greatest element. Integers wrap. A NaN among the elements gives NaN. Of no
/// elements: 0, the largest value (infinity), the smallest value. `result` has one element of the storage of
/// x.
void reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& result,
            const Stream& stream = {});
/// result[0] = sum of x[i] y[i], each accumulator by fma. Floats.
void dot(const Device& device, const Buffer& x, const Buffer& y, const Buffer& result,
         const Stream& stream = {});
/// result[0] = square root of dot(x, x): squares beyond the type's range overflow. Floats.
void norm(const Device& device, const Buffer& x, const Buffer& result, const Stream& stream = {});

/// The same as numbers on the host. T is the storage's type: f32, f64, i32 or u32.
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
// Chunks of 4096 elements: in round r = 0 … 3 lane l of 256 has the elements 1024 r + 4 l + 0 … 3. They are
// added in order; the lanes' sums by Hillis and Steele (for d = 1, 2 … 128: v[l] = v[l - d] + v[l]); then the
// rounds before, and the chunks before, whose sums are scanned in the same way. Depends on the count only.

/// to[i] = from[0] + … + from[i].
void inclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// to[i] = from[0] + … + from[i - 1]; to[0] = 0.
void exclusive_scan(const Device& device, const Buffer& from, const Buffer& to, const Stream& stream = {});
/// Inclusive scan that restarts where heads[i] (u32) is not 0.
void segmented_scan(const Device& device, const Buffer& from, const Buffer& heads, const Buffer& to,
                    const Stream& stream = {});

// ── segments ──

/// result[r] = sum, minimum or maximum of the elements first[r] … first[r + 1] - 1 of x, with the bits of `reduce` of
/// these elements alone, also for empty segments. `first` is i32, has one element more than the result, is between 0
/// and x.elements() and does not decrease; other contents give other results, but no access outside x. x has fewer
/// than 2^31 - 2^16 elements, and there are at most as many segments. Segments of up to 32 elements are computed by a
/// lane, up to 8192 by a group, longer ones by many groups.
void segmented_reduce(const Device& device, Reduce how, const Buffer& x, const Buffer& first,
                      const Buffer& result, const Stream& stream = {});

// ── gather over rows ──

/// Rows in compressed form: row r has the entries first[r] … first[r + 1] - 1. Fewer than 2^31 - 2048
/// entries.
struct Rows {
  Buffer first;    // i32, rows + 1
  Buffer columns;  // i32, one per entry
  Buffer weights;  // one per entry, of the storage of x; or empty for all 1
};
/// y[r] = sum over the row's entries e, in stored order, of weights[e] x[columns[e]], one rounding each
/// (fma). x and y have rank 1, or rank 2 with as many columns as each other. A scatter-add written as its
/// gather: no atomics, one result.
void gather_rows(const Device& device, const Rows& rows, const Buffer& x, const Buffer& y,
                 const Stream& stream = {});

// ── histograms ──

/// counts[k] = how many keys are k. Keys i32 or u32; those outside of 0 … counts.elements() - 1 are not
/// counted.
void histogram(const Device& device, const Buffer& keys, const Buffer& counts, const Stream& stream = {});
/// Equal bins over [low, high]: bin floor((x - low) * (bins / (high - low))) in the type of x; `high` falls
/// into the last bin; NaN and values outside are not counted. Where high - low or the bins in a unit of it are no normal
/// numbers of that type, x, low and high count multiplied by a power of two. x is f32 or f64, counts u32; low and high
/// are finite.
void histogram(const Device& device, const Buffer& x, double low, double high, const Buffer& counts,
               const Stream& stream = {});

// ── sorting ──
//
// Stable and with one result on every device: elements of equal keys keep their order. Keys are u32, i32 or f32, fewer
// than 2^31 - 2^16. f32 has the total order of IEEE 754: -NaN, -infinity … -0, 0 … infinity, NaN; NaN of one sign by
// their bits.

/// The keys in ascending order, and the values in the order of their keys. `values` and `sorted_values` are u32, i32 or
/// f32; where `values` is an empty handle, `sorted_values` (u32 or i32) gets the position of each key in `keys`; where
/// both are, the keys alone are sorted. `bits` from 1 to 32: the keys are ordered by their lowest bits alone, which saves
/// passes where no key is negative or has higher ones; of f32 all 32. The sorted buffers overlap no other.
///
/// An LSD radix sort by digits of up to 8 bits, ceil(bits / 8) passes. A pass counts the digits of each chunk, scans the
/// counts, and moves each element to its place: it reads the keys twice, the values once and writes both once.
void sort_by_key(const Device& device, const Buffer& keys, const Buffer& values, const Buffer& sorted_keys,
                 const Buffer& sorted_values, int bits = 32, const Stream& stream = {});
/// Bytes of device memory that sort_by_key takes while it runs; `payload`: with values or positions.
int64_t sort_bytes(const Device& device, int64_t count, bool payload, int bits = 32);

/// Runs of equal keys: run k has the key keys[k] and the positions first[k] … first[k + 1] - 1.
struct Unique {
  Buffer keys;       // of the storage of the sorted keys
  Buffer first;      // i32, one more than the keys
  Buffer count;      // u32, one element: the number of runs
  int64_t size = 0;  // the same on the host
};
/// The runs of sorted keys, u32, i32 or f32; the keys of a run have the same bits. Waits for the number of runs, and then
/// allocates the results.
Unique unique(const Device& device, const Buffer& sorted, const Stream& stream = {});

/// For each element of an extent, the positions of an index buffer that refer to it: those of element k are
/// entries[first[k]] … entries[first[k + 1] - 1].
struct IndexTable {
  Buffer first;    // i32, extent + 1
  Buffer entries;  // i32, as many as the index has elements
};
/// The positions of each element in increasing order. `index` is i32 or u32. Indices outside of 0 … extent - 1 are left
/// out: their positions are in `entries` from first[extent] on, in increasing order, where no element refers to them.
IndexTable transposed_table(const Device& device, const Buffer& index, int64_t extent,
                            const Stream& stream = {});
/// Bytes of device memory that transposed_table takes while it runs, in addition to the table.
int64_t transposed_table_bytes(const Device& device, int64_t count, int64_t extent);

}  // namespace lockstep::primitives
