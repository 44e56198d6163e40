// Steps by groups of 32 lanes, a chain of the sums each: many groups for a member, for devices with many units.
#include <fmt/format.h>

#include <tuple>
#include <vector>

#include "core/memo.hpp"
#include "forecast/rollout/cell.hpp"
#include "forecast/rollout/chains.hpp"

namespace lockstep::forecast {

namespace {

/// Lanes of the two-hot heads, whose rows are many.
constexpr int kHeadLanes = 256;

/// Of each row with each of `count` matrices, a chain a lane.
template <class T, class W>
std::vector<std::vector<Val<T>>> chain_sums(const Grid<W, 3>& u, int count, const std::vector<Val<i32>>& rows,
                                            const Val<i32>& lane, const Read<T>& x) {
  const std::vector<Val<T>> sums = lane_chain_sums<T>(
      int(rows.size()) * count, 1, u.size(1), false, lane,
      [&](int s, const Val<i32>& k) {
        return element<T>(u, rows[size_t(s / count)], k, Val<i32>(s % count));
      },
      [&](int, const Val<i32>& k) { return x(k); });
  std::vector<std::vector<Val<T>>> totals(rows.size());
  for (size_t s = 0; s < sums.size(); ++s) totals[s / size_t(count)].push_back(sums[s]);
  return totals;
}

/// Which rows a group has. After the sums lane r continues with row r; rows beyond the member's last stand for it.
struct RowGroup {
  Val<i32> lane, group, part, hidden;
  RowGroup(const Group<1>& g, const Val<i32>& rows)
      : lane(g.lane()), group(g.id() / parts(rows)), part(g.id() % parts(rows)), hidden(rows) {}
  Val<i32> row(const Val<i32>& r) const { return min(part * kRowsAtOnce + r, hidden - 1); }
  Val<bool> writes() const { return lane < kRowsAtOnce && part * kRowsAtOnce + lane < hidden; }
  /// Its rows of the member's weights.
  std::vector<Val<i32>> weights(const Val<i32>& batch) const {
    std::vector<Val<i32>> all;
    for (int r = 0; r < kRowsAtOnce; ++r) all.push_back(group / batch * hidden + row(Val<i32>(r)));
    return all;
  }
  /// Of the sums of all rows with `count` matrices those of the lane's row.
  template <class T>
  std::vector<Val<T>> own(const std::vector<std::vector<Val<T>>>& sums, int count) const {
    std::vector<Val<T>> all;
    for (int c = 0; c < count; ++c) {
      all.push_back(sums[0][size_t(c)]);
      for (size_t r = 1; r < sums.size(); ++r)
        all.back() = select(lane == int(r), sums[r][size_t(c)], all.back());
    }
    return all;
  }

