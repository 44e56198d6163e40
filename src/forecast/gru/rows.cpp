#include "forecast/gru/rows.hpp"

#include <fmt/format.h>

#include <vector>

#include "forecast/rollout/chains.hpp"
#include "forecast/rollout/element.hpp"

namespace lockstep::forecast {

namespace {

/// Rows of U^T and sequences that a group has. The order of the sums does not follow from it.
struct RowTile {
  int rows, sequences;
};
constexpr RowTile kTiles[2] = {{4, 1}, {2, 4}};  // of one sequence, of several

/// A group's rows and sequences. After the sums lane i continues with row i / sequences of sequence i % sequences; what lies
/// beyond the last stands for the last.
struct TilePlace {
  RowTile tile;
  Val<i32> lane, hidden, batch, first_row, first_sequence;
  TilePlace(const Group<1>& g, const RowTile& of, const Val<i32>& rows, const Val<i32>& sequences)
      : tile(of),
        lane(g.lane()),
        hidden(rows),
        batch(sequences),
        first_row(g.id() % parts(of, rows) * of.rows),
        first_sequence(g.id() / parts(of, rows) * of.sequences) {}
  Val<i32> row(const Val<i32>& i) const { return min(first_row + i, hidden - 1); }
  Val<i32> sequence(const Val<i32>& i) const { return min(first_sequence + i, batch - 1); }
  Val<i32> own_row() const { return row(lane / tile.sequences); }
  Val<i32> own_sequence() const { return sequence(lane % tile.sequences); }
  Val<bool> writes() const {
    return lane < tile.rows * tile.sequences && first_row + lane / tile.sequences < hidden &&
           first_sequence + lane % tile.sequences < batch;
  }

