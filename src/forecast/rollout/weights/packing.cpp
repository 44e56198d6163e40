#include "forecast/rollout/weights/packing.hpp"

#include <algorithm>
#include <span>

#include "forecast/rollout/kernels.hpp"
#include "forecast/rollout/weights/narrow.hpp"

namespace lockstep::forecast {

namespace {

template <class T>
struct Packer {
  const RolloutModel& model;
  const RolloutLayout& l;

  Array zeros(Sizes shape) const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return Array::of(std::vector<T>(size_t(count), T(0)), std::move(shape));
  }
  /// (blocks, columns, gates P): to[block, place of k, g P + lane] = matrix g [member, block P + lane, k].
  template <class Place>
  Array matrices(std::span<const Array* const> gates, int64_t width, int64_t columns, Place place) const {
    const auto count = int64_t(gates.size());
    Array packed = zeros({l.members * l.blocks, columns, count * l.p});
    const std::span<T> to = packed.mutate<T>();
    for (int64_t g = 0; g < count; ++g) {
      const std::span<const T> from = gates[size_t(g)]->as<T>();
      for (int64_t m = 0; m < l.members; ++m)
        for (int64_t row = 0; row < l.hidden; ++row) {
          const int64_t block = m * l.blocks + row / l.p, lane = g * l.p + row % l.p;
          const T* line = from.data() + (m * l.hidden + row) * width;
          for (int64_t k = 0; k < width; ++k)
            to[size_t((block * columns + place(k)) * count * l.p + lane)] = line[k];
        }
    }
    return packed;
  }
  Array biases() const {
    Array packed = zeros({l.members * l.blocks, l.bias_rows, l.p});
    const std::span<T> to = packed.mutate<T>();
    const bool fp8 = l.weights == WeightType::fp8;
    for (int64_t m = 0; m < l.members; ++m)
      for (int64_t row = 0; row < l.hidden; ++row) {
        const auto put = [&](int64_t which, T value) {
          to[size_t(((m * l.blocks + row / l.p) * l.bias_rows + which) * l.p + row % l.p)] = value;
        };
        const auto at = [&](const Array& a) {
          return a.empty() ? T(0) : a.as<T>()[size_t(m * l.hidden + row)];
        };
        put(0, at(model.b[0]) + at(model.rb[0]));
        put(1, at(model.b[1]) + at(model.rb[1]));
        put(2, at(model.b[2]));
        put(3, at(model.rb[2]));
        for (size_t g = 0; fp8 && g < 3; ++g) put(4 + int64_t(g), T(row_scale(row_of(model.u[g], m, row))));
      }
    return packed;
  }
  std::span<const float> row_of(const Array& u, int64_t member, int64_t row) const {
    return u.as<float>().subspan(size_t((member * l.hidden + row) * l.hidden), size_t(l.hidden));
  }
  /// As the kernels read them: bf16, or e4m3 over the row's scale.
  Array narrow(const Array& packed, std::span<const Array* const> gates) const {
    const std::span<const float> from = packed.as<float>();
    if (l.weights == WeightType::bf16) return packed.to(Storage::bf16);
    std::vector<uint8_t> bytes(from.size());
    const auto count = int64_t(gates.size()), line = count * l.p;
    for (int64_t block = 0; block < l.members * l.blocks; ++block)
      for (int64_t lane = 0; lane < line; ++lane) {
        const int64_t row = block % l.blocks * l.p + lane % l.p;
        if (row >= l.hidden) continue;
        const float scale = row_scale(row_of(*gates[size_t(lane / l.p)], block / l.blocks, row));
        for (int64_t k = 0; k < l.columns; ++k) {
          const auto at = size_t((block * l.columns + k) * line + lane);
          bytes[at] = f32_to_e4m3(from[at] / scale);
        }
      }
    return Array::of(std::move(bytes), packed.shape());
  }
  Array classic_head() const {
    Array packed = zeros({l.head});
    const std::span<const T> from = model.head.as<T>();
    const std::span<T> to = packed.mutate<T>();
    for (int64_t i = 0; i < l.hidden; ++i) to[size_t(i)] = from[size_t(i)];
    for (int64_t i = 0; i < l.states; ++i) to[size_t(l.rows + i)] = from[size_t(l.hidden + i)];
    return packed;
  }
  Array two_hot_head() const {
    Array packed = zeros({l.head});
    T* to = packed.mutate<T>().data();
    const int64_t classes = model.projection_bias.elements(), bins = model.bins.size(0),
                  width = model.bins.size(1);
    // Row `row` of `count`, column by column.
    const auto put = [&](const T* from, int64_t columns, int64_t row, int64_t count) {
      for (int64_t k = 0; k < columns; ++k) to[k * count + row] = from[k];
    };
    const auto put_chains = [&](const T* from, int64_t row, int64_t count) {
      for (int64_t k = 0; k < l.hidden; ++k) to[chain_place(k, l.columns) * count + row] = from[k];
    };
    const T *p = model.projection.as<T>().data(), *v = model.bins.as<T>().data();
    for (int64_t i = 0; i < classes; ++i) put_chains(p + i * l.hidden, i, classes);
    to += l.columns * classes;
    to = std::copy_n(model.projection_bias.as<T>().data(), classes, to);
    for (int64_t n = 0; n < bins; ++n) put_chains(v + n * width, n, bins);
    to += l.columns * bins;
    for (int64_t n = 0; n < bins; ++n) put(v + n * width + l.hidden, classes, n, bins);
    to += classes * bins;
    std::copy_n(model.bins_bias.as<T>().data(), bins, to);
    return packed;
  }
};

}  // namespace

template <class T>
PackedWeights pack(const RolloutModel& model, const RolloutLayout& l) {
  const Packer<T> packer{model, l};
  PackedWeights packed;
  const Array* const zr[] = {&model.u[0], &model.u[1]};
  const Array* const n[] = {&model.u[2]};
  const Array* const input[] = {&model.w[0], &model.w[1], &model.w[2]};
  const auto chained = [&](int64_t k) { return l.chained ? chain_place(k, l.columns) : k; };
  packed.zr = packer.matrices(zr, l.hidden, l.columns, chained);
  packed.n = packer.matrices(n, l.hidden, l.columns, chained);
  if constexpr (std::is_same_v<T, f32>)
    if (l.weights != WeightType::f32) {
      packed.zr = packer.narrow(packed.zr, zr);
      packed.n = packer.narrow(packed.n, n);
    }
  packed.input = packer.matrices(input, l.inputs, l.inputs, [](int64_t k) { return k; });
  packed.bias = packer.biases();
  packed.head = l.values > 3 ? packer.two_hot_head() : packer.classic_head();
  packed.h0 = packer.zeros({l.members, l.rows});
  if (!model.h0.empty()) {
    const std::span<const T> from = model.h0.as<T>();
    const std::span<T> to = packed.h0.template mutate<T>();
    for (int64_t m = 0; m < l.members; ++m)
      for (int64_t i = 0; i < l.hidden; ++i) to[size_t(m * l.rows + i)] = from[size_t(m * l.hidden + i)];
  }
  return packed;
}

template PackedWeights pack<f32>(const RolloutModel&, const RolloutLayout&);
template PackedWeights pack<f64>(const RolloutModel&, const RolloutLayout&);

}  // namespace lockstep::forecast
