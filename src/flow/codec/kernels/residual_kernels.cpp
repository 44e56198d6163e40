// Residuals with a bound on the error. Encoder and decoder form a value by one and the same expression, so that what
// the encoder found within the bound is what the decoder gives.
#include "flow/codec/kernels/residual_kernels.hpp"

namespace lockstep::flow {

namespace {

Val<u32> to_code(const Val<i32>& q) {
  const Val<u32> bits = bitcast<u32>(q);
  return select(q < 0, ~(bits << 1u), bits << 1u);
}
Val<i32> from_code(const Val<u32>& code) {
  return bitcast<i32>(select((code & 1u) != 0u, ~(code >> 1u), code >> 1u));
}

/// f32 as whole numbers in the same order.
Val<u32> ordered(const Val<f32>& v) {
  const Val<u32> bits = bitcast<u32>(v);
  return select((bits >> 31u) != 0u, ~bits, bits | 0x80000000u);
}
Val<f32> from_ordered(const Val<u32>& o) {
  return bitcast<f32>(select((o >> 31u) != 0u, o & 0x7FFFFFFFu, ~o));
}

/// A transform that overflowed predicts 0.
Val<f32> sound(const Val<f32>& prediction) {
  return select(abs(prediction) <= 3e38f, prediction, Val<f32>(0.0f));
}
Val<f32> value_of(const Val<f32>& prediction, const Val<f32>& steps, const Val<f32>& step) {
  return fma(steps, step, prediction);
}

}  // namespace

const Kernel& ResidualKernels::quantise() {
  static const Kernel made =
      kernel("flow.codec.quantise", [](At<2> at, Grid<f32, 2> latent, Grid<f32, 1> gain, Out<u32, 2> codes) {
        const Val<i32> m = at.y, j = at.x;
        const Val<f32> q = rint(latent(m, j) * gain[j]);
        const Val<f32> beyond = select(abs(q) > kMostCode, copysign(Val<f32>(kMostCode), q), Val<f32>(0.0f));
        codes(m, j) = to_code(cast<i32>(select(abs(q) <= kMostCode, q, beyond)));
      });
  return made;
}

const Kernel& ResidualKernels::dequantise() {
  static const Kernel made = kernel("flow.codec.dequantise",
                                    [](At<2> at, Grid<u32, 2> codes, Grid<f32, 1> step, Out<f32, 2> latent) {
                                      const Val<i32> m = at.y, j = at.x;
                                      latent(m, j) = cast<f32>(from_code(codes(m, j))) * step[j];
                                    });
  return made;
}

const Kernel& ResidualKernels::bounded() {
  static const Kernel made = kernel(
      "flow.codec.bounded", [](At<3> at, Grid<f32, 3> field, Grid<f32, 3> prediction, Out<u32, 3> codes,
                               InOut<u32, 1> flags, Param<f32> step, Param<f32> limit) {
        const Val<i32> m = at.z, y = at.y, x = at.x;
        const Val<f32> w = field(m, y, x), p = sound(prediction(m, y, x));
        const Val<f32> wanted = rint((w - p) / step);
        const Val<bool> held = abs(wanted) <= kMostCode;
        const Val<f32> steps = select(held, wanted, Val<f32>(0.0f));
        const Val<bool> good = held && abs(value_of(p, steps, step) - w) <= limit;
        codes(m, y, x) = to_code(cast<i32>(steps));
        if_(!good, [&] { flags[m].atomic_max(1u); });
      });
  return made;
}

const Kernel& ResidualKernels::exact() {
  static const Kernel made = kernel(
      "flow.codec.exact",
      [](At<3> at, Grid<f32, 3> field, Grid<f32, 3> prediction, Grid<u32, 1> flags, InOut<u32, 3> codes) {
        const Val<i32> m = at.z, y = at.y, x = at.x;
        if_(flags[m] != 0u, [&] {
          const Val<u32> distance = ordered(field(m, y, x)) - ordered(sound(prediction(m, y, x)));
          codes(m, y, x) = to_code(bitcast<i32>(distance));
        });
      });
  return made;
}

const Kernel& ResidualKernels::restore() {
  static const Kernel made = kernel("flow.codec.restore", [](At<3> at, Grid<u32, 3> codes, Grid<u32, 1> flags,
                                                             InOut<f32, 3> field, Param<f32> step) {
    const Val<i32> m = at.z, y = at.y, x = at.x;
    const Val<f32> p = sound(field(m, y, x));
    const Val<i32> q = from_code(codes(m, y, x));
    const Val<f32> bits = from_ordered(ordered(p) + bitcast<u32>(q));
    field(m, y, x) = select(flags[m] != 0u, bits, value_of(p, cast<f32>(q), step));
  });
  return made;
}

}  // namespace lockstep::flow