 private:
  static Val<i32> parts(const RowTile& tile, const Val<i32>& rows) {
    return (rows + (tile.rows - 1)) / tile.rows;
  }
};

/// Of a number at a row, or a column, of U^T.
template <class T>
using Scale = std::function<Val<T>(const Val<T>& number, const Val<i32>& at)>;

/// x U for `count` gates from `gate` on: of the lane's row and sequence, without scales of rows.
template <class T, class W>
std::vector<Val<T>> products(
    const TilePlace& at, const Grid<W, 2>& u, int gate, int count, const Grid<T, 2>& x,
    const Scale<T>& scaled = [](const Val<T>& v, const Val<i32>&) { return v; }) {
  std::vector<Val<i32>> rows, sequences;
  for (int c = 0; c < count; ++c)
    for (int r = 0; r < at.tile.rows; ++r) rows.push_back(at.row(Val<i32>(r)) + at.hidden * (gate + c));
  for (int i = 0; i < at.tile.sequences; ++i) sequences.push_back(at.sequence(Val<i32>(i)));
  const std::vector<Val<T>> sums = lane_chain_sums<T>(
      int(rows.size()), at.tile.sequences, u.size(1), true, at.lane,
      [&](int s, const Val<i32>& k) { return scaled(element<T>(u, rows[size_t(s)], k), k); },
      [&](int i, const Val<i32>& k) { return Val<T>(x(sequences[size_t(i)], k)); });
  const int each = at.tile.rows * at.tile.sequences;
  std::vector<Val<T>> own;
  for (int c = 0; c < count; ++c) {
    own.push_back(sums[size_t(c * each)]);
    for (int i = 1; i < each; ++i) own.back() = select(at.lane == i, sums[size_t(c * each + i)], own.back());
  }
  return own;
}

template <class T, class W>
void before_gates(const RowTile& tile, const Group<1>& g, const Grid<W, 2>& u, const Scale<T>& scaled,
                  const Grid<T, 2>& in, const Grid<T, 2>& h, const Out<T, 2>& gates, const Out<T, 2>& kept) {
  const TilePlace at(g, tile, h.size(1), h.size(0));
  const std::vector<Val<T>> product = products<T>(at, u, 0, 2, h);
  if_(at.writes(), [&] {
    const Val<i32> b = at.own_sequence(), z = at.own_row(), r = z + at.hidden;
    const Val<T> reset = sigmoid(in(b, r) + scaled(product[1], r));
    gates(b, z) = sigmoid(in(b, z) + scaled(product[0], z));
    gates(b, r) = reset;
    kept(b, z) = reset * h(b, z);
  });
}

template <class T, class W>
void candidate(const RowTile& tile, const Group<1>& g, const Grid<W, 2>& u, const Scale<T>& scaled,
               const Grid<T, 2>& in, const Grid<T, 2>& kept, const Grid<T, 2>& h, const InOut<T, 2>& gates,
               const Out<T, 2>& next) {
  const TilePlace at(g, tile, h.size(1), h.size(0));
  const std::vector<Val<T>> product = products<T>(at, u, 2, 1, kept);
  if_(at.writes(), [&] {
    const Val<i32> b = at.own_sequence(), z = at.own_row(), n = z + at.hidden * 2;
    const Val<T> value = tanh(in(b, n) + scaled(product[0], n)), own = h(b, z);
    gates(b, n) = value;
    next(b, z) = fma(Val<T>(gates(b, z)), value - own, own);
  });
}

template <class T, class W>
void after_gates(const RowTile& tile, const Group<1>& g, const Grid<W, 2>& u, const Scale<T>& scaled,
                 const Grid<T, 2>& in, const Grid<T, 1>& bias, const Grid<T, 2>& h, const Out<T, 2>& gates,
                 const Out<T, 2>& recurrent, const Out<T, 2>& next) {
  const TilePlace at(g, tile, h.size(1), h.size(0));
  const std::vector<Val<T>> product = products<T>(at, u, 0, 3, h);
  if_(at.writes(), [&] {
    const Val<i32> b = at.own_sequence(), z = at.own_row(), r = z + at.hidden, n = r + at.hidden;
    const auto of_h = [&](int gate, const Val<i32>& row) {
      return scaled(product[size_t(gate)], row) + bias[row];
    };
    const Val<T> update = sigmoid(in(b, z) + of_h(0, z)), reset = sigmoid(in(b, r) + of_h(1, r));
    const Val<T> inner = of_h(2, n), value = tanh(fma(reset, inner, in(b, n)));
    gates(b, z) = update;
    gates(b, r) = reset;
    gates(b, n) = value;
    recurrent(b, z) = inner;
    next(b, z) = fma(update, h(b, z) - value, value);
  });
}

/// d U^T: `u` has rows of U, whose scales are those of its columns.
template <class T, class W>
void back(const RowTile& tile, const Group<1>& g, const Grid<W, 2>& u, const Scale<T>& scaled,
          const Grid<T, 2>& d, const Out<T, 2>& to) {
  const TilePlace at(g, tile, u.size(0), d.size(0));
  const Val<T> product = products<T>(at, u, 0, 1, d, scaled)[0];
  if_(at.writes(), [&] { to(at.own_sequence(), at.own_row()) = product; });
}

/// The same, added to what reaches the step before directly.
template <class T, class W>
void back_add(const RowTile& tile, const Group<1>& g, const Grid<W, 2>& u, const Scale<T>& scaled,
              const Grid<T, 2>& d, const InOut<T, 2>& direct, const Param<T>& decay) {
  const TilePlace at(g, tile, u.size(0), d.size(0));
  const Val<T> product = products<T>(at, u, 0, 1, d, scaled)[0];
  if_(at.writes(), [&] {
    const Val<i32> b = at.own_sequence(), k = at.own_row();
    direct(b, k) = (direct(b, k) + product) * decay;
  });
}

/// body(tile, group, U^T, scale, buffers …) as a kernel over U^T, of fp8 its scales, and the buffers.
template <class T, class W, class... Buffers, class Body>
Kernel row_kernel(const std::string& what, const RowTile& tile, Body body) {
  const std::string kernel_name = fmt::format("forecast.gru.rows.{}{}{}.{}", what, weight_word<T, W>(),
                                              tile.sequences > 1 ? ".batch" : "", name(detail::kType<T>));
  if constexpr (std::is_same_v<W, uint8_t>)
    return kernel(kernel_name,
                  [&](Group<1> g, Grid<W, 2> u, Grid<T, 1> scales, Buffers... buffers) {
                    const Scale<T> scaled = [&](const Val<T>& v, const Val<i32>& row) {
                      return v * scales[row];
                    };
                    body(tile, g, u, scaled, buffers...);
                  },
                  {.group = {kChains}});
  else
    return kernel(kernel_name,
                  [&](Group<1> g, Grid<W, 2> u, Buffers... buffers) {
                    const Scale<T> same = [](const Val<T>& v, const Val<i32>&) { return v; };
                    body(tile, g, u, same, buffers...);
                  },
                  {.group = {kChains}});
}

template <class T, class W>
SequenceRowKernels trace(GruForm form, const RowTile& tile) {
  using In = Grid<T, 2>;
  using To = Out<T, 2>;
  const Kernel product = row_kernel<T, W, In, To>("back", tile, back<T, W>),
               sum = row_kernel<T, W, In, InOut<T, 2>, Param<T>>("back-add", tile, back_add<T, W>);
  if (form == GruForm::reset_after)
    return {row_kernel<T, W, In, Grid<T, 1>, In, To, To, To>("reset-after", tile, after_gates<T, W>),
            {},
            product,
            sum};
  return {row_kernel<T, W, In, In, To, To>("gates", tile, before_gates<T, W>),
          row_kernel<T, W, In, In, In, InOut<T, 2>, To>("candidate", tile, candidate<T, W>), product, sum};
}

}  // namespace

int64_t sequence_groups(int64_t hidden, int64_t batch) {
  const auto [rows, sequences] = kTiles[batch > 1];
  return (hidden + rows - 1) / rows * ((batch + sequences - 1) / sequences);
}

template <class T, class W>
const SequenceRowKernels& sequence_row_kernels(GruForm form, bool several) {
  static const SequenceRowKernels kernels[2][2] = {
      {trace<T, W>(GruForm::reset_before, kTiles[0]), trace<T, W>(GruForm::reset_before, kTiles[1])},
      {trace<T, W>(GruForm::reset_after, kTiles[0]), trace<T, W>(GruForm::reset_after, kTiles[1])}};
  return kernels[form == GruForm::reset_after][several];
}
template const SequenceRowKernels& sequence_row_kernels<f32, f32>(GruForm, bool);
template const SequenceRowKernels& sequence_row_kernels<f32, lockstep::bf16>(GruForm, bool);
template const SequenceRowKernels& sequence_row_kernels<f32, uint8_t>(GruForm, bool);
template const SequenceRowKernels& sequence_row_kernels<f64, f64>(GruForm, bool);

}  // namespace lockstep::forecast
