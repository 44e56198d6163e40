// A GRU over a sequence: the inputs' products at once, those with U step by step, and back. The steps of many sequences are
// the kernels of the layer nn::Gru; here a step has rows of its own, a start and a gradient by it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "device/state.hpp"
#include "device/variants/memory.hpp"
#include "forecast/gru/cluster/cluster.hpp"
#include "forecast/gru/narrow.hpp"
#include "forecast/gru/rows.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/gru.hpp"
#include "lockstep/primitives.hpp"
#include "nn/layers/common.hpp"
#include "nn/layers/kernels.hpp"

namespace lockstep::forecast {

const variants::Computation& gru_computation() {
  static const variants::Computation computation({.name = "forecast.gru",
                                                  .variants = {"products", "rows", "cluster"},
                                                  .axes = {"sequences"},
                                                  .exact = variants::Agreement::bound});
  return computation;
}

struct GruSequence::State {
  Device device;
  GruShape s;
  GruMemory memory;
  enum class Steps { products, rows, cluster } by = Steps::products;
  Buffer w, u, b, rb;                              // views of one buffer each: these, and dw … drb
  NarrowRecurrent narrow;                          // instead of u and u_t
  Buffer w_t, u_t, x_t, h_t, rh_t, ones;           // transposed, for products
  Buffer x, xw, states, zrn, extra;                // zrn: the gates; extra: r h, or h U_n + rb_n
  Buffer g, c;                                     // of one step: (B, 3 D), (B, D)
  Buffer d_g, d_u, dw, du, db, drb, dx, incoming;  // gradients
  std::array<Buffer, 3> carried;  // to the step before; that of step 0 is the first; the last is 0

  /// Steps that run again, for a decay of the gradient.
  struct Again {
    std::optional<double> decay;
    std::optional<Graph> graph;
  };
  Again forward_again, backward_again;

  /// Launches the steps plainly the first time, and replays a recording of them from the second on: launches one by one take
  /// longer than short steps. A caller's recording has the launches themselves.
  void replay(Again& again, double decay, const std::function<void()>& steps) const {
    if (device::recording_now()) return steps();
    if (again.decay != decay) {
      again = {decay, {}};
      return steps();
    }
    if (!again.graph) again.graph = device.record(steps);
    device.replay(*again.graph);
  }

  /// Views of `all`, (parameter_count): W, U, b and rb; U only where it is there.
  std::array<Buffer, 4> parts(const Buffer& all, bool with_u) const {
    const int64_t d = s.hidden, in = s.inputs;
    int64_t from = 0;
    const auto next = [&](const Shape& shape, int64_t count) {
      return all.rows(std::exchange(from, from + count), count).reshape(shape);
    };
    std::array<Buffer, 4> p;
    p[0] = next({in, 3 * d}, 3 * d * in);
    if (with_u) p[1] = next({d, 3 * d}, 3 * d * d);
    p[2] = next({3 * d}, 3 * d);
    if (!before()) p[3] = next({3 * d}, 3 * d);
    return p;
  }

  int64_t rows() const { return s.steps * s.batch; }
  bool before() const { return s.form == GruForm::reset_before; }
  bool is_narrow() const { return s.weights != WeightType::f32; }
  bool by_rows() const { return by == Steps::rows; }
  bool keeps_columns() const { return s.backward || by == Steps::products; }
  bool turns_u() const { return s.backward || by != Steps::products; }
  /// Elements of a buffer for W, U, b and rb; U is included unless its weights are narrow.
  int64_t weight_elements() const {
    return GruSequence::parameter_count(s) - (is_narrow() ? 3 * s.hidden * s.hidden : 0);
  }

  /// `own`: with weights and gradients.
  void predict(bool own) {
    const int64_t d = s.hidden, n_b = s.batch, word = size_of(s.storage);
    memory = {};
    if (own) memory.weights = word * weight_elements();
    if (is_narrow())
      memory.weights += NarrowRecurrent::bytes(s.weights, d, keeps_columns(), turns_u());
    else if (turns_u())
      memory.weights += word * 3 * d * d;
    memory.state = word * (rows() * 8 * d + 5 * n_b * d);
    if (!s.backward) return;
    const int64_t turned = 3 * d * s.inputs, steps = rows() * (2 * s.inputs + (before() ? 6 : 8) * d + 1);
    memory.gradients = word * ((own ? GruSequence::parameter_count(s) : 0) + turned + steps + 3 * n_b * d);
  }