 private:
  static Val<i32> parts(const Val<i32>& rows) { return (rows + (kRowsAtOnce - 1)) / kRowsAtOnce; }
};

template <class T>
Place<T> place_of(const RowGroup& at, const Val<i32>& batch, const Val<i32>& row, const Val<T>& loss) {
  return {at.group / batch * at.hidden + row, at.group * at.hidden + row, Val<i32>(row * 0),
          Val<i32>(row * 0 + 1), loss};
}

/// `own` sums of the lane's row, scaled.
template <class T, class W>
std::vector<Val<T>> scaled_sums(std::vector<Val<T>> own, const Grid<T, 3>& bias, const Place<T>& at,
                                int gate) {
  for (size_t c = 0; c < own.size(); ++c)
    own[c] = scaled<T, W>(own[c], bias, at.weights, at.lane, gate + int(c));
  return own;
}

template <class T, class W>
Kernel trace_gates(const std::string& name, GruForm form, const HeadShape& shape) {
  return kernel(name,
                [&](Group<1> g, Grid<W, 3> zr, Grid<W, 3> n, Grid<T, 3> input, Grid<T, 3> bias,
                    Grid<T, 1> head, Grid<T, 2> features, Grid<T, 3> pre, InOut<T, 1> last, InOut<T, 3> work,
                    Out<T, 3> out, Param<i32> batch, Param<i32> from, Param<i32> step, Param<i32> hidden,
                    Param<i32> states, Param<u32> key) {
                  const RowGroup at(g, hidden);
                  const Val<i32> group = at.group;
                  const Read<T> h = [&](const Val<i32>& i) { return Val<T>(work(group, from, i)); };
                  const auto zr_sums = chain_sums<T>(zr, 2, at.weights(batch), at.lane, h);
                  std::vector<std::vector<Val<T>>> n_sums(zr_sums.size());
                  if (form == GruForm::reset_after)
                    n_sums = chain_sums<T>(n, 1, at.weights(batch), at.lane, h);
                  Var<T> loss = T(0);
                  if (shape.heads == Heads::two_hot) {
                    loss = Val<T>(last[group]);
                  } else {
                    loss = features(group % batch, 0);
                    const HeadInput<T> in{at.lane,      kChains, h,        hidden, states,
                                          work.size(2), group,   step - 1, key,    head};
                    const HeadValues<T> values = classic_head_of_chains<T>(in);
                    if_(step > 0, [&] {
                      loss = values.loss;
                      if_(at.part == 0, [&] { put_values<T>(in, shape, values, out, group); });
                    });
                    if_(at.part == 0 && at.lane == 0,
                        [&] { last[group] = Val<T>(loss); });  // for the candidate
                  }
                  if_(at.writes(), [&] {
                    const Val<i32> row = at.row(at.lane);
                    const Place<T> place = place_of<T>(at, batch, row, Val<T>(loss));
                    const Products<T> products = [&](int gate, int count) {
                      return scaled_sums<T, W>(at.own(gate < 2 ? zr_sums : n_sums, count), bias, place, gate);
                    };
                    const Gates<T> gates = gates_of<T>(form, {input, bias}, place, pre, products, h(row));
                    work(group, 1 - from, row) = gates.second;
                    if (form == GruForm::reset_before) work(group, 2, row) = gates.z;
                  });
                },
                {.group = {kChains}});
}

template <class T, class W>
Kernel trace_candidate(const std::string& name) {
  return kernel(
      name,
      [&](Group<1> g, Grid<W, 3> n, Grid<T, 3> input, Grid<T, 3> bias, Grid<T, 3> pre, Grid<T, 1> last,
          InOut<T, 3> work, Param<i32> batch, Param<i32> hidden) {
        const RowGroup at(g, hidden);
        const Val<i32> group = at.group;
        const Read<T> rh = [&](const Val<i32>& i) { return Val<T>(work(group, 1, i)); };
        const Val<T> loss = last[group];
        const auto sums = chain_sums<T>(n, 1, at.weights(batch), at.lane, rh);
        if_(at.writes(), [&] {
          const Val<i32> row = at.row(at.lane);
          const Val<T> own = work(group, 0, row), z = work(group, 2, row);
          const Place<T> place = place_of<T>(at, batch, row, loss);
          work(group, 0, row) = candidate_of<T>(
              {input, bias}, place, pre,
              [&](int gate, int count) { return scaled_sums<T, W>(at.own(sums, count), bias, place, gate); },
              own, z);
        });
      },
      {.group = {kChains}});
}

template <class T>
Kernel trace_head(const std::string& name, const HeadShape& shape) {
  const int lanes = shape.heads == Heads::classic ? kChains : kHeadLanes;
  return kernel(name,
                [&](Group<1> g, Grid<T, 1> head, Grid<T, 3> work, Out<T, 1> last, Out<T, 3> out,
                    Param<i32> from, Param<i32> step, Param<i32> hidden, Param<i32> states, Param<u32> key) {
                  const Val<i32> group = g.id();
                  const Read<T> h = [&](const Val<i32>& i) { return Val<T>(work(group, from, i)); };
                  const HeadInput<T> in{g.lane(),     lanes, h,    hidden, states,
                                        work.size(2), group, step, key,    head};
                  const HeadValues<T> values = head_of<T>(in, shape);
                  if_(g.lane() == 0, [&] { last[group] = values.loss; });
                  put_values<T>(in, shape, values, out, group);
                },
                {.group = {lanes}});
}

template <class T, class W>
RowKernels<T> trace_rows(GruForm form, const HeadShape& head) {
  const std::string type(name(detail::kType<T>));
  const std::string shape = head.heads == Heads::classic ? ""
                                                         : fmt::format(".two-hot.{}x{}x{}", head.categoricals,
                                                                       head.categorical_classes, head.bins);
  const std::string form_word = form == GruForm::reset_after ? ".reset-after" : "";
  RowKernels<T> k;
  const std::string narrow = weight_word<T, W>();
  k.gates = trace_gates<T, W>(
      fmt::format("forecast.rollout.rows{}.gates{}{}.{}", form_word, shape, narrow, type), form, head);
  if (form == GruForm::reset_before)
    k.candidate = trace_candidate<T, W>(fmt::format("forecast.rollout.rows.candidate{}.{}", narrow, type));
  k.head = trace_head<T>(fmt::format("forecast.rollout.rows.head{}.{}", shape, type), head);
  return k;
}

}  // namespace

template <class T, class W>
RowKernels<T> row_kernels(GruForm form, const HeadShape& head) {
  static Memo<std::tuple<GruForm, HeadKey>, RowKernels<T>> made;
  return made.get({form, head.key()}, [&] { return trace_rows<T, W>(form, head); });
}

template RowKernels<f32> row_kernels<f32, f32>(GruForm, const HeadShape&);
template RowKernels<f32> row_kernels<f32, lockstep::bf16>(GruForm, const HeadShape&);
template RowKernels<f32> row_kernels<f32, uint8_t>(GruForm, const HeadShape&);
template RowKernels<f64> row_kernels<f64, f64>(GruForm, const HeadShape&);

}  // namespace lockstep::forecast
