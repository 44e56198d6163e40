#include "autodiff/kernels/sums/row_sum.hpp"

#include <vector>

#include "autodiff/kernels/sums/expansion.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::gradients {

namespace {

/// The terms in the order of the entries. A kernel of its own, whose reads overlap: where a row ends cannot be predicted.
template <class T>
const Kernel& ordering() {
  static const Kernel made = kernel(sizeof(T) == 8 ? "gradient.order.f64" : "gradient.order.f32",
                                    [](At<1> at, Grid<i32, 1> entries, Grid<T, 1> terms, Out<T, 1> ordered) {
                                      ordered[at] = terms(Val<i32>(entries[at]));
                                    });
  return made;
}

/// Terms begin … end - 1.
template <class T>
struct Span {
  const Grid<T, 1>& terms;
  Val<i32> begin, end;
  template <class Use>
  void operator()(Use use) const {
    for_(begin, end, [&](Val<i32> k) { use(terms(k)); });
  }
};

template <class T>
const Kernel& short_rows() {
  static const Kernel made =
      kernel(sizeof(T) == 8 ? "gradient.rows.f64" : "gradient.rows.f32",
             [](At<1> at, Grid<i32, 1> first, Grid<T, 1> terms, Out<T, 1> sums) {
               const Span<T> row{terms, first(at.x), first(at.x + 1)};
               if_(row.end - row.begin <= kPiece,
                   [&] { store_sum(sum_of<T>(row), row, [&](const Val<T>& sum) { sums[at] = sum; }); });
             });
  return made;
}

/// Numbers of the expansion of each piece; NaN where something was lost.
template <class T>
const Kernel& piece_sums() {
  static const Kernel made =
      kernel(sizeof(T) == 8 ? "gradient.pieces.f64" : "gradient.pieces.f32",
             [](At<1> at, Grid<i32, 2> pieces, Grid<T, 1> terms, Out<f64, 2> parts) {
               const Expansion<T> sum = sum_of<T>(Span<T>{terms, pieces(0, at.x), pieces(1, at.x)});
               for (int k = 0; k < kParts<T>; ++k)
                 parts(k, at.x) = select(sum.lost(), std::numeric_limits<f64>::quiet_NaN(), sum.part(k));
             });
  return made;
}
template <class T>
const Kernel& long_rows() {
  static const Kernel made = kernel(sizeof(T) == 8 ? "gradient.long_rows.f64" : "gradient.long_rows.f32",
                                    [](At<1> at, Grid<i32, 2> rows, Grid<f64, 2> parts, Grid<i32, 1> first,
                                       Grid<T, 1> terms, Out<T, 1> sums) {
                                      const Val<i32> row = rows(0, at.x);
                                      Expansion<T> sum;
                                      for_(rows(1, at.x), rows(2, at.x), [&](Val<i32> piece) {
                                        for (int k = 0; k < kParts<T>; ++k) sum.add(parts(k, piece));
                                      });
                                      const Span<T> whole{terms, first(row), first(row + 1)};
                                      store_sum(sum, whole, [&](const Val<T>& v) { sums(row) = v; });
                                    });
  return made;
}

template <class T>
void sum_rows_of(const Device& device, const RowTable& table, const Buffer& terms, const Buffer& sums) {
  const Buffer ordered = device.allocate(terms.storage(), table.entries.shape());
  device.launch(ordering<T>(), ordered.shape(), table.entries, terms, ordered);
  device.launch(short_rows<T>(), sums.shape(), table.first, ordered, sums);
  if (!table.pieces) return;
  const int64_t pieces = table.pieces.shape()[1];
  const Buffer parts = device.allocate<f64>({kParts<T>, pieces});
  device.launch(piece_sums<T>(), {pieces}, table.pieces, ordered, parts);
  device.launch(long_rows<T>(), {table.long_rows.shape()[1]}, table.long_rows, parts, table.first, ordered,
                sums);
}

}  // namespace

RowTable row_table(const Device& device, const Buffer& rows, int64_t count) {
  const primitives::IndexTable made = primitives::transposed_table(device, rows, count);
  RowTable table{made.first, made.entries, {}, {}};
  const std::vector<i32> first = device.download<i32>(table.first);
  std::array<std::vector<i32>, 3> longer;
  std::array<std::vector<i32>, 2> pieces;
  for (size_t row = 0; row + 1 < first.size(); ++row) {
    const i32 end = first[row + 1];
    if (end - first[row] <= kPiece) continue;
    longer[0].push_back(i32(row));
    longer[1].push_back(i32(pieces[0].size()));
    for (i32 begin = first[row]; begin < end; begin += std::min(kPiece, end - begin)) {
      pieces[0].push_back(begin);
      pieces[1].push_back(begin + std::min(kPiece, end - begin));
    }
    longer[2].push_back(i32(pieces[0].size()));
  }
  if (longer[0].empty()) return table;
  const auto upload = [&](auto& lists) {
    const auto length = int64_t(lists[0].size());
    std::vector<i32> all;
    for (const std::vector<i32>& list : lists) all.insert(all.end(), list.begin(), list.end());
    return device.upload<i32>(all, {int64_t(lists.size()), length});
  };
  table.long_rows = upload(longer);
  table.pieces = upload(pieces);
  return table;
}

int64_t row_table_bytes(int64_t terms, int64_t rows) {
  const int64_t pieces =
      2 * (terms / kPiece);  // a row of more than kPiece terms ends in one that is not full
  return 4 * terms + 4 * (rows + 1) + pieces * (2 * 4 + 3 * 8) + (terms / kPiece) * 3 * 4;
}

void sum_rows(const Device& device, const RowTable& table, const Buffer& terms, const Buffer& sums) {
  if (sums.storage() == Storage::f64)
    sum_rows_of<f64>(device, table, terms, sums);
  else
    sum_rows_of<f32>(device, table, terms, sums);
}

const Kernel& row_sum_kernel(Type type) { return type == Type::f64 ? short_rows<f64>() : short_rows<f32>(); }

}  // namespace lockstep::gradients