  void allocate() {
    const int64_t t = s.steps, n_b = s.batch, d = s.hidden, in = s.inputs;
    const auto make = [&](Shape shape) {
      const Buffer buffer = device.allocate(s.storage, shape);
      device.clear(buffer);
      return buffer;
    };
    if (is_narrow()) narrow = NarrowRecurrent(device, s.weights, d, keeps_columns(), turns_u());
    if (!is_narrow() && turns_u()) u_t = make({3 * d, d});
    xw = make({rows(), 3 * d}), states = make({t + 1, n_b, d});
    zrn = make({rows(), 3 * d}), extra = make({rows(), d});
    g = make({n_b, 3 * d}), c = make({n_b, d});
    if (!s.backward) return;
    w_t = make({3 * d, in}), x_t = make({in, rows()}), h_t = make({d, rows()});
    ones = make({1, rows()});
    primitives::fill(device, ones, 1);
    for (Buffer& one : carried) one = make({n_b, d});
    d_g = make({rows(), 3 * d});
    dx = make({t, n_b, in}), incoming = make({t, n_b, d});
    if (before())
      rh_t = make({d, rows()});
    else
      d_u = make({rows(), 3 * d});
  }

  Buffer step(const Buffer& all, int64_t t) const { return all.rows(t * s.batch, s.batch); }
  Buffer state(int64_t t) const { return states.rows(t, 1).reshape({s.batch, s.hidden}); }
  /// Columns [first, first + count) gates of a matrix.
  Buffer gates(const Buffer& matrix, int64_t first, int64_t count) const {
    return matrix.window({0, first * s.hidden}, {matrix.shape()[0], count * s.hidden});
  }

  /// f of a value of the elements' type and one of U's.
  template <class F>
  auto with_types(F f) const {
    if (s.storage == Storage::f64) return f(f64(), f64());
    switch (s.weights) {
      case WeightType::bf16: return f(f32(), lockstep::bf16());
      case WeightType::fp8: return f(f32(), uint8_t());
      case WeightType::f32: break;
    }
    return f(f32(), f32());
  }

  /// to = x U for `count` gates from `first` on.
  void times_u(const Buffer& x, int64_t first, int64_t count, const Buffer& to) const {
    if (is_narrow()) return narrow.times(x, first, count, to);
    primitives::matmul(device, x, gates(u, first, count), to);
  }
  /// A kernel of rows over U of these gates, of fp8 their scales, and `arguments`.
  template <class W, class... Arguments>
  void launch_back(const Kernel& kernel, int64_t first, int64_t count, const Arguments&... arguments) const {
    const Shape groups{sequence_groups(s.hidden, s.batch)};
    const Buffer of_gates = gates(is_narrow() ? narrow.columns() : u, first, count);
    if constexpr (std::is_same_v<W, uint8_t>)
      device.launch(kernel, groups, of_gates, narrow.scales().rows(first * s.hidden, count * s.hidden),
                    arguments...);
    else
      device.launch(kernel, groups, of_gates, arguments...);
  }

  /// to = x U^T of these gates.
  void times_u_transposed(const Buffer& x, int64_t first, int64_t count, const Buffer& to) const {
    if (by != Steps::products)
      return with_types([&]<class T, class W>(T, W) {
        launch_back<W>(sequence_row_kernels<T, W>(s.form, s.batch > 1).back, first, count, x, to);
      });
    if (is_narrow()) return narrow.times_transposed(x, first, count, to);
    primitives::matmul(device, x, u_t.rows(first * s.hidden, count * s.hidden), to);
  }
  /// to = (to + x U^T) decay.
  void add_times_u_transposed(const Buffer& x, int64_t first, int64_t count, const Buffer& to,
                              double decay) const {
    if (by != Steps::products)
      return with_types([&]<class T, class W>(T, W) {
        launch_back<W>(sequence_row_kernels<T, W>(s.form, s.batch > 1).back_add, first, count, x, to,
                       T(decay));
      });
    times_u_transposed(x, first, count, c);
    primitives::axpy(device, 1, c, to);
    if (decay != 1) primitives::scale(device, decay, to);
  }

