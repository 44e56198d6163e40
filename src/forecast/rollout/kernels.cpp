#include "forecast/rollout/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/memo.hpp"
#include "forecast/rollout/cell.hpp"
#include "lockstep/kernel/vec.hpp"

namespace lockstep::forecast {

namespace {

template <class T>
std::string rollout_name(const std::string& what) {
  return fmt::format("forecast.rollout.{}.{}", what, name(detail::kType<T>));
}

/// By one lane each. `zr` and `n` are the matrices side by side; a kernel without the one gives the other twice.
template <class T, class W>
Products<T> lane_products(const Grid<W, 3>& zr, const Grid<W, 3>& n, const Grid<T, 3>& bias,
                          const Place<T>& at, const Read<T>& x) {
  return [=, &zr, &n, &bias](int gate, int count) {
    const Grid<W, 3>& u = gate < 2 ? zr : n;
    std::vector<Val<T>> products = chain_products<T>(
        count, u.size(1),
        [&](int c, const Val<i32>& k) { return element<T>(u, at.weights, k, at.p * c + at.lane); }, x);
    for (int c = 0; c < count; ++c)
      products[size_t(c)] = scaled<T, W>(products[size_t(c)], bias, at.weights, at.lane, gate + c);
    return products;
  };
}

std::string form_word(GruForm form) { return form == GruForm::reset_after ? ".reset-after" : ""; }
std::string head_word(const HeadShape& shape) {
  if (shape.heads == Heads::classic) return "";
  return fmt::format(".two-hot.{}x{}x{}", shape.categoricals, shape.categorical_classes, shape.bins);
}

template <class T>
struct Vectors {
  Read<T> h, second, z;
  std::function<void(const Val<i32>&, const Val<T>&)> set_h, set_second, set_z;
};

template <class T>
Vectors<T> shared_vectors(const SharedArray<T>& all, int capacity) {
  const auto read = [=](int which) {
    return [=](const Val<i32>& row) { return Val<T>(all[row + which * capacity]); };
  };
  const auto write = [=](int which) {
    return [=](const Val<i32>& row, const Val<T>& v) { all[row + which * capacity] = v; };
  };
  return {read(0), read(1), read(2), write(0), write(1), write(2)};
}

template <class T>
Vectors<T> buffer_vectors(const InOut<T, 3>& work, const Val<i32>& group) {
  const auto read = [=](int which) {
    return [=](const Val<i32>& row) { return Val<T>(work(group, which, row)); };
  };
  const auto write = [=](int which) {
    return [=](const Val<i32>& row, const Val<T>& v) { work(group, which, row) = v; };
  };
  return {read(0), read(1), read(2), write(0), write(1), write(2)};
}

template <class T, class W>
Kernel trace_one_launch(GruForm form, const HeadShape& shape, int p, int capacity) {
  const std::string what = fmt::format("one-launch{}{}{}.{}x{}", form_word(form), head_word(shape),
                                       weight_word<T, W>(), p, capacity);
  const int lanes = std::max(p, kChains);  // those beyond P work in the head alone
  return kernel(
      rollout_name<T>(what),
      [&](Group<1> g, Grid<W, 3> zr, Grid<W, 3> n, Grid<T, 3> input, Grid<T, 3> bias, Grid<T, 1> head,
          Grid<T, 2> features, Grid<T, 2> h0, InOut<T, 3> pre, InOut<T, 3> work, Out<T, 3> out,
          Param<i32> batch, Param<i32> steps, Param<i32> hidden, Param<i32> states, Param<u32> key) {
        const Val<i32> lane = g.lane(), group = g.id(), member = group / batch, rows = work.size(2);
        const Val<i32> blocks = rows / p, entry = group % batch;
        const Vectors<T> v = capacity > 0 ? shared_vectors(SharedArray<T>(3 * capacity), capacity)
                                          : buffer_vectors(work, group);
        const Weights<T> w{input, bias};
        Var<T> loss = features(entry, 0);
        const auto each_row = [&](const std::function<void(const Place<T>&, const Val<i32>&)>& body) {
          const auto rows_of_lane = [&] {
            for_(0, blocks, [&](Val<i32> q) {
              body({member * blocks + q, group * blocks + q, lane, p, loss}, q * p + lane);
            });
          };
          p < lanes ? if_(lane < p, rows_of_lane) : rows_of_lane();
        };
        each_row([&](const Place<T>& at, const Val<i32>& row) {
          input_products<T>(w, at, features, entry, pre);
          v.set_h(row, h0(member, row));
        });
        barrier();
        for_(0, steps, [&](Val<i32> t) {
          each_row([&](const Place<T>& at, const Val<i32>& row) {
            const Gates<T> gates =
                gates_of<T>(form, w, at, pre, lane_products<T, W>(zr, n, bias, at, v.h), v.h(row));
            v.set_second(row, gates.second);
            if (form == GruForm::reset_before) v.set_z(row, gates.z);
          });
          barrier();
          each_row([&](const Place<T>& at, const Val<i32>& row) {
            v.set_h(row, form == GruForm::reset_after
                             ? v.second(row)
                             : candidate_of<T>(w, at, pre, lane_products<T, W>(zr, n, bias, at, v.second),
                                               v.h(row), v.z(row)));
          });
          barrier();
          const HeadInput<T> in{lane, lanes, v.h, hidden, states, rows, group, t, key, head};
          const HeadValues<T> values = head_of<T>(in, shape);
          loss = values.loss;
          put_values<T>(in, shape, values, out, group);
          barrier();
        });
        if (capacity > 0)
          each_row([&](const Place<T>&, const Val<i32>& row) { work(group, 0, row) = v.h(row); });
      },
      {.group = {lanes}});
}

template <class T, class W>
StepKernels<T> trace_steps(GruForm form, const HeadShape& shape) {
  const std::string word = form == GruForm::reset_after ? "reset-after." : "", narrow = weight_word<T, W>();
  StepKernels<T> k;
  k.begin = kernel(rollout_name<T>("begin"),
                   [](At<3> at, Grid<T, 3> input, Grid<T, 3> bias, Grid<T, 2> features, Grid<T, 2> h0,
                      Out<T, 3> pre, Out<T, 3> work, Out<T, 1> last, Param<i32> batch) {
                     const Val<i32> group = at.z, member = group / batch, blocks = at.extent(1),
                                    p = at.extent(0), entry = group % batch;
                     const Val<i32> row = Val<i32>(at.y) * p + at.x;
                     const Weights<T> w{input, bias};
                     input_products<T>(w, {member * blocks + at.y, group * blocks + at.y, at.x, p, T(0)},
                                       features, entry, pre);
                     work(group, 0, row) = h0(member, row);
                     if_(row == 0, [&] { last[group] = features(entry, 0); });
                   });
  k.gates = kernel(
      rollout_name<T>(word + "gates" + narrow),
      [&](At<3> at, Grid<W, 3> zr, Grid<W, 3> n, Grid<T, 3> input, Grid<T, 3> bias, Grid<T, 3> pre,
          Grid<T, 1> last, InOut<T, 3> work, Param<i32> batch, Param<i32> from) {
        const Val<i32> group = at.z, blocks = at.extent(1), p = at.extent(0), row = Val<i32>(at.y) * p + at.x;
        const Place<T> place{group / batch * blocks + at.y, group * blocks + at.y, at.x, p, last[group]};
        const Read<T> h = [&](const Val<i32>& i) { return Val<T>(work(group, from, i)); };
        const Gates<T> gates =
            gates_of<T>(form, {input, bias}, place, pre, lane_products<T, W>(zr, n, bias, place, h), h(row));
        work(group, 1 - from, row) = gates.second;
        if (form == GruForm::reset_before) work(group, 2, row) = gates.z;
      });
  if (form == GruForm::reset_before)
    k.candidate = kernel(rollout_name<T>("candidate" + narrow), [](At<3> at, Grid<W, 3> n, Grid<T, 3> input,
                                                                   Grid<T, 3> bias, Grid<T, 3> pre,
                                                                   Grid<T, 1> last, InOut<T, 3> work,
                                                                   Param<i32> batch) {
      const Val<i32> group = at.z, blocks = at.extent(1), p = at.extent(0), row = Val<i32>(at.y) * p + at.x;
      const Place<T> place{group / batch * blocks + at.y, group * blocks + at.y, at.x, p, last[group]};
      const Read<T> rh = [&](const Val<i32>& i) { return Val<T>(work(group, 1, i)); };
      const Val<T> own = work(group, 0, row), z = work(group, 2, row);
      work(group, 0, row) =
          candidate_of<T>({input, bias}, place, pre, lane_products<T, W>(n, n, bias, place, rh), own, z);
    });
  k.head = kernel(
      rollout_name<T>("head" + head_word(shape)),
      [&](Group<1> g, Grid<T, 1> head, Grid<T, 3> work, Out<T, 1> last, Out<T, 3> out, Param<i32> from,
          Param<i32> step, Param<i32> first_group, Param<i32> hidden, Param<i32> states, Param<u32> key) {
        const Val<i32> group = g.id();
        const Read<T> h = [&](const Val<i32>& i) { return Val<T>(work(group, from, i)); };
        const HeadInput<T> in{g.lane(), kChains, h,   hidden, states, work.size(2), first_group + group,
                              step,     key,     head};
        const HeadValues<T> values = head_of<T>(in, shape);
        if_(g.lane() == 0, [&] { last[group] = values.loss; });
        put_values<T>(in, shape, values, out, group);
      },
      {.group = {kChains}});
  return k;
}

}  // namespace

HeadShape head_shape(const RolloutModel& model, Heads heads) {
  if (heads == Heads::classic) return {};
  return {heads, int(model.projection.size(0)), int(model.projection.size(1)), int(model.bins.size(0))};
}

template <class T>
int64_t shared_bytes(const HeadShape& head, int capacity) {
  return (head_words(head) + 3 * int64_t(capacity)) * int64_t(sizeof(T)) + 4 * int64_t(head.categoricals);
}

template <class T, class W>
Kernel one_launch_kernel(GruForm form, const HeadShape& head, int p, int capacity) {
  static Memo<std::tuple<GruForm, HeadKey, int, int>, Kernel> made;
  return made.get({form, head.key(), p, capacity},
                  [&] { return trace_one_launch<T, W>(form, head, p, capacity); });
}

template <class T, class W>
StepKernels<T> step_kernels(GruForm form, const HeadShape& head) {
  static Memo<std::tuple<GruForm, HeadKey>, StepKernels<T>> made;
  return made.get({form, head.key()}, [&] { return trace_steps<T, W>(form, head); });
}

template int64_t shared_bytes<f32>(const HeadShape&, int);
template int64_t shared_bytes<f64>(const HeadShape&, int);
template Kernel one_launch_kernel<f32, f32>(GruForm, const HeadShape&, int, int);
template Kernel one_launch_kernel<f32, lockstep::bf16>(GruForm, const HeadShape&, int, int);
template Kernel one_launch_kernel<f32, uint8_t>(GruForm, const HeadShape&, int, int);
template Kernel one_launch_kernel<f64, f64>(GruForm, const HeadShape&, int, int);
template StepKernels<f32> step_kernels<f32, f32>(GruForm, const HeadShape&);
template StepKernels<f32> step_kernels<f32, lockstep::bf16>(GruForm, const HeadShape&);
template StepKernels<f32> step_kernels<f32, uint8_t>(GruForm, const HeadShape&);
template StepKernels<f64> step_kernels<f64, f64>(GruForm, const HeadShape&);

}  // namespace lockstep::forecast
