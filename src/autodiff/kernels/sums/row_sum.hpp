// Sums of floats along the rows of a transposed table: exact sums (expansion.hpp), so that neither the order of a row nor
// how it is cut matters. Rows longer than kPiece are cut into pieces, whose numbers are added in the same way.
#pragma once

#include "lockstep/device.hpp"

namespace lockstep::gradients {

/// For each row the terms that belong to it: entries first[row] … first[row + 1] - 1.
struct RowTable {
  Buffer first, entries;  // i32
  Buffer long_rows;       // i32, 3 x count: row, its first piece, the end of its pieces; or empty
  Buffer pieces;          // i32, 2 x count: first entry, end
};
inline constexpr int kPiece = 1024;

/// Of terms number 0, 1 …: the row of each, or a number that is none and no row takes. Waits for the device.
RowTable row_table(const Device& device, const Buffer& rows, int64_t count);
/// Bytes of such a table and of what a sum along it needs, at most.
int64_t row_table_bytes(int64_t terms, int64_t rows);
/// sums[row] = the sum of the row's terms. f32 or f64.
void sum_rows(const Device& device, const RowTable& table, const Buffer& terms, const Buffer& sums);
/// The kernel of rows of at most kPiece terms.
const Kernel& row_sum_kernel(Type type);

}  // namespace lockstep::gradients