  template <class T>
  const Kernel& forward_kernel(int stage) const {
    return nn::gru_kernel<T>(s.form, stage);
  }
  template <class T>
  const Kernel& back_kernel(int stage) const {
    return nn::gru_adjoint_kernel<T>(s.form, stage);
  }
  template <class T>
  const Kernel& bias_kernel() const {
    static const Kernel add = nn::activate_kernel<T>(nn::Activation::identity, true);
    return add;
  }

  template <class T>
  void forward() {
    primitives::matmul(device, x.reshape({rows(), s.inputs}), w, xw);
    device.launch(bias_kernel<T>(), xw.shape(), xw, b);
    if (by != Steps::products && !is_narrow()) primitives::transpose(device, u, u_t);
    if (by == Steps::cluster) return steps_by_cluster();
    replay(forward_again, 1, [&] { by_rows() ? steps_by_rows() : steps_by_products<T>(); });
  }

  void steps_by_cluster() const {
    const Kernel kernel = sequence_cluster(s.form, s.hidden, device.numerics());
    const Buffer lines = states.reshape({(s.steps + 1) * s.batch, s.hidden});
    if (before())
      device.launch(kernel, {s.batch}, u_t, xw, lines, zrn, extra, s.steps, s.batch);
    else
      device.launch(kernel, {s.batch}, u_t, xw, lines, zrn, extra, rb, s.steps, s.batch);
  }

  void steps_by_rows() const {
    with_types([&]<class T, class W>(T, W) {
      const SequenceRowKernels& k = sequence_row_kernels<T, W>(s.form, s.batch > 1);
      const int64_t groups = sequence_groups(s.hidden, s.batch);
      const auto launch = [&](const Kernel& kernel, const auto&... buffers) {
        if constexpr (std::is_same_v<W, uint8_t>)
          device.launch(kernel, {groups}, narrow.transposed(), narrow.scales(), buffers...);
        else
          device.launch(kernel, {groups}, is_narrow() ? narrow.transposed() : u_t, buffers...);
      };
      for (int64_t t = 0; t < s.steps; ++t) {
        const Buffer h = state(t), next = state(t + 1), in = step(xw, t), all = step(zrn, t),
                     et = step(extra, t);
        if (before()) {
          launch(k.gates, in, h, all, et);
          launch(k.candidate, in, et, h, all, next);
        } else {
          launch(k.gates, in, rb, h, all, et, next);
        }
      }
    });
  }

  template <class T>
  void steps_by_products() const {
    const Shape extent{s.batch, s.hidden};
    for (int64_t t = 0; t < s.steps; ++t) {
      const Buffer h = state(t), next = state(t + 1), in = step(xw, t), all = step(zrn, t),
                   et = step(extra, t);
      if (before()) {
        times_u(h, 0, 2, gates(g, 0, 2));
        device.launch(forward_kernel<T>(0), extent, in, gates(g, 0, 2), h, all, et);
        times_u(et, 2, 1, c);
        device.launch(forward_kernel<T>(1), extent, in, c, h, all, next);
      } else {
        times_u(h, 0, 3, g);
        device.launch(forward_kernel<T>(0), extent, in, g, rb, h, all, et, next);
      }
    }
  }

  template <class T>
  void backward(const Buffer& d_states, double decay) {
    if (by == Steps::products && !is_narrow()) primitives::transpose(device, u, u_t);
    device.copy(d_states, incoming);
    replay(backward_again, decay, [&] { steps_back<T>(decay); });
    weight_gradients();
  }

  template <class T>
  void steps_back(double decay) const {
    const Shape extent{s.batch, s.hidden};
    const int64_t d = s.hidden;
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const Buffer h = state(t), all = step(zrn, t), dg = step(d_g, t), direct = carried[size_t(t % 2)];
      const Buffer carry = carried[t + 1 < s.steps ? size_t(1 - t % 2) : 2];
      const Buffer in = incoming.rows(t, 1).reshape({s.batch, d});
      if (before()) {
        device.launch(back_kernel<T>(0), extent, in, carry, all, h, dg, direct);
        times_u_transposed(gates(dg, 2, 1), 2, 1, c);
        device.launch(back_kernel<T>(1), extent, c, all, h, gates(dg, 1, 1), direct);
        add_times_u_transposed(gates(dg, 0, 2), 0, 2, direct, decay);
      } else {
        device.launch(back_kernel<T>(0), extent, in, carry, all, step(extra, t), h, dg, step(d_u, t), direct);
        add_times_u_transposed(step(d_u, t), 0, 3, direct, decay);
      }
    }
  }

  void weight_gradients() const {
    const int64_t d = s.hidden;
    primitives::transpose(device, x.reshape({rows(), s.inputs}), x_t);
    primitives::transpose(device, states.rows(0, s.steps).reshape({rows(), d}), h_t);
    primitives::transpose(device, w, w_t);
    primitives::matmul(device, x_t, d_g, dw);
    primitives::matmul(device, d_g, w_t, dx.reshape({rows(), s.inputs}));
    primitives::matmul(device, ones, d_g, db.reshape({1, 3 * d}));
    if (before()) {
      primitives::transpose(device, extra, rh_t);
      primitives::matmul(device, h_t, gates(d_g, 0, 2), gates(du, 0, 2));
      primitives::matmul(device, rh_t, gates(d_g, 2, 1), gates(du, 2, 1));
    } else {
      primitives::matmul(device, h_t, d_u, du);
      primitives::matmul(device, ones, d_u, drb.reshape({1, 3 * d}));
    }
  }

  /// `own`: with weights and gradients.
  void begin(const Device& on, const GruShape& shape, bool own) {
    GruSequence::parameter_count(shape);
    if (shape.storage != Storage::f32 && shape.storage != Storage::f64)
      throw InputError(fmt::format("elements of {}", name(shape.storage)), "GruSequence", "f32 or f64");
    device = on, s = shape;
    if (is_narrow() && shape.storage != Storage::f32)
      throw InputError(fmt::format("weights in {} of a sequence in f64", name(shape.weights)), "GruSequence",
                       "a sequence in f32");
    const variants::Axis sequences{"sequences", double(s.batch)};
    const auto applies = [&](int variant) {
      return Steps(variant) == Steps::cluster ? no_sequence_cluster(device, s) : std::string();
    };
    const auto scratch = [&](int variant) {
      by = Steps(variant);
      predict(own);
      return memory.total();
    };
    by = Steps(variants::choose(gru_computation(), device, {{}, {&sequences, 1}}, s.variant,
                                variants::with_memory(gru_computation(), device, applies, scratch))
                   .variant);
    predict(own);
  }
  void bind(const Buffer& all, const Buffer& all_gradients) {
    std::tie(w, u, b, rb) = std::tuple_cat(parts(all, !is_narrow()));
    if (s.backward) std::tie(dw, du, db, drb) = std::tuple_cat(parts(all_gradients, true));
  }

  void expect(const Buffer& given, const Shape& shape, const char* what) const {
    if (given.storage() != s.storage || given.shape() != shape || !given.contiguous())
      throw InputError(fmt::format("{} {} {}", what, name(given.storage()), to_string(given.shape())),
                       "GruSequence", fmt::format("{} {}", name(s.storage), to_string(shape)));
  }
  void expect(const Array& given, const Sizes& shape, const char* what) const {
    if (given.storage() != s.storage || given.shape() != shape)
      throw InputError(fmt::format("{} of {} elements of {}", what, given.elements(), name(given.storage())),
                       "GruSequence", fmt::format("{} ({})", name(s.storage), fmt::join(shape, ", ")));
  }
  void set(const Array& from, const Sizes& shape, const Buffer& to, const char* what) const {
    expect(from, shape, what);
    const Array packed = from.packed();
    device.write(to, packed.data(), packed.bytes());
  }
};

int64_t GruSequence::parameter_count(const GruShape& shape) {
  if (shape.steps < 1 || shape.batch < 1 || shape.inputs < 1 || shape.hidden < 1)
    throw InputError(fmt::format("{} steps, {} sequences, {} inputs, {} hidden", shape.steps, shape.batch,
                                 shape.inputs, shape.hidden),
                     "GruSequence", "1 or more of each");
  return 3 * shape.hidden * (shape.inputs + shape.hidden + (shape.form == GruForm::reset_after ? 2 : 1));
}

GruSequence::GruSequence(const Device& device, const GruShape& shape) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.begin(device, shape, true);
  const auto make = [&](int64_t count) {
    const Buffer buffer = device.allocate(shape.storage, {count});
    device.clear(buffer);
    return buffer;
  };
  s.bind(make(s.weight_elements()), shape.backward ? make(parameter_count(shape)) : Buffer());
  s.allocate();
}

GruSequence::GruSequence(const Device& device, const GruShape& shape, const Buffer& weights,
                         const Buffer& gradients)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.begin(device, shape, false);
  if (s.is_narrow())
    throw InputError(
        fmt::format("weights in buffers of the caller that are stored in {}", name(shape.weights)),
        "GruSequence", "f32, or set_weights");
  s.expect(weights, {parameter_count(shape)}, "weights");
  if (shape.backward) s.expect(gradients, {parameter_count(shape)}, "gradients");
  s.bind(weights, gradients);
  s.allocate();
}
GruSequence::~GruSequence() = default;
GruSequence::GruSequence(GruSequence&&) noexcept = default;
GruSequence& GruSequence::operator=(GruSequence&&) noexcept = default;

void GruSequence::set_weights(const GruWeights& weights) {
  const State& s = *state_;
  const int64_t d = s.s.hidden;
  if (s.before() && !weights.rb.empty())
    throw InputError("recurrent biases", "GruSequence", "none with reset_before");
  s.set(weights.w, {s.s.inputs, 3 * d}, s.w, "W");
  if (s.is_narrow()) {
    s.expect(weights.u, {d, 3 * d}, "U");
    s.narrow.set(weights.u);
  } else {
    s.set(weights.u, {d, 3 * d}, s.u, "U");
  }
  s.set(weights.b, {3 * d}, s.b, "b");
  if (!weights.rb.empty())
    s.set(weights.rb, {3 * d}, s.rb, "rb");
  else if (!s.before())
    s.device.clear(s.rb);
}

void GruSequence::forward(const Buffer& x, const Buffer& h0) {
  State& s = *state_;
  s.expect(x, {s.s.steps, s.s.batch, s.s.inputs}, "x");
  s.expect(h0, {s.s.batch, s.s.hidden}, "h0");
  s.x = x;
  s.device.copy(h0, s.states.rows(0, 1));
  s.s.storage == Storage::f64 ? s.forward<f64>() : s.forward<f32>();
}

void GruSequence::backward(const Buffer& d_states, double decay) {
  State& s = *state_;
  if (!s.s.backward)
    throw InputError("backward of a sequence without memory for it", "GruSequence", "GruShape::backward");
  if (!s.x) throw InputError("backward before forward", "GruSequence", "forward first");
  s.expect(d_states, {s.s.steps, s.s.batch, s.s.hidden}, "gradient of states");
  s.s.storage == Storage::f64 ? s.backward<f64>(d_states, decay) : s.backward<f32>(d_states, decay);
}

Buffer GruSequence::states() const { return state_->states; }
GruSequence::Gradients GruSequence::gradients() const {
  return {state_->dw, state_->du, state_->db, state_->drb};
}
Buffer GruSequence::d_x() const { return state_->dx; }
Buffer GruSequence::d_h0() const { return state_->carried[0]; }

const GruMemory& GruSequence::memory() const { return state_->memory; }

std::vector<Kernel> GruSequence::kernels() const {
  const State& g = *state_;
  const auto of = [&]<class T>(T) -> std::vector<Kernel> {
    if (g.before())
      return {g.bias_kernel<T>(), g.forward_kernel<T>(0), g.forward_kernel<T>(1), g.back_kernel<T>(0),
              g.back_kernel<T>(1)};
    return {g.bias_kernel<T>(), g.forward_kernel<T>(0), g.back_kernel<T>(0)};
  };
  std::vector<Kernel> all = g.s.storage == Storage::f64 ? of(f64()) : of(f32());
  g.with_types([&]<class T, class W>(T, W) {
    if (std::is_same_v<W, f32> && std::is_same_v<T, f32>) all.push_back(sequence_kernel(g.s.form));
    for (const bool several : {false, true}) {
      const SequenceRowKernels& k = sequence_row_kernels<T, W>(g.s.form, several);
      for (const Kernel& kernel : {k.gates, k.back, k.back_add}) all.push_back(kernel);
      if (g.before()) all.push_back(k.candidate);
    }
  });
  if (g.is_narrow())
    for (const Kernel& kernel : g.narrow.kernels()) all.push_back(kernel);
  return all;
}

}  // namespace lockstep::forecast
